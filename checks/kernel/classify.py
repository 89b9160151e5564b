"""`clusterwright classify`: read a log of any length in constant memory, print its events as they end.

When input pauses, as that of `dmesg --follow` does, its events are printed after a second of silence.
"""

import argparse
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

import msgspec

from checks.command_line import CommandParser, UsageError
from checks.finding import Severity
from checks.kernel.codes.catalog import explain
from checks.kernel.faults.open_faults import OpenFaults
from checks.kernel.parse.event import KernelEvent
from checks.kernel.parse.reader import BOOT, KernelLogReader
from checks.kernel.source.line import KernelLine
from checks.kernel.source.records import lines


class Classifier:
    """Merges the events of a whole log into one for each fault, for a log whose lines have their own times.

    Memory is bounded by the faults of ten minutes, not by the log. A line without a time stamp counts as
    logged when the line before it was.
    """

    def __init__(
        self, branch: int | None = None, since: float | None = None, boot_at: float | None = None
    ) -> None:
        self._reader = KernelLogReader(branch)
        # The faults of each host that the log names: two hosts are two nodes (K9a).
        self._open: dict[str | None, OpenFaults] = {}
        self._since = since
        self._boot_at = boot_at
        self._at = 0.0
        self._number = 0
        self._now = 0.0

    def feed(self, raw: bytes, number: int, now: float) -> Iterator[KernelEvent]:
        """Take in one line; yield non-events at once and the events of faults that are over."""
        self._number, self._now = number, now
        yield from self._take(self._reader.read(raw, number, now))

    def _take(self, read: tuple[KernelLine, list[KernelEvent]] | None) -> Iterator[KernelEvent]:
        if read is None:
            return
        line, events = read
        stamp = line.wall if line.wall is not None else line.uptime
        self._at = self._at if stamp is None else stamp
        if self._too_old(line):
            return
        for faults in list(self._open.values()):
            yield from (fault.event for fault in faults.expire(self._at))
        for event in events:
            if event.code == BOOT:
                yield from self._close([line.host])
            if event.event:
                self._open.setdefault(line.host, OpenFaults()).add(event, self._at)
            else:
                yield event

    @property
    def found_no_kernel_line(self) -> bool:
        """Whether there was text, and no line of it was the kernel's."""
        return self._reader.has_text and not self._reader.has_kernel_line

    def finish(self) -> Iterator[KernelEvent]:
        """Yield what is still open; more lines may follow."""
        yield from self._take(self._reader.finish(self._number, self._now))
        yield from self._close(list(self._open))

    def _close(self, hosts: list[str | None]) -> Iterator[KernelEvent]:
        closed = [self._open.pop(host).drop(lambda _fault: True) for host in hosts if host in self._open]
        faults = sorted((fault for each in closed for fault in each), key=lambda fault: fault.event.lines[:1])
        yield from (fault.event for fault in faults)

    def _too_old(self, line: KernelLine) -> bool:
        if self._since is None:
            return False
        wall = line.wall
        if wall is None and line.uptime is not None and self._boot_at is not None:
            wall = self._boot_at + line.uptime
        return wall is not None and wall < self._since


def main(argv: list[str], out: BinaryIO, now: float) -> int:
    """Run the command; return its exit code: 0, 2 for wrong use, 3 for no kernel line. `now` is Unix seconds."""
    code = 0
    try:
        arguments = _parser().parse_args(argv)
        if arguments.explain is not None:
            _explain(arguments.explain, arguments.format, out)
        else:
            code = _classify(arguments, out, now)
        out.flush()
    except UsageError as wrong:
        sys.stderr.write(f"clusterwright classify: {wrong}\n")
        return 2
    except BrokenPipeError:
        # The reader of the output has closed it (`| head`); nothing may be flushed to it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
    except KeyboardInterrupt:
        out.flush()
    return code


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        "clusterwright classify",
        description="Explain the lines of a kernel log: dmesg, syslog, the journal or raw kmsg.",
        epilog="Example: journalctl -k -o json | clusterwright classify --format table\n"
        "Exit codes: 0 done, 2 wrong use, 3 no kernel line in the input",
    )
    parser.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help="kernel log; without it or -, stdin"
    )
    parser.add_argument("--driver", metavar="VERSION", help="NVIDIA driver version, such as 580.105.08")
    parser.add_argument(
        "--since", metavar="TIME", help="skip older lines: 30m, 2h, 7d or 2026-11-30T08:00:00"
    )
    parser.add_argument("--format", choices=("json", "table"), default="json", help="how to print (json)")
    parser.add_argument("--all", action="store_true", help="also print known lines that are not faults")
    parser.add_argument("--explain", metavar="CODE", help="explain a code and what we do about it, then exit")
    return parser


