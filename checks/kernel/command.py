"""`clusterwright classify`: read a log of any length in constant memory, print its events as they end.

Input that pauses, such as `dmesg --follow`, has its events printed after a second of silence.
"""

import argparse
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from checks.command_line import CommandParser, UsageError
from checks.kernel import show
from checks.kernel.classify import Classifier
from checks.kernel.explain import explain
from checks.kernel.source import lines

if TYPE_CHECKING:
    from checks.kernel.event import Event


def main(argv: list[str], out: BinaryIO, now: float) -> int:
    """Run the command; return its exit code: 0, or 2 for wrong use. `now` is Unix seconds."""
    try:
        arguments = _parser().parse_args(argv)
        if arguments.explain is not None:
            _explain(arguments.explain, arguments.format, out)
        else:
            _classify(arguments, out, now)
        out.flush()
    except UsageError as wrong:
        sys.stderr.write(f"clusterwright classify: {wrong}\n")
        return 2
    except BrokenPipeError:
        # Whoever reads the output has seen enough (`| head`); nothing may be flushed to it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
    except KeyboardInterrupt:
        out.flush()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        "clusterwright classify",
        description="Say what the lines of a kernel log mean: dmesg, syslog, the journal or raw kmsg.",
        epilog="Example: journalctl -k -o json | clusterwright classify --format table\n"
        "Exit codes: 0 done, 2 wrong use",
    )
    parser.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help="kernel log; without it or -, stdin"
    )
    parser.add_argument("--driver", metavar="VERSION", help="NVIDIA driver version, such as 580.105.08")
    parser.add_argument(
        "--since", metavar="TIME", help="skip older lines: 30m, 2h, 7d or 2026-11-30T08:00:00"
    )
    parser.add_argument("--format", choices=("json", "table"), default="json", help="how to print (json)")
    parser.add_argument("--all", action="store_true", help="print known lines that are no faults, too")
    parser.add_argument("--explain", metavar="CODE", help="say what a code means and what we do, then stop")
    return parser


def _classify(arguments: argparse.Namespace, out: BinaryIO, now: float) -> None:
    since = _since(arguments.since, now)
    classifier = Classifier(_branch(arguments.driver), since, _boot_at(now) if since else None)
    show_row = show.json_line if arguments.format == "json" else _table_line
    if arguments.format == "table":
        out.write(show.table_head().encode() + b"\n")
    number = 0
    with _opened(arguments.file) as source:
        for raw in lines(source.fileno()):
            number += raw is not None
            events = classifier.finish() if raw is None else classifier.feed(raw, number, now)
            out.writelines(show_row(event) + b"\n" for event in events if event.event or arguments.all)
            if raw is None:
                out.flush()
    out.writelines(show_row(event) + b"\n" for event in classifier.finish())


def _table_line(event: "Event") -> bytes:
    return show.table_row(event).encode()


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
        raise UsageError(f"nobody knows the code {code!r}; try one such as 79 or gpu-lost")
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
        raise UsageError(f"--driver {driver!r} is no NVIDIA driver version; write it like 580.105.08 or R580")
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
        raise UsageError(f"--since {text!r} is no time; write 30m, 2h, 7d or 2026-11-30T08:00:00") from None


def _boot_at(now: float) -> float | None:
    """Return when this machine booted: what a stamp in seconds since boot counts from, as far as we know."""
    try:
        return now - float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        return None


_DURATION = re.compile(r"([0-9]{1,9})([smhd])\Z")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_DRIVER = re.compile(r"R?([0-9]{3,4})(?:\.[0-9.]*)?\Z")
