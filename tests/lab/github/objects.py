"""Git data: blobs, trees and commits, as docs.github.com/rest/git describes them."""

import base64

from aiohttp import web

from tests.lab.github.shapes import (
    BAD_PATH,
    SHA,
    commit_json,
    from_base64,
    git_commit_json,
    person,
    tree_json,
)
from tests.lab.github.store import GitError, Store
from tests.lab.github.wire import (
    NOT_FOUND,
    STATE,
    ApiError,
    Json,
    api,
    body,
    paged,
    reply,
    sender,
    text,
)

MODES = ("100644", "100755", "040000", "160000", "120000")


async def create_blob(request: web.Request) -> web.Response:
    value = await body(request)
    content = value.get("content")
    if not isinstance(content, str):
        raise ApiError(422, 'Invalid request.\n\n"content" wasn\'t supplied.')
    raw = from_base64(content) if value.get("encoding") == "base64" else content.encode()
    sha = request.app[STATE].store.write_blob(raw)
    return reply(request, {"sha": sha, "url": f"{api(request)}/git/blobs/{sha}"}, 201)


async def get_blob(request: web.Request) -> web.Response:
    store, sha = request.app[STATE].store, request.match_info["sha"]
    if store.kind(sha) != "blob":
        raise ApiError(404, NOT_FOUND)
    raw = store.raw("cat-file", "blob", sha)
    url = f"{api(request)}/git/blobs/{sha}"
    content = base64.encodebytes(raw).decode()
    return reply(
        request, {"sha": sha, "url": url, "size": len(raw), "encoding": "base64", "content": content}
    )


async def create_tree(request: web.Request) -> web.Response:
    state, value = request.app[STATE], await body(request)
    if not state.store.refs("refs/heads/"):
        raise ApiError(409, "Git Repository is empty.")
    base, elements = value.get("base_tree"), value.get("tree")
    if not isinstance(elements, list) or not elements:
        raise ApiError(422, "Invalid tree info")
    if base is not None and state.store.kind(f"{base}^{{tree}}") != "tree":
        raise ApiError(422, f"base_tree {base} is not a valid tree oid")
    try:
        sha = state.store.write_tree(base, [tree_change(state.store, each) for each in elements])
    except GitError as error:
        raise ApiError(422, f"tree cannot be written: {error}") from error
    return reply(request, tree_json(request, sha, recursive=False), 201)


async def get_tree(request: web.Request) -> web.Response:
    store, name = request.app[STATE].store, request.match_info["sha"]
    try:
        sha = store.git("rev-parse", "--verify", "--quiet", f"{name}^{{tree}}").strip()
    except GitError:
        raise ApiError(404, NOT_FOUND) from None
    return reply(request, tree_json(request, sha, recursive="recursive" in request.query))


def tree_change(store: Store, element: Json) -> tuple[str, str, str | None]:
    path, mode, sha, content = (element.get(name) for name in ("path", "mode", "sha", "content"))
    if not isinstance(path, str) or BAD_PATH.search(path):
        raise ApiError(422, "tree.path contains a malformed path component")
    if mode not in MODES:
        raise ApiError(422, "Must supply a valid tree.mode")
    if content is not None and sha is not None:
        raise ApiError(422, "Must supply either tree.sha or tree.content, not both")
    if content is not None:
        return path, mode, store.write_blob(content.encode())
    if "sha" in element and sha is None:
        return path, mode, None
    if not isinstance(sha, str) or store.kind(sha) is None:
        raise ApiError(422, f"tree.sha {sha} is not a valid blob")
    return path, mode, sha


async def create_commit(request: web.Request) -> web.Response:
    state, value = request.app[STATE], await body(request)
    message, tree = text(value, "message", "Commit"), text(value, "tree", "Commit")
    if state.store.kind(tree) != "tree":
        raise ApiError(422, "Tree SHA does not exist")
    parents = value.get("parents") or []
    if any(not isinstance(each, str) or state.store.kind(each) != "commit" for each in parents):
        raise ApiError(422, "Parent SHA does not exist or is not a commit object")
    author = person(value.get("author"), sender(request).identity())
    committer = person(value.get("committer"), author)
    sha = state.store.write_commit(tree, parents, message, author, committer)
    return reply(request, git_commit_json(request, state.store.commit(sha)), 201)


async def get_git_commit(request: web.Request) -> web.Response:
    store, sha = request.app[STATE].store, request.match_info["sha"]
    if SHA.fullmatch(sha) is None or store.kind(sha) != "commit":
        raise ApiError(404, NOT_FOUND)
    return reply(request, git_commit_json(request, store.commit(sha)))


async def get_commit(request: web.Request) -> web.Response:
    state = request.app[STATE]
    sha = state.store.resolve(request.match_info["ref"])
    if sha is None:
        raise ApiError(422, f"No commit found for SHA: {request.match_info['ref']}")
    return reply(request, commit_json(request, state.store.commit(sha)))


async def list_commits(request: web.Request) -> web.Response:
    state = request.app[STATE]
    start = state.store.resolve(request.query.get("sha", "main"))
    if start is None:
        raise ApiError(404, NOT_FOUND)
    filters = {"since": "--since={}", "until": "--until={}", "author": "--author={}"}
    extra = [form.format(request.query[name]) for name, form in filters.items() if name in request.query]
    shas = state.store.log(start, *extra, path=request.query.get("path"))
    return paged(request, [commit_json(request, state.store.commit(sha)) for sha in shas])
