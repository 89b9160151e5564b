"""Harness of the host checks: a healthy server's files, single files broken, and observations over time."""

from collections.abc import Iterable
from pathlib import Path

from checks.check import Check, CheckContext, CheckResult, Observation, Symptom, Unobservable
from checks.debounce import Debouncer, Instant
from checks.policy import Policy
from tests.lab import hardware

WALL = 1_796_000_000.0
GPUS = ("0000:1b:00.0", "0000:43:00.0")


class Server:
    """A server that one check looks at, from the second hour of its uptime on."""

    def __init__(self, root: Path, check: Check, policy: Policy | None = None) -> None:
        self.root = root
        self.check = check
        self.policy = policy or Policy()
        self.uptime = 7200.0
        self.debouncer = Debouncer()
        hardware.furnish(root, GPUS)

    def write(self, path: str, content: object) -> None:
        hardware.write(self.root, path, f"{content}\n")

    def remove(self, path: str) -> None:
        place = self.root / path
        if place.is_dir():
            for each in sorted(place.iterdir()):
                self.remove(str(each.relative_to(self.root)))
            place.rmdir()
        else:
            place.unlink()

    def glance(self) -> CheckResult:
        """Look once, without time passing and without remembering it."""
        return self.check.observe(
            CheckContext(
                root=self.root,
                now=WALL + self.uptime,
                uptime=self.uptime,
                policy=self.policy,
                past=self.debouncer.past(self.check.name),
            )
        )

    def look(self, times: int = 1) -> list[str]:
        """Look so many times, as far apart as the check asks for; return what is wrong then."""
        for _ in range(times):
            self.debouncer.record(self.check, self.glance(), Instant(WALL + self.uptime, self.uptime))
            self.uptime += self.check.every_seconds
        return self.wrong

    def look_for(self, seconds: float) -> list[str]:
        """Go on looking for so long."""
        return self.look(int(seconds / self.check.every_seconds) + 1)

    @property
    def wrong(self) -> list[str]:
        """Every finding as `code device severity/action`."""
        return [
            f"{each.code} {each.device or '-'} {each.severity.value}/{each.action.value}"
            for each in self.debouncer.findings()
        ]


def symptoms(look: CheckResult) -> Iterable[Symptom]:
    """Return what a look found; fails for a blind one."""
    assert isinstance(look, Observation), look
    return look.symptoms


def blind(look: CheckResult) -> str:
    """Return why a look was not possible; fails for one that was."""
    assert isinstance(look, Unobservable), look
    return look.reason
