"""Files by path: read at a ref, written in a commit of their own under the sha rules."""

from aiohttp import web

from tests.lab.github.shapes import (
    BAD_PATH,
    content_json,
    from_base64,
    git_commit_json,
    person,
)
from tests.lab.github.store import TreeEntry
from tests.lab.github.wire import (
    NOT_FOUND,
    STATE,
    ApiError,
    Json,
    State,
    body,
    reply,
    sender,
    text,
)


async def get_contents(request: web.Request) -> web.Response:
    state, path = request.app[STATE], request.match_info["path"].strip("/")
    commit = state.store.resolve(request.query.get("ref", "main"))
    if commit is None:
        raise ApiError(404, f"No commit found for the ref {request.query.get('ref', 'main')}")
    found = state.store.entries(commit, path=path) if path else []
    if path and not found:
        raise ApiError(404, NOT_FOUND)
    if not path or found[0].kind == "tree":
        inside = state.store.entries(f"{commit}:{path}")
        return reply(request, [content_json(request, each, path, None) for each in inside])
    entry = found[0]
    raw = state.store.raw("cat-file", "blob", entry.sha) if entry.kind == "blob" else None
    return reply(request, content_json(request, entry, "", raw))


async def put_contents(request: web.Request) -> web.Response:
    value = await body(request)
    content = value.get("content")
    if not isinstance(content, str):
        raise ApiError(422, 'Invalid request.\n\n"content" wasn\'t supplied.')
    raw = from_base64(content)
    commit, entry, existed = await _change_contents(request, value, raw)
    shown = {"content": content_json(request, entry, "", raw), "commit": commit}
    return reply(request, shown, 200 if existed else 201)


async def delete_contents(request: web.Request) -> web.Response:
    value = await body(request) or dict(request.query)
    commit, _, _ = await _change_contents(request, value, None)
    return reply(request, {"content": None, "commit": commit})


async def _change_contents(
    request: web.Request, value: Json, raw: bytes | None
) -> tuple[Json, TreeEntry, bool]:
    state, path = request.app[STATE], request.match_info["path"].strip("/")
    message, branch = text(value, "message", "Commit"), value.get("branch") or "main"
    tip = state.store.resolve(branch)
    if tip is None and branch != "main":
        raise ApiError(404, f"Branch {branch} not found")
    if BAD_PATH.search(path):
        raise ApiError(422, "path contains a malformed path component")
    state.may_write(f"refs/heads/{branch}", sender(request))
    existed = bool(_checked(state, tip, path, value.get("sha"), deletes=raw is None))
    blob = None if raw is None else state.store.write_blob(raw)
    author = person(value.get("author"), sender(request).identity())
    sha = state.store.write_commit(
        state.store.write_tree(tip, [(path, "100644", blob)]),
        [tip] if tip else [],
        message,
        author,
        person(value.get("committer"), author),
    )
    if not state.store.move(f"refs/heads/{branch}", sha, tip):
        raise ApiError(409, f"is at another commit but expected {tip}")
    state.moved(f"refs/heads/{branch}", tip, sha, sender(request))
    entry = TreeEntry("100644", "blob", blob or "", len(raw or b""), path)
    return git_commit_json(request, state.store.commit(sha)), entry, existed


def _checked(state: State, tip: str | None, path: str, sha: str | None, *, deletes: bool) -> list[TreeEntry]:
    """Return what stands at the path; the client must name it, or nothing if nothing does."""
    there = state.store.entries(tip, path=path) if tip else []
    if deletes and not there:
        raise ApiError(404, NOT_FOUND)
    if there and not sha:
        raise ApiError(422, 'Invalid request.\n\n"sha" wasn\'t supplied.')
    if sha and (not there or there[0].sha != sha):
        raise ApiError(409, f"{path} does not match {sha}")
    return there
