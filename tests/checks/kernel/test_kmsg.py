"""Following the kernel log: the real /dev/kmsg, and files that grow, shrink, vanish and are replaced."""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from checks.kernel.source.kmsg import BATCH_LIMIT, KernelLog, KernelRecord, KmsgFollower, LostRecords
from checks.kernel.source.prefilter import KERNEL, begins

KMSG = Path("/dev/kmsg")
EVERYTHING = KERNEL._replace(find=begins(rb"(?!)", b"").finditer, countable=re.compile(rb"(?!)").match)


@pytest.fixture
def wake() -> Iterator[tuple[int, int]]:
    ends = os.pipe2(os.O_NONBLOCK)
    yield ends
    for end in ends:
        os.close(end)


def follow(path: Path, wake: tuple[int, int], after: int | None = None) -> KmsgFollower:
    return KmsgFollower(KernelLog(path, 0.01, wake[0]), EVERYTHING, after)


def append(path: Path, *records: str) -> None:
    with path.open("a") as file:
        file.write("".join(f"{record}\n" for record in records))


def texts(items: list[KernelRecord | LostRecords]) -> list[str]:
    return [
        item.header.text.decode() if isinstance(item, KernelRecord) else f"lost {item.count}"
        for item in items
    ]


def test_the_real_kernel_log_is_read_from_its_beginning_or_the_follower_says_why(
    wake: tuple[int, int],
) -> None:
    follower = follow(KMSG, wake)
    items = follower.read(0.1)
    if follower.blind is None:
        records = [item for item in items if isinstance(item, KernelRecord)]
        assert records
        assert [item.header.sequence for item in records] == sorted(item.header.sequence for item in records)
        assert not records[0].live
    else:
        assert "CAP_SYSLOG" in follower.blind or "does not exist" in follower.blind
    follower.close()


def test_a_file_gives_its_records_without_their_dictionary(tmp_path: Path, wake: tuple[int, int]) -> None:
    log = tmp_path / "kmsg"
    append(log, "4,7,100,c;first", " SUBSYSTEM=pci", " DEVICE=+pci:0000:58:00.0", "6,8,200,-;a\\x0ab;c")
    follower = follow(log, wake)
    assert texts(follower.read(0)) == ["first", "a\nb;c"]
    follower.close()


def test_what_was_there_is_older_than_what_comes(tmp_path: Path, wake: tuple[int, int]) -> None:
    log = tmp_path / "kmsg"
    append(log, "4,1,100,-;old")
    follower = follow(log, wake)
    assert [item.live for item in follower.read(0) if isinstance(item, KernelRecord)] == [False]
    assert follower.read(0) == []
    append(log, "4,2,200,-;new")
    assert [item.live for item in follower.read(0) if isinstance(item, KernelRecord)] == [True]
    follower.close()


def test_it_goes_on_behind_the_record_it_is_told(tmp_path: Path, wake: tuple[int, int]) -> None:
    log = tmp_path / "kmsg"
    append(log, *(f"4,{number},100,-;{number}" for number in range(5)))
    follower = follow(log, wake, after=2)
    assert texts(follower.read(0)) == ["3", "4"]
    follower.close()


def test_a_gap_in_the_numbers_is_told(tmp_path: Path, wake: tuple[int, int]) -> None:
    log = tmp_path / "kmsg"
    append(log, "4,3,1,-;a", "4,10,1,-;b")
    follower = follow(log, wake, after=1)
    assert texts(follower.read(0)) == ["lost 1", "a", "lost 6", "b"]
    follower.close()


def test_gaps_dirt_and_what_was_read_before_cost_nothing_else_of_a_block(
    tmp_path: Path, wake: tuple[int, int]
) -> None:
    log = tmp_path / "kmsg"
    append(log, "4,1,1,-;a", " SUBSYSTEM=pci", "4,2,1,-;b", "4,3,1,-;c", "12,4,1,-;user", "4,7,1,-;d")
    append(log, "no record", "4,8,1,-;e", "4,x,1,-;f", "4,11,1,-;g", " DEVICE=+pci", "	h", "4,12,1,-;i")
    follower = follow(log, wake, after=1)
    assert texts(follower.read(0)) == ["b", "c", "lost 2", "d", "e", "lost 2", "g", "i"]
    assert follower.last == 12
    follower.close()


