"""Standing: what the kernel log says is wrong now, from events as they are read to findings as they are told.

Puts together the fold (one fault, one event), what ends a fault, what is remembered of each GPU, and what
other witnesses change about a verdict.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from checks.finding import Finding
from checks.kernel import clearing, witness
from checks.kernel.clearing import AllClear
from checks.kernel.event import Event, to_finding
from checks.kernel.fold import Fault, Fold
from checks.kernel.identity import Board, Boards
from checks.kernel.recovery import Wish
from checks.kernel.repeats import Remembered, Repeats


class Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is to be saved of one boot; `remembered` alone outlives it.

    `all_clear` are the GPUs of which the kernel log said that they need nothing any more, and the driver has
    not said so yet: at which second since boot it did.
    """

    faults: tuple[Fault, ...] = ()
    boards: tuple[Board, ...] = ()
    all_clear: dict[str, float] = {}
    remembered: Remembered = Remembered()

    def of_next_boot(self) -> "Kept":
        """What holds in another boot."""
        return Kept(remembered=self.remembered)


class Standing:
    """The open faults of one node in the boot `boot`. Times are seconds since boot, `shown` by wall clock."""

    def __init__(self, boot: str = "", kept: Kept = Kept()) -> None:  # noqa: B008 - frozen
        self._fold = Fold()
        self._boards = Boards(kept.boards)
        self._repeats = Repeats(boot, kept.remembered)
        self._all_clear = AllClear(kept.all_clear)
        for fault in kept.faults:
            self._fold.restore(fault)

    @property
    def kept(self) -> Kept:
        """Everything that a restart must not lose."""
        return Kept(self.faults, self.boards, self._all_clear.waiting, self._repeats.remembered)

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What is open."""
        return tuple(self._fold)

    @property
    def events(self) -> Iterator[Event]:
        """What is open, as events."""
        return (fault.event for fault in self._fold)

    @property
    def boards(self) -> tuple[Board, ...]:
        """What is known of the GPUs."""
        return self._boards.known

    def board(self, gpu: str) -> Board:
        """Return what is known of the GPU at an address."""
        return self._boards.of(gpu)

    def take(self, event: Event, at: float, shown: float) -> tuple[bool, list[Event]]:
        """Take in one event; return whether a finding came of it, and the events that it ended."""
        if event.subsystem == "nvrm" and (board := self._boards.read(event.text)):
            self.learn(board)
        ended: list[Fault] = []
        if not self._all_clear.waits(event, at) and clearing.is_good_news(event):
            ended = self._fold.drop(lambda fault: clearing.ends(event, fault.event))
        is_fault = clearing.is_fault(event)
        if is_fault:
            judged = self._repeats.judge(event, self._board_of(event), at, shown)
            self._fold.add(judged, at, shown)
        return is_fault, [fault.event for fault in ended]

    def learn(self, board: Board) -> None:
        """Take in who a GPU is."""
        learnt = self._boards.learn(board)
        if learnt is not None and learnt[0].is_same(learnt[1]):
            self._repeats.rename(*learnt)

    def hear(self, wishes: Mapping[str, Wish]) -> tuple[bool, list[Event]]:
        """Take in what the driver asks for, by GPU; return whether findings changed, and the events ended."""
        changed = False
        for fault in self._fold:
            wish = wishes.get(fault.event.gpu or "")
            if wish is not None and wish.at > fault.last_at:
                event = witness.needs_nothing(fault.event, wish)
                changed, fault.event = changed or event != fault.event, event
        over = self._all_clear.hear(wishes)
        ended = self._fold.drop(lambda fault: clearing.is_before(fault, over))
        return changed or bool(ended), [fault.event for fault in ended]

    def expire(self, at: float) -> bool:
        """Drop what quiet has ended; return whether there was any."""
        over = self._all_clear.expire(at)
        calmed = self._fold.calm(at)
        ended = self._fold.drop(lambda fault: clearing.is_quiet(fault, at) or clearing.is_before(fault, over))
        return calmed or bool(ended)

    def findings(self, witnesses: Sequence[Finding]) -> tuple[Finding, ...]:
        """Return the findings; `witnesses` are those of the checks, some of which decide about others."""
        return tuple(
            to_finding(self._told(fault, witnesses), fault.first_shown, fault.last_shown)
            for fault in self._fold
        )

    def _told(self, fault: Fault, witnesses: Sequence[Finding]) -> Event:
        event = witness.beside(fault.event, witnesses)
        return self._repeats.raised(event, self._board_of(event), fault.first_at)

    def _board_of(self, event: Event) -> Board | None:
        return self._boards.of(event.gpu) if event.gpu else None
