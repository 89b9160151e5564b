"""The catalogues in this folder: what a code means, and its verdict when its line is seen alone.

`xid.csv` (section 3.1) and `sxid.csv` (3.6) are the vendor's, one row for each code; `nvlink5.csv` (3.5) has
the sub-codes of Xid 144-150 with the masks of both register layouts. `kernel.csv` (3.7) has the codes that we
give to other lines. Each is read once, on first use.
"""

import csv
import pkgutil
from collections.abc import Iterator
from functools import cache

import msgspec

from checks.finding import Action, Severity


class XidRow(msgspec.Struct, frozen=True):
    """One Xid. `companions` are the codes whose incident it joins, `any` for every code.

    `judged_by` is the part of the message that decides instead of the row: `recovery-action` (3.3),
    `registers` (3.4), `sub-code` (3.5), or empty. `in_order` marks an Xid whose place among other lines
    matters, because it decides about them, ends them, or is counted over days.
    """

    code: str
    mnemonic: str
    applies_to: str
    bucket: str
    severity: Severity
    action: Action
    companions: tuple[str, ...]
    judged_by: str
    in_order: bool
    notes: str


class SxidRow(msgspec.Struct, frozen=True):
    """One SXid; the verdict holds when the line carries no severity word."""

    code: str
    severity: Severity
    action: Action
    notes: str


class KernelRow(msgspec.Struct, frozen=True):
    """One code of section 3.7. `notes` are sentences about what changes the verdict."""

    code: str
    subsystem: str
    severity: Severity
    action: Action
    summary: str
    notes: tuple[str, ...]


class Nvlink5Layout(msgspec.Struct, frozen=True):
    """How one driver branch prints a sub-code: the unit's name and the bits of the interrupt word."""

    unit: str
    mask: int
    value: int


class Nvlink5Row(msgspec.Struct, frozen=True):
    """One sub-code of Xid 144-150. `status` holds the error status words that it needs, none for any word."""

    xid: str
    before_r575: Nvlink5Layout
    from_r575: Nvlink5Layout
    status: frozenset[int]
    bucket: str
    severity: Severity
    action: Action
    look_at: str


class Explanation(msgspec.Struct, frozen=True):
    """What a code means. `rule` names the section that judges it; `notes` are further sentences."""

    code: str
    subsystem: str
    name: str
    meaning: str
    severity: str
    action: str
    rule: str
    notes: tuple[str, ...] = ()


@cache
def xids() -> dict[str, XidRow]:
    """Return the Xid catalogue by code."""
    return {
        row["code"]: XidRow(
            row["code"],
            row["mnemonic"],
            row["applies_to"],
            row["bucket"],
            Severity(row["severity"]),
            Action(row["action"]),
            tuple(filter(None, row["companion_of"].split("|"))),
            row["judged_by"],
            row["in_order"] == "yes",
            row["notes"],
        )
        for row in _rows("xid.csv")
    }


@cache
def sxids() -> dict[str, SxidRow]:
    """Return the SXid catalogue by code."""
    return {
        row["code"]: SxidRow(row["code"], Severity(row["severity"]), Action(row["action"]), row["notes"])
        for row in _rows("sxid.csv")
    }


@cache
def kernel_codes() -> dict[str, KernelRow]:
    """Return the codes of section 3.7."""
    return {
        row["code"]: KernelRow(
            row["code"],
            row["subsystem"],
            Severity(row["severity"]),
            Action(row["action"]),
            row["summary"],
            tuple(filter(None, row["notes"].split("|"))),
        )
        for row in _rows("kernel.csv")
    }


@cache
def nvlink5() -> tuple[Nvlink5Row, ...]:
    """Return the sub-codes of Xid 144-150."""
    return tuple(
        Nvlink5Row(
            row["xid"],
            _layout(row, "lt575"),
            _layout(row, "ge575"),
            frozenset(int(each, 16) for each in row["error_status"].split("|") if each),
            row["bucket"],
            Severity(row["severity"]),
            Action(row["action"]),
            row["look_at"],
        )
        for row in _rows("nvlink5.csv")
    )


def explain(code: str) -> Explanation | None:
    """Return what `code` means (`79`, `20034`, `gpu-lost`), None when no catalogue has it."""
    code = code.strip().lower().removeprefix("sxid").removeprefix("xid").strip(" -")
    if xid := xids().get(code):
        words = xid.severity.value, xid.action.value
        return Explanation(code, "xid", xid.mnemonic, xid.notes, *words, "3.1", tuple(_xid_notes(xid)))
    if sxid := sxids().get(code):
        words = sxid.severity.value, sxid.action.value
        note = "The word Fatal or Non-fatal in the line beats this verdict."
        return Explanation(code, "sxid", f"SXid {code}", sxid.notes, *words, "3.6", (note,))
    if row := kernel_codes().get(code):
        words = row.severity.value, row.action.value
        meaning = row.summary[:1].upper() + row.summary[1:]
        return Explanation(code, row.subsystem, code, meaning, *words, "3.7", row.notes)
    return None


def _xid_notes(row: XidRow) -> list[str]:
    notes = [f"Vendor class {row.bucket}; applies to {row.applies_to}."]
    if row.companions:
        joins = "any other Xid" if "any" in row.companions else "Xid " + ", ".join(row.companions)
        notes.append(f"Within 10 s of {joins} on the same GPU it belongs to that incident.")
    match row.judged_by:
        case "sub-code":
            units = sorted({each.from_r575.unit for each in nvlink5() if each.xid == row.code})
            notes.append(f"Judged by its sub-code; units: {', '.join(units)}.")
        case "recovery-action":
            notes.append("Judged by the action that its text names; unreadable text goes to a person.")
        case "registers":
            notes.append("Judged by the bits of its seven registers.")
    return notes


def _layout(row: dict[str, str], branch: str) -> Nvlink5Layout:
    return Nvlink5Layout(
        row[f"unit_{branch}"], int(row[f"mask_{branch}"], 16), int(row[f"value_{branch}"], 16)
    )


def _rows(name: str) -> Iterator[dict[str, str]]:
    # pkgutil instead of importlib.resources: the latter imports tempfile and zipfile, 1.5 MB on every node.
    content = pkgutil.get_data("checks.kernel.codes", name)
    if content is None:
        raise FileNotFoundError(
            f"package data checks/kernel/codes/{name} is missing: install the wheel again"
        )
    return csv.DictReader(line for line in content.decode().splitlines() if not line.startswith("#"))
