"""Recurrence: the same fault of the same GPU or link, over days and boots (M4, sections 3.4, 3.6 and 4).

What is remembered outlives the finding and the boot. It is kept by GPU, not by slot: a GPU that replaces
another one begins with a clean count. The board's serial number and the chip's UUID tell GPUs apart; the
kernel log has both before a GPU's first Xid, /proc has the UUID, NVML has both. A fault on several GPUs
within a minute is the job's, however often the job starts again.
"""

import re
from collections.abc import Iterable

import msgspec

from checks.kernel.faults.relations import INCIDENT_SECONDS, RECURRENCES, WINDOW_SECONDS, Recurrence
from checks.kernel.parse.event import ADDRESS, KernelEvent, pci_address

VISITS_KEPT = 256
"""Application faults remembered; beyond it the oldest are forgotten."""

LINKS_KEPT = 512
"""Link faults remembered: three of each of the 18 links of eight GPUs, and some of the switches'."""


class GpuIdentity(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of the GPU at a PCI address."""

    address: str
    uuid: str | None = None
    serial: str | None = None

    def is_same(self, other: "GpuIdentity") -> bool:
        """Whether both are one GPU: all that is known of both is equal.

        The UUID counts beside the serial number, because one board can hold several GPUs. Where neither is
        known of both, the address decides.
        """
        if self == other:
            return True
        names = ((self.serial, other.serial), (self.uuid, other.uuid))
        known = [one == two for one, two in names if one and two]
        return all(known) if known else self.address == other.address


class GpuIdentities:
    """The GPUs of one node in one boot, by address."""

    def __init__(self, known: Iterable[GpuIdentity] = ()) -> None:
        self._boards = {each.address: each for each in known}
        self._named = ""

    @property
    def known(self) -> tuple[GpuIdentity, ...]:
        """What is known, to be saved."""
        return tuple(self._boards.values())

    def of(self, gpu: str) -> GpuIdentity:
        """Return what is known of the GPU at an address."""
        return self._boards.get(gpu) or GpuIdentity(gpu)

    def learn(self, told: GpuIdentity) -> tuple[GpuIdentity, GpuIdentity] | None:
        """Take in what a source says; return what was known before and what is known now, None for no news.

        What contradicts what was known means another GPU at this address.
        """
        before, after = (
            self.of(told.address),
            GpuIdentity(told.address, told.uuid, serial_number(told.serial)),
        )
        if before.is_same(after):
            after = GpuIdentity(told.address, after.uuid or before.uuid, after.serial or before.serial)
        if after == before:
            return None
        self._boards[told.address] = after
        return before, after

    def read(self, text: str) -> GpuIdentity | None:
        """Return what an identity line of the driver says, None for any other line."""
        if found := _AT.match(text):
            self._named = pci_address(found[1]) or ""
            return GpuIdentity(self._named, uuid=found[2]) if self._named else None
        if found := _SERIAL.match(text):
            # The first wording has no address: it follows the line that has.
            address, self._named = pci_address(found[1] or "") or self._named, ""
            return GpuIdentity(address, serial=found[2]) if address else None
        return None


def serial_number(text: str | None) -> str | None:
    """Return a serial number, None for what boards without one print: zeros, nothing, `[N/A]`."""
    return text if text and text.isalnum() and text.strip("0") else None


class OccurredAt(msgspec.Struct, frozen=True):
    """A moment: seconds since boot of which boot, and Unix seconds by a clock that may have been wrong."""

    boot: str
    uptime: float
    wall: float

    def apart(self, other: "OccurredAt") -> float:
        """Return the seconds between two moments.

        Within a boot by the clock that does not jump; between boots by the other one, either way round: what
        was stamped in the future is far away like anything else, so it does not count for ever.
        """
        if self.boot == other.boot:
            return abs(self.uptime - other.uptime)
        return abs(self.wall - other.wall)


class Occurrence(msgspec.Struct, frozen=True, omit_defaults=True):
    """A fault to remember: on which GPU, at which part of it, when, and under which process."""

    code: str
    board: GpuIdentity
    place: str
    when: OccurredAt
    victim: str = ""

    def is_at(self, other: "Occurrence") -> bool:
        """Whether both are the same fault of the same part."""
        return (self.code, self.place) == (other.code, other.place) and self.board.is_same(other.board)


class Remembered(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is to be saved: application faults and faults of links, the oldest first."""

    visits: tuple[Occurrence, ...] = ()
    links: tuple[Occurrence, ...] = ()


class RecurrenceMemory:
    """The memory of one node in the boot `boot`."""

    def __init__(self, boot: str = "", remembered: Remembered | None = None) -> None:
        self._boot = boot
        self.remembered = remembered or Remembered()

    def judge(self, event: KernelEvent, board: GpuIdentity | None, at: float, shown: float) -> KernelEvent:
        """Remember the event; return it with the verdict that a recurrence has, if it is one.

        `board` is the GPU's identity; `at` is seconds since boot, `shown` the same moment by the wall clock.
        """
        rule = RECURRENCES.get(event.kind)
        if rule is None or rule.counted not in ("job", "link"):
            return event
        when = OccurredAt(self._boot, at, shown)
        if rule.counted == "job":
            visit = _visit(rule, event, board, when)
            recurs = visit is not None and self._visits_again(rule, visit)
        else:
            link = _link(rule, event, board, when)
            recurs = link is not None and self._fails_again(rule, link)
        return event.judged(rule.verdict) if recurs and rule.verdict.rank > event.verdict.rank else event

    def rename(self, before: GpuIdentity, after: GpuIdentity) -> None:
        """Put in what was learnt of a GPU that faults are remembered of."""
        self.remembered = Remembered(
            tuple(_renamed(self.remembered.visits, before, after)),
            tuple(_renamed(self.remembered.links, before, after)),
        )

    def _visits_again(self, rule: Recurrence, visit: Occurrence) -> bool:
        """Remember an application fault; say whether several jobs met it."""
        visits, links = self.remembered.visits, self.remembered.links
        if not _is_known(rule, visits, visit):
            self.remembered = Remembered((*visits, visit)[-VISITS_KEPT:], links)
        return _is_of_several_jobs(rule, self.remembered.visits, visit)

    def _fails_again(self, rule: Recurrence, link: Occurrence) -> bool:
        """Remember a fault of a link; say whether it is one too many."""
        visits, links = self.remembered.visits, self.remembered.links
        times = [each for each in links if each.is_at(link)]
        goes_on = bool(times) and _is_same_time(times[-1].when, link.when)
        kept = [*(times[:-1] if goes_on else times), link][-rule.times :]
        others = [each for each in links if not each.is_at(link)]
        self.remembered = Remembered(visits, tuple([*others, *kept][-LINKS_KEPT:]))
        return sum(each.when.apart(link.when) <= rule.span_seconds for each in kept) >= rule.times


def _visit(
    rule: Recurrence, event: KernelEvent, board: GpuIdentity | None, when: OccurredAt
) -> Occurrence | None:
    """Return the application fault that `event` is: at which place of the GPU, under which process."""
    victim = _VICTIM.search(event.text)
    place = rule.place.search(event.text) if rule.place else None
    if board is None or victim is None or (rule.place and place is None):
        return None
    where = "/".join(place.groups()) if place else ""
    return Occurrence(event.code or "", board, where, when, f"{victim[1]} {victim[2] or ''}".rstrip())


def _link(
    rule: Recurrence, event: KernelEvent, board: GpuIdentity | None, when: OccurredAt
) -> Occurrence | None:
    """Return the fault of a link that `event` is; one whose link is not in the text does not count."""
    if "link." not in (event.device or "") or (rule.of and event.verdict not in rule.of):
        return None
    where = GpuIdentity("") if event.subsystem == "sxid" else board
    return Occurrence(event.code or "", where, event.device or "", when) if where is not None else None


def _is_known(rule: Recurrence, visits: tuple[Occurrence, ...], visit: Occurrence) -> bool:
    """Whether the same process has met the same fault; a pid of another boot is another process."""
    return any(
        each.victim == visit.victim
        and each.when.boot == visit.when.boot
        and each.when.apart(visit.when) <= rule.span_seconds
        and each.is_at(visit)
        for each in reversed(visits)
    )


def _is_of_several_jobs(rule: Recurrence, visits: tuple[Occurrence, ...], visit: Occurrence) -> bool:
    """Whether enough jobs met the fault at this place alone; processes within a minute are one job."""
    recent = [
        each
        for each in visits
        if each.code == visit.code and each.when.apart(visit.when) <= rule.span_seconds
    ]
    elsewhere = [each.when for each in recent if not each.board.is_same(visit.board)]
    jobs, last = 0, None
    for each in recent:
        if not each.is_at(visit) or any(each.when.apart(other) <= INCIDENT_SECONDS for other in elsewhere):
            continue
        if last is None or each.when.apart(last) > INCIDENT_SECONDS:
            jobs += 1
        last = each.when
        if jobs >= rule.times:
            return True
    return False


def _is_same_time(one: OccurredAt, other: OccurredAt) -> bool:
    return one.boot == other.boot and one.apart(other) <= WINDOW_SECONDS


def _renamed(found: Iterable[Occurrence], before: GpuIdentity, after: GpuIdentity) -> Iterable[Occurrence]:
    return (msgspec.structs.replace(each, board=after) if each.board == before else each for each in found)


_VICTIM = re.compile(r"pid=([0-9]{1,10})(?:, name=([^,]{0,64}))?")
_AT = re.compile(rf"NVRM: GPU at (?:PCI:)?({ADDRESS}): (GPU-[0-9a-fA-F]{{8}}(?:-[0-9a-fA-F]{{4,12}}){{4}})\b")
_SERIAL = re.compile(rf"NVRM: GPU (?:Board Serial Number:|({ADDRESS}): GPU serial number is) *(\w{{1,32}})")
