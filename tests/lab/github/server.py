"""GitHub on one machine: `GitHub(workdir)` serves REST, git over HTTP and webhooks from its own thread.

Everything that git can judge is in a real bare repository. Stopped and started again it has the same port and
the same repository, as a host that was down for a while.
"""

import asyncio
import re
import secrets
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from aiohttp import BasicAuth, web

from tests.lab.github.faults import Fault, Faults
from tests.lab.github.hooks import Hooks
from tests.lab.github.routes import routes
from tests.lab.github.store import Store
from tests.lab.github.wire import NOT_FOUND, STATE, USER, ApiError, Route, State, User
from tests.lab.web import bound, end, serve


@dataclass(frozen=True)
class Request:
    """One line of the log. `status` is 0 when the connection was closed without an answer."""

    method: str
    path: str
    status: int


class GitHub:
    """One repository of one host. `token` is our App's, which may pass branch rules."""

    repository = "example/cluster"

    def __init__(self, workdir: Path) -> None:
        self.bare = workdir / "cluster.git"
        self.faults = Faults()
        self.requests: list[Request] = []
        store = Store(self.bare)
        store.create()
        app = User("clusterwright[bot]", "clusterwright@localhost", _new_token("ghs"), bypass=True)
        self.state = State(store, self.repository, [app], Hooks())
        self._port = 0
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None

    # ---- addresses and accounts

    @property
    def api_url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def clone_url(self) -> str:
        return f"{self.api_url}/{self.repository}.git"

    @property
    def token(self) -> str:
        return self.state.users[0].token

    @property
    def store(self) -> Store:
        return self.state.store

    @property
    def hooks(self) -> Hooks:
        return self.state.hooks

    def add_user(self, login: str, email: str) -> str:
        """Return the token of a new account, which has to keep the branch rules."""
        user = User(login, email, _new_token("ghp"))
        self.state.users.append(user)
        return user.token

    def renew_token(self) -> str:
        """Return a new token of the App; the old one is refused from now on."""
        old = self.state.users[0]
        self.state.users[0] = User(old.login, old.email, _new_token("ghs"), old.bypass)
        return self.token

    def protect(self, branch: str, reviews: int = 1) -> None:
        """Let only the App push to a branch; others come by a pull request with `reviews` approvals."""
        self.state.protected[branch] = reviews
        lines = "".join(f"refs/heads/{name}\n" for name in self.state.protected)
        (self.bare / "protected-refs").write_text(lines)

    def seed(self, files: Mapping[str, str | bytes], branch: str = "main", message: str = "Seed") -> str:
        """Commit files as a person would and return the commit; webhooks hear of it."""
        old = self.store.resolve(branch)
        commit = self.store.add(branch, files, message)
        self.state.moved(f"refs/heads/{branch}", old, commit, self.state.users[0])
        return commit

    # ---- life

    def start(self) -> Self:
        listener = bound(self._port)
        self._port = listener.getsockname()[1]
        ready = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(listener, ready)), name="github", daemon=True
        )
        self._thread.start()
        ready.wait(timeout=30)
        return self

    def stop(self) -> None:
        """Close the port and every connection; the repository stays."""
        if self._thread is None or self._loop is None or self._stopping is None:
            return
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(timeout=30)
        self._thread = None
        self.hooks.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def _serve(self, listener: socket.socket, ready: threading.Event) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(
            middlewares=[self._log, self._fault, _errors, _authenticate], client_max_size=2**27
        )
        app[STATE] = self.state
        app.add_routes(routes())
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await serve(runner, listener)
        ready.set()
        await self._stopping.wait()
        await end(runner, listener)

    # ---- what every request passes

    @web.middleware
    async def _log(self, request: web.Request, handler: Route) -> web.StreamResponse:
        response = await handler(request)
        closed = request.transport is None or request.transport.is_closing()
        self.requests.append(Request(request.method, request.path_qs, 0 if closed else response.status))
        return response

    @web.middleware
    async def _fault(self, request: web.Request, handler: Route) -> web.StreamResponse:
        fault = self.faults.strike(request.method, request.path)
        refusal = None if fault is None else _refusal(fault)
        if refusal is not None:
            await request.read()
            return refusal.response()
        if fault is not None and fault.kind == "slow":
            await asyncio.sleep(fault.seconds)
        response = await handler(request)
        if request.method != "GET" and response.status < 300 and "git-upload-pack" not in request.path:
            self.faults.wrote()
        match fault.kind if fault else "":
            case "done-then-502":
                return web.json_response({"message": "Server Error"}, status=502)
            case "garbled":
                return web.Response(text="{oops", content_type="application/json")
            case "reply-lost" if request.transport is not None:
                request.transport.abort()
        return response


def _refusal(fault: Fault) -> ApiError | None:
    """Return the answer of a fault that keeps the request from being processed."""
    match fault.kind:
        case "limited":
            text = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
            return ApiError(403, text, headers={"Retry-After": str(round(fault.seconds))})
        case "not-there-yet":
            return ApiError(404, NOT_FOUND)
        case "not-fast-forward":
            return ApiError(422, "Update is not a fast forward")
        case "expired":
            return ApiError(401, "Bad credentials")
        case "forbidden":
            return ApiError(403, "Resource not accessible by integration")
        case "unavailable":
            return ApiError(503, "No server is currently available to service your request.")
        case _:
            return None


@web.middleware
async def _errors(request: web.Request, handler: Route) -> web.StreamResponse:
    try:
        return await handler(request)
    except ApiError as error:
        return error.response()
    except web.HTTPException as error:
        return ApiError(error.status, NOT_FOUND if error.status == 404 else error.reason).response()


@web.middleware
async def _authenticate(request: web.Request, handler: Route) -> web.StreamResponse:
    state = request.app[STATE]
    header, git = request.headers.get("Authorization", ""), ".git/" in request.path
    user = next(
        (each for each in state.users if secrets.compare_digest(each.token, _presented(header))), None
    )
    if user is None:
        words = "Bad credentials" if header else "Requires authentication"
        raise ApiError(401, words, headers={"WWW-Authenticate": 'Basic realm="GitHub"'} if git else {})
    request[USER] = user
    owner = request.match_info.get("owner")
    if owner is not None and f"{owner}/{request.match_info['repo']}" != state.repository:
        raise ApiError(404, NOT_FOUND)
    response = await handler(request)
    limits = {"Limit": "5000", "Remaining": "4990", "Used": "10", "Reset": "4102444800"}
    response.headers.update({f"X-RateLimit-{name}": value for name, value in limits.items()})
    return response


def _presented(header: str) -> str:
    kind, _, value = header.partition(" ")
    match kind.lower():
        case "bearer" | "token":
            return value
        case "basic":
            try:
                return str(BasicAuth.decode(header).password)
            except ValueError:
                return ""
        case _:
            return ""


def _new_token(kind: str) -> str:
    return f"{kind}_{re.sub('[^A-Za-z0-9]', '', secrets.token_urlsafe(40))}"
