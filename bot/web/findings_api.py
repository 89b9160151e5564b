"""The HTTP API for programs: agents post reports, the reconciler reads the newest, probes and metrics.

Kubernetes verifies every token. A node reports only about itself, and only through its agent.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec
import structlog
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bot.incidents.correlate import unknown_subsystems
from bot.incidents.reports import Reception, ReportStore
from bot.incidents.signal import Signal
from bot.incidents.store import IncidentStore
from checks.report import AUDIENCE, REPORT_PATH, NodeReport, ReportAccepted
from checks.report_delta import ReportRejected, apply_delta, decode
from reconciler.kube.read import TokenIdentity
from reconciler.kube.results import UnavailableError

log = structlog.get_logger("bot.web.findings_api")

BODY_LIMIT = 1 << 20
"""Largest report in bytes; a node where every check fails on eight GPUs needs a tenth of it."""

TOKEN_LIMIT = 16_384
"""Longest token in characters; a projected one has about 1,200."""


class RefusedError(Exception):
    """Ends a request with an HTTP status, what is wrong, and how to fix it."""

    def __init__(self, status: int, text: str, held: int | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.answer = ReportRejected(error=text, held=held, resend=isinstance(self, ResendError))


class ResendError(RefusedError):
    """The report refers to one that is not held, as after a restart of the bot; the agent sends it whole."""

    def __init__(self, text: str) -> None:
        super().__init__(409, text)


class TokenReviewer(Protocol):
    """Kubernetes, asked whose a token is."""

    def review_token(self, token: str, audience: str) -> TokenIdentity | None:
        """Return the account of a token that is valid for `audience`, else None; raises UnavailableError."""
        ...


class FindingsApi:
    """Serves reports. Only the service accounts `clusterwright-*` of `namespace`, the bot's own, are accepted."""

    def __init__(
        self,
        store: IncidentStore,
        reports: ReportStore,
        report_arrived: Signal,
        reviewer: TokenReviewer,
        namespace: str,
    ) -> None:
        self._store = store
        self._reports = reports
        self._report_arrived = report_arrived
        self._reviewer = reviewer
        self._accounts = f"system:serviceaccount:{namespace}:clusterwright-"

    def routes(self) -> list[Route]:
        """Return the routes to mount."""
        return [
            Route(REPORT_PATH, self._answered(self._take), methods=["POST"]),
            Route("/v1/nodes/{node}/report", self._answered(self._give), methods=["GET"]),
            Route("/healthz", self._health, methods=["GET"]),
            Route("/metrics", self._metrics, methods=["GET"]),
        ]

    async def _take(self, request: Request) -> Response:
        who = await self._identify(request, "agent")
        body = await _body(request)
        try:
            posted = decode(body)
        except msgspec.DecodeError as error:
            raise RefusedError(422, f"the report is not valid: {error}") from error
        if who.node is None:
            raise RefusedError(403, "the token is bound to no node; project it into the agent's pod")
        if posted.node != who.node:
            raise RefusedError(403, f"the token is of node {who.node}, the report of {posted.node}")
        held = self._reports.newest(posted.node)
        report = apply_delta(posted, held.report if held else None)
        if report is None:
            raise ResendError(f"report {posted.base} of this boot is not held; send the whole state")
        verdict = self._reports.accept(report)
        if verdict is Reception.STALE:
            text = f"a later report of this boot than {report.sequence} is held"
            raise RefusedError(409, text, held=held.report.sequence if held else None)
        if verdict is Reception.NEW:
            self._count_unknown_subsystems(report)
            self._report_arrived.notify()
        return Response(self._answer(report), status_code=202, media_type="application/json")

    def _count_unknown_subsystems(self, report: NodeReport) -> None:
        for name in sorted(unknown_subsystems(report)):
            log.warning("subsystem_unknown", node=report.node, subsystem=name)
            self._store.metrics.unknown_subsystems.inc()

    def _answer(self, report: NodeReport) -> bytes:
        """Return the answer to an agent: what only the bot knows about its node."""
        boots = self._store.reset_boots
        return msgspec.json.encode(
            ReportAccepted(
                accepted=report.sequence,
                holds=True,
                pool=self._store.pool_name(report.node),
                reset_boots=None if boots is None else tuple(sorted(boots.get(report.node, ()))),
            )
        )

    async def _give(self, request: Request) -> Response:
        await self._identify(request, "reconciler")
        node = request.path_params["node"]
        held = self._reports.newest(node)
        if held is None:
            raise RefusedError(404, f"no report of {node} is held")
        return Response(msgspec.json.encode(held), media_type="application/json")

    async def _health(self, _: Request) -> Response:
        """Answer 200 while the bot runs. A dependency that is down is named, and is no reason for a restart."""
        trouble = self._store.trouble
        return JSONResponse({"status": "degraded" if trouble else "ok", "trouble": sorted(trouble)})

    async def _metrics(self, _: Request) -> Response:
        return Response(generate_latest(self._store.metrics.registry), media_type=CONTENT_TYPE_LATEST)

    async def _identify(self, request: Request, program: str) -> TokenIdentity:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token or len(token) > TOKEN_LIMIT:
            raise RefusedError(401, f"a bearer token for audience {AUDIENCE} is needed")
        try:
            who = await asyncio.to_thread(self._reviewer.review_token, token, AUDIENCE)
        except UnavailableError as error:
            self._store.report_trouble("token-review", str(error))
            raise RefusedError(503, "the token cannot be checked at the moment; try again") from error
        self._store.report_trouble("token-review", "")
        if who is None:
            raise RefusedError(401, f"the token is not valid for audience {AUDIENCE}, or no longer")
        if who.username != self._accounts + program:
            raise RefusedError(403, f"{who.username} may not do this; {self._accounts}{program} may")
        return who

    def _answered(
        self, serve: Callable[[Request], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            try:
                response = await serve(request)
            except RefusedError as refusal:
                if refusal.status not in (404, 503) and not isinstance(refusal, ResendError):
                    log.warning(
                        "request_refused", path=request.url.path, status=refusal.status, reason=refusal.text
                    )
                body = msgspec.json.encode(refusal.answer)
                response = Response(body, refusal.status, media_type="application/json")
            if request.url.path == REPORT_PATH:
                self._store.metrics.reports.labels(str(response.status_code)).inc()
            return response

        return answer


async def _body(request: Request) -> bytes:
    too_large = RefusedError(413, f"the report is larger than {BODY_LIMIT} bytes")
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > BODY_LIMIT:
        raise too_large
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_LIMIT:
            raise too_large
    return bytes(body)
