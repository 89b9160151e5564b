"""How far it is from a kernel line to the wire: each layer that an event passes has to earn its place."""

from pathlib import Path

from checks.report import decode
from tests.trace_xid import trace

FUNCTIONS, FILES = 52, 14
"""What one Xid 79 may pass in checks/kernel; it was 89 functions in 22 files."""


def test_one_xid_reaches_the_report_through_few_functions(tmp_path: Path) -> None:
    calls, body = trace(tmp_path)
    assert [each.code for each in decode(body).findings] == ["79"]
    kernel = [call for call in calls if call.file.startswith("kernel/")]
    assert len(kernel) <= FUNCTIONS, kernel
    assert len({call.file for call in kernel}) <= FILES
