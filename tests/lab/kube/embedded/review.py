"""Reviews: questions that are answered and not stored."""

from __future__ import annotations

from tests.lab.kube.embedded import rbac
from tests.lab.kube.embedded.errors import Obj, bad_request
from tests.lab.kube.embedded.rbac import Question
from tests.lab.kube.embedded.state import Request, State, stamp
from tests.lab.kube.embedded.tokens import ISSUER, Identity, InvalidTokenError, authenticate, request_token


def answer(state: State, request: Request, body: Obj) -> Obj:
    """The review with its status filled in."""
    resource, spec = request.resource, body.get("spec") or {}
    head = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": body.get("metadata") or {}}
    match resource.kind:
        case "TokenReview":
            return {**head, "spec": spec, "status": _token_status(state, spec)}
        case _:
            return {**head, "spec": spec, "status": _access_status(state, _subject(spec), spec)}


def _token_status(state: State, spec: Obj) -> Obj:
    wanted = spec.get("audiences") or [ISSUER]
    try:
        identity = authenticate(state, spec.get("token") or "")
    except InvalidTokenError as refused:
        return {"user": {}, "error": str(refused)}
    if state.faults.audience_unaware:
        return {"authenticated": True, "user": identity.info()}
    shared = [audience for audience in wanted if audience in identity.audiences]
    if not shared:
        sentence = (
            f"[invalid bearer token, token audiences {_listed(identity.audiences)} is invalid for the target "
        )
        return {"user": {}, "error": sentence + f"audiences {_listed(wanted)}]"}
    return {"authenticated": True, "user": identity.info(), "audiences": shared}


def _listed(audiences: object) -> str:
    return str(list(audiences)).replace("'", '"')  # type: ignore[call-overload]


def _subject(spec: Obj) -> Identity:
    if not spec.get("user") and not spec.get("groups"):
        raise bad_request("at least one of user or group must be specified")
    return Identity(spec.get("user") or "", spec.get("uid") or "", tuple(spec.get("groups") or ()))


def _access_status(state: State, subject: Identity, spec: Obj) -> Obj:
    asked: Obj = spec.get("resourceAttributes") or {}
    path: Obj = spec.get("nonResourceAttributes") or {}
    if bool(asked) == bool(path):
        raise bad_request("exactly one of resourceAttributes or nonResourceAttributes must be specified")
    if path:
        question = Question(path.get("verb", ""), path=path.get("path", ""))
    else:
        parts = ("group", "resource", "subresource", "namespace", "name")
        question = Question(asked.get("verb", ""), **{part: asked.get(part) or "" for part in parts})
    reason = rbac.allowed(state, subject, question)
    return {"allowed": True, "reason": reason} if reason else {"allowed": False}


def token_request(state: State, account: Obj, body: Obj) -> Obj:
    """The TokenRequest with its token."""
    claims = request_token(state, account, body)
    spec = {"audiences": claims["aud"], "expirationSeconds": claims["exp"] - claims["iat"]}
    bound = (body.get("spec") or {}).get("boundObjectRef")
    meta = {"name": account["metadata"]["name"], "namespace": account["metadata"]["namespace"]}
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {**meta, "creationTimestamp": stamp(claims["iat"])},
        "spec": spec | ({"boundObjectRef": bound} if bound else {}),
        "status": {"token": state.signer.sign(claims), "expirationTimestamp": stamp(claims["exp"])},
    }
