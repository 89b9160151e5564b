"""Rounds: look at everything in its own time, in a thread of its own, and survive a look that never returns.

A look that hangs in the kernel cannot be ended. It is left behind and counts as blind (rule T11), while
another thread goes on with the other checks; the kernel log is not read here and waits for nobody.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from checks.agent.ticker import DUE_PART, Metronome
from checks.check import Blind, Check, Door, Look, Past, Scene
from checks.debounce import Moment
from checks.policy import Policy

LOOK_SECONDS = 26.0
"""How long a look may take: a little longer than the longest one that ends by itself (a round of GPUs, 15 s
and then a call's deadline, 10 s), and a little less than a tick, so that the next one finds it."""

STUCK_LIMIT = 4
"""Threads that may be left behind; then looks wait for one of them, and the checks go blind."""

log = logging.getLogger("checks.agent.scheduler")


class Keeper(Protocol):
    """Keeps what looks have found. Called from the thread of the rounds."""

    def past(self, check: str) -> Past:
        """Return what earlier looks of the check have read."""

    def facts(self) -> Mapping[type, Any]:
        """Return what is known without a door, by type."""

    def take_fetched(self, found: object) -> None:
        """Take in what a door has brought."""

    def take_look(self, check: Check, look: Look, at: Moment) -> None:
        """Take in one look."""

    def drop_check(self, check: str) -> None:
        """Forget a check that is switched off."""


class _Job:
    """One check or door, and when it is due (seconds since boot)."""

    def __init__(
        self,
        name: str,
        every: float,
        work: Callable[[Moment], None],
        give_up: Callable[[Moment], None],
    ) -> None:
        self.name = name
        self.every = every
        self.work = work
        self.give_up = give_up
        self.due = 0.0
        self.began: float | None = None
        self.stuck = False


class Rounds:
    """Runs `checks` and `doors` at the ticks of `metronome`; `policy` gives the policy in force."""

    def __init__(
        self,
        root: Path,
        duty: tuple[tuple[Check, ...], tuple[Door, ...]],
        keeper: Keeper,
        policy: Callable[[], Policy],
        metronome: Metronome,
    ) -> None:
        checks, self._doors = duty
        self._root = root
        self._keeper = keeper
        self._policy = policy
        self._metronome = metronome
        self._round_began = 0.0
        self._fetched: dict[type, Any] = {}
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._threads = 0
        self._stranded = False
        self._begun = False
        self._lock = threading.Lock()
        self._current: threading.Thread | None = None
        # Doors first: what they fetch is what checks of the same moment look at.
        self._jobs = [
            *(self._fetching(each) for each in self._doors),
            *(self._looking(each) for each in checks),
        ]

    def start(self) -> None:
        """Begin, with everything at once; does nothing when that was done."""
        with self._lock:
            begun, self._begun = self._begun, True
        if not begun:
            self._go_on()

    def restart(self) -> None:
        """Begin anew: another boot has begun, and what was fetched is of the one before."""
        with self._lock:
            self._fetched = {}
            for job in self._jobs:
                job.due = 0.0
        self._wake.set()

    def supervise(self) -> None:
        """Leave behind a look that takes too long, and say of those left behind that they are blind.

        To be called at every tick; it also wakes rounds that slept past what is due.
        """
        at = self._metronome.now()
        with self._lock:
            for job in self._jobs:
                if job.began is not None and not job.stuck and at.uptime - job.began > LOOK_SECONDS:
                    job.stuck = self._stranded = True
                    job.due = at.uptime
                    log.warning("a look does not return: %s", job.name)
            left = [job for job in self._jobs if job.stuck and at.uptime >= job.due]
            go_on = self._stranded and self._threads <= STUCK_LIMIT
            self._stranded = self._stranded and not go_on
        for job in left:
            job.due = at.uptime + job.every
            job.give_up(at)
        if go_on:
            self._go_on()
        if any(at.uptime >= job.due for job in self._jobs):
            self._wake.set()

    def stop(self) -> None:
        """End soon; does not wait for a look under way."""
        self._stopping.set()
        self._wake.set()
        for door in self._doors:
            door.close()

    def _go_on(self) -> None:
        with self._lock:
            self._threads += 1
            self._current = threading.Thread(target=self._run, name="rounds", daemon=True)
        self._current.start()

    def _run(self) -> None:
        me = threading.current_thread()
        self._round_began = self._metronome.now().uptime
        while not self._stopping.is_set():
            at = self._metronome.now()
            job = self._next(at)
            if job is None:
                self._wake.wait(self._metronome.wait_seconds())
                self._wake.clear()
                self._round_began = self._metronome.now().uptime
                continue
            try:
                job.work(at)
            finally:
                job.began = None
            if job.stuck:
                job.stuck = False
                log.info("a look has returned: %s", job.name)
            if self._current is not me:
                break
        with self._lock:
            self._threads -= 1

    def _next(self, at: Moment) -> _Job | None:
        with self._lock:
            for job in self._jobs:
                if at.uptime >= job.due and job.began is None:
                    # From where the round began, so that a slow look makes no other late for its tick.
                    job.due = self._round_began + job.every * DUE_PART
                    if job.due <= at.uptime:
                        job.due = at.uptime + job.every
                    job.began = at.uptime
                    return job
        return None

    def _scene(self, at: Moment, check: str) -> Scene:
        return Scene(
            root=self._root,
            now=at.now,
            uptime=at.uptime,
            policy=self._policy(),
            past=self._keeper.past(check),
            fetched={**self._keeper.facts(), **self._fetched},
        )

    def _looking(self, check: Check) -> _Job:
        def look(at: Moment) -> None:
            if check.name in self._policy().disabled:
                self._keeper.drop_check(check.name)
                return
            found = look_once(check, self._scene(at, check.name))
            self._keeper.take_look(check, found, self._metronome.now())

        def give_up(at: Moment) -> None:
            self._keeper.take_look(check, _TIMED_OUT, at)

        return _Job(check.name, check.every_seconds, look, give_up)

    def _fetching(self, door: Door) -> _Job:
        def fetch(at: Moment) -> None:
            try:
                self._fetched[door.gives] = door.fetch(self._scene(at, ""))
            except Exception as error:  # noqa: BLE001 - a door that fails is blindness of its checks
                self._fetched[door.gives] = _failed(error)
            self._keeper.take_fetched(self._fetched[door.gives])

        def give_up(_: Moment) -> None:
            self._fetched[door.gives] = _TIMED_OUT

        return _Job(door.gives.__name__, door.every_seconds, fetch, give_up)


def look_once(check: Check, scene: Scene) -> Look:
    """Return what the check sees; a fault of its own is blindness, not health."""
    if check.needs is not None:
        held = scene.held(check.needs)
        if held is None or isinstance(held, Blind):
            return held or Blind(f"{check.needs.__name__} was not fetched yet")
    try:
        return check.look(scene)
    except Exception as error:  # noqa: BLE001 - a check that fails is blind, and the others look on
        return _failed(error)


def _failed(error: Exception) -> Blind:
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f"{Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}" if place else "nowhere"
    return Blind(f"{type(error).__name__}: {error} ({where})")


_TIMED_OUT = Blind(f"check timed out after {LOOK_SECONDS:.0f} s")
