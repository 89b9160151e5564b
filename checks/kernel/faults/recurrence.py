"""Repeats: what it changes about a fault that the same GPU, or the same link, has had it before.

What is remembered outlives the finding and the boot. It is kept by GPU, not by slot: a GPU that was swapped
begins with a clean count (section 4).
"""

from collections.abc import Iterable

import msgspec

from checks.finding import Action, Severity
from checks.kernel import jobs, nvlink4
from checks.kernel.event import Event, Verdict
from checks.kernel.fold import WINDOW_SECONDS
from checks.kernel.identity import Board
from checks.kernel.met import Met, When, apart

VISITS_KEPT = 256
"""Application faults remembered; beyond it the oldest are forgotten."""

LINKS_KEPT = 512
"""Link faults remembered: three of each of the 18 links of eight GPUs, and some of the switches'."""


class Rule(msgspec.Struct, frozen=True):
    """The verdict of a fault that one link has had `times` times in `span_seconds`.

    Lines of one boot that are ten minutes apart or less are one time (K19).
    """

    times: int
    span_seconds: float
    verdict: Verdict


_NVLINK = Rule(
    3, 7 * 86_400.0, Verdict(Severity.CRITICAL, Action.FAILOVER, "3.4 third time on one link in 7 days")
)
_SWITCH_LINK = Rule(2, 86_400.0, Verdict(Severity.WARNING, Action.ASK, "3.6 one link repeats in 24 h"))

LINKS = {
    ("xid", "74"): _NVLINK,
    **{("sxid", code): _SWITCH_LINK for code in ("20009", "20010", "20012")},
}
"""Subsystem and code of the faults that are counted by link (sections 3.4, 3.6)."""


class Remembered(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is to be saved: application faults and faults of links, the oldest first."""

    visits: tuple[Met, ...] = ()
    links: tuple[Met, ...] = ()


class Repeats:
    """The memory of one node in the boot `boot`."""

    def __init__(self, boot: str = "", remembered: Remembered | None = None) -> None:
        self._boot = boot
        self.remembered = remembered or Remembered()

    def judge(self, event: Event, board: Board | None, at: float, shown: float) -> Event:
        """Remember the event; return it under the verdict that a repeat has, if it is one.

        `board` is the GPU's; `at` is seconds since boot, `shown` the same by the wall clock.
        """
        when = When(self._boot, at, shown)
        visit = jobs.visit(event, board, when) if board is not None else None
        if visit is not None:
            return event.judged(jobs.REPEATED) if self._visit(visit) else event
        link = _link(event, board, when)
        if link is None or not _is_counted(event):
            return event
        self._meet(link, LINKS[event.subsystem, link.code])
        return self.raised(event, board, at)

    def raised(self, event: Event, board: Board | None, since: float) -> Event:
        """Return `event` as no verdict of another may make it: at least that of the repeat that it is.

        It is one when the newest time that is remembered was in this boot, at `since` seconds or later.
        """
        here = _link(event, board, When(self._boot, since, 0.0))
        if here is None:
            return event
        rule = LINKS[event.subsystem, here.code]
        times = [each.when for each in self.remembered.links if each.is_at(here)]
        newest = times[-1] if times else None
        if newest is None or newest.boot != self._boot or newest.uptime < since:
            return event
        near = sum(apart(each, newest) <= rule.span_seconds for each in times)
        return event.judged(rule.verdict) if near >= rule.times and _is_worse(rule, event) else event

    def rename(self, before: Board, after: Board) -> None:
        """Put in what was learnt of a GPU that faults are remembered of."""
        self.remembered = Remembered(
            tuple(_renamed(self.remembered.visits, before, after)),
            tuple(_renamed(self.remembered.links, before, after)),
        )

    def _visit(self, visit: Met) -> bool:
        """Remember a visit; say whether it is one of several jobs."""
        visits, links = self.remembered.visits, self.remembered.links
        if not jobs.is_known(visits, visit):
            self.remembered = Remembered((*visits, visit)[-VISITS_KEPT:], links)
        return jobs.is_repeated(self.remembered.visits, visit)

    def _meet(self, link: Met, rule: Rule) -> None:
        visits, links = self.remembered.visits, self.remembered.links
        times = [each for each in links if each.is_at(link)]
        goes_on = bool(times) and _is_same_time(times[-1].when, link.when)
        kept = [*(times[:-1] if goes_on else times), link][-rule.times :]
        others = [each for each in links if not each.is_at(link)]
        self.remembered = Remembered(visits, tuple([*others, *kept][-LINKS_KEPT:]))


def _link(event: Event, board: Board | None, when: When) -> Met | None:
    """Return the fault of a link that `event` is; one whose link is not told is not counted."""
    if (event.subsystem, event.code) not in LINKS or "link." not in (event.device or ""):
        return None
    where = Board("") if event.subsystem == "sxid" else board
    return Met(event.code or "", where, event.device or "", when) if where is not None else None


def _is_counted(event: Event) -> bool:
    return event.subsystem != "xid" or event.verdict in nvlink4.HARDWARE


def _is_same_time(one: When, other: When) -> bool:
    return one.boot == other.boot and apart(one, other) <= WINDOW_SECONDS


def _is_worse(rule: Rule, event: Event) -> bool:
    return rule.verdict.rank > event.verdict.rank


def _renamed(met: Iterable[Met], before: Board, after: Board) -> Iterable[Met]:
    return (msgspec.structs.replace(each, board=after) if each.board == before else each for each in met)
