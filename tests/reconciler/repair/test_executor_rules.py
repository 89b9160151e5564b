"""The rules that hold for every action, shown with steps that exist for this test alone."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from reconciler.incidents.progress import JournalEntry, Phase, StepState
from reconciler.repair import journal
from reconciler.repair.actions.reboot import REBOOT
from reconciler.repair.executor import Executor
from reconciler.repair.providers.provider import Order
from reconciler.repair.resource import PreState, Repair, RepairStatus, UndoEntry
from reconciler.repair.step import Act, Again, Done, End, NotDone, Step, StepResult, StepWords, Undo
from reconciler.repair.steps.cordon import CORDON
from reconciler.repair.steps.lease import LOCK
from tests.reconciler.harness import CLEAN, FAULT, NEW, START, NodeHarness
from tests.reconciler.outside import CrashPoint, Killed

Script = Callable[[], StepResult]
SECONDS = timedelta(seconds=1)


def toy(name: str, script: Script, seconds: float = 60, **fields: Any) -> Step:
    return Step(
        name=name,
        words=StepWords(doing=f"doing {name}", done=f"{name} done"),
        look=lambda _repair, _context: script(),
        limit=lambda _policy: timedelta(seconds=seconds),
        **fields,
    )


def answers(*results: StepResult) -> Script:
    """Answer with each result in turn, and with the last one from then on."""
    left = list(results)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


@pytest.fixture
def order(harness: NodeHarness, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Order a repair that consists of the given steps."""

    def ordered(*steps: Step) -> None:
        assert isinstance(REBOOT.plans, dict)
        monkeypatch.setitem(REBOOT.plans, 1, steps)
        harness.order()

    return ordered


Ordered = Callable[..., None]


def store(harness: NodeHarness, status: RepairStatus) -> None:
    repair = harness.repair()
    content = status.model_dump(mode="json", by_alias=True)
    harness.context().writer.write_status(repair.name, repair.resource_version, content)


# ---- limits


def test_a_limit_counts_from_the_first_look(harness: NodeHarness, order: Ordered) -> None:
    order(toy("wait", answers(Again("nothing yet")), seconds=10))
    harness.one_pass()
    harness.now = START + 10 * SECONDS
    assert not harness.one_pass().status.phase.final
    harness.now = START + 11 * SECONDS
    status = harness.one_pass().status
    assert (status.phase, status.message) == (Phase.HELD, "doing wait took longer than 10 s: nothing yet")


def test_a_limit_counts_over_all_attempts(harness: NodeHarness, order: Ordered) -> None:
    attempt = Act("try", lambda: NotDone("refused"))
    order(toy("try", answers(attempt), seconds=10, once=True, destructive=True))
    for second in range(11):
        harness.now = START + second * SECONDS
        assert not harness.one_pass().status.phase.final
    tried = journal.attempts(harness.repair().status, "try")
    harness.now = START + 11 * SECONDS
    status = harness.one_pass().status
    assert (status.phase, journal.attempts(status, "try")) == (Phase.HELD, tried)
    assert status.message == "doing try took longer than 10 s: refused"


def test_the_limit_of_a_step_that_was_done_begins_again_with_it(harness: NodeHarness, order: Ordered) -> None:
    empty = answers(Done("empty"), Again("a pod is back"))
    order(toy("drain", empty, seconds=10), toy("after", answers(Again("waits")), seconds=1000))
    harness.one_pass()
    for second, over in ((50, False), (60, False), (61, True)):
        harness.now = START + second * SECONDS
        assert harness.one_pass().status.phase.final == over, second


def test_an_act_that_comes_after_the_limit_does_not_happen(harness: NodeHarness, order: Ordered) -> None:
    happened: list[str] = []
    late = Act("act", lambda: (happened.append("x"), Again("acted"))[1])
    order(toy("act", answers(Again("waits for a lock"), late), seconds=10))
    harness.one_pass()
    harness.now = START + 11 * SECONDS
    status = harness.one_pass().status
    assert (status.phase, status.message) == (
        Phase.HELD, "doing act took longer than 10 s: waits for a lock",
    )  # fmt: skip
    assert happened == []


# ---- what the destructive step changes


LAPSES: dict[str, Step] = {
    "a limit": toy("after", answers(Again("waits")), seconds=10, late=Phase.LAPSED),
    "an answer with a phase of its own": toy("after", answers(Again("waits", late=Phase.LAPSED)), seconds=10),
    "an end": toy("after", answers(Again("waits"), End(Phase.LAPSED, "waits"))),
}


