"""Refs and branches: created, moved only forward unless forced, deleted."""

from aiohttp import web

from tests.lab.github.shapes import (
    branch_json,
    known,
    ref_json,
)
from tests.lab.github.wire import (
    NOT_FOUND,
    STATE,
    ApiError,
    body,
    paged,
    reply,
    sender,
    text,
)


async def get_ref(request: web.Request) -> web.Response:
    name = f"refs/{request.match_info['ref']}"
    sha = request.app[STATE].store.refs().get(name)
    if sha is None:
        raise ApiError(404, NOT_FOUND)
    return reply(request, ref_json(request, name, sha))


async def list_refs(request: web.Request) -> web.Response:
    prefix = f"refs/{request.match_info.get('ref', '')}"
    refs = request.app[STATE].store.refs(prefix)
    return paged(request, [ref_json(request, name, sha) for name, sha in refs.items()])


async def create_ref(request: web.Request) -> web.Response:
    state, value = request.app[STATE], await body(request)
    name, sha = text(value, "ref", "Reference"), text(value, "sha", "Reference")
    if not name.startswith("refs/") or name.count("/") < 2:
        raise ApiError(422, "Reference name must start with 'refs/' and have at least two slashes.")
    state.may_write(name, sender(request))
    known(state.store, sha)
    if name in state.store.refs() or not state.store.move(name, sha, None):
        raise ApiError(422, "Reference already exists")
    state.moved(name, None, sha, sender(request))
    return reply(request, ref_json(request, name, sha), 201)


async def edit_ref(request: web.Request) -> web.Response:
    state, value = request.app[STATE], await body(request)
    name, sha = f"refs/{request.match_info['ref']}", text(value, "sha", "Reference")
    old = state.store.refs().get(name)
    if old is None:
        raise ApiError(422, "Reference does not exist")
    state.may_write(name, sender(request))
    known(state.store, sha)
    forced = value.get("force") is True
    if (not forced and not state.store.is_ancestor(old, sha)) or not state.store.move(name, sha, old):
        raise ApiError(422, "Update is not a fast forward")
    state.moved(name, old, sha, sender(request))
    return reply(request, ref_json(request, name, sha))


async def delete_ref(request: web.Request) -> web.Response:
    state, name = request.app[STATE], f"refs/{request.match_info['ref']}"
    old = state.store.refs().get(name)
    if old is None:
        raise ApiError(422, "Reference does not exist")
    state.may_write(name, sender(request))
    state.store.git("update-ref", "-d", name, old)
    state.moved(name, old, None, sender(request))
    return web.Response(status=204)


async def get_branch(request: web.Request) -> web.Response:
    state, name = request.app[STATE], request.match_info["branch"]
    sha = state.store.refs().get(f"refs/heads/{name}")
    if sha is None:
        raise ApiError(404, "Branch not found")
    return reply(request, branch_json(request, name, sha))


async def list_branches(request: web.Request) -> web.Response:
    refs = request.app[STATE].store.refs("refs/heads/")
    return paged(request, [branch_json(request, n.removeprefix("refs/heads/"), s) for n, s in refs.items()])
