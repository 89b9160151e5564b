"""Stamps of every form, and the year that a stamp without one gets."""

import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks.kernel.classify import Classifier
from checks.kernel.parse.event import KernelEvent
from checks.kernel.source.timestamp import FUTURE_SECONDS, Timestamp, read_timestamp

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp()


def test_a_line_of_last_december_is_not_of_the_next_one() -> None:
    january = datetime(2027, 1, 1, 0, 5, tzinfo=UTC).timestamp()
    stamp = read_timestamp("Dec 31 23:59:50 gpu-01 kernel: x", january)
    assert stamp.wall is not None
    assert january - stamp.wall < 2 * FUTURE_SECONDS


def test_a_line_of_new_year_is_not_eleven_months_old_nor_in_the_future() -> None:
    december = datetime(2026, 12, 31, 23, 59, tzinfo=UTC).timestamp()
    stamp = read_timestamp("Jan  1 00:00:07 gpu-01 kernel: x", december)
    assert stamp.wall is not None
    assert 0 <= stamp.wall - december < FUTURE_SECONDS


def test_a_leap_day_finds_its_year() -> None:
    stamp = read_timestamp("Feb 29 12:00:00 gpu-01 kernel: x", NOW)
    assert stamp.wall is not None
    assert datetime.fromtimestamp(stamp.wall, tz=UTC).year == 2024


FIRST, LAST = datetime(2024, 1, 1), datetime(2030, 12, 31)  # noqa: DTZ001 - stamps are in the local zone


@given(st.datetimes(FIRST, LAST), st.integers(0, 300))
def test_any_stamp_of_the_last_300_days_gets_its_own_year(now: datetime, days: int) -> None:
    then = (now - timedelta(days=days)).replace(microsecond=0)
    stamp = read_timestamp(then.strftime("%b %d %H:%M:%S x"), now.timestamp())
    assert stamp.wall == then.timestamp()


@pytest.mark.parametrize(
    ("text", "wall"),
    [
        ("2026-05-06T23:10:44.500000+02:00 x", datetime(2026, 5, 6, 21, 10, 44, 500000, UTC).timestamp()),
        ("2026-05-06T23:10:44,500000+00:00 x", datetime(2026, 5, 6, 23, 10, 44, 500000, UTC).timestamp()),
        ("2026-05-06T23:10:44Z x", datetime(2026, 5, 6, 23, 10, 44, tzinfo=UTC).timestamp()),
        ("Wed 2026-05-06 23:10:44 UTC x", datetime(2026, 5, 6, 23, 10, 44, tzinfo=UTC).timestamp()),
        ("1780531200.411907 x", 1780531200.411907),
        ("[Wed May  6 23:10:44 2026] x", datetime(2026, 5, 6, 23, 10, 44).astimezone().timestamp()),
        ("[May06 23:10] x", datetime(2026, 5, 6, 23, 10).astimezone().timestamp()),
    ],
)
def test_a_wall_clock_stamp_is_read(text: str, wall: float) -> None:
    assert read_timestamp(text, NOW).wall == wall


@pytest.mark.parametrize(
    ("text", "uptime"), [("[ 5.25] x", 5.25), ("[8812] x", 8812.0), ("[    5.25][  T1] x", 5.25)]
)
def test_a_stamp_since_boot_is_read(text: str, uptime: float) -> None:
    assert read_timestamp(text, NOW).uptime == uptime


@pytest.mark.parametrize(
    "text",
    [
        "Feb 30 12:00:00 x",
        "[Xxx Feb 30 12:00:00 2026] x",
        "2026-13-40T99:99:99Z x",
        "[+] x",
        "",
        "[",
        "NVRM: x",
    ],
)
def test_what_is_no_time_is_no_time(text: str) -> None:
    assert read_timestamp(text, NOW).wall is None
    assert read_timestamp(text, NOW).uptime is None


def test_a_delta_is_skipped() -> None:
    assert read_timestamp("[  +0.000287] x", NOW) == Timestamp(end=13)


@pytest.mark.parametrize(
    "date",
    [
        "Okt 06 17:59:27", "11月 15 20:01:02", "jan. 29 20:50:17", "04 Aug, 14:03:26", "15. März 08:00:01",
        "Mär 03 08:00:01", "févr. 09 10:11:12", "дек 24 01:02:03", "Mon Jul 27 10:19:15 2026",
        "2026 Jun 17 20:18:08.123456", "12월 03 04:05:06", "maj  7 09:09:09", "lun. 29 sept. 2026 14:00:00",
        "Nov 15 08:03:26 PM",
    ],
)  # fmt: skip
def test_a_date_of_any_language_is_a_date(date: str) -> None:
    line = f"{date} gpu-01 kernel: NVRM: Xid (PCI:0000:81:00): 79, GPU has fallen off the bus."
    assert [event.code for event in classified(line)] == ["79"]
    assert classified(line.replace("kernel:", "agent[7]:")) == []


@pytest.mark.parametrize(
    "date", ["Ter Set 29 14:00:00 2026", "Mo Okt  6 17:59:27 2026", "三 11月 15 20:01:02 2026"]
)
def test_a_date_of_any_language_in_brackets_is_a_date(date: str) -> None:
    line = f"[{date}] NVRM: Xid (PCI:0000:81:00): 79, GPU has fallen off the bus."
    assert [event.code for event in classified(line)] == ["79"]


def classified(line: str) -> list[KernelEvent]:
    classifier = Classifier()
    return [*classifier.feed(line.encode(), 1, time.time()), *classifier.finish()]
