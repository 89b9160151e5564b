"""Print every function that one Xid 79 passes, from its record in /dev/kmsg to the body of the report.

    python -m tests.trace_xid

A file stands in for /dev/kmsg. The agent's threads, the waiting and the HTTP request are left out.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import checks
from checks.agent.node_state import NodeState
from checks.agent.state_file import StateFile
from checks.debounce import Instant
from checks.host import critical_devices
from checks.kernel.parse import storage
from checks.kernel.parse.reader import KernelLogReader
from checks.kernel.source.kmsg import KernelLog, KernelRecord, KmsgFollower
from checks.kernel.source.line import record_line
from checks.kernel.source.prefilter import KERNEL
from checks.report import Inventory, encode

RECORD = "4,1,5000000,c;NVRM: Xid (PCI:0000:3d:00): 79, pid=1, name=train, GPU has fallen off the bus.\n"
PACKAGE = Path(checks.__file__).parent


class Call(NamedTuple):
    """A function of ours: its file in the package and its name."""

    file: str
    name: str


def trace(directory: Path) -> tuple[list[Call], bytes]:
    """Return the functions that the record passes, in order of their first call, and the report's body."""
    log = directory / "kmsg"
    log.touch()
    wake, waker = os.pipe2(os.O_NONBLOCK)
    follower = KmsgFollower(KernelLog(log, 0.01, wake), KERNEL, None)
    state, reader, at = (
        NodeState(StateFile(directory), "boot"),
        KernelLogReader(),
        Instant(1_790_000_000.0, 5.0),
    )
    follower.read(0)
    log.write_text(RECORD)
    with recorded() as calls:
        devices = cache(lambda: critical_devices.devices(directory))
        events = [
            (storage.judge(event, devices), at)
            for item in follower.read(0)
            if isinstance(item, KernelRecord) and (line := record_line(item.header))
            for event in reader.events(line, item.header.sequence)
        ]
        state.kernel.record(events, follower.last, reader.branch)
        state.kernel.expire(at)
        body = encode(state.report("gpu-01", Inventory(gpus=()), at.wall))
    follower.close()
    for end in (wake, waker):
        os.close(end)
    return list(calls), body


@contextmanager
def recorded() -> Iterator[dict[Call, None]]:
    """Collect the functions of the package that are called meanwhile."""
    calls: dict[Call, None] = {}

    def profile(frame: FrameType, event: str, _: object) -> None:
        file = Path(frame.f_code.co_filename)
        if event == "call" and file.is_relative_to(PACKAGE):
            calls[Call(str(file.relative_to(PACKAGE)), frame.f_code.co_qualname)] = None

    sys.setprofile(profile)
    try:
        yield calls
    finally:
        sys.setprofile(None)


def main() -> int:
    """Print the trace, the report and the numbers."""
    with tempfile.TemporaryDirectory() as directory:
        calls, body = trace(Path(directory))
    for call in calls:
        print(f"{call.file:34} {call.name}")
    print(body.decode())
    kernel = [call for call in calls if call.file.startswith("kernel/")]
    for name, part in (("in all", calls), ("in checks/kernel", kernel)):
        print(f"{name}: {len(part)} functions in {len({call.file for call in part})} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
