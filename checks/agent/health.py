"""Health: the state of the agent itself, for `/healthz` and for Prometheus. Pure: a snapshot becomes text.

The agent is alive while it keeps reading the kernel log; nothing else restarts it. An unreachable bot, a
stuck driver or a full disk are reported as trouble. They are no reason to lose what the agent knows (T14).
"""

from collections.abc import Iterator, Mapping

import msgspec

STEP_LIMIT_SECONDS = 90.0
"""Time without a step of the reading thread after which the agent is hung: three of its waits."""

REPORT_LIMIT_SECONDS = 120.0
"""Time without an accepted report that counts as trouble: about four report intervals."""


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """The agent at one moment. Ages are seconds; `report_age` is None before the first accepted report.

    `sequence` is the number of the last kernel record read, `blind_spots` the codes of what is not seen.
    `child` is whether the NVML process runs, None on a node without GPUs. `findings` counts findings by
    severity, `answers` the reports sent by HTTP status, `none` for no answer.
    """

    age: float
    step_age: float
    report_age: float | None
    sequence: int | None
    lost: int
    blind_spots: tuple[str, ...]
    child: bool | None
    findings: Mapping[str, int]
    answers: Mapping[str, int]
    cpu_seconds: float
    resident_bytes: int

    @property
    def alive(self) -> bool:
        """Whether the agent does its work; if not, a restart helps."""
        return self.step_age <= STEP_LIMIT_SECONDS

    @property
    def trouble(self) -> tuple[str, ...]:
        """What is wrong with the agent, for people."""
        return tuple(_trouble(self))


def healthz(health: Health) -> tuple[int, str, bytes]:
    """Return status, type and body of `/healthz`: 503 only when a restart would help."""
    trouble = health.trouble
    status = "hung" if not health.alive else "degraded" if trouble else "ok"
    body = msgspec.json.encode({"status": status, "trouble": trouble}) + b"\n"
    return 200 if health.alive else 503, "application/json", body


def metrics(health: Health) -> tuple[int, str, bytes]:
    """Return status, type and body of `/metrics`, in the text format of Prometheus."""
    return 200, "text/plain; version=0.0.4; charset=utf-8", "".join(_lines(health)).encode()


def _trouble(health: Health) -> Iterator[str]:
    if not health.alive:
        yield f"the kernel log has not been read for {health.step_age:.0f} s"
    if health.report_age is None and health.age > REPORT_LIMIT_SECONDS:
        yield "no report has been accepted since the start"
    elif health.report_age is not None and health.report_age > REPORT_LIMIT_SECONDS:
        yield f"no report has been accepted for {health.report_age:.0f} s"
    yield from (f"blind: {code}" for code in health.blind_spots)


def _lines(health: Health) -> Iterator[str]:
    yield from _one("age_seconds", "gauge", "Time since the agent started.", health.age)
    yield from _one("round_age_seconds", "gauge", "Time since the kernel log was last read.", health.step_age)
    if health.report_age is not None:
        text = "Time since the bot last accepted a report."
        yield from _one("report_age_seconds", "gauge", text, health.report_age)
    if health.sequence is not None:
        text = "Number of the last kernel record read."
        yield from _one("kernel_log_sequence", "gauge", text, health.sequence)
    text = "Kernel records overwritten unread in the last hour."
    yield from _one("kernel_records_lost", "gauge", text, health.lost)
    if health.child is not None:
        yield from _one("nvml_child_up", "gauge", "Whether the NVML process runs.", int(health.child))
    yield from _one(
        "blind_spots", "gauge", "Parts of the node that the agent cannot see.", len(health.blind_spots)
    )
    yield from _many("findings", "gauge", "Open findings.", "severity", health.findings)
    yield from _many("reports_total", "counter", "Reports sent, by answer.", "status", health.answers)
    yield from _one("cpu_seconds_total", "counter", "CPU time used, without children.", health.cpu_seconds)
    yield from _one("resident_bytes", "gauge", "Resident memory, without children.", health.resident_bytes)


def _one(name: str, kind: str, text: str, value: float) -> Iterator[str]:
    yield _head(name, kind, text)
    yield f"clusterwright_agent_{name} {value}\n"


def _many(name: str, kind: str, text: str, label: str, values: Mapping[str, int]) -> Iterator[str]:
    yield _head(name, kind, text)
    for each, value in sorted(values.items()):
        yield f'clusterwright_agent_{name}{{{label}="{each}"}} {value}\n'


def _head(name: str, kind: str, text: str) -> str:
    return f"# HELP clusterwright_agent_{name} {text}\n# TYPE clusterwright_agent_{name} {kind}\n"
