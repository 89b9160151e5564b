"""PCIe errors that a port corrects: each is harmless, more than 60 a minute for ten minutes are not."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from checks.kernel.codes.catalog import explain
from checks.kernel.faults.fault import OpenFault
from checks.kernel.faults.kernel_faults import KernelFaults
from checks.kernel.faults.open_faults import OpenFaults
from checks.kernel.parse.event import KernelEvent
from checks.kernel.parse.reader import parse

PORT, OTHER = "0000:60:01.1", "0000:80:01.1"
ANNOUNCED = "pcieport {}: AER: Corrected error received: 0000:61:00.0"
DETAIL = "pcieport {}: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)"


def event(text: str, port: str = PORT, count: int = 1) -> KernelEvent:
    found = parse(text.format(port), None)
    assert found is not None
    return found.times(count)


def flood(
    faults: OpenFaults, per_minute: int, began: float, minutes: float, *texts: str, count: int = 1
) -> None:
    """Log so many errors a minute, evenly, `count` with each line."""
    for number in range(int(per_minute * minutes)):
        for text in texts or (ANNOUNCED,):
            faults.add(event(text, count=count), began + number * 60 / per_minute)


def verdict(faults: OpenFaults) -> str:
    (fault,) = faults
    return f"{fault.event.severity}/{fault.event.action}"


def test_more_than_sixty_a_minute_for_ten_minutes_are_for_a_person() -> None:
    faults = OpenFaults()
    flood(faults, 61, 1000.0, 9.9)
    assert verdict(faults) == "info/none"
    flood(faults, 61, 1000.0 + 9.9 * 60, 0.2)
    assert verdict(faults) == "warning/ask"
    (fault,) = faults
    assert (fault.event.count, fault.event.device) == (615, PORT)
    assert fault.event.summary.startswith(f"{PORT}: PCIe errors are corrected so often")


@pytest.mark.parametrize(("per_minute", "minutes"), [(60, 60), (2000, 9)])
def test_slower_or_shorter_is_only_recorded(per_minute: int, minutes: int) -> None:
    faults = OpenFaults()
    flood(faults, per_minute, 0.0, minutes)
    flood(faults, 1, minutes * 60.0, 5)
    assert verdict(faults) == "info/none"


def test_one_slow_minute_begins_the_ten_anew() -> None:
    faults = OpenFaults()
    flood(faults, 100, 0.0, 9)
    flood(faults, 100, 600.0, 9)
    assert verdict(faults) == "info/none"


def test_two_ports_are_not_added_up() -> None:
    faults = OpenFaults()
    for number in range(40 * 30):
        for port in (PORT, OTHER):
            faults.add(event(ANNOUNCED, port), number * 1.5)
    assert {fault.event.severity for fault in faults} == {"info"}


def test_two_lines_about_one_error_are_one_error() -> None:
    faults = OpenFaults()
    flood(faults, 40, 0.0, 30, ANNOUNCED, DETAIL)
    assert verdict(faults) == "info/none"
    faults = OpenFaults()
    flood(faults, 70, 0.0, 11, ANNOUNCED, DETAIL)
    assert verdict(faults) == "warning/ask"


def test_a_line_that_stands_for_many_counts_as_many() -> None:
    faults = OpenFaults()
    flood(faults, 2, 0.0, 11, count=31)
    assert verdict(faults) == "warning/ask"


def test_the_count_goes_on_after_a_restart() -> None:
    before, after = OpenFaults(), OpenFaults()
    flood(before, 61, 0.0, 6)
    for fault in before:
        after.restore(msgspec.json.decode(msgspec.json.encode(fault), type=OpenFault))
    flood(after, 61, 360.0, 4.1)
    assert verdict(after) == "warning/ask"


def test_ten_minutes_at_a_harmless_rate_end_it_and_one_more_fast_minute_does_not_bring_it_back() -> None:
    faults = OpenFaults()
    flood(faults, 61, 0.0, 11)
    flood(faults, 60, 660.0, 9)
    assert not faults.calm(1200.0)
    assert verdict(faults) == "warning/ask"
    assert faults.calm(1261.0)
    assert not faults.calm(1262.0)
    (fault,) = faults
    assert (verdict(faults), fault.event.summary) == ("info/none", event(ANNOUNCED).summary)
    flood(faults, 100, 1270.0, 1)
    assert verdict(faults) == "info/none"


def test_on_a_node_the_finding_is_a_record_again_and_then_over() -> None:
    standing = KernelFaults()
    for second in range(700):
        standing.take(event(ANNOUNCED, count=2), float(second), 0.0)
    told = []
    for at in (700.0, 1000.0, 1330.0, 2000.0):
        standing.expire(at)
        told.append([f"{each.severity}/{each.action}" for each in standing.findings()])
    assert told == [["warning/ask"], ["warning/ask"], [], []]


def test_classify_shows_it(tmp_path: Path) -> None:
    log = tmp_path / "kern.log"
    log.write_text("".join(f"[{second}.0] {ANNOUNCED.format(PORT)}\n" * 2 for second in range(700)))
    command = [sys.executable, "-m", "bot.cli", "classify", "--format", "table", str(log)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "aer-corrected" in done.stdout
    assert "warning" in done.stdout
    assert "corrected so often" in done.stdout


def test_explain_tells_the_rate() -> None:
    told = explain("aer-corrected")
    assert told is not None
    assert "More than 60 a minute on one port" in told.notes[0]
