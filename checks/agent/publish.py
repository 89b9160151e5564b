"""Publish: post the node's newest state to the bot, on change and every interval, whatever the bot does.

Runs in a thread of its own, so that the kernel log never waits for the network. Only the newest state is ever
sent: the next report replaces one that did not arrive; nothing is queued.
"""

import logging
import math
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec

from checks.agent.http_client import HttpClient, HttpError
from checks.agent.runtime import Join, Runtime
from checks.agent.settings import AgentSettings
from checks.agent.ticker import TICK_SECONDS, Ticker
from checks.report import AUDIENCE, REPORT_PATH, NodeReport, ReportAccepted
from checks.report_delta import ReportDelta, ReportRejected, make_delta

CHANGE_SECONDS = 1.0
"""Least time between two reports: a change is reported within it, and a flood of changes is one report."""

CHECK_SECONDS = 0.25
"""Wait after a tick, so that the report includes what the checks observe at it."""

FIRST_RETRY_SECONDS = 1.0
"""Wait after the first report that failed; it doubles up to the report interval."""

log = logging.getLogger("checks.agent.publish")


class PostResult(msgspec.Struct, frozen=True):
    """What became of a report: the HTTP status, or None when there was no answer; and why, in words."""

    status: int | None
    text: str

    @property
    def accepted(self) -> bool:
        """Whether the bot has the report."""
        return self.status == 202

    @property
    def answer(self) -> ReportAccepted | ReportRejected | None:
        """What the bot says in its answer, None when it cannot be read."""
        try:
            return msgspec.json.decode(self.text, type=ReportAccepted if self.accepted else ReportRejected)
        except msgspec.DecodeError:
            return None

    @property
    def overtaken(self) -> bool:
        """Whether the bot holds a newer report of this boot."""
        return self.status == 409 and not self.wants_whole

    @property
    def wants_whole(self) -> bool:
        """Whether the bot does not hold what the report referred to, and wants the whole state."""
        answer = self.answer
        return isinstance(answer, ReportRejected) and answer.resend

    @property
    def advice(self) -> str:
        """What a person can do about it."""
        return _ADVICE.get(self.status, "the bot answered in an unexpected way; look at its log")


def post(client: HttpClient, token_file: Path, report: ReportDelta) -> PostResult:
    """Send one report; every ending is a result. The token is read each time, because tokens rotate."""
    try:
        token = token_file.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        return PostResult(None, f"cannot prepare a report: {error}")
    try:
        status, body = client.post(REPORT_PATH, token, msgspec.json.encode(report))
    except HttpError as error:
        return PostResult(None, str(error))
    return PostResult(status, body.decode("utf-8", "replace").strip())


class Publisher:
    """The reporting thread: it posts what `compose` returns and tells `on_result` what became of it.

    Reports without a change are sent at the last tick of `ticker` in each report interval of `settings`.
    """

    def __init__(
        self,
        settings: AgentSettings,
        compose: Callable[[], NodeReport],
        on_result: Callable[[NodeReport, PostResult], None],
        ticker: Ticker,
        runtime: Runtime,
    ) -> None:
        self._url = settings.bot_url
        self._token_file = settings.token_file
        self._interval = settings.report_interval_seconds
        self._client = HttpClient(settings.bot_url, settings.ca_file, settings.timeout_seconds)
        self._compose = compose
        self._on_result = on_result
        self._ticker = ticker
        self._runtime = runtime
        self._reported_at = -math.inf
        self._changed = threading.Event()
        self._stopping = threading.Event()
        self._join: Join | None = None
        self._logged: tuple[int | None, str] | None = None
        self._held: NodeReport | None = None

    def start(self) -> None:
        """Start to report, at once."""
        self._changed.set()
        self._join = self._runtime.start_thread("publisher", self._run)

    def change(self) -> None:
        """Say that the state has changed. Never blocks."""
        self._changed.set()

    def stop(self, timeout_seconds: float) -> None:
        """End the thread; wait at most `timeout_seconds` for a report that is under way."""
        self._stopping.set()
        self._changed.set()
        if self._join is not None:
            self._join(timeout_seconds)

    def _run(self) -> None:
        failures = 0
        while True:
            self._wait(failures)
            self._changed.clear()
            if self._stopping.is_set():
                return
            failures = 0 if self._report() else failures + 1

    def _wait(self, failures: int) -> None:
        """Wait until a report is due."""
        if failures:
            pause = FIRST_RETRY_SECONDS * 2 ** min(failures - 1, 16)
            limit = max(self._interval, CHANGE_SECONDS)
            self._runtime.wait(self._stopping, self._ticker.jittered(min(pause, limit)))
            return
        while not self._runtime.wait(self._changed, self._ticker.wait_seconds() + CHECK_SECONDS):
            # At the last tick of the interval: the next one would be too late.
            if self._passed() + TICK_SECONDS > self._interval:
                break
        self._runtime.wait(self._stopping, max(0.0, CHANGE_SECONDS - self._passed()))

    def _passed(self) -> float:
        return self._runtime.uptime() - self._reported_at

    def _report(self) -> bool:
        report = self._compose()
        self._reported_at = self._runtime.uptime()
        result = self._post(make_delta(report, self._held))
        if result.wants_whole:
            result = self._post(make_delta(report, None))
        answer = result.answer
        self._held = report if isinstance(answer, ReportAccepted) and answer.holds else None
        self._on_result(report, result)
        self._log(result)
        return result.accepted

    def _post(self, report: ReportDelta) -> PostResult:
        return post(self._client, self._token_file, report)

    def _log(self, result: PostResult) -> None:
        """Log a result unless the one before was the same."""
        logged = (result.status, "" if result.accepted else result.text)
        if logged == self._logged:
            return
        if result.accepted:
            log.info("report accepted by %s", self._url)
        else:
            status = result.status or "no answer"
            log.warning("report not accepted by %s: %s %s; %s", self._url, status, result.text, result.advice)
        self._logged = logged


_ADVICE: dict[int | None, str] = {
    None: "will retry; is the bot up, and does its address resolve from this node?",
    401: f"the token is missing, expired or not for the audience {AUDIENCE}; check the token volume",
    403: "the token is not that of an agent on this node; check [agent] node and the ServiceAccount",
    409: "the bot holds a newer report of this boot; the numbers continue from there",
    413: "the report is larger than the bot accepts; run the same version of both",
    422: "the bot does not understand the report; run the same version of both",
    503: "the bot cannot verify tokens now; will retry",
}
