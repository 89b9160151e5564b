"""What every route shares: the state behind the API, GitHub's error shape, addresses and paging."""

import hashlib
import json
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from tests.lab.github.hooks import Hooks
from tests.lab.github.store import Store

Json = dict[str, Any]

Route = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class User:
    """An account and its token. `bypass` lets it write to protected branches, as our App may."""

    login: str
    email: str
    token: str
    bypass: bool = False

    @property
    def id(self) -> int:
        return int(hashlib.sha256(self.login.encode()).hexdigest()[:7], 16)

    def identity(self) -> dict[str, str]:
        return {"name": self.login, "email": self.email}


@dataclass
class State:
    store: Store
    repository: str
    users: list[User]
    hooks: Hooks
    protected: dict[str, int] = field(default_factory=dict)
    pulls: dict[int, Json] = field(default_factory=dict)
    comments: dict[int, list[Json]] = field(default_factory=dict)
    reviews: dict[int, list[Json]] = field(default_factory=dict)
    statuses: list[Json] = field(default_factory=list)
    checks: dict[int, Json] = field(default_factory=dict)
    last_id: int = 1000
    lock: threading.Lock = field(default_factory=threading.Lock)

    def next_id(self) -> int:
        self.last_id += 1
        return self.last_id

    def moved(self, ref: str, old: str | None, new: str | None, user: User) -> None:
        """Tell the webhooks that a ref changed."""
        self.hooks.push(self.store, self.repository, ref, (old, new), user.login)

    def may_write(self, ref: str, user: User) -> None:
        if ref.removeprefix("refs/heads/") in self.protected and not user.bypass:
            raise ApiError(422, "Repository rule violations found\n\nCannot update this protected ref.")


STATE = web.AppKey("state", State)

USER = web.RequestKey("user", User)


class ApiError(Exception):
    """An answer in GitHub's error shape."""

    def __init__(
        self, status: int, message: str, errors: Iterable[Json] = (), headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body: Json = {
            "message": message,
            "status": str(status),
            "documentation_url": "https://docs.github.com/rest",
        }
        if errors:
            self.body["errors"] = list(errors)
        self.headers = headers

    def response(self) -> web.Response:
        return web.json_response(self.body, status=self.status, headers=self.headers)


NOT_FOUND = "Not Found"


def invalid(resource: str, name: str, message: str = "") -> ApiError:
    """The 422 of a request whose field is wrong."""
    error = {"resource": resource, "field": name, "code": "custom" if message else "invalid"}
    return ApiError(422, "Validation Failed", [error | ({"message": message} if message else {})])


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def api(request: web.Request) -> str:
    """The repository's address as the client asked for it: PyGithub refuses another host or port."""
    return f"{request.scheme}://{request.host}/repos/{request.app[STATE].repository}"


def page(request: web.Request) -> str:
    """The address people would open."""
    return f"{request.scheme}://{request.host}/{request.app[STATE].repository}"


async def body(request: web.Request) -> Json:
    try:
        value = json.loads(await request.read() or b"{}")
    except ValueError:
        raise ApiError(400, "Problems parsing JSON") from None
    if not isinstance(value, dict):
        raise ApiError(400, "Body should be a JSON object")
    return value


def text(value: Json, name: str, resource: str) -> str:
    """A field that must be a non-empty string."""
    found = value.get(name)
    if not isinstance(found, str) or not found:
        missing = f'Invalid request.\n\n"{name}" wasn\'t supplied.'
        raise ApiError(422, missing, [{"resource": resource, "field": name, "code": "missing_field"}])
    return found


def reply(
    request: web.Request, value: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    """Answer JSON with an ETag; a GET that names it gets 304."""
    raw = json.dumps(value).encode()
    tag = f'W/"{hashlib.sha256(raw).hexdigest()}"'
    if request.method == "GET" and request.headers.get("If-None-Match") == tag:
        return web.Response(status=304, headers={"ETag": tag})
    return web.Response(
        body=raw, status=status, content_type="application/json", headers={"ETag": tag, **(headers or {})}
    )


def number(request: web.Request, name: str, default: int, most: int) -> int:
    raw = request.query.get(name, "")
    return max(1, min(int(raw), most)) if raw.isdigit() else default


def cut(request: web.Request, items: list[Any]) -> tuple[list[Any], dict[str, str]]:
    """Return the page that was asked for and its Link header."""
    size, at = number(request, "per_page", 30, 100), number(request, "page", 1, 1_000_000)
    last = max(1, -(-len(items) // size))
    links = {"next": at + 1, "last": last} if at < last else {}
    if at > 1:
        links |= {"first": 1, "prev": at - 1}
    address = request.url.update_query(per_page=str(size))
    link = ", ".join(f'<{address.update_query(page=str(n))}>; rel="{rel}"' for rel, n in links.items())
    return items[(at - 1) * size : at * size], {"Link": link} if link else {}


def paged(request: web.Request, items: list[Any]) -> web.Response:
    shown, headers = cut(request, items)
    return reply(request, shown, headers=headers)


def user_json(request: web.Request, user: User) -> Json:
    kind = "Bot" if user.login.endswith("[bot]") else "User"
    url = f"{request.scheme}://{request.host}/users/{user.login}"
    return {"login": user.login, "id": user.id, "node_id": f"U_{user.id}", "url": url, "type": kind}


def sender(request: web.Request) -> User:
    return request[USER]
