"""Pull requests: opened, reviewed at a commit, merged under the branch's rules."""

from typing import Any

from aiohttp import web

from tests.lab.github.shapes import commit_json
from tests.lab.github.wire import (
    NOT_FOUND,
    STATE,
    ApiError,
    Json,
    State,
    api,
    body,
    invalid,
    now,
    page,
    paged,
    reply,
    sender,
    text,
    user_json,
)


async def create_pull(request: web.Request) -> web.Response:
    state, value = request.app[STATE], await body(request)
    title, head, base = (text(value, name, "PullRequest") for name in ("title", "head", "base"))
    head = head.rpartition(":")[2]
    tips = {name: state.store.refs().get(f"refs/heads/{name}") for name in (head, base)}
    for field, name in (("head", head), ("base", base)):
        if tips[name] is None:
            raise invalid("PullRequest", field)
    if any(p["state"] == "open" and (p["head"], p["base"]) == (head, base) for p in state.pulls.values()):
        owner = state.repository.partition("/")[0]
        raise invalid("PullRequest", "head", f"A pull request already exists for {owner}:{head}.")
    if state.store.is_ancestor(str(tips[head]), str(tips[base])):
        raise invalid("PullRequest", "head", f"No commits between {base} and {head}")
    number = len(state.pulls) + 1
    state.pulls[number] = {
        "number": number,
        "id": state.next_id(),
        "title": title,
        "body": value.get("body"),
        "head": head,
        "base": base,
        "state": "open",
        "draft": bool(value.get("draft")),
        "user": sender(request),
        "created_at": now(),
        "closed_at": None,
        "merge_commit_sha": None,
    }
    return _changed(request, number, "opened", 201)


async def list_pulls(request: web.Request) -> web.Response:
    wanted = request.query.get("state", "open")
    head, base = request.query.get("head", "").rpartition(":")[2], request.query.get("base", "")
    found = [
        number
        for number, pull in sorted(request.app[STATE].pulls.items(), reverse=True)
        if wanted in (pull["state"], "all") and head in ("", pull["head"]) and base in ("", pull["base"])
    ]
    return paged(request, [pull_json(request, number) for number in found])


async def get_pull(request: web.Request) -> web.Response:
    return reply(request, pull_json(request, numbered(request)))


async def edit_pull(request: web.Request) -> web.Response:
    number, value = numbered(request), await body(request)
    pull = request.app[STATE].pulls[number]
    for name in ("title", "body", "base", "state"):
        if name in value:
            pull[name] = value[name]
    closed = value.get("state") == "closed"
    pull["closed_at"] = now() if closed else None
    return _changed(request, number, "closed" if closed else "edited", 200)


async def list_files(request: web.Request) -> web.Response:
    state, pull = request.app[STATE], request.app[STATE].pulls[numbered(request)]
    head, base = _ends(state, pull)
    return paged(request, changed_files(request, state.store.merge_base(base, head) or base, head))


async def list_pull_commits(request: web.Request) -> web.Response:
    state, pull = request.app[STATE], request.app[STATE].pulls[numbered(request)]
    head, base = _ends(state, pull)
    shas = state.store.log(head, "--reverse", f"^{base}")
    return paged(request, [commit_json(request, state.store.commit(sha)) for sha in shas])


async def merge_pull(request: web.Request) -> web.Response:
    state, number, value = request.app[STATE], numbered(request), await body(request)
    pull, user = state.pulls[number], sender(request)
    head, base = _ends(state, pull)
    if value.get("sha") not in (None, head):
        raise ApiError(409, "Head branch was modified. Review and try the merge again.")
    needed = state.protected.get(pull["base"], 0)
    if len(_approvers(state, number, head)) < needed and not user.bypass:
        raise ApiError(405, f"At least {needed} approving review is required by reviewers with write access.")
    tree = state.store.merge_tree(base, head)
    if pull["state"] != "open" or tree is None:
        raise ApiError(405, "Pull Request is not mergeable")
    title = value.get("commit_title") or f"Merge pull request #{number} from {pull['head']}"
    message = "\n\n".join(part for part in (title, value.get("commit_message") or pull["title"]) if part)
    parents = [base] if value.get("merge_method") == "squash" else [base, head]
    sha = state.store.write_commit(tree, parents, message, user.identity(), user.identity())
    if not state.store.move(f"refs/heads/{pull['base']}", sha, base):
        raise ApiError(409, "Base branch was modified. Review and try the merge again.")
    pull |= {"state": "closed", "merge_commit_sha": sha, "closed_at": now(), "merged_head": head}
    state.moved(f"refs/heads/{pull['base']}", base, sha, user)
    _changed(request, number, "closed", 200)
    return reply(request, {"sha": sha, "merged": True, "message": "Pull Request successfully merged"})


async def is_merged(request: web.Request) -> web.Response:
    if request.app[STATE].pulls[numbered(request)]["merge_commit_sha"] is None:
        raise ApiError(404, NOT_FOUND)
    return web.Response(status=204)


