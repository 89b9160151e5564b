"""What programs say on GitHub: issue comments, commit statuses, check runs."""

from aiohttp import web

from tests.lab.github.pulls import numbered
from tests.lab.github.wire import (
    NOT_FOUND,
    STATE,
    ApiError,
    Json,
    api,
    body,
    cut,
    invalid,
    now,
    page,
    paged,
    reply,
    sender,
    text,
    user_json,
)

STATES = ("error", "failure", "pending", "success")


async def create_comment(request: web.Request) -> web.Response:
    state, number, value = request.app[STATE], numbered(request), await body(request)
    comment_id = state.next_id()
    comment = {
        "id": comment_id,
        "node_id": f"IC_{comment_id}",
        "url": f"{api(request)}/issues/comments/{comment_id}",
        "html_url": f"{page(request)}/pull/{number}#issuecomment-{comment_id}",
        "issue_url": f"{api(request)}/issues/{number}",
        "body": text(value, "body", "IssueComment"),
        "user": user_json(request, sender(request)),
        "created_at": now(),
        "updated_at": now(),
    }
    state.comments.setdefault(number, []).append(comment)
    state.hooks.emit("issue_comment", {"action": "created", "comment": comment, "issue": {"number": number}})
    return reply(request, comment, 201)


async def list_comments(request: web.Request) -> web.Response:
    return paged(request, request.app[STATE].comments.get(numbered(request), []))


async def get_comment(request: web.Request) -> web.Response:
    return reply(request, _comment(request)[1])


async def edit_comment(request: web.Request) -> web.Response:
    _, comment = _comment(request)
    comment |= {"body": text(await body(request), "body", "IssueComment"), "updated_at": now()}
    return reply(request, comment)


async def delete_comment(request: web.Request) -> web.Response:
    comments, comment = _comment(request)
    comments.remove(comment)
    return web.Response(status=204)


def _comment(request: web.Request) -> tuple[list[Json], Json]:
    for comments in request.app[STATE].comments.values():
        for comment in comments:
            if str(comment["id"]) == request.match_info["id"]:
                return comments, comment
    raise ApiError(404, NOT_FOUND)


# ---- statuses


async def create_status(request: web.Request) -> web.Response:
    state, value, sha = request.app[STATE], await body(request), request.match_info["ref"]
    if state.store.kind(sha) != "commit":
        raise ApiError(422, f"No commit found for SHA: {sha}")
    if value.get("state") not in STATES:
        raise invalid("Status", "state")
    description = value.get("description") or ""
    if len(description) > 140:
        raise invalid("Status", "description", "description is too long (maximum is 140 characters)")
    status = {
        "id": state.next_id(),
        "url": f"{api(request)}/statuses/{sha}",
        "state": value["state"],
        "description": description,
        "target_url": value.get("target_url"),
        "context": value.get("context") or "default",
        "creator": user_json(request, sender(request)),
        "created_at": now(),
        "updated_at": now(),
    }
    state.statuses.append({"sha": sha, "status": status})
    return reply(request, status, 201)


async def list_statuses(request: web.Request) -> web.Response:
    return paged(request, _statuses(request)[1])


async def combined_status(request: web.Request) -> web.Response:
    sha, statuses = _statuses(request)
    newest = list({each["context"]: each for each in reversed(statuses)}.values())
    words = {each["state"] for each in newest}
    bad, good = words & {"error", "failure"}, bool(words) and words == {"success"}
    return reply(
        request,
        {
            "state": "failure" if bad else "success" if good else "pending",
            "sha": sha,
            "total_count": len(newest),
            "statuses": newest,
            "url": f"{api(request)}/commits/{sha}/status",
            "commit_url": f"{api(request)}/commits/{sha}",
        },
    )


def _statuses(request: web.Request) -> tuple[str, list[Json]]:
    """Return the commit and its statuses, newest first."""
    sha = _sha(request)
    return sha, [s["status"] for s in reversed(request.app[STATE].statuses) if s["sha"] == sha]


def _sha(request: web.Request) -> str:
    sha = request.app[STATE].store.resolve(request.match_info["ref"])
    if sha is None:
        raise ApiError(422, f"No commit found for SHA: {request.match_info['ref']}")
    return sha


# ---- check runs


async def create_check(request: web.Request) -> web.Response:
    state, value = request.app[STATE], await body(request)
    name, sha = text(value, "name", "CheckRun"), text(value, "head_sha", "CheckRun")
    if state.store.kind(sha) != "commit":
        raise ApiError(422, f"No commit found for SHA: {sha}")
    run_id = state.next_id()
    state.checks[run_id] = {
        "id": run_id,
        "node_id": f"CR_{run_id}",
        "name": name,
        "head_sha": sha,
        "external_id": value.get("external_id") or "",
        "url": f"{api(request)}/check-runs/{run_id}",
        "html_url": f"{page(request)}/runs/{run_id}",
        "status": "queued",
        "conclusion": None,
        "started_at": now(),
        "completed_at": None,
        "output": {"title": None, "summary": None, "text": None},
    }
    _apply(state.checks[run_id], value)
    return reply(request, state.checks[run_id], 201)


async def edit_check(request: web.Request) -> web.Response:
    run, value = _check(request), await body(request)
    _apply(run, value)
    return reply(request, run)


async def get_check(request: web.Request) -> web.Response:
    return reply(request, _check(request))


async def list_checks(request: web.Request) -> web.Response:
    sha = _sha(request)
    runs = [run for run in request.app[STATE].checks.values() if run["head_sha"] == sha]
    shown, headers = cut(request, runs)
    return reply(request, {"total_count": len(runs), "check_runs": shown}, headers=headers)


def _check(request: web.Request) -> Json:
    raw = request.match_info["id"]
    run = request.app[STATE].checks.get(int(raw)) if raw.isdigit() else None
    if run is None:
        raise ApiError(404, NOT_FOUND)
    return run


def _apply(run: Json, value: Json) -> None:
    """A conclusion completes a run, and a completed run must have one."""
    for name in ("status", "conclusion", "details_url", "completed_at"):
        if value.get(name) is not None:
            run[name] = value[name]
    run["output"] |= {k: v for k, v in (value.get("output") or {}).items() if k in run["output"]}
    if run["conclusion"] is not None:
        run["status"] = "completed"
        run["completed_at"] = run["completed_at"] or now()
    elif run["status"] == "completed":
        raise ApiError(422, 'Invalid request.\n\n"conclusion" wasn\'t supplied.')
