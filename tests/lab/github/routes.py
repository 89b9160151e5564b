"""The table of addresses, and the few answers that belong to no subject.

The product records events, and so it uses: the repository, `git/ref`, `git/refs`, `git/trees`, `git/commits`,
`commits`, `contents` (GET), `compare` and git over HTTP. The rest stays for pull requests, which the product
does not work with yet: `pulls`, `reviews`, `issues/…/comments`, `check-runs`, `statuses`, webhooks
(hooks.py), branches and their rules, `contents` (PUT, DELETE), and what PyGithub reads on the way (`/user`,
`/rate_limit`, `git/blobs`, `matching-refs`).
"""

from aiohttp import web

from tests.lab.github import comments, contents, objects, pulls, refs, smart
from tests.lab.github.wire import STATE, USER, Route, User, api, page, reply, user_json


async def _get_repository(request: web.Request) -> web.Response:
    state = request.app[STATE]
    owner, _, name = state.repository.partition("/")
    shown = {
        "id": 1,
        "node_id": "R_1",
        "name": name,
        "full_name": state.repository,
        "owner": user_json(request, User(owner, "", "")),
        "private": True,
        "default_branch": "main",
        "url": api(request),
        "html_url": page(request),
        "clone_url": f"{page(request)}.git",
    }
    return reply(request, shown)


async def _get_user(request: web.Request) -> web.Response:
    return reply(request, user_json(request, request[USER]))


async def _rate_limit(request: web.Request) -> web.Response:
    core = {"limit": 5000, "remaining": 4990, "used": 10, "reset": 4102444800}
    return reply(request, {"resources": {"core": core, "search": core, "graphql": core}, "rate": core})


def routes() -> list[web.RouteDef]:
    repo = "/repos/{owner}/{repo}"
    table: dict[str, dict[str, Route]] = {
        "/user": {"GET": _get_user},
        "/rate_limit": {"GET": _rate_limit},
        repo: {"GET": _get_repository},
        f"{repo}/branches": {"GET": refs.list_branches},
        f"{repo}/branches/{{branch:.+}}": {"GET": refs.get_branch},
        f"{repo}/git/ref/{{ref:.+}}": {"GET": refs.get_ref},
        f"{repo}/git/matching-refs/{{ref:.*}}": {"GET": refs.list_refs},
        f"{repo}/git/refs": {"GET": refs.list_refs, "POST": refs.create_ref},
        f"{repo}/git/refs/{{ref:.+}}": {"PATCH": refs.edit_ref, "DELETE": refs.delete_ref},
        f"{repo}/git/blobs": {"POST": objects.create_blob},
        f"{repo}/git/blobs/{{sha}}": {"GET": objects.get_blob},
        f"{repo}/git/trees": {"POST": objects.create_tree},
        f"{repo}/git/trees/{{sha:.+}}": {"GET": objects.get_tree},
        f"{repo}/git/commits": {"POST": objects.create_commit},
        f"{repo}/git/commits/{{sha}}": {"GET": objects.get_git_commit},
        f"{repo}/commits": {"GET": objects.list_commits},
        f"{repo}/commits/{{ref:.+}}/status": {"GET": comments.combined_status},
        f"{repo}/commits/{{ref:.+}}/statuses": {"GET": comments.list_statuses},
        f"{repo}/commits/{{ref:.+}}/check-runs": {"GET": comments.list_checks},
        f"{repo}/commits/{{ref:.+}}": {"GET": objects.get_commit},
        f"{repo}/contents/{{path:.*}}": {
            "GET": contents.get_contents,
            "PUT": contents.put_contents,
            "DELETE": contents.delete_contents,
        },
        f"{repo}/compare/{{basehead:.+}}": {"GET": pulls.compare},
        f"{repo}/pulls": {"GET": pulls.list_pulls, "POST": pulls.create_pull},
        f"{repo}/pulls/{{number}}": {"GET": pulls.get_pull, "PATCH": pulls.edit_pull},
        f"{repo}/pulls/{{number}}/files": {"GET": pulls.list_files},
        f"{repo}/pulls/{{number}}/commits": {"GET": pulls.list_pull_commits},
        f"{repo}/pulls/{{number}}/merge": {"GET": pulls.is_merged, "PUT": pulls.merge_pull},
        f"{repo}/pulls/{{number}}/reviews": {"GET": pulls.list_reviews, "POST": pulls.create_review},
        f"{repo}/issues/{{number}}/comments": {
            "GET": comments.list_comments,
            "POST": comments.create_comment,
        },
        f"{repo}/issues/comments/{{id}}": {
            "GET": comments.get_comment,
            "PATCH": comments.edit_comment,
            "DELETE": comments.delete_comment,
        },
        f"{repo}/statuses/{{ref}}": {"GET": comments.list_statuses, "POST": comments.create_status},
        f"{repo}/check-runs": {"POST": comments.create_check},
        f"{repo}/check-runs/{{id}}": {"GET": comments.get_check, "PATCH": comments.edit_check},
        "/{owner}/{repo}.git/{service:.+}": {"GET": smart.serve, "POST": smart.serve},
    }
    return [
        web.route(method, path, handler)
        for path, methods in table.items()
        for method, handler in methods.items()
    ]
