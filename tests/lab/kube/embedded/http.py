"""HTTP on top: authentication, authorisation, routing, bodies, answers."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import msgspec
import yaml
from aiohttp import web

from tests.lab.kube.embedded import apply, delete, discovery, eviction, patch, rbac, review, route, write
from tests.lab.kube.embedded.errors import (
    ApiError,
    Obj,
    bad_request,
    forbidden,
    no_such_path,
    unauthorized,
)
from tests.lab.kube.embedded.listing import list_objects, refuse_unserved
from tests.lab.kube.embedded.rbac import Question
from tests.lab.kube.embedded.registry import REVIEWS
from tests.lab.kube.embedded.state import Request, State
from tests.lab.kube.embedded.tokens import ANONYMOUS, ISSUER, Identity, InvalidTokenError, authenticate
from tests.lab.kube.embedded.watch import watch

if TYPE_CHECKING:
    from collections.abc import Callable

HEALTH = {"/healthz", "/readyz", "/livez"}
VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
LARGEST_BODY = 3 * 1024 * 1024
"""Bytes, as in kube-apiserver."""


def application(state: State) -> web.Application:
    """The server's one handler behind aiohttp."""

    async def handle(http: web.Request) -> web.StreamResponse:
        try:
            return await _respond(state, http)
        except ApiError as refused:
            return _refused(refused)

    app = web.Application(client_max_size=LARGEST_BODY)
    app.router.add_route("*", "/{path:.*}", handle)
    return app


def _json(code: int, body: Obj) -> web.Response:
    return web.Response(status=code, body=msgspec.json.encode(body), content_type="application/json")


def _refused(refused: ApiError) -> web.Response:
    response = _json(refused.code, refused.status())
    if wait := (refused.details or {}).get("retryAfterSeconds"):
        response.headers["Retry-After"] = str(wait)
    return response


async def _respond(state: State, http: web.Request) -> web.StreamResponse:
    identity = _identity(state, http)
    return await state.faults.around(
        http.method, http.path, identity.user, lambda: _answer(state, http, identity)
    )


async def _answer(state: State, http: web.Request, identity: Identity) -> web.StreamResponse:
    found = route.parse(http.path)
    resource = state.registry.find(found.group, found.version, found.plural) if found else None
    if found is None or (resource is None and not found.plural):
        return _answer_path(state, http, identity)
    verb = _verb(http, found.name)
    question = Question(verb, found.group, found.plural, found.subresource, found.namespace, found.name)
    _authorize(state, identity, question)
    if resource is None:
        raise no_such_path()
    manager = http.query.get("fieldManager") or http.headers.get("User-Agent", "").split("/")[0] or "unknown"
    namespace = found.namespace if resource.namespaced else ""
    request = Request(resource, namespace, found.name, found.subresource, identity, http.query, manager)
    if verb == "watch":
        return await _stream(state, http, request)
    return await _run(state, http, request, verb)


def _identity(state: State, http: web.Request) -> Identity:
    kind, _, token = http.headers.get("Authorization", "").partition(" ")
    if not token:
        return ANONYMOUS
    try:
        identity = authenticate(state, token.strip())
    except InvalidTokenError as refused:
        raise unauthorized() from refused
    if kind != "Bearer" or ISSUER not in identity.audiences:
        raise unauthorized()
    return identity


def _verb(http: web.Request, name: str) -> str:
    verb = VERBS.get(http.method, http.method.lower())
    if verb == "get" and http.query.get("watch") in ("true", "1"):
        return "watch"
    if not name:
        return {"get": "list", "delete": "deletecollection"}.get(verb, verb)
    return verb


def _authorize(state: State, identity: Identity, question: Question) -> None:
    if rbac.allowed(state, identity, question):
        return
    if question.path:
        message = f'forbidden: User "{identity.user}" cannot {question.verb} path "{question.path}"'
        raise ApiError(403, "Forbidden", message, {})
    what = f"{question.resource}/{question.subresource}" if question.subresource else question.resource
    where = f'in the namespace "{question.namespace}"' if question.namespace else "at the cluster scope"
    why = f'User "{identity.user}" cannot {question.verb} resource "{what}" '
    why += f'in API group "{question.group}" {where}'
    raise forbidden(question.resource, question.group, question.name, why)


def _answer_path(state: State, http: web.Request, identity: Identity) -> web.Response:
    _authorize(state, identity, Question(VERBS.get(http.method, ""), path=http.path))
    if http.path in HEALTH:
        return web.Response(text="ok")
    document = discovery.document(state.registry, http.path)
    if document is None:
        return web.Response(status=404, text="404 page not found\n")
    return _json(200, document)


async def _stream(state: State, http: web.Request, request: Request) -> web.StreamResponse:
    refuse_unserved(request)
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    async with aclosing(watch(state, request)) as lines:
        await response.prepare(http)
        try:
            async for line in lines:
                await response.write(line)
        except (ConnectionError, asyncio.CancelledError):
            return response
    return response


async def _run(state: State, http: web.Request, request: Request, verb: str) -> web.Response:
    body: Any = {}
    if http.can_read_body:
        body = _decoded(request, http.content_type, await http.read())
    match verb:
        case "create":
            return _json(201, _created(state, request, body))
        case "patch" if http.content_type == patch.APPLY:
            obj, new = apply.apply(state, request, body)
            return _json(201 if new else 200, obj)
        case "patch":
            return _json(200, write.change(state, request, body, http.content_type))
    if verb not in ANSWERS or (verb == "delete" and request.subresource):
        message = "the server does not allow this method on the requested resource"
        raise ApiError(405, "MethodNotAllowed", message)
    if asked := http.query.get("gracePeriodSeconds"):
        body = {**body, "gracePeriodSeconds": int(asked)}
    return _json(200, ANSWERS[verb](state, request, body))


ANSWERS: dict[str, Callable[[State, Request, Obj], Obj]] = {
    "get": lambda state, request, _: write.existing(state, request),
    "list": lambda state, request, _: list_objects(state, request),
    "update": write.update,
    "delete": delete.delete,
    "deletecollection": delete.delete_collection,
}


def _decoded(request: Request, content_type: str, raw: bytes) -> Any:
    try:
        return msgspec.json.decode(raw or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError) as broken:
        why: Exception = broken
    try:
        if "yaml" in content_type:
            return yaml.load(raw, yaml.CSafeLoader)
    except yaml.YAMLError as broken:
        why = broken
    what = f"the object provided is unrecognized (must be of type {request.resource.kind})"
    raise bad_request(f"{what}: couldn't get version/kind; json parse error: {why}")


def _created(state: State, request: Request, body: Obj) -> Obj:
    if request.resource in REVIEWS:
        return review.answer(state, request, body)
    match request.resource.table, request.subresource:
        case "pods", "eviction":
            return eviction.evict(state, request, body)
        case "serviceaccounts", "token":
            return review.token_request(state, write.existing(state, request), body)
    if request.name:
        message = "the server does not allow this method on the requested resource"
        raise ApiError(405, "MethodNotAllowed", message)
    return write.create(state, request, body)
