"""The vendor catalogues in `catalog/`: what a code means, and its verdict when its line is seen alone.

`xid.csv` and `sxid.csv` hold a row a code, `nvlink5.csv` the sub-codes of Xid 144-150 with the masks of both
register layouts. They are read once, on first use.
"""

import csv
import pkgutil
from collections.abc import Iterator
from functools import cache

import msgspec

from checks.finding import Action, Severity


class XidRow(msgspec.Struct, frozen=True):
    """One Xid. `companions` are the codes whose incident it joins, `any` for every code."""

    code: str
    mnemonic: str
    applies_to: str
    bucket: str
    severity: Severity
    action: Action
    companions: tuple[str, ...]
    notes: str


class SxidRow(msgspec.Struct, frozen=True):
    """One SXid; the verdict holds when the line carries no severity word."""

    code: str
    severity: Severity
    action: Action
    notes: str


class Layout(msgspec.Struct, frozen=True):
    """How one driver branch prints a sub-code: the unit's name and the bits of the interrupt word."""

    unit: str
    mask: int
    value: int


class Nvlink5Row(msgspec.Struct, frozen=True):
    """One sub-code of Xid 144-150. `status` holds the error status words it needs, none for any word."""

    xid: str
    before_r575: Layout
    from_r575: Layout
    status: frozenset[int]
    bucket: str
    severity: Severity
    action: Action
    look_at: str


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


def _layout(row: dict[str, str], branch: str) -> Layout:
    return Layout(row[f"unit_{branch}"], int(row[f"mask_{branch}"], 16), int(row[f"value_{branch}"], 16))


def _rows(name: str) -> Iterator[dict[str, str]]:
    # pkgutil instead of importlib.resources: the latter imports tempfile and zipfile, 1.5 MB on every node.
    content = pkgutil.get_data("checks.kernel", f"catalog/{name}")
    if content is None:
        raise FileNotFoundError(
            f"package data checks/kernel/catalog/{name} is missing: install the wheel again"
        )
    return csv.DictReader(line for line in content.decode().splitlines() if not line.startswith("#"))
