"""Clone, fetch and push over HTTP by `git http-backend`, with the API's tokens as passwords."""

import asyncio
import gzip
import os
import subprocess

from aiohttp import web

from tests.lab.github.store import environment
from tests.lab.github.wire import STATE, State, User, sender


async def serve(request: web.Request) -> web.StreamResponse:
    state, service = request.app[STATE], request.match_info["service"]
    raw = await request.read()
    if request.headers.get("Content-Encoding") == "gzip":
        raw = gzip.decompress(raw)
    before = state.store.refs()
    answer = await asyncio.to_thread(_backend, state, request, service, raw)
    if service == "git-receive-pack":
        after = state.store.refs()
        for ref in sorted(before.keys() | after.keys()):
            if before.get(ref) != after.get(ref):
                state.moved(ref, before.get(ref), after.get(ref), sender(request))
    return _response(answer)


def _backend(state: State, request: web.Request, service: str, raw: bytes) -> bytes:
    user: User = sender(request)
    variables = environment() | {
        "GIT_PROJECT_ROOT": str(state.store.bare.parent),
        "GIT_HTTP_EXPORT_ALL": "1",
        "PATH_INFO": f"/{state.store.bare.name}/{service}",
        "QUERY_STRING": request.query_string,
        "REQUEST_METHOD": request.method,
        "CONTENT_TYPE": request.headers.get("Content-Type", ""),
        "CONTENT_LENGTH": str(len(raw)),
        "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
        # What the pre-receive hook of the store asks for.
        "REMOTE_USER": "bypass" if user.bypass else user.login,
        "REMOTE_ADDR": "127.0.0.1",
    }
    done = subprocess.run(
        ("git", "http-backend"),
        input=raw,
        env=variables,
        cwd=os.sep,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return done.stdout or b"Status: 500 Internal Server Error\r\n\r\n" + done.stderr


def _response(answer: bytes) -> web.Response:
    head, _, content = answer.partition(b"\r\n\r\n")
    lines = (line.partition(": ") for line in head.decode().split("\r\n"))
    headers = {name: value for name, _, value in lines if name}
    status = int(headers.pop("Status", "200").split()[0])
    return web.Response(status=status, headers=headers, body=content)
