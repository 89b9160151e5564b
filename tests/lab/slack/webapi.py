"""The Web API over HTTP: `POST /api/METHOD`, tokens, bodies, planned faults, and the log of requests."""

import asyncio
import json
import socket
import struct
from dataclasses import dataclass

from aiohttp import web

from tests.lab.slack import chat_methods, conversation_methods, directory_methods
from tests.lab.slack.faults import Fault, Faults
from tests.lab.slack.methods import Method, Site
from tests.lab.slack.ratelimit import RateLimits
from tests.lab.slack.wire import Json, SlackError

METHODS: dict[str, Method] = {
    **chat_methods.METHODS,
    **conversation_methods.METHODS,
    **directory_methods.METHODS,
}


@dataclass(frozen=True)
class Call:
    """One request to the Web API: its arguments without the token, and what came of it."""

    method: str
    args: Json
    at: float
    status: int
    answer: Json
    fault: str | None = None


@dataclass(frozen=True)
class Tokens:
    """The two tokens that are good."""

    bot: str
    app: str


class WebApi:
    """Takes requests; keeps all of them in `calls`."""

    def __init__(self, site: Site, tokens: Tokens, faults: Faults) -> None:
        self._site = site
        self._tokens = tokens
        self._faults = faults
        self.limits = RateLimits(site.workspace.clock)
        self.calls: list[Call] = []

    async def take(self, request: web.Request) -> web.StreamResponse:
        """Answer one request to `/api/{method}`."""
        name = request.match_info["method"]
        try:
            args, token, warning = await _read(request, METHODS.get(name))
        except SlackError as error:
            return self._answered(name, {}, 200, error.answer())
        fault = self._faults.take(name)
        if fault is not None and fault.kind == "slow":
            await asyncio.sleep(fault.seconds)
        early = self._without_running(name, args, fault)
        if early is not None:
            if fault is not None and fault.kind == "reset_before":
                reset(request)
            return early
        answer = {**self._run(name, args, token), **warning}
        response = self._answered(name, args, 200, answer, fault.kind if fault else None)
        if fault is not None and fault.kind == "reset_after":
            reset(request)
        return response

    def _without_running(self, name: str, args: Json, fault: Fault | None) -> web.Response | None:
        wait = self.limits.seconds_to_wait(name, args)
        if wait:
            return self._ratelimited(name, args, wait)
        if fault is None or fault.kind in ("slow", "reset_after"):
            return None
        if fault.kind == "ratelimited":
            return self._ratelimited(name, args, int(fault.seconds))
        if fault.kind == "status":
            self._log(name, args, fault.status, {}, fault.kind)
            return web.Response(status=fault.status, text="upstream connect error", content_type="text/plain")
        return self._answered(name, args, 200, fault.answer, fault.kind)

    def _run(self, name: str, args: Json, token: str) -> Json:
        method = METHODS.get(name)
        if method is None:
            return SlackError("unknown_method", req_method=name).answer()
        try:
            self._refuse_token(method, token)
            with self._site.workspace.changed:
                return {"ok": True, **method.run(self._site, args)}
        except SlackError as error:
            return error.answer()

    def _refuse_token(self, method: Method, token: str) -> None:
        if method.token == "none":
            return
        if not token:
            raise SlackError("not_authed")
        if token not in (self._tokens.bot, self._tokens.app):
            raise SlackError("invalid_auth")
        wanted = self._tokens.bot if method.token == "bot" else self._tokens.app
        if token != wanted:
            raise SlackError("not_allowed_token_type")

    def _ratelimited(self, name: str, args: Json, seconds: int) -> web.Response:
        answer = {"ok": False, "error": "ratelimited"}
        self._log(name, args, 429, answer, "ratelimited")
        return web.json_response(answer, status=429, headers={"Retry-After": str(seconds)})

    def _answered(
        self, name: str, args: Json, status: int, answer: Json, fault: str | None = None
    ) -> web.Response:
        self._log(name, args, status, answer, fault)
        return web.json_response(answer, status=status)

    def _log(self, name: str, args: Json, status: int, answer: Json, fault: str | None) -> None:
        workspace = self._site.workspace
        with workspace.changed:
            self.calls.append(Call(name, args, workspace.clock(), status, answer, fault))
            workspace.touch()


def reset(request: web.Request) -> None:
    """Drop the connection with a TCP reset instead of an answer."""
    transport = request.transport
    if transport is None:
        return
    connection = transport.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


async def _read(request: web.Request, method: Method | None) -> tuple[Json, str, Json]:
    """Arguments, token and (perhaps) a warning; a token in the arguments wins over none in the header."""
    args: Json = dict(request.query)
    warning: Json = {}
    kind = request.content_type
    if kind == "application/json":
        if not (method and method.form_only):
            args |= _json_object(await request.text())
        if request.charset is None:
            warning = {"warning": "missing_charset"}
    elif kind in ("application/x-www-form-urlencoded", "multipart/form-data"):
        args |= {name: value for name, value in (await request.post()).items() if isinstance(value, str)}
    elif request.can_read_body:
        raise SlackError("invalid_post_type")
    token = str(args.pop("token", "") or "")
    header = request.headers.get("Authorization", "")
    if header.startswith("Bearer "):
        token = header.removeprefix("Bearer ").strip()
    return args, token, warning


def _json_object(body: str) -> Json:
    if not body:
        return {}
    try:
        value = json.loads(body)
    except ValueError:
        raise SlackError("invalid_json") from None
    if not isinstance(value, dict):
        raise SlackError("json_not_object")
    return value
