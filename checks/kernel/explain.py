"""Explain one code: what it means, how we judge it alone, and what it belongs to."""

import msgspec

from checks.kernel import nvlink5, nvrm
from checks.kernel.catalogue import nvlink5 as nvlink5_rows
from checks.kernel.catalogue import sxids, xids
from checks.kernel.host import memory, nic, pcie, process, storage
from checks.kernel.pace import MINUTES, PER_MINUTE


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


def explain(code: str) -> Explanation | None:
    """Return what `code` means (`79`, `20034`, `gpu-lost`), None when nobody knows it."""
    code = code.strip().lower().removeprefix("sxid").removeprefix("xid").strip(" -")
    return _xid(code) or _sxid(code) or _host(code)


def _xid(code: str) -> Explanation | None:
    row = xids().get(code)
    if row is None:
        return None
    notes = [f"Vendor class {row.bucket}; applies to {row.applies_to}."]
    if row.companions:
        joins = "any other Xid" if "any" in row.companions else "Xid " + ", ".join(row.companions)
        notes.append(f"Within 10 s of {joins} on the same GPU it belongs to that incident.")
    if code in nvlink5.CODES:
        units = sorted({each.from_r575.unit for each in nvlink5_rows() if each.xid == code})
        notes.append(f"Judged by its sub-code; units: {', '.join(units)}.")
    if code == "154":
        notes.append("Judged by the action that its text names; unreadable text goes to a person.")
    if code == "74":
        notes.append("Judged by the bits of its seven registers.")
    return Explanation(
        code, "xid", row.mnemonic, row.notes, row.severity.value, row.action.value, "3.1", tuple(notes)
    )


def _sxid(code: str) -> Explanation | None:
    row = sxids().get(code)
    if row is None:
        return None
    note = "The word Fatal or Non-fatal in the line beats this verdict."
    return Explanation(
        code, "sxid", f"SXid {code}", row.notes, row.severity.value, row.action.value, "3.6", (note,)
    )


def _host(code: str) -> Explanation | None:
    tables = (nvrm, pcie, nic, memory, process, storage)
    for pattern in (each for table in tables for each in table.PATTERNS):
        if pattern.code == code and pattern.verdict is not None:
            verdict = pattern.verdict
            meaning = pattern.summary[:1].upper() + pattern.summary[1:]
            words = verdict.severity.value, verdict.action.value
            return Explanation(code, pattern.subsystem, code, meaning, *words, "3.7", _NOTES.get(code, ()))
    return None


_NOTES = {
    "aer-corrected": (
        f"More than {PER_MINUTE} a minute on one port for {MINUTES} minutes: warning, action ask.",
        f"That is over after {MINUTES} minutes without it.",
    ),
    "mlx5-cmd-timeout": ("With a soft lockup within a minute: critical, action reboot.",),
    "hung-gpu-stack": ("While NVML does not answer, either: critical, action reboot.",),
    "soft-lockup": (
        "Shorter than two minutes: warning, action none.",
        f"{process.SOFT_LOCKUPS} in {process.SOFT_LOCKUP_SECONDS / 60:.0f} minutes: critical, action reboot.",
        "Within a minute of an mlx5-cmd-timeout: critical, action reboot.",
    ),
}
