"""PostedReport: a NodeReport as it goes over the wire, without what the bot holds already.

What has not changed since a report that the bot took is named by key, so a node with standing faults sends a
few hundred bytes. A bot that does not hold that report says so and gets the whole state: nothing is ever
guessed. Plain NodeReports are PostedReports too.
"""

from collections import Counter
from collections.abc import Iterable

import msgspec

from checks.finding import Finding
from checks.report import Inventory, NodeReport


class PostedReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A NodeReport, or what of it differs from the report number `base` of the same boot.

    `unchanged` and `unchanged_blind_spots` are keys of findings to be taken from there, and so is the
    inventory when it is None.
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


class Refused(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The bot's answer to a report that it did not take; a newer bot may say more.

    `held` is the number of a later report of this boot, `resend` asks for the whole state.
    """

    error: str
    held: int | None = None
    resend: bool = False


def decode(body: bytes) -> PostedReport:
    """Return the report in `body`; raises msgspec.DecodeError naming what is wrong."""
    posted = msgspec.json.decode(body, type=PostedReport)
    if posted.base is None and (posted.inventory is None or posted.unchanged or posted.unchanged_blind_spots):
        raise msgspec.ValidationError("Object refers to an earlier report without naming it - at `$.base`")
    return posted


def shrink(report: NodeReport, taken: NodeReport | None) -> PostedReport:
    """Return the report without what the bot has taken with `taken`, None for nothing."""
    whole = PostedReport(**{name: getattr(report, name) for name in report.__struct_fields__})
    if taken is None or taken.boot_id != report.boot_id:
        return whole
    findings, same = _split(report.findings, taken.findings)
    spots, same_spots = _split(report.blind_spots, taken.blind_spots)
    return msgspec.structs.replace(
        whole,
        base=taken.sequence,
        inventory=None if report.inventory == taken.inventory else report.inventory,
        findings=findings,
        unchanged=same,
        blind_spots=spots,
        unchanged_blind_spots=same_spots,
    )


def complete(posted: PostedReport, held: NodeReport | None) -> NodeReport | None:
    """Return the whole report, its findings by key; None when `held` is not what `posted` refers to."""
    if posted.base is None:
        base = None
    elif held is not None and (held.boot_id, held.sequence) == (posted.boot_id, posted.base):
        base = held
    else:
        return None
    findings = _join(posted.findings, posted.unchanged, base.findings if base else ())
    spots = _join(posted.blind_spots, posted.unchanged_blind_spots, base.blind_spots if base else ())
    inventory = posted.inventory or (base.inventory if base else None)
    if findings is None or spots is None or inventory is None:
        return None
    return NodeReport(
        node=posted.node,
        boot_id=posted.boot_id,
        sequence=posted.sequence,
        sent_at=posted.sent_at,
        agent_version=posted.agent_version,
        inventory=inventory,
        findings=findings,
        blind_spots=spots,
    )


def _split(
    now: tuple[Finding, ...], before: tuple[Finding, ...]
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """Return what is new or different, and the keys of what is the same; a key met twice names nothing."""
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