@pytest.mark.parametrize("name", LAPSES)
def test_a_repair_that_may_have_acted_is_held_where_it_would_lapse(
    harness: NodeHarness, order: Ordered, name: str
) -> None:
    reset = toy("reset", answers(Act("reset", lambda: Again("reset")), Done("reset")), destructive=True)
    order(LOCK, CORDON, reset, LAPSES[name])
    for _ in range(4):
        harness.one_pass()
    harness.now = START + 11 * SECONDS
    status = harness.one_pass().status
    assert (status.phase, status.held_by) == (Phase.HELD, "approver@example.com")
    assert harness.run().status.released
    assert harness.marks() == (True, ["clusterwright.dev/repair"], "")
    assert harness.outcome()["kept"] == ["cordon"]


@pytest.mark.parametrize("name", LAPSES)
def test_a_repair_that_has_not_acted_lapses(harness: NodeHarness, order: Ordered, name: str) -> None:
    order(LOCK, CORDON, LAPSES[name], toy("reset", answers(Again("waits")), destructive=True))
    for _ in range(3):
        harness.one_pass()
    harness.now = START + 11 * SECONDS
    assert harness.one_pass().status.phase is Phase.LAPSED
    assert harness.run().status.released
    assert harness.marks() == CLEAN


def test_once_the_destructive_step_may_have_happened_only_renewed_steps_before_it_are_looked_at(
    harness: NodeHarness, order: Ordered
) -> None:
    looked: list[str] = []

    def counts(name: str, script: Script, **fields: Any) -> Step:
        return toy(name, lambda: (looked.append(name), script())[1], **fields)

    order(
        counts("renewed", answers(Done("held")), renew=True),
        counts("checked", answers(Done("fine"))),
        counts("noted", answers(Done("noted")), once=True),
        counts("reset", answers(Act("reset", lambda: Again("reset")), Again("boots")), destructive=True),
    )
    harness.one_pass()
    assert looked == ["renewed", "checked", "noted", "reset"]
    harness.one_pass()
    assert looked[4:] == ["renewed", "reset"]


def test_a_node_that_is_unwell_after_an_order_that_worked_late_keeps_its_marks(harness: NodeHarness) -> None:
    harness.order()
    harness.bmc.ignores = 1
    while not (journal.attempts(harness.repair().status, "reset") and _given_up(harness)):
        harness.pass_time(harness.one_pass().after or 0)
    harness.boot(NEW)
    for _ in range(200):
        harness.report(NEW, FAULT)
        harness.pass_time(harness.one_pass().after or 0)
        if harness.repair().status.phase.final:
            break
    repair = harness.run()

    assert harness.bmc.orders == [Order.RESTART]
    assert (repair.status.phase, "found after the boot" in repair.status.message) == (Phase.FAILED, True)
    assert harness.marks() == (True, ["clusterwright.dev/repair"], "")


def _given_up(harness: NodeHarness) -> bool:
    last = journal.entry(harness.repair().status, "reset")
    return last is not None and last.state is StepState.NOT_DONE


def test_a_step_sees_what_the_steps_before_it_found_in_the_same_pass(
    harness: NodeHarness, order: Ordered
) -> None:
    before = PreState(boot_id="boot-old", power="on", unschedulable=False)
    seen: list[PreState | None] = []

    def look(repair: Repair, _context: object) -> Again:
        seen.append(repair.status.pre_state)
        return Again("waits")

    order(toy("note", answers(Done("noted", before=before))), replace(toy("use", answers()), look=look))
    harness.one_pass()
    assert seen == [before]


# ---- undo


def takes(name: str, given: list[str], *, keep: bool = False) -> Step:
    held = [name]

    def look(_repair: object, _context: object) -> Done | Act:
        def give_back() -> Again:
            given.append(held.pop())
            return Again("")

        return Act("give back", give_back) if held else Done("given back")

    return toy(name, answers(Done("taken")), undo=Undo(look, keep=keep))


def test_what_a_repair_took_is_given_back_backwards(harness: NodeHarness, order: Ordered) -> None:
    given: list[str] = []
    order(takes("a", given), toy("nothing", answers(Done(""))), takes("b", given), takes("c", given))
    assert harness.run().status.phase is Phase.SUCCEEDED
    assert given == ["c", "b", "a"]
    assert harness.repair().status.undo == ()


