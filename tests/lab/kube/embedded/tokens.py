"""Service account tokens: made by TokenRequest, checked on every request and by TokenReview."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.lab.kube.embedded.errors import Obj, bad_request, conflict, invalid, not_found

if TYPE_CHECKING:
    from tests.lab.kube.embedded.state import State

ISSUER = "https://kubernetes.default.svc"
"""Audience of tokens for the API server itself, as the real lab server is started with."""
LEEWAY_SECONDS = 60
"""A token is taken for so long after its end (go-jose's default)."""
SHORTEST_SECONDS = 600
"""TokenRequest refuses less (kube-apiserver, 10 minutes)."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks; `audiences` are those the token was made for."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, list[str]] = field(default_factory=dict)
    audiences: tuple[str, ...] = ()

    @property
    def superuser(self) -> bool:
        return "system:masters" in self.groups

    def info(self) -> Obj:
        """As `UserInfo` in reviews."""
        found: Obj = {
            "username": self.user,
            "uid": self.uid,
            "groups": list(self.groups),
            "extra": self.extra,
        }
        return {key: value for key, value in found.items() if value}


ANONYMOUS = Identity("system:anonymous", groups=("system:unauthenticated",))
ADMIN = Identity("admin", "admin-uid", ("system:masters", "system:authenticated"), audiences=(ISSUER,))


class InvalidTokenError(Exception):
    """Why a token proves nothing; the sentence goes into TokenReview's status.error."""


class Signer:
    """JSON Web Tokens with a key of this server (HS256: nobody else has to check them)."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def sign(self, claims: Obj) -> str:
        parts = [_encode({"alg": "HS256", "typ": "JWT"}), _encode(claims)]
        return ".".join([*parts, self._signature(".".join(parts))])

    def claims(self, token: str) -> Obj:
        """The claims of a token that we signed.

        Raises:
            InvalidTokenError: not ours or damaged.
        """
        signed, _, signature = token.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(signed).encode()):
            raise InvalidTokenError("invalid bearer token")
        payload = signed.split(".")[1]
        claims: Obj = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return claims

    def _signature(self, text: str) -> str:
        digest = hmac.new(self._key, text.encode(), hashlib.sha256).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _encode(value: Obj) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def request_token(state: State, account: Obj, body: Obj) -> Obj:
    """Answer a TokenRequest for a service account.

    Raises:
        ApiError: 422 for a lifetime under ten minutes, 404 or 409 for the object it shall be bound to.
    """
    spec = body.get("spec") or {}
    seconds = int(spec.get("expirationSeconds") or 3600)
    namespace, name = account["metadata"]["namespace"], account["metadata"]["name"]
    if seconds < SHORTEST_SECONDS:
        message = f"Invalid value: {seconds}: may not specify a duration less than 10 minutes"
        causes = [("spec.expirationSeconds", "FieldValueInvalid", message)]
        raise invalid("TokenRequest", "authentication.k8s.io", "", causes)
    now = state.now()
    private: Obj = {
        "namespace": namespace,
        "serviceaccount": {"name": name, "uid": account["metadata"]["uid"]},
    }
    if bound := spec.get("boundObjectRef"):
        private |= _bound_claims(state, namespace, name, bound)
    return {
        "iss": ISSUER,
        "sub": f"system:serviceaccount:{namespace}:{name}",
        "aud": spec.get("audiences") or [ISSUER],
        "exp": int(now) + seconds,
        "iat": int(now),
        "nbf": int(now),
        "jti": str(uuid.uuid4()),
        "kubernetes.io": private,
    }


def _bound_claims(state: State, namespace: str, account: str, bound: Obj) -> Obj:
    if bound.get("kind") != "Pod":
        raise bad_request(
            f'cannot bind token for serviceaccount "{account}" to a {bound.get("kind")} here: Pod only'
        )
    pod = state.store.get("pods", namespace, bound.get("name", ""))
    if pod is None:
        raise not_found("pods", "", bound.get("name", ""))
    if bound.get("uid") and bound["uid"] != pod["metadata"]["uid"]:
        why = f"the UID in the bound object reference ({bound['uid']}) does not match the UID in record. "
        raise conflict(
            "pods", "", bound["name"], why + "The object might have been deleted and then recreated"
        )
    if pod["spec"].get("serviceAccountName", "default") != account:
        refused = f'cannot bind token for serviceaccount "{account}"'
        raise bad_request(f"{refused} to pod running with different serviceaccount name.")
    claims: Obj = {"pod": {"name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}}
    if node_name := pod["spec"].get("nodeName"):
        node = state.store.get("nodes", "", node_name)
        claims["node"] = {"name": node_name} | ({"uid": node["metadata"]["uid"]} if node else {})
    return claims


def authenticate(state: State, token: str) -> Identity:
    """Who a bearer token speaks for, whatever its audience.

    Raises:
        InvalidTokenError: unknown, expired, or what it is bound to is gone.
    """
    if token == state.admin_token:
        return ADMIN
    claims = state.signer.claims(token)
    if claims["exp"] + LEEWAY_SECONDS < state.now():
        raise InvalidTokenError("[invalid bearer token, service account token has expired]")
    private = claims["kubernetes.io"]
    namespace, account = private["namespace"], private["serviceaccount"]
    _still_there(state, "serviceaccounts", namespace, account)
    if pod := private.get("pod"):
        _still_there(state, "pods", namespace, pod)
    return Identity(
        user=claims["sub"],
        uid=account["uid"],
        groups=("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"),
        extra=_extra(claims),
        audiences=tuple(claims["aud"]),
    )


def _still_there(state: State, table: str, namespace: str, reference: dict[str, Any]) -> None:
    found = state.store.get(table, namespace, reference["name"])
    if found is None or found["metadata"]["uid"] != reference["uid"]:
        raise InvalidTokenError("[invalid bearer token, service account token has been invalidated]")


def _extra(claims: Obj) -> dict[str, list[str]]:
    private = claims["kubernetes.io"]
    extra = {"authentication.kubernetes.io/credential-id": [f"JTI={claims['jti']}"]}
    for kind in ("node", "pod"):
        for key, value in private.get(kind, {}).items():
            extra[f"authentication.kubernetes.io/{kind}-{key}"] = [value]
    return extra
