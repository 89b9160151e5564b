"""`clusterwright classify`: read a log of any length in constant memory, print its events as they end.

Input that pauses, such as `dmesg --follow`, has its events printed after a second of silence.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec

from checks.kernel import show
from checks.kernel.classify import Classifier
from checks.kernel.event import Event
from checks.kernel.explain import explain
from checks.kernel.source import lines


class Request(msgspec.Struct, frozen=True):
    """What was asked on the command line; `file` None or `-` is stdin."""

    file: Path | None
    driver: str | None
    since: str | None
    output: Literal["json", "table"]
    explain: str | None
    everything: bool


class WrongUseError(Exception):
    """The request cannot be carried out; the text says what is wrong and how to mend it."""


def run(request: Request, out: BinaryIO, now: float) -> int:
    """Carry out the request; return the exit code: 0, or 2 for wrong use. `now` is Unix seconds."""
    try:
        if request.explain is not None:
            _explain(request.explain, request.output, out)
        else:
            classifier = Classifier(_branch(request.driver), _since(request.since, now), _boot_at(now))
            _classify(request, classifier, out, now)
        out.flush()
    except WrongUseError as wrong:
        sys.stderr.write(f"clusterwright classify: {wrong}\n")
        return 2
    except BrokenPipeError:
        # Whoever reads the output has seen enough (`| head`); nothing may be flushed to it at exit.
        sys.stdout = None
    except KeyboardInterrupt:
        out.flush()
    return 0


def _classify(request: Request, classifier: Classifier, out: BinaryIO, now: float) -> None:
    if request.output == "table":
        out.write(show.table_head().encode() + b"\n")
    number = 0
    with _opened(request.file) as source:
        for raw in lines(source.fileno()):
            if raw is None:
                _print(classifier.finish(), request, out)
                out.flush()
            else:
                number += 1
                _print(classifier.feed(raw, number, now), request, out)
    _print(classifier.finish(), request, out)


def _print(events: Iterator[Event], request: Request, out: BinaryIO) -> None:
    for event in events:
        if event.event or request.everything:
            line = show.json_line(event) if request.output == "json" else show.table_row(event).encode()
            out.write(line + b"\n")


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
        raise WrongUseError(f"cannot read {file}: {error.strerror}; name a log or pipe one in") from error


def _explain(code: str, output: str, out: BinaryIO) -> None:
    found = explain(code)
    if found is None:
        raise WrongUseError(f"nobody knows the code {code!r}; try one such as 79 or gpu-lost")
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
        raise WrongUseError(
            f"--driver {driver!r} is no NVIDIA driver version; write it like 580.105.08 or R580"
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
        raise WrongUseError(
            f"--since {text!r} is no time; write 30m, 2h, 7d or 2026-11-30T08:00:00"
        ) from None


def _boot_at(now: float) -> float | None:
    """Return when this machine booted: what a stamp in seconds since boot counts from, as far as we know."""
    try:
        return now - float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        return None


_DURATION = re.compile(r"([0-9]{1,9})([smhd])\Z")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_DRIVER = re.compile(r"R?([0-9]{3,4})(?:\.[0-9.]*)?\Z")