def test_the_first_record_of_a_new_follower_is_no_gap(tmp_path: Path, wake: tuple[int, int]) -> None:
    log = tmp_path / "kmsg"
    append(log, "4,5000,1,-;a")
    follower = follow(log, wake)
    assert texts(follower.read(0)) == ["a"]
    follower.close()


def test_a_line_without_an_end_waits_for_it(tmp_path: Path, wake: tuple[int, int]) -> None:
    log = tmp_path / "kmsg"
    log.write_text("4,1,1,-;hal")
    follower = follow(log, wake)
    assert follower.read(0) == []
    append(log, "f a line")
    assert texts(follower.read(0)) == ["half a line"]
    follower.close()


def test_a_bad_record_costs_that_record_only(tmp_path: Path, wake: tuple[int, int]) -> None:
    log = tmp_path / "kmsg"
    log.write_bytes(
        b"garbage\n\n4,1\n\xff\xfe;\n4,x,1,-;no\n4,2,1,-;good \xff\n" + b"4" * 300_000 + b"\n4,3,1,-;more\n"
    )
    follower = follow(log, wake)
    read = follower.read(0)
    assert [item.header.sequence for item in read if isinstance(item, KernelRecord)] == [2, 3]
    follower.close()


@pytest.mark.parametrize("how", ["replaced", "truncated"])
def test_another_file_under_the_same_name_is_read_from_its_start(
    tmp_path: Path, wake: tuple[int, int], how: str
) -> None:
    log = tmp_path / "kmsg"
    append(log, "4,1,1,-;a", "4,2,1,-;b")
    follower = follow(log, wake)
    assert texts(follower.read(0)) == ["a", "b"]
    if how == "replaced":
        append(tmp_path / "new", "4,2,1,-;b", "4,3,1,-;c")
        (tmp_path / "new").replace(log)
    else:
        log.write_text("4,3,1,-;c\n")
    read = [*follower.read(0), *follower.read(0)]
    assert texts(read) == ["c"]
    assert follower.blind is None
    follower.close()


def test_a_log_that_vanishes_and_comes_back_is_followed_on(tmp_path: Path, wake: tuple[int, int]) -> None:
    log = tmp_path / "kmsg"
    append(log, "4,1,1,-;a")
    follower = follow(log, wake)
    assert texts(follower.read(0)) == ["a"]
    log.unlink()
    follower.read(0)
    assert follower.blind == f"{log} does not exist: mount the node's /dev"
    append(log, "4,2,1,-;b")
    assert texts(follower.read(0)) == ["b"]
    assert follower.blind is None
    follower.close()


def test_a_device_that_ends_is_a_blind_spot(wake: tuple[int, int]) -> None:
    follower = follow(Path("/dev/null"), wake)
    assert follower.read(0) == []
    assert follower.blind == "/dev/null cannot be read: it has ended"
    follower.close()


def test_a_directory_is_a_blind_spot(tmp_path: Path, wake: tuple[int, int]) -> None:
    follower = follow(tmp_path, wake)
    assert follower.read(0) == []
    assert follower.blind is not None
    follower.close()


def test_a_long_log_comes_in_batches_without_a_loss(tmp_path: Path, wake: tuple[int, int]) -> None:
    log = tmp_path / "kmsg"
    append(log, *(f"4,{number},100,-;{number:0100}" for number in range(5 * BATCH_LIMIT)))
    follower = follow(log, wake)
    batches = [follower.read(0) for _ in range(6)]
    assert [int(text) for batch in batches for text in texts(batch)] == list(range(5 * BATCH_LIMIT))
    assert max(map(len, batches)) < 2 * BATCH_LIMIT
    follower.close()


def test_only_wanted_records_are_given_but_all_are_counted(tmp_path: Path, wake: tuple[int, int]) -> None:
    log = tmp_path / "kmsg"
    append(log, "4,1,1,-;a", "4,2,1,-;b", "4,3,1,-;a")
    follower = KmsgFollower(
        KernelLog(log, 0.01, wake[0]), EVERYTHING._replace(find=begins(rb"(?!)", b"b").finditer), None
    )
    assert texts(follower.read(0)) == ["b"]
    assert follower.last == 3
    follower.close()


def test_a_waiting_follower_can_be_woken(tmp_path: Path, wake: tuple[int, int]) -> None:
    os.write(wake[1], b"x")
    follower = KmsgFollower(KernelLog(tmp_path / "absent", 60, wake[0]), EVERYTHING, None)
    started = time.monotonic()
    follower.read(60)
    assert time.monotonic() - started < 5