async def create_review(request: web.Request) -> web.Response:
    state, number, value = request.app[STATE], numbered(request), await body(request)
    states = {"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}
    event = states.get(value.get("event", ""), "PENDING")
    if event == "APPROVED" and sender(request) == state.pulls[number]["user"]:
        raise ApiError(422, "Unprocessable Entity", [{"message": "Can not approve your own pull request"}])
    head, _ = _ends(state, state.pulls[number])
    review = {
        "id": state.next_id(),
        "user": user_json(request, sender(request)),
        "body": value.get("body") or "",
        "state": event,
        "commit_id": value.get("commit_id") or head,
        "submitted_at": now(),
        "html_url": f"{page(request)}/pull/{number}#review",
        "pull_request_url": f"{api(request)}/pulls/{number}",
    }
    state.reviews.setdefault(number, []).append(review)
    state.hooks.emit("pull_request_review", {"action": "submitted", "review": review})
    return reply(request, review)


async def list_reviews(request: web.Request) -> web.Response:
    return paged(request, request.app[STATE].reviews.get(numbered(request), []))


async def compare(request: web.Request) -> web.Response:
    state = request.app[STATE]
    names = request.match_info["basehead"].split("...")
    ends = [state.store.resolve(name.rpartition(":")[2]) for name in names]
    if len(ends) != 2 or None in ends:
        raise ApiError(404, NOT_FOUND)
    base, head = str(ends[0]), str(ends[1])
    common = state.store.merge_base(base, head)
    if common is None:
        raise ApiError(404, f"No common ancestor between {names[0]} and {names[1]}.")
    ahead = state.store.log(head, "--reverse", f"^{base}")
    behind = state.store.log(base, f"^{head}")
    words = {(False, False): "identical", (True, False): "ahead", (False, True): "behind"}
    shown: dict[str, Any] = {
        "url": f"{api(request)}/compare/{request.match_info['basehead']}",
        "html_url": f"{page(request)}/compare/{request.match_info['basehead']}",
        "status": words.get((bool(ahead), bool(behind)), "diverged"),
        "ahead_by": len(ahead),
        "behind_by": len(behind),
        "total_commits": len(ahead),
        "base_commit": commit_json(request, state.store.commit(base)),
        "merge_base_commit": commit_json(request, state.store.commit(common)),
        "commits": [commit_json(request, state.store.commit(sha)) for sha in ahead[-250:]],
        "files": changed_files(request, common, head),
    }
    return reply(request, shown)


def numbered(request: web.Request) -> int:
    """The pull request that the address names."""
    raw = request.match_info["number"]
    if not raw.isdigit() or int(raw) not in request.app[STATE].pulls:
        raise ApiError(404, NOT_FOUND)
    return int(raw)


def changed_files(request: web.Request, old: str, new: str) -> list[Json]:
    store = request.app[STATE].store
    words = {"A": "added", "D": "removed", "M": "modified", "T": "changed"}
    lines = store.git("diff-tree", "-r", "-z", "--no-renames", old, new).split("\0")[:-1]
    files = []
    for meta, path in zip(lines[::2], lines[1::2], strict=True):
        sha, kind = meta.split()[3:5]
        patch = store.git("diff-tree", "-p", "--no-renames", "--no-color", old, new, "--", path)
        body_lines = patch.partition("\n@@")[2].splitlines()[1:]
        added = sum(line.startswith("+") for line in body_lines)
        deleted = sum(line.startswith("-") for line in body_lines)
        files.append(
            {
                "sha": sha,
                "filename": path,
                "status": words.get(kind, "changed"),
                "additions": added,
                "deletions": deleted,
                "changes": added + deleted,
                "patch": "@@" + patch.partition("\n@@")[2],
                "contents_url": f"{api(request)}/contents/{path}?ref={new}",
            }
        )
    return files


def pull_json(request: web.Request, number: int) -> Json:
    state = request.app[STATE]
    pull = state.pulls[number]
    head, base = _ends(state, pull)
    url, issue = f"{api(request)}/pulls/{number}", f"{api(request)}/issues/{number}"
    shown = {
        key: pull[key] for key in ("number", "id", "title", "body", "state", "draft", "merge_commit_sha")
    }
    return shown | {
        "node_id": f"PR_{pull['id']}",
        "url": url,
        "html_url": f"{page(request)}/pull/{number}",
        "issue_url": issue,
        "comments_url": f"{issue}/comments",
        "commits_url": f"{url}/commits",
        "review_comments_url": f"{url}/comments",
        "statuses_url": f"{api(request)}/statuses/{head}",
        "user": user_json(request, pull["user"]),
        "head": {"ref": pull["head"], "sha": head, "label": f"example:{pull['head']}"},
        "base": {"ref": pull["base"], "sha": base, "label": f"example:{pull['base']}"},
        "merged": pull["merge_commit_sha"] is not None,
        "mergeable": pull["state"] == "open" and state.store.merge_tree(base, head) is not None,
        "created_at": pull["created_at"],
        "updated_at": pull["closed_at"] or pull["created_at"],
        "closed_at": pull["closed_at"],
        "merged_at": pull["closed_at"] if pull["merge_commit_sha"] else None,
    }


def _changed(request: web.Request, number: int, action: str, status: int) -> web.Response:
    state, shown = request.app[STATE], pull_json(request, number)
    payload = {"action": action, "number": number, "pull_request": shown}
    state.hooks.emit("pull_request", payload | {"repository": {"full_name": state.repository}})
    return reply(request, shown, status)


def _ends(state: State, pull: Json) -> tuple[str, str]:
    """Return head and base; a merged or deleted head stays as it was last seen."""
    refs = state.store.refs("refs/heads/")
    head = refs.get(f"refs/heads/{pull['head']}") or pull.get("last_head", "")
    if "merged_head" in pull:
        head = pull["merged_head"]
    pull["last_head"] = head
    return head, refs[f"refs/heads/{pull['base']}"]


def _approvers(state: State, number: int, head: str) -> set[str]:
    """Who approves the commit that would be merged: a push after the review voids it."""
    newest: dict[str, Json] = {}
    for review in state.reviews.get(number, []):
        if review["state"] in ("APPROVED", "CHANGES_REQUESTED"):
            newest[review["user"]["login"]] = review
    return {who for who, r in newest.items() if r["state"] == "APPROVED" and r["commit_id"] == head}
