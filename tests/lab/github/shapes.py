"""JSON shapes of git's objects, and the checks of what clients send."""

import base64
import binascii
import re
from typing import Any

from aiohttp import web

from tests.lab.github.store import Commit, Store, TreeEntry
from tests.lab.github.wire import (
    STATE,
    ApiError,
    Json,
    api,
    now,
    page,
)

SHA = re.compile(r"[0-9a-f]{40}")

BAD_PATH = re.compile(r"(^|/)(\.{0,2}|\.git)(/|$)|[\0\\]", re.IGNORECASE)


def known(store: Store, sha: str) -> None:
    if SHA.fullmatch(sha) is None:
        raise ApiError(422, "The sha parameter must be exactly 40 characters and contain only [0-9a-f].")
    if store.kind(sha) is None:
        raise ApiError(422, "Object does not exist")


def from_base64(content: str) -> bytes:
    try:
        return base64.b64decode(content, validate=False)
    except binascii.Error:
        raise ApiError(422, "content is not valid Base64") from None


def person(value: Any, default: dict[str, str]) -> dict[str, str]:
    if value is None:
        return default
    if not isinstance(value, dict) or not value.get("name") or not value.get("email"):
        raise ApiError(422, 'Invalid request.\n\n"name" and "email" weren\'t supplied.')
    clean = {key: re.sub(r"[<>\n]", "", str(value[key])) for key in ("name", "email")}
    return clean | {"date": value.get("date") or now()}


def ref_json(request: web.Request, name: str, sha: str) -> Json:
    target = {"type": "commit", "sha": sha, "url": f"{api(request)}/git/commits/{sha}"}
    return {"ref": name, "node_id": f"REF_{name}", "url": f"{api(request)}/git/{name}", "object": target}


def branch_json(request: web.Request, name: str, sha: str) -> Json:
    state = request.app[STATE]
    commit = commit_json(request, state.store.commit(sha))
    return {"name": name, "commit": commit, "protected": name in state.protected}


def tree_json(request: web.Request, sha: str, *, recursive: bool) -> Json:
    entries = request.app[STATE].store.entries(sha, recursive=recursive)
    return {
        "sha": sha,
        "url": f"{api(request)}/git/trees/{sha}",
        "tree": [_tree_entry(request, each) for each in entries],
        "truncated": False,
    }


def _tree_entry(request: web.Request, entry: TreeEntry) -> Json:
    kinds = {"tree": "trees", "blob": "blobs"}
    shown: Json = {"path": entry.path, "mode": entry.mode, "type": entry.kind, "sha": entry.sha}
    if entry.size is not None:
        shown["size"] = entry.size
    if entry.kind in kinds:
        shown["url"] = f"{api(request)}/git/{kinds[entry.kind]}/{entry.sha}"
    return shown


def git_commit_json(request: web.Request, commit: Commit) -> Json:
    return {
        "sha": commit.sha,
        "node_id": f"C_{commit.sha}",
        "url": f"{api(request)}/git/commits/{commit.sha}",
        "html_url": f"{page(request)}/commit/{commit.sha}",
        "author": commit.author,
        "committer": commit.committer,
        "message": commit.message,
        "tree": {"sha": commit.tree, "url": f"{api(request)}/git/trees/{commit.tree}"},
        "parents": [
            {
                "sha": each,
                "url": f"{api(request)}/git/commits/{each}",
                "html_url": f"{page(request)}/commit/{each}",
            }
            for each in commit.parents
        ],
        "verification": {"verified": False, "reason": "unsigned", "signature": None, "payload": None},
    }


def commit_json(request: web.Request, commit: Commit) -> Json:
    git = git_commit_json(request, commit)
    parents = git.pop("parents")
    url = f"{api(request)}/commits/{commit.sha}"
    return {
        "sha": commit.sha,
        "node_id": git.pop("node_id"),
        "url": url,
        "html_url": git.pop("html_url"),
        "comments_url": f"{url}/comments",
        "commit": git | {"comment_count": 0},
        "author": None,
        "committer": None,
        "parents": parents,
    }


def content_json(request: web.Request, entry: TreeEntry, under: str, raw: bytes | None) -> Json:
    path = f"{under}/{entry.path}" if under else entry.path
    kinds = {"040000": "dir", "120000": "symlink", "160000": "submodule"}
    url = f"{api(request)}/contents/{path}"
    shown: Json = {
        "type": kinds.get(entry.mode, "file"),
        "name": path.rsplit("/", 1)[-1],
        "path": path,
        "sha": entry.sha,
        "size": entry.size or 0,
        "url": url,
        "git_url": f"{api(request)}/git/blobs/{entry.sha}",
        "html_url": f"{page(request)}/blob/{path}",
        "download_url": None,
    }
    if raw is not None:
        shown |= {"encoding": "base64", "content": base64.encodebytes(raw).decode()}
    return shown
