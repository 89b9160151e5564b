"""Every row of the table of relations, by itself: it holds where it should, and nowhere else."""

import re
from pathlib import Path

import pytest

from checks.finding import Action, Finding, Severity
from checks.kernel.codes.catalog import explain, kernel_codes, sxids, xids
from checks.kernel.faults import judgement, relations
from checks.kernel.faults.open_faults import OpenFaults
from checks.kernel.faults.relations import INCIDENT_SECONDS, EvidenceRule, Kind
from checks.kernel.parse.event import KernelEvent, KernelVerdict
from checks.registry import CHECKS

GPU, OTHER = "0000:1b:00.0", "0000:43:00.0"
OWN = KernelVerdict(Severity.CRITICAL, Action.REPROVISION, "its own")
GOOD_NEWS = {("nic", "nic-link-up"), ("nfs", "nfs-ok")}


def event(kind: Kind, gpu: str | None = GPU, device: str | None = None) -> KernelEvent:
    return KernelEvent(code=kind[1], subsystem=kind[0], gpu=gpu, device=device).judged(OWN)


def known() -> set[Kind]:
    return {
        *(("xid", code) for code in (*xids(), "xid-unparsed")),
        *(("sxid", code) for code in sxids()),
        *((row.subsystem, row.code) for row in kernel_codes().values()),
        *GOOD_NEWS,
    }


def named() -> set[Kind]:
    """Return every kind that the table names."""
    return {
        *relations.NOT_REPLACED, *relations.LOWERED_BY_NONE, *relations.FOLLOW_UPS, *relations.NEVER_QUIET,
        *(kind for pair in (*relations.RELATIONS, *relations.ABSORBED.items()) for kind in pair),
        *(kind for row in relations.EVIDENCE for kind in row.kinds),
        *relations.RECURRENCES, *relations.CLEARS,
        *(ended for ended, _ in relations.CLEARS.values() if ended),
    }  # fmt: skip


def test_every_code_that_the_table_names_is_in_a_catalogue() -> None:
    assert named() <= known()


def test_every_finding_that_counts_as_evidence_is_one_of_a_check() -> None:
    assert {check.name for check in CHECKS} >= relations.EVIDENCE_CODES


@pytest.mark.parametrize("first", [0, 1], ids=["child first", "parent first"])
@pytest.mark.parametrize("pair", relations.RELATIONS, ids=lambda pair: f"{pair[0][1]}-{pair[1][1]}")
def test_each_relation_holds_in_either_order_for_a_minute(pair: tuple[Kind, Kind], first: int) -> None:
    relation = relations.RELATIONS[pair]
    for apart in (0.0, INCIDENT_SECONDS, INCIDENT_SECONDS + 1):
        faults = OpenFaults()
        lines = [event(pair[0], gpu=OTHER), event(pair[1])]
        faults.add(lines[first], 100.0)
        faults.add(lines[1 - first], 100.0 + apart)
        child = next(fault.event for fault in faults if fault.event.kind == pair[0])
        holds = apart <= INCIDENT_SECONDS
        assert (child.companion_of == pair[1][1]) is (holds and relation.joins)
        assert child.verdict == (relation.verdict if holds and relation.verdict else OWN)


def test_no_other_pair_of_codes_joins_unless_the_xid_catalogue_says_so() -> None:
    kinds = sorted(named())
    for one in kinds:
        for other in kinds:
            if one == other or (one, other) in relations.RELATIONS or one[0] == other[0] == "xid":
                continue
            assert judgement.beside(event(one), event(other), 0.0) == event(one), (one, other)


@pytest.mark.parametrize("code", [code for code, row in xids().items() if row.companions])
def test_an_xid_joins_those_of_its_row_on_its_own_gpu(code: str) -> None:
    for other in xids():
        row = xids()[code]
        joins = other in row.companions or (
            "any" in row.companions and ("xid", other) not in relations.FOLLOW_UPS
        )
        child = judgement.beside(event(("xid", code)), event(("xid", other)), 10.0)
        assert (child.companion_of == other) is (joins and other != code), other
        for apart, gpu in ((11.0, GPU), (1.0, OTHER), (1.0, None)):
            alone = judgement.beside(event(("xid", code)), event(("xid", other), gpu), apart)
            assert alone.companion_of is None


def finding(row: EvidenceRule, severity: Severity = Severity.CRITICAL, gpu: str | None = GPU) -> Finding:
    return Finding(
        check=row.finding, subsystem="x", code=row.finding, severity=severity, action=Action.REMOVE, gpu=gpu,
        first_seen=0.0, last_seen=0.0,
    )  # fmt: skip


@pytest.mark.parametrize(
    "row", [row for row in relations.EVIDENCE if row.verdict], ids=lambda row: row.finding
)
def test_each_evidence_changes_its_own_codes_while_it_stands(row: EvidenceRule) -> None:
    for kind in named():
        faults = OpenFaults()
        faults.add(event(kind), 0.0)
        faults.take_evidence([finding(row)])
        (fault,) = faults
        others = [each for each in relations.EVIDENCE if each.finding == row.finding and kind in each.kinds]
        assert fault.evidence == (others[-1].verdict if others else None), kind
        faults.take_evidence([finding(row, gpu=OTHER)])
        assert (fault.evidence is None) is (not others or row.same_gpu), kind
        faults.take_evidence([])
        assert fault.finding().action is OWN.action


def test_evidence_that_came_before_an_event_counts_for_it() -> None:
    faults = OpenFaults()
    hangs = next(row for row in relations.EVIDENCE if ("xid", "119") in row.kinds)
    faults.take_evidence([finding(hangs)])
    faults.add(event(("xid", "119")), 0.0)
    assert [fault.finding().action for fault in faults] == [Action.REBOOT]


@pytest.mark.parametrize("news", [news for news, row in relations.CLEARS.items() if row[0]])
def test_each_good_news_ends_its_own_fault_at_its_own_place(news: Kind) -> None:
    ended, same = relations.CLEARS[news]
    for kind in named():
        for gpu, device in ((GPU, "a"), (OTHER, "a"), (GPU, "b")):
            is_here = gpu == GPU if same == "gpu" else device == "a"
            ends = judgement.ends(event(news, GPU, "a"), event(kind, gpu, device))
            assert ends is (kind == ended and is_here), (kind, gpu, device)


def test_what_is_explained_about_recurrences_is_what_the_table_says() -> None:
    rate, lockup = (
        relations.RECURRENCES["aer", "aer-corrected"],
        relations.RECURRENCES["lockup", "soft-lockup"],
    )
    corrected, soft = explain("aer-corrected"), explain("soft-lockup")
    assert corrected is not None
    assert soft is not None
    assert f"More than {rate.times} a minute on one port for {rate.spans} minutes" in corrected.notes[0]
    assert f"after {rate.spans} minutes" in corrected.notes[1]
    assert f"{lockup.times} in {lockup.span_seconds / 60:.0f} minutes" in soft.notes[1]


def test_the_recovery_action_is_special_in_the_table_of_relations_alone() -> None:
    files = [
        path.name for path in Path("checks").rglob("*.py") if re.search(r"[\"']154[\"']", path.read_text())
    ]
    assert files == ["relations.py"]
