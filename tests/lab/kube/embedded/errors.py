"""What the API server refuses, as an exception that carries its Status body."""

from __future__ import annotations

from typing import Any

Obj = dict[str, Any]
"""A Kubernetes object as JSON: never changed once it is stored."""


class ApiError(Exception):
    """One refusal: HTTP code, machine-readable reason, sentence, details (with causes)."""

    def __init__(self, code: int, reason: str, message: str, details: Obj | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details

    def status(self) -> Obj:
        """The body that goes over the wire."""
        return status("Failure", self.message, self.reason, self.details, self.code)


def status(
    outcome: str, message: str = "", reason: str = "", details: Obj | None = None, code: int = 0
) -> Obj:
    body: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": outcome}
    for key, value in (("message", message), ("reason", reason), ("details", details), ("code", code)):
        if value:
            body[key] = value
    return body


def qualified(plural: str, group: str) -> str:
    """How Kubernetes names a resource in a sentence: `pods`, `leases.coordination.k8s.io`."""
    return f"{plural}.{group}" if group else plural


def about(plural: str, group: str, name: str) -> Obj:
    """Status details for one object."""
    return {k: v for k, v in (("name", name), ("group", group), ("kind", plural)) if v}


def not_found(plural: str, group: str, name: str) -> ApiError:
    return ApiError(
        404, "NotFound", f'{qualified(plural, group)} "{name}" not found', about(plural, group, name)
    )


def no_such_path() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(plural: str, group: str, name: str) -> ApiError:
    message = f'{qualified(plural, group)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, about(plural, group, name))


def conflict(plural: str, group: str, name: str, why: str) -> ApiError:
    message = f'Operation cannot be fulfilled on {qualified(plural, group)} "{name}": {why}'
    return ApiError(409, "Conflict", message, about(plural, group, name))


def stale(plural: str, group: str, name: str) -> ApiError:
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(plural, group, name, why)


def invalid(kind: str, group: str, name: str, causes: list[tuple[str, str, str]]) -> ApiError:
    """422; each cause is (field path, reason such as FieldValueRequired, sentence)."""
    sentences = [f"{field}: {message}" for field, _, message in causes]
    joined = sentences[0] if len(sentences) == 1 else "[" + ", ".join(sentences) + "]"
    details = {**about("", group, name), "kind": kind}
    details["causes"] = [
        {"reason": why, "message": message, "field": field} for field, why, message in causes
    ]
    return ApiError(422, "Invalid", f'{qualified(kind, group)} "{name}" is invalid: {joined}', details)


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def forbidden(plural: str, group: str, name: str, why: str) -> ApiError:
    named = (
        f'{qualified(plural, group)} "{name}" is forbidden'
        if name
        else f"{qualified(plural, group)} is forbidden"
    )
    return ApiError(403, "Forbidden", f"{named}: {why}", about(plural, group, name))


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def expired(message: str) -> ApiError:
    return ApiError(410, "Expired", message)
