"""Publish: post the node's newest state to the bot, on change and every interval, whatever the bot does.

Runs in a thread of its own, so that the kernel log is never kept waiting by the network. Only the newest
state is ever sent: a report that got nowhere is replaced, not queued.
"""

import logging
import math
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from checks.agent.http_client import Wire, WireError
from checks.agent.ticker import TICK_SECONDS, Metronome
from checks.report import AUDIENCE, REPORT_PATH, Accepted, NodeReport
from checks.report_delta import PostedReport, Refused, shrink

CHANGE_SECONDS = 1.0
"""Least time between two reports: a change is told within it, a flood of lines is no flood of reports."""

LOOKS_SECONDS = 0.25
"""Wait after a tick, so that the report tells what the checks see at it."""

FIRST_RETRY_SECONDS = 1.0
"""Wait after the first report that failed; it doubles up to the report interval."""

log = logging.getLogger("checks.agent.publish")


class Target(msgspec.Struct, frozen=True):
    """Where reports go and how. `token_file` is read for every report, `ca_file` for every connection."""

    url: str
    token_file: Path
    ca_file: Path | None
    timeout_seconds: float


class Answer(msgspec.Struct, frozen=True):
    """What became of a report: the HTTP status, or None when there was no answer; and why, in words."""

    status: int | None
    text: str

    @property
    def accepted(self) -> bool:
        """Whether the bot has the report."""
        return self.status == 202

    @property
    def said(self) -> Accepted | Refused | None:
        """What the bot says in its answer, None when that cannot be read."""
        try:
            return msgspec.json.decode(self.text, type=Accepted if self.accepted else Refused)
        except msgspec.DecodeError:
            return None

    @property
    def overtaken(self) -> bool:
        """Whether the bot holds a newer report of this boot."""
        return self.status == 409 and not self.wants_whole

    @property
    def wants_whole(self) -> bool:
        """Whether the bot does not hold what the report referred to, and wants the whole state."""
        said = self.said
        return isinstance(said, Refused) and said.resend

    @property
    def advice(self) -> str:
        """Return what a person can do about it."""
        return _ADVICE.get(self.status, "the bot answered in an unexpected way; look at its log")


def post(wire: Wire, token_file: Path, report: PostedReport) -> Answer:
    """Send one report; every ending is an answer. The token is read each time: tokens rotate."""
    try:
        token = token_file.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        return Answer(None, f"cannot prepare a report: {error}")
    try:
        status, body = wire.post(REPORT_PATH, token, msgspec.json.encode(report))
    except WireError as error:
        return Answer(None, str(error))
    return Answer(status, body.decode("utf-8", "replace").strip())


class Publisher:
    """The reporting thread. `compose` returns the newest report, `hear` is told what became of it.

    `interval_seconds` is the time between reports without a change; they are sent at ticks of `metronome`.
    """

    def __init__(
        self,
        target: Target,
        compose: Callable[[], NodeReport],
        hear: Callable[[NodeReport, Answer], None],
        interval_seconds: float,
        metronome: Metronome,
    ) -> None:
        self._target = target
        self._wire = Wire(target.url, target.ca_file, target.timeout_seconds)
        self._compose = compose
        self._hear = hear
        self._interval = interval_seconds
        self._metronome = metronome
        self._reported_at = -math.inf
        self._changed = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)
        self._last: tuple[int | None, str] | None = None
        self._taken: NodeReport | None = None

    def start(self) -> None:
        """Begin to report, at once."""
        self._changed.set()
        self._thread.start()

    def change(self) -> None:
        """Say that the state has changed. Never blocks."""
        self._changed.set()

    def stop(self, timeout: float) -> None:
        """End the thread; wait at most `timeout` seconds for a report that is under way."""
        self._stopping.set()
        self._changed.set()
        self._thread.join(timeout)

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
            self._stopping.wait(self._metronome.jittered(min(pause, max(self._interval, CHANGE_SECONDS))))
            return
        while not self._changed.wait(self._metronome.wait_seconds() + LOOKS_SECONDS):
            # At the last tick of the interval: the next one would be too late.
            if self._passed() + TICK_SECONDS > self._interval:
                break
        self._stopping.wait(max(0.0, CHANGE_SECONDS - self._passed()))

    def _passed(self) -> float:
        return time.monotonic() - self._reported_at

    def _report(self) -> bool:
        report = self._compose()
        self._reported_at = time.monotonic()
        answer = self._post(shrink(report, self._taken))
        if answer.wants_whole:
            answer = self._post(shrink(report, None))
        said = answer.said
        self._taken = report if isinstance(said, Accepted) and said.holds else None
        self._hear(report, answer)
        self._tell(answer)
        return answer.accepted

    def _post(self, report: PostedReport) -> Answer:
        return post(self._wire, self._target.token_file, report)

    def _tell(self, answer: Answer) -> None:
        told = (answer.status, "" if answer.accepted else answer.text)
        if told == self._last:
            return
        if answer.accepted:
            log.info("report accepted by %s", self._target.url)
        else:
            log.warning(
                "report not accepted by %s: %s %s; %s",
                self._target.url,
                answer.status or "no answer",
                answer.text,
                answer.advice,
            )
        self._last = told


_ADVICE: dict[int | None, str] = {
    None: "trying on; is the bot up, and does its address resolve from this node?",
    401: f"the token is missing, stale or not for the audience {AUDIENCE}; check the projected token volume",
    403: "the token is not that of an agent on this node; check [agent] node and the ServiceAccount",
    409: "the bot holds a newer report of this boot; numbering on from there",
    413: "the report is larger than the bot takes; run the same version of both",
    422: "the bot does not understand the report; run the same version of both",
    503: "the bot cannot verify tokens now; trying on",
}
