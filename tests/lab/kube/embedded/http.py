"""HTTP on top: authentication, authorisation, routing, bodies, answers."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

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
    qualified,
    unauthorized,
)
from tests.lab.kube.embedded.listing import list_objects
from tests.lab.kube.embedded.rbac import Question
from tests.lab.kube.embedded.registry import REVIEWS
from tests.lab.kube.embedded.state import Request, State
from tests.lab.kube.embedded.tokens import ANONYMOUS, ISSUER, Identity, InvalidToken, authenticate
from tests.lab.kube.embedded.watch import watch

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
            return _json(refused.code, refused.status())

    app = web.Application(client_max_size=LARGEST_BODY)
    app.router.add_route("*", "/{path:.*}", handle)
    return app


def _json(code: int, body: Obj) -> web.Response:
    return web.Response(status=code, body=msgspec.json.encode(body), content_type="application/json")


async def _respond(state: State, http: web.Request) -> web.StreamResponse:
    identity = _identity(state, http)
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
    except InvalidToken as refused:
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
    why = f'User "{identity.user}" cannot {question.verb} resource "{what}" in API group "{question.group}" {where}'
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
    if verb == "create":
        return _json(*_created(state, request, body))
    if verb == "patch" and http.content_type == patch.APPLY:
        obj, new = apply.apply(state, request, body)
        return _json(201 if new else 200, obj)
    match verb:
        case "get":
            return _json(200, write.existing(state, request))
        case "list":
            return _json(200, list_objects(state, request))
        case "update":
            return _json(200, write.update(state, request, body))
        case "patch":
            return _json(200, write.change(state, request, body, http.content_type))
        case "delete":
            return _json(200, delete.delete(state, request, _options(http, body)))
        case "deletecollection":
            return _json(200, delete.delete_collection(state, request, _options(http, body)))
    raise ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


def _decoded(request: Request, content_type: str, raw: bytes) -> Any:
    try:
        return (
            yaml.load(raw, yaml.CSafeLoader) if "yaml" in content_type else msgspec.json.decode(raw or b"{}")
        )
    except (msgspec.DecodeError, yaml.YAMLError, UnicodeDecodeError) as error:
        what = f"the object provided is unrecognized (must be of type {request.resource.kind})"
        raise bad_request(f"{what}: couldn't get version/kind; json parse error: {error}") from error


def _options(http: web.Request, body: Obj) -> Obj:
    asked = http.query.get("gracePeriodSeconds")
    return {**body, **({"gracePeriodSeconds": int(asked)} if asked else {})}


def _created(state: State, request: Request, body: Obj) -> tuple[int, Obj]:
    what = (request.resource.table, request.subresource)
    if request.resource in REVIEWS:
        return 201, review.answer(state, request, body)
    if what == ("pods", "eviction"):
        return 201, eviction.evict(state, request, body)
    if what == ("serviceaccounts", "token"):
        return 201, review.token_request(state, write.existing(state, request), body)
    if request.name:
        message = f"the server does not allow this method on {qualified(request.resource.plural, request.resource.group)}"
        raise ApiError(405, "MethodNotAllowed", message)
    return 201, write.create(state, request, body)
