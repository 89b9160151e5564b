"""Digests: the evidence that an approval is bound to, and the identity of one attempt at a repair."""

import hashlib
import json
from collections.abc import Iterable

from checks.finding import Finding


def digest(value: object) -> str:
    """Return the first 16 hex digits of the SHA-256 of `value` as canonical JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def action_id(cluster: str, node_uid: str, incident: str, attempt: int) -> str:
    """Return the identity of one attempt at one repair; every external write carries it (safety rule 2)."""
    return digest([cluster, node_uid, incident, attempt])[:12]


def evidence_digest(boot_id: str, findings: Iterable[Finding]) -> str:
    """Return the digest of these faults in this boot, however often they occurred (safety rule 1)."""
    faults = sorted((finding.key, finding.severity.value) for finding in findings)
    return digest([boot_id, faults])
