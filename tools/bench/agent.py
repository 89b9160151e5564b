"""What the agent costs a node: memory, an idle core, a flood of kernel lines; beside what others publish.

    python -m tools.bench.agent [--idle-minutes 10] [--lines 800000] [--format table|json] [--out FILE]

The agent runs as it does on a node: TLS to a bot, a state directory, a server's sysfs and procfs, NVML in
its child. Floods come through the lab's plain file; what reading that file costs is taken off, and what
reading /dev/kmsg costs, measured on this machine's own log, is put on. Nothing is written there. A
pseudo-terminal, which gives one record a read as /dev/kmsg does, shows the same in one piece, though it is
the slower device.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.lab.kmsg.device import Device
from tests.lab.program import end_as_by_keyboard
from tools.arguments import count, minutes, output
from tools.bench import published_costs
from tools.bench.node import PROBE_SECONDS, BenchNode, Kernel, PlainFile
from tools.bench.process import (
    Usage,
    awake,
    file_read_seconds,
    kmsg_read_seconds,
    together_mb,
    waking_factor,
)

SETTLE_SECONDS = 8.0
"""Time after the first report until the agent has looked at everything once."""

QUIET = "systemd-journald[812]: Received request {n} to flush runtime journal"
ODD = "NVRM: GPU{k} dumping register {n:08x} of unit {k}"
DISTINCT = 29
"""Different lines in the flood of 800,000 that NVSentinel #1120 tells of."""


class Figure(NamedTuple):
    """One measured number. `target` is the most it may be, None when it is only shown."""

    name: str
    value: float
    unit: str
    target: float | None
    note: str = ""

    @property
    def met(self) -> bool:
        return self.target is None or self.value <= self.target


def main(argv: list[str]) -> int:
    """Measure and print; a target that was missed is marked and no failure: other machines are slower."""
    arguments = _arguments(argv)
    end_as_by_keyboard()
    figures = []
    for figure in measure(arguments.idle_minutes, arguments.lines):
        print(f"bench: {figure.name}: {figure.value:.3g} {figure.unit}", file=sys.stderr, flush=True)
        figures.append(figure)
    document = {
        "figures": [{**figure._asdict(), "met": figure.met} for figure in figures],
        "published": [each._asdict() for each in published_costs.FIGURES],
    }
    if arguments.out:
        arguments.out.write_text(json.dumps(document, indent=2) + "\n")
    print(json.dumps(document, indent=2) if arguments.format == "json" else _table(figures))
    return 0


def measure(idle_minutes: float, lines: int) -> Iterator[Figure]:
    """Yield every figure as it is known."""
    yield from _idle(idle_minutes)
    kmsg, file = kmsg_read_seconds(), file_read_seconds([_ordinary(number) for number in range(100_000)])
    note = "on this machine" if kmsg else "not readable here: below, lines are read from a file"
    yield Figure("one record from /dev/kmsg", (kmsg or 0.0) * 1e6, "µs", None, note)
    yield Figure("one record from the lab's file", file * 1e6, "µs", None)
    reading = kmsg - file if kmsg else 0.0
    for name, text in (
        ("ordinary lines", _ordinary),
        ("a driver's dump", _dump),
        (f"{DISTINCT} Xid lines over and over", _xids),
    ):
        yield from _flood(name, PlainFile, [text(number) for number in range(lines)], reading)
    fewer = min(lines, 100_000)
    yield from _flood("ordinary lines, pseudo-terminal", Device, [_ordinary(n) for n in range(fewer)], None)
    yield from _trickle(fewer)


def _idle(minutes: float) -> Iterator[Figure]:
    with _node(Device, report_interval_seconds=30) as node:
        node.start()
        time.sleep(SETTLE_SECONDS)
        usage, children = Usage(node.pid), Usage(node.pid).children()
        with awake([usage.pid, *(child.pid for child in children)]):
            yield from _rest(minutes, "memory kept awake", usage, children)
        yield from _rest(minutes, "machine at rest", usage, children)
        yield Figure("RSS, parent", usage.rss_mb(), "MB", 25, f"{usage.anonymous_mb():.1f} MB of it private")
        for child in children:
            yield Figure("RSS, NVML child", child.rss_mb(), "MB", 35)
        whole = together_mb([usage, *children])
        yield Figure("memory, all processes", whole, "MB", 45, "shared pages once, as a cgroup is charged")
        yield Figure("report", node.bot.bytes_each(), "bytes", None, f"mean of {node.bot.reports}")


