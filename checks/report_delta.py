"""ReportDelta: a NodeReport as it goes over the wire, without what the bot already holds.

What has not changed since a report that the bot accepted is named by key, so a node with standing faults
sends a few hundred bytes. A bot that does not hold that report says so and gets the whole state: nothing is
ever guessed. A plain NodeReport is a valid ReportDelta too.
"""

from collections import Counter
from collections.abc import Iterable

import msgspec

from checks.finding import Finding
from checks.report import Inventory, NodeReport


class ReportDelta(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A NodeReport, or how it differs from report number `base` of the same boot.

    `unchanged` and `unchanged_blind_spots` are keys of findings to take from that report. An inventory of
    None is taken from there too.
    """

    node: str
    boot_id: str
    sequence: int
    sent_at: float
    agent_version: str
    inventory: Inventory | None = None
    findings: tuple[Finding, ...]
    blind_spots: tuple[Finding, ...]
    base: int | None = None
    unchanged: tuple[str, ...] = ()
    unchanged_blind_spots: tuple[str, ...] = ()


class ReportRejected(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The bot's answer to a report that it did not accept; a newer bot may add fields.

    `held` is the number of a later report of this boot. `resend` asks for the whole state.
    """

    error: str
    held: int | None = None
    resend: bool = False


def decode(body: bytes) -> ReportDelta:
    """Return the report in `body`; raises msgspec.DecodeError naming what is wrong."""
    delta = msgspec.json.decode(body, type=ReportDelta)
    if delta.base is None and (delta.inventory is None or delta.unchanged or delta.unchanged_blind_spots):
        raise msgspec.ValidationError("Object refers to an earlier report without naming it - at `$.base`")
    return delta


def make_delta(report: NodeReport, accepted: NodeReport | None) -> ReportDelta:
    """Return the report without what the bot holds since it accepted `accepted`, None for nothing."""
    whole = ReportDelta(**{name: getattr(report, name) for name in report.__struct_fields__})
    if accepted is None or accepted.boot_id != report.boot_id:
        return whole
    findings, same = _split(report.findings, accepted.findings)
    spots, same_spots = _split(report.blind_spots, accepted.blind_spots)
    return msgspec.structs.replace(
        whole,
        base=accepted.sequence,
        inventory=None if report.inventory == accepted.inventory else report.inventory,
        findings=findings,
        unchanged=same,
        blind_spots=spots,
        unchanged_blind_spots=same_spots,
    )


def apply_delta(delta: ReportDelta, held: NodeReport | None) -> NodeReport | None:
    """Return the whole report, its findings by key; None when `held` is not what `delta` refers to."""
    if delta.base is None:
        base = None
    elif held is not None and (held.boot_id, held.sequence) == (delta.boot_id, delta.base):
        base = held
    else:
        return None
    findings = _join(delta.findings, delta.unchanged, base.findings if base else ())
    spots = _join(delta.blind_spots, delta.unchanged_blind_spots, base.blind_spots if base else ())
    inventory = delta.inventory or (base.inventory if base else None)
    if findings is None or spots is None or inventory is None:
        return None
    return NodeReport(
        node=delta.node,
        boot_id=delta.boot_id,
        sequence=delta.sequence,
        sent_at=delta.sent_at,
        agent_version=delta.agent_version,
        inventory=inventory,
        findings=findings,
        blind_spots=spots,
    )


def _split(
    now: tuple[Finding, ...], before: tuple[Finding, ...]
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """Return what is new or different, and the keys of what is the same; an ambiguous key names nothing."""
    times = Counter(each.key for each in (*now, *before))
    known = {each.key: each for each in before if times[each.key] == 2}
    same = tuple(each.key for each in now if known.get(each.key) == each)
    return tuple(each for each in now if each.key not in same), same


def _join(
    sent: tuple[Finding, ...], unchanged: tuple[str, ...], held: Iterable[Finding]
) -> tuple[Finding, ...] | None:
    known = {each.key: each for each in held}
    if any(key not in known for key in unchanged):
        return None
    return tuple(sorted((*sent, *(known[key] for key in unchanged)), key=lambda each: each.key))
