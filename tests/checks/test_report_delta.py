"""Reports by key: what arrives is what was meant, or it is asked for once more."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks.finding import Action, Finding, Severity
from checks.report import Gpu, Inventory, NodeReport, encode
from checks.report_delta import ReportDelta, apply_delta, decode, make_delta

BOOT, OTHER_BOOT = "0b6e1a52-1111-4222-8333-444455556666", "1b6e1a52-1111-4222-8333-444455556666"


def finding(code: str, gpu: str | None, count: int) -> Finding:
    return Finding(
        check="xid", subsystem="xid", code=code, severity=Severity.CRITICAL, action=Action.ASK, gpu=gpu,
        count=count, first_seen=1.0, last_seen=2.0, summary="It is an example.",
    )  # fmt: skip


FINDINGS = st.lists(
    st.builds(
        finding,
        st.sampled_from(("79", "31", "119")),
        st.sampled_from((None, "0000:1b:00.0", "0000:43:00.0")),
        st.integers(1, 3),
    ),
    max_size=6,
).map(tuple)
INVENTORIES = st.sampled_from(
    (Inventory(gpus=None), Inventory(gpus=()), Inventory(gpus=(Gpu(address="0000:1b:00.0", uuid="GPU-1"),)))
)


def report(
    findings: tuple[Finding, ...] = (),
    spots: tuple[Finding, ...] = (),
    inventory: Inventory = Inventory(gpus=()),  # noqa: B008 - frozen
    *,
    sequence: int = 1,
    boot_id: str = BOOT,
) -> NodeReport:
    return NodeReport(
        node="gpu-01", boot_id=boot_id, sequence=sequence, sent_at=3.0, agent_version="0.1.0",
        inventory=inventory, findings=findings, blind_spots=spots,
    )  # fmt: skip


def sent(posted: ReportDelta) -> ReportDelta:
    return decode(msgspec.json.encode(posted))


def sorted_report(whole: NodeReport) -> NodeReport:
    by_key = {name: tuple(sorted(getattr(whole, name), key=lambda each: each.key)) for name in
              ("findings", "blind_spots")}  # fmt: skip
    return msgspec.structs.replace(whole, **by_key)


@given(st.builds(report, FINDINGS, FINDINGS, INVENTORIES), st.builds(report, FINDINGS, FINDINGS, INVENTORIES))
def test_what_arrives_is_what_was_meant(taken: NodeReport, now: NodeReport) -> None:
    meant = msgspec.structs.replace(now, sequence=2)
    held = apply_delta(sent(make_delta(taken, None)), None)
    assert held == sorted_report(taken)
    got = apply_delta(sent(make_delta(meant, taken)), held)
    assert got is not None
    for name in ("findings", "blind_spots"):
        assert sorted(getattr(got, name), key=repr) == sorted(getattr(meant, name), key=repr)
    assert got.inventory == meant.inventory


def test_a_node_that_stays_the_same_sends_next_to_nothing() -> None:
    gpus = tuple(Gpu(address=f"0000:{n:02x}:00.0", uuid=f"GPU-{n}" * 9, model="H100") for n in range(8))
    findings = tuple(finding("79", f"0000:{n:02x}:00.0", n + 1) for n in range(8))
    first = report(findings, (), Inventory(gpus=gpus))
    second = report(findings, (), Inventory(gpus=gpus), sequence=2)
    whole, small = encode(second), msgspec.json.encode(make_delta(second, first))
    assert len(small) < 450
    assert len(whole) > 5 * len(small)


def test_a_plain_report_is_understood_as_it_is() -> None:
    whole = report((finding("79", None, 1),))
    assert apply_delta(decode(encode(whole)), None) == whole


@pytest.mark.parametrize(
    "held",
    [
        None,
        report((finding("79", None, 1),), sequence=2),
        report((finding("79", None, 1),), boot_id=OTHER_BOOT),
        report((), sequence=1),
    ],
)
def test_what_is_not_held_is_never_guessed(held: NodeReport | None) -> None:
    same = (finding("79", None, 1),)
    posted = make_delta(report(same, sequence=3), report(same, sequence=1))
    assert posted.unchanged == ("xid/79/-",)
    assert apply_delta(posted, held) is None


def test_another_boot_refers_to_nothing_of_the_one_before() -> None:
    same = (finding("79", None, 1),)
    posted = make_delta(report(same, boot_id=OTHER_BOOT), report(same))
    assert (posted.base, posted.unchanged) == (None, ())


@pytest.mark.parametrize(
    "changes", [{"unchanged": ("xid/79/-",)}, {"unchanged_blind_spots": ("a/b/-",)}, {"inventory": None}]
)
def test_a_reference_without_a_report_is_refused_with_its_field(changes: dict[str, object]) -> None:
    posted = msgspec.structs.replace(make_delta(report(), None), **changes)
    with pytest.raises(msgspec.ValidationError, match=r"\$\.base"):
        decode(msgspec.json.encode(posted))


def test_an_unknown_field_is_refused() -> None:
    body = encode(report()).replace(b'"sequence"', b'"seqence"')
    with pytest.raises(msgspec.ValidationError, match="seqence"):
        decode(body)
