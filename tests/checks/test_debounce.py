"""Observations over time: what raises a finding, what clears it, and what a single one may not do."""

from dataclasses import dataclass, field

import msgspec
import pytest

from checks.check import (
    CheckDefinition,
    CheckResult,
    DebounceRule,
    Escalation,
    Observation,
    Symptom,
    Unobservable,
)
from checks.counters import increase_within, watched_seconds
from checks.debounce import LAST_SEEN_STEP_SECONDS, MISSES, CheckMemory, Debouncer, Instant
from checks.finding import Action, Finding, Severity

WALL = 1_796_000_000.0


def symptom(device: str = "mlx5_0/1", **more: object) -> Symptom:
    given = {
        "code": "ib-state",
        "subsystem": "ib",
        "severity": Severity.WARNING,
        "action": Action.NONE,
        "device": device,
        "summary": "down",
    }
    return msgspec.convert({**given, **more}, Symptom)


def sick(*devices: str, of: int = 0, **more: object) -> Observation:
    return Observation(symptoms=tuple(symptom(each, **more) for each in devices or ("mlx5_0/1",)), of=of)


@dataclass
class Bench:
    """A debouncer of one check, looked at every minute from the tenth minute of uptime."""

    rule: DebounceRule = field(default_factory=DebounceRule)
    debouncer: Debouncer = field(default_factory=Debouncer)
    uptime: float = 600.0
    step: float = 60.0

    def look(self, *looks: CheckResult) -> list[bool]:
        return [self._one(each) for each in looks]

    def _one(self, look: CheckResult) -> bool:
        check = CheckDefinition(name="ib-state", about="", rule=self.rule)
        changed = self.debouncer.record(check, look, Instant(WALL + self.uptime, self.uptime))
        self.uptime += self.step
        return changed

    @property
    def findings(self) -> list[Finding]:
        return list(self.debouncer.findings())

    @property
    def codes(self) -> list[str]:
        return [each.code for each in self.findings]


WELL = Observation()


def test_one_look_is_nothing_and_two_in_a_row_are_a_finding() -> None:
    bench = Bench()
    assert bench.look(sick(), WELL, sick()) == [False] * 3
    assert bench.codes == []
    assert bench.look(sick()) == [True]
    (finding,) = bench.findings
    assert (finding.check, finding.key) == ("ib-state", "ib-state/ib-state/mlx5_0/1")
    assert finding.first_seen == WALL + 780


def test_a_look_that_was_not_possible_is_neither_a_sighting_nor_an_all_clear() -> None:
    bench = Bench()
    bench.look(sick(), Unobservable("gone"), sick())
    assert bench.codes == ["ib-state"]
    bench.look(WELL, Unobservable("gone"), Unobservable("gone"))
    assert bench.codes == ["ib-state"]
    bench.look(WELL)
    assert bench.codes == []


def test_what_cannot_wait_is_a_finding_at_once() -> None:
    bench = Bench(DebounceRule(boot_grace_seconds=3600))
    assert bench.look(sick(at_once=True)) == [True]


def test_six_of_ten_looks_raise_whatever_their_order() -> None:
    bench = Bench(DebounceRule(raise_polls=6, of_polls=10))
    bench.look(sick(), WELL, sick(), WELL, sick(), WELL, sick(), sick(), WELL)
    assert bench.codes == []
    bench.look(sick())
    assert bench.codes == ["ib-state"]


def test_six_looks_among_many_more_do_not_raise() -> None:
    bench = Bench(DebounceRule(raise_polls=6, of_polls=10))
    bench.look(*[sick(), WELL] * 20)
    assert bench.codes == []


def test_a_fault_that_must_last_is_raised_when_it_has() -> None:
    bench = Bench(DebounceRule(raise_polls=1, raise_seconds=120))
    bench.look(sick(), sick())
    assert bench.codes == []
    bench.look(sick())
    assert bench.codes == ["ib-state"]


def test_nothing_is_raised_in_the_first_minutes_of_a_boot() -> None:
    bench = Bench(DebounceRule(boot_grace_seconds=300), uptime=60)
    bench.look(*[sick()] * 5)
    assert bench.codes == []
    bench.look(sick())
    assert bench.codes == ["ib-state"]


def test_a_finding_clears_after_enough_quiet_and_not_before() -> None:
    bench = Bench(DebounceRule(clear_polls=2, clear_seconds=600))
    bench.look(sick(), sick())
    assert not any(bench.look(*[WELL] * 10))
    assert bench.look(WELL) == [True]
    assert bench.codes == []


def test_a_relapse_starts_the_quiet_anew() -> None:
    bench = Bench(DebounceRule(clear_seconds=120))
    bench.look(sick(), sick(), WELL, WELL, sick(), WELL, WELL)
    assert bench.codes == ["ib-state"]
    bench.look(WELL)
    assert bench.codes == []


def test_a_latched_finding_stays_until_another_boot() -> None:
    bench = Bench(DebounceRule(latched=True))
    bench.look(sick(), sick(), *[WELL] * 100)
    assert bench.codes == ["ib-state"]


def test_between_two_thresholds_nothing_is_raised_and_nothing_clears() -> None:
    bench = Bench()
    bench.look(*[sick(only_holds=True)] * 5)
    assert bench.codes == []
    bench.look(sick(), sick(), *[sick(only_holds=True)] * 5)
    assert bench.codes == ["ib-state"]
    bench.look(WELL, WELL)
    assert bench.codes == []


LATER = Escalation(240, Severity.CRITICAL, Action.FAILOVER)


