"""The keys and certificates of one lab control plane, good for a week."""

from __future__ import annotations

import datetime as dt
import ipaddress
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from pathlib import Path

LIFETIME = dt.timedelta(days=7)
BACKDATED = dt.timedelta(minutes=5)
"""Certificates begin a little in the past, so that a clock step does not make them invalid."""

_Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


def write(folder: Path) -> None:
    """Write ca.crt, server.crt, server.key, sa.key and sa.pub."""
    authority = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "lab-ca")])
    usage = x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    root = (
        _begun(subject, authority)
        .issuer_name(subject)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(authority, hashes.SHA256())
    )
    _server(folder, authority, root)
    (folder / "ca.crt").write_bytes(root.public_bytes(serialization.Encoding.PEM))
    signing = rsa.generate_private_key(65537, 2048)
    _private(folder / "sa.key", signing)
    public = signing.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    (folder / "sa.pub").write_bytes(public)


def _begun(subject: x509.Name, key: _Key) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _server(folder: Path, authority: ec.EllipticCurvePrivateKey, root: x509.Certificate) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())
    certificate = (
        _begun(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")]), key)
        .issuer_name(root.subject)
        .add_extension(identifier, critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(authority, hashes.SHA256())
    )
    (folder / "server.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    _private(folder / "server.key", key)


def _private(path: Path, key: _Key) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