def test_what_this_version_cannot_give_back_stays_listed_and_keeps_nothing_else(harness: NodeHarness) -> None:
    harness.pod("train")
    harness.order("train")
    while not harness.marks()[0]:
        harness.one_pass()
    newer = UndoEntry(step="slurm-drain", taken_at=START)
    status = harness.repair().status
    store(harness, status.model_copy(update={"undo": (*status.undo, newer)}))
    harness.patch_node({"spec": {"unschedulable": None}})

    repair = harness.run()

    assert repair.status.phase is Phase.CANCELLED
    assert repair.status.undo == (newer,)
    assert harness.outcome()["kept"] == ["slurm-drain"]
    assert harness.marks() == CLEAN


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", range(1, 7))
def test_a_crash_at_any_change_of_the_release_leaves_nothing_behind(
    harness: NodeHarness, number: int, after: bool
) -> None:
    harness.pod("train")
    harness.order("train")
    while not harness.marks()[0]:
        harness.one_pass()
    harness.patch_node({"spec": {"unschedulable": None}})

    crash = CrashPoint(number, after=after)
    try:
        harness.run(crash=crash)
    except Killed:
        harness.run()
    else:
        assert number > RELEASE_CHANGES

    assert harness.repair().status.phase is Phase.CANCELLED
    assert harness.marks() == CLEAN
    assert harness.outcome()["phase"] == "Cancelled"


RELEASE_CHANGES = 6
"""The end, the node, the lease, the end of the release, the outcome and its commit."""


def test_an_outcome_waits_until_git_can_tell_whether_the_record_is_there(harness: NodeHarness) -> None:
    harness.order()
    harness.report("boot-old")
    assert harness.one_pass().after == 0
    while not harness.repair().status.released:
        harness.one_pass()
    files = dict(harness.files)
    harness.files.clear()
    harness.git_valid = timedelta(0)

    assert harness.one_pass().after == 5
    assert harness.repair().status.recorded == ""

    harness.files.update(files)
    assert harness.one_pass().after is None
    assert harness.outcome()["phase"] == "Lapsed"


# ---- a repair that may not start


def test_a_repair_that_has_started_meanwhile_is_not_held_back(harness: NodeHarness) -> None:
    harness.order()
    while not harness.bmc.orders:
        harness.one_pass()
    harness.files.clear()
    before = harness.repair().status

    executor = Executor(harness.repair(), harness.context(), harness.incident_branch)
    after = executor.hold_back("waits for another node").status

    assert (after.phase, after.step) == (Phase.RUNNING, before.step)
    assert after.message != "waits for another node"


def test_a_repair_that_has_ended_keeps_its_reason(harness: NodeHarness) -> None:
    harness.order()
    ended = harness.run()
    executor = Executor(harness.repair(), harness.context(), harness.incident_branch)
    executor.hold_back("waits for another node")
    assert harness.repair() == ended


def test_a_repair_that_waits_and_has_lost_its_record_ends(harness: NodeHarness) -> None:
    harness.order()
    harness.files.clear()
    executor = Executor(harness.repair(), harness.context(), harness.incident_branch)
    status = executor.hold_back("waits for another node").status
    assert (status.phase, status.message) == (Phase.FAILED, "Git holds no such repair record")


def test_a_repair_that_waits_says_why_and_waits_on_while_git_is_unknown(harness: NodeHarness) -> None:
    harness.order()
    harness.git_valid = timedelta(0)
    executor = Executor(harness.repair(), harness.context(), harness.incident_branch)
    result = executor.hold_back("waits for another node")
    assert (result.status.phase, result.status.message) == (Phase.PENDING, "waits for another node")
    assert result.after == 5


# ---- a status of another version


def test_a_status_of_a_newer_version_is_read_and_its_repair_goes_on(harness: NodeHarness) -> None:
    harness.pod("train")
    harness.order("train")
    while not harness.bmc.orders:
        harness.pass_time(harness.one_pass().after or 0)
    raw = harness.repair().status.model_dump(mode="json", by_alias=True, exclude_none=True)
    raw["severity"] = "new"
    raw["preState"]["rack"] = "r1"
    for each in raw["undo"]:
        each["why"] = "new"
    for each in raw["steps"]:
        each["by"] = "new"
        for fact in ("order", "drain"):
            each.get(fact, {}).setdefault("new", 1)
    repair = harness.repair()
    harness.context().writer.write_status(repair.name, repair.resource_version, raw)

    assert harness.run().status.phase is Phase.SUCCEEDED
    assert len(harness.bmc.orders) == 1
    assert harness.marks() == CLEAN


def test_a_journal_entry_of_a_blocked_drain_of_a_newer_version_is_read() -> None:
    entry = {
        "name": "drain", "state": "intent", "startedAt": START.isoformat(),
        "drain": {"podsLeft": 1, "blocked": [{"namespace": "a", "name": "b", "since": "new"}]},
    }  # fmt: skip
    read = JournalEntry.model_validate(entry)
    assert read.drain is not None
    assert read.drain.blocked[0].name == "b"