def _classify(arguments: argparse.Namespace, out: BinaryIO, now: float) -> int:
    """Print the events; return the exit code."""
    since = _since(arguments.since, now)
    classifier = Classifier(_branch(arguments.driver), since, _boot_at(now) if since else None)
    show_row = json_line if arguments.format == "json" else _table_line
    if arguments.format == "table":
        out.write(table_head().encode() + b"\n")
    number = 0
    with _opened(arguments.file) as source:
        for raw in lines(source.fileno()):
            number += raw is not None
            events = classifier.finish() if raw is None else classifier.feed(raw, number, now)
            out.writelines(show_row(event) + b"\n" for event in events if event.event or arguments.all)
            if raw is None:
                out.flush()
    out.writelines(show_row(event) + b"\n" for event in classifier.finish())
    if not classifier.found_no_kernel_line:
        return 0
    sys.stderr.write(
        f"clusterwright classify: no kernel line in {number} lines; pass the output of dmesg or journalctl -k\n"
    )
    return 3


def _table_line(event: KernelEvent) -> bytes:
    return table_row(event).encode()


@contextmanager
def _opened(file: Path | None) -> Iterator[BinaryIO]:
    if file is None or str(file) == "-":
        yield sys.stdin.buffer
        return
    try:
        with file.open("rb", buffering=0) as source:
            source.read(0)
            yield source
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        raise UsageError(f"cannot read {file}: {error.strerror}; name a log or pipe one in") from error


def _explain(code: str, output: str, out: BinaryIO) -> None:
    found = explain(code)
    if found is None:
        raise UsageError(f"unknown code {code!r}; use one such as 79 or gpu-lost")
    if output == "json":
        out.write(msgspec.json.encode(found) + b"\n")
        return
    head = f"{found.subsystem} {found.code}  {found.name}"
    verdict = f"Alone: {found.severity} / {found.action} (rule {found.rule})."
    out.write("\n".join((head, found.meaning, verdict, *found.notes, "")).encode())


def _branch(driver: str | None) -> int | None:
    if driver is None:
        return None
    match = _DRIVER.match(driver)
    if match is None:
        raise UsageError(
            f"--driver {driver!r} is not an NVIDIA driver version; use a form such as 580.105.08 or R580"
        )
    return int(match[1])


def _since(text: str | None, now: float) -> float | None:
    if text is None:
        return None
    duration = _DURATION.match(text)
    if duration is not None:
        return now - int(duration[1]) * _UNITS[duration[2]]
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        raise UsageError(f"--since {text!r} is not a time; use 30m, 2h, 7d or 2026-11-30T08:00:00") from None


def _boot_at(now: float) -> float | None:
    """Return when this machine booted: what a stamp in seconds since boot counts from, as far as we know."""
    try:
        return now - float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        return None


class EventOutput(msgspec.Struct, frozen=True):
    """An event as `clusterwright classify --format json` prints it. Every field is always there."""

    code: str | None
    subsystem: str
    gpu: str | None
    device: str | None
    severity: Severity
    action: str
    event: bool
    count: int
    line: int | None
    lines: tuple[int, ...]
    companion_of: str | None
    rule: str
    summary: str
    text: str
    host: str | None


def json_line(event: KernelEvent) -> bytes:
    """Return the event as one JSON object, without a line end."""
    return msgspec.json.encode(
        EventOutput(
            event.code,
            event.subsystem,
            event.gpu,
            event.device,
            event.severity,
            event.action.value,
            event.event,
            event.count,
            event.lines[0] if event.lines else None,
            event.lines,
            event.companion_of,
            event.rule,
            event.summary,
            event.text,
            event.host,
        )
    )


_WIDTHS = (12, 9, 11, 10, 18, 13, 7)


def table_head() -> str:
    """Return the heading of the table."""
    return _row(("LINE", "SEVERITY", "ACTION", "SUBSYSTEM", "CODE", "GPU", "COUNT"), "WHAT IT MEANS")


def table_row(event: KernelEvent) -> str:
    """Return the event as one row; the last column is as long as its sentence."""
    lines = f"{event.lines[0]}-{event.lines[-1]}" if len(event.lines) > 1 else "".join(map(str, event.lines))
    cells = (
        lines,
        event.severity.value if event.event else "-",
        event.action.value if event.event else "-",
        event.subsystem,
        event.code or "-",
        event.gpu or "-",
        str(event.count),
    )
    companion = f" (belongs to {event.companion_of})" if event.companion_of else ""
    return _row(cells, (event.summary or event.text) + companion)


def _row(cells: tuple[str, ...], last: str) -> str:
    return " ".join(cell.ljust(width) for cell, width in zip(cells, _WIDTHS, strict=True)) + " " + last


_DURATION = re.compile(r"([0-9]{1,9})([smhd])\Z")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_DRIVER = re.compile(r"R?([0-9]{3,4})(?:\.[0-9.]*)?\Z")