def test_what_lasts_gets_worse_and_says_so_once() -> None:
    bench = Bench()
    bench.look(sick(escalation=LATER), sick(escalation=LATER))
    assert [each.severity for each in bench.findings] == [Severity.WARNING]
    assert bench.look(*[sick(escalation=LATER)] * 4) == [False, False, True, False]
    assert [(each.severity, each.action) for each in bench.findings] == [(Severity.CRITICAL, Action.FAILOVER)]


def test_what_came_and_went_is_not_made_worse_by_the_time_between() -> None:
    bench = Bench(DebounceRule(clear_seconds=600))
    bench.look(sick(escalation=LATER), sick(escalation=LATER), *[WELL] * 5, sick(escalation=LATER))
    assert [each.severity for each in bench.findings] == [Severity.WARNING]


def test_another_verdict_is_told_and_another_evidence_is_not() -> None:
    bench = Bench()
    bench.look(sick(evidence="one"), sick(evidence="one"))
    before = bench.findings
    assert bench.look(sick(evidence="two")) == [False]
    assert bench.findings == before
    assert bench.look(sick(severity=Severity.CRITICAL)) == [True]
    assert bench.findings[0].severity is Severity.CRITICAL


def test_last_seen_moves_in_steps() -> None:
    bench = Bench()
    bench.look(*[sick()] * 2)
    first = bench.findings[0].last_seen
    bench.look(*[sick()] * 9)
    assert bench.findings[0].last_seen == first
    bench.look(sick())
    assert bench.findings[0].last_seen == first + LAST_SEEN_STEP_SECONDS


def test_devices_are_faults_of_their_own() -> None:
    bench = Bench()
    bench.look(sick("a", "b"), sick("b", "c"))
    assert [each.device for each in bench.findings] == ["b"]


def test_everything_gone_at_once_is_reader_trouble() -> None:
    bench = Bench()
    bench.look(*[sick("a", "b", of=2)] * 2)
    (finding,) = bench.findings
    assert (finding.code, finding.severity, finding.action) == ("ib-state-all", Severity.WARNING, Action.ASK)
    bench.look(*[sick("a", of=2)] * 2)
    assert bench.codes == ["ib-state"]


def test_the_last_of_several_to_fall_ill_does_not_excuse_the_others() -> None:
    bench = Bench()
    bench.look(*[sick("a", of=2)] * 2, *[sick("a", "b", of=2)] * 2)
    assert [each.device for each in bench.findings] == ["a", "b"]


def test_a_single_device_is_never_everything() -> None:
    bench = Bench()
    bench.look(*[sick("a", of=1)] * 2)
    assert bench.codes == ["ib-state"]


def test_three_misses_are_a_blind_spot_until_the_next_good_look() -> None:
    bench = Bench()
    assert bench.look(*[Unobservable("timed out")] * MISSES) == [False, False, True]
    (spot,) = bench.debouncer.blind_spots()
    assert (spot.code, spot.device, spot.evidence) == ("check-blind", "ib-state", "timed out")
    assert bench.look(WELL) == [True]
    assert not list(bench.debouncer.blind_spots())


def test_a_check_that_is_switched_off_takes_its_findings_along() -> None:
    bench = Bench()
    assert bench.debouncer.drop("ib-state") is False
    bench.look(sick(), sick())
    assert bench.debouncer.drop("ib-state") is True
    assert bench.codes == []


def test_what_is_saved_and_read_again_goes_on_where_it_was() -> None:
    bench = Bench()
    bench.look(sick(), Observation(symptoms=(symptom(),), readings={"mlx5_0/1": 4.0}), Unobservable("away"))
    saved = msgspec.json.encode(bench.debouncer.memory)
    again = Debouncer(msgspec.json.decode(saved, type=dict[str, CheckMemory]))
    assert list(again.findings()) == bench.findings
    assert again.past("ib-state") == {"mlx5_0/1": ((660.0, 4.0),)}


@pytest.mark.parametrize(
    ("readings", "now", "growth"),
    [
        ((), 7, 0),
        (((0.0, 5.0),), 5, 0),
        (((0.0, 5.0),), 9, 4),
        (((0.0, 5.0), (5000.0, 8.0)), 9, 4),
        (((0.0, 5.0), (500.0, 8.0), (5000.0, 9.0)), 9, 1),
        (((0.0, 500.0), (5000.0, 3.0)), 4, 4),
    ],
)
def test_growth_counts_what_came_within_the_time_and_survives_a_reset(
    readings: tuple[tuple[float, float], ...], now: float, growth: float
) -> None:
    assert increase_within({"errors": readings}, "errors", now, 6000.0, 3600.0) == growth


def test_readings_are_kept_as_changes_and_forgotten_when_they_are_old() -> None:
    bench = Bench(step=1000.0)
    for value in (1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0):
        bench.look(Observation(readings={"errors": value}))
    assert bench.debouncer.past("ib-state") == {"errors": ((2600.0, 2.0),)}
    assert watched_seconds(bench.debouncer.past("ib-state"), "errors", bench.uptime) == 5000.0
    bench.look(*[WELL] * 2)
    assert bench.debouncer.past("ib-state") == {}


def test_a_look_that_follows_at_once_is_known_as_none_of_its_own() -> None:
    bench = Bench()
    check = CheckDefinition(name="ib-state", about="", every_seconds=60.0)
    assert not bench.debouncer.is_early(check, Instant(WALL, bench.uptime))
    bench.look(sick())
    looked = bench.uptime - bench.step
    after = [bench.debouncer.is_early(check, Instant(WALL, looked + each)) for each in (-5, 0, 29, 31, 60)]
    assert after == [False, True, True, False, False]