def _rest(minutes: float, where: str, agent: Usage, children: list[Usage]) -> Iterator[Figure]:
    """What the agent costs while nothing happens."""
    began = time.monotonic()
    before = [each.cpu_seconds(children=False) for each in (agent, *children)]
    time.sleep(minutes * 60)
    passed = time.monotonic() - began
    after = [each.cpu_seconds(children=False) for each in (agent, *children)]
    shares = [(late - early) / passed * 100 for early, late in zip(before, after, strict=True)]
    note = f"{minutes:g} min, a report every 30 s, a probe every {PROBE_SECONDS:g} s"
    yield Figure(f"idle CPU, {where}", sum(shares), "% of a core", 0.1, note)
    yield Figure("  the parent's part", shares[0], "% of a core", None)
    note = "over the stand-in library; make bench-gpu has the real one"
    yield Figure("  the NVML child's part", sum(shares[1:]), "% of a core", None, note)
    note = "what known work costs more after 10 s asleep: so much of the figures above is the host's"
    yield Figure("  waking up", waking_factor(), "times", None, note)


def _flood(name: str, kernel: type[Kernel], texts: list[str], reading: float | None) -> Iterator[Figure]:
    """A flood at once. `reading` is what a record costs more on /dev/kmsg; None for no target."""
    with _node(kernel, report_interval_seconds=1) as node:
        node.start()
        time.sleep(SETTLE_SECONDS / 2)
        usage = Usage(node.pid)
        told = node.kernel.write(texts)
        node.wait_read(told)
        seconds = usage.cpu_seconds()
        counted, lost = node.bot.counted(), node.bot.lost()
        events = sum("Xid" in text for text in texts)
        lines = f"{len(texts):,} lines"
        if reading is None:
            yield Figure(f"CPU, {name}", seconds, "s", None, lines)
        else:
            whole = seconds + len(texts) * reading
            note = f"{lines}; {seconds:.2f} s from the file"
            yield Figure(f"CPU, {name}", whole, "s", 1.5 * len(texts) / 800_000, note)
        yield Figure(f"lost untold, {name}", events - counted - lost, "lines", 0, f"{counted:,} counted")
        yield Figure(f"peak RSS, {name}", usage.peak_mb(), "MB", 25)


def _trickle(lines: int) -> Iterator[Figure]:
    """A flood that comes no faster than it is read: what waking up costs."""
    with _node(Device, report_interval_seconds=1) as node:
        node.start()
        time.sleep(SETTLE_SECONDS / 2)
        usage, began, seconds = Usage(node.pid), time.monotonic(), 10.0
        told = 0
        for tenth in range(int(seconds * 100)):
            part = lines * (tenth + 1) // int(seconds * 100) - lines * tenth // int(seconds * 100)
            told = node.kernel.write([_ordinary(number) for number in range(part)])
            time.sleep(max(0.0, began + (tenth + 1) / 100 - time.monotonic()))
        node.wait_read(told)
        note = f"{lines:,} ordinary lines over {seconds:g} s"
        yield Figure("CPU, steady stream", usage.cpu_seconds() / lines * 1e6, "µs a line", None, note)


def _node(kernel: type[Kernel], report_interval_seconds: float) -> BenchNode:
    return BenchNode(Path(tempfile.mkdtemp(prefix="cw-bench-")), kernel, report_interval_seconds)


def _ordinary(number: int) -> str:
    return QUIET.format(n=number)


def _dump(number: int) -> str:
    return ODD.format(n=number, k=number % 8)


def _xids(number: int) -> str:
    bus = 16 + number % DISTINCT
    return f"NVRM: Xid (PCI:0000:{bus:02x}:00): 31, pid=4711, name=job, Ch 0000001{bus % 8}, MMU Fault"


def _table(figures: list[Figure]) -> str:
    rows = [("measured here", "value", "target", "")]
    for figure in figures:
        target = "" if figure.target is None else f"<= {figure.target:g}"
        missed = "" if figure.met else "MISSED "
        rows.append((figure.name, f"{figure.value:.3g} {figure.unit}", target, missed + figure.note))
    rows.append(("", "", "", ""))
    rows.append(("published by others", "CPU", "memory", "source"))
    rows += [(each.program, each.cpu, each.memory, each.source) for each in published_costs.FIGURES]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, (*widths, 0), strict=True)).rstrip()
        for row in rows
    )


def _arguments(argv: list[str]) -> argparse.Namespace:
    description = (__doc__ or "").split("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m tools.bench.agent", description=description)
    parser.add_argument("--idle-minutes", type=minutes, default=10.0)
    parser.add_argument("--lines", type=count, default=800_000)
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--out", type=output, help="write the JSON document here too")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
