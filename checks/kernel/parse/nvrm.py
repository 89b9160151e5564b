"""Lines of the NVIDIA driver that are no Xids: lost GPUs, failed starts, missing firmware (section 3.7).

Also the kernel's own lines about the driver's devices, `nvidia ADDRESS: ...`.
"""

import re

from checks.finding import Action, Severity
from checks.kernel.event import Event
from checks.kernel.pattern import echo, fault, first, noise

BRANCH = re.compile(r"NVRM: loading NVIDIA UNIX .{0,60}?\bKernel Module\b.{0,40}?\s([0-9]{3,4})\.[0-9]{1,4}")
"""Banner that a driver prints when it loads; group 1 is its branch."""

_DEAD = (Severity.CRITICAL, Action.FAILOVER)
_REBOOT = (Severity.CRITICAL, Action.REBOOT)
_IMAGE = (Severity.CRITICAL, Action.REPROVISION)
_RESET = (Severity.CRITICAL, Action.RESET_GPU)
_ASK = (Severity.CRITICAL, Action.ASK)
_LOOK = (Severity.WARNING, Action.ASK)

_GPU = r"(?:.{0,200}?\b(?:PCI:)?(?P<gpu>@))?"
_TEXT = r".{0,400}?"

_INIT_FAILED = "the driver could not start this GPU; a reboot starts both anew."
_FIRMWARE_MISSING = "the driver finds no firmware image for the GPU; the installed driver is incomplete."
_PROBE_FAILED = "the driver could not take over at least one GPU."

PATTERNS = (
    noise(r"NVRM: GPU at (?:PCI:)?@: GPU-|NVRM: GPU Board Serial|NVRM: GPU @: GPU serial", "nvrm"),
    noise(rf"NVRM:{_TEXT}(?:RPC history|crash dump|nvidia-bug-report|memdesc)", "nvrm"),
    fault(
        rf"NVRM:{_GPU}{_TEXT}fallen off the bus",
        "nvrm",
        "gpu-lost",
        _DEAD,
        "it is gone from the PCIe bus; the node cannot run whole-node jobs.",
    ),
    fault(
        rf"NVRM: The NVIDIA GPU{_GPU}{_TEXT}is not supported by",
        "nvrm",
        "probe-unsupported",
        _ASK,
        "the driver calls it unsupported; with healthy siblings of the same kind the board is faulty.",
    ),
    fault(rf"NVRM:{_GPU}{_TEXT}RmInitAdapter failed", "nvrm", "rm-init-failed", _REBOOT, _INIT_FAILED),
    echo(fault(rf"NVRM:{_GPU}{_TEXT}rm_init_adapter", "nvrm", "rm-init-failed", _REBOOT, _INIT_FAILED)),
    fault(
        rf"NVRM:{_GPU}{_TEXT}(?:[Cc]annot|[Ff]ailed to|[Cc]ould not|[Uu]nable to) initiali[sz]e GSP",
        "nvrm",
        "gsp-init-failed",
        _REBOOT,
        "the GPU's firmware processor did not start.",
    ),
    fault(
        rf"NVRM:{_GPU}{_TEXT}[Nn]o (?:GSP )?firmware image",
        "nvrm",
        "gsp-fw-missing",
        _IMAGE,
        _FIRMWARE_MISSING,
    ),
    fault(
        rf"nvidia (?P<gpu>@): (?:Direct )?firmware{_TEXT}gsp{_TEXT}failed with error",
        "nvrm",
        "gsp-fw-missing",
        _IMAGE,
        _FIRMWARE_MISSING,
    ),
    fault(
        rf"NVRM:{_GPU}{_TEXT}(?:NV_ERR_RESET_REQUIRED|\(0x0{{0,6}}62\)"
        r"|\b[Ss]tatus[ :=]{1,3}(?:code )?0x0{0,6}62\b)",
        "nvrm",
        "reset-required",
        _RESET,
        "the driver refuses work until the GPU is reset.",
    ),
    fault(r"NVRM: The NVIDIA probe routine failed", "nvrm", "probe-failed", _ASK, _PROBE_FAILED),
    fault(r"nvidia (?P<gpu>@): probe with driver nvidia failed", "nvrm", "probe-failed", _ASK, _PROBE_FAILED),
    fault(r"nvidia: probe of (?P<gpu>@) failed", "nvrm", "probe-failed", _ASK, _PROBE_FAILED),
    fault(
        r"NVRM: API mismatch",
        "nvrm",
        "api-mismatch",
        _LOOK,
        "a program's NVIDIA library and the driver have different versions; it may be one container only.",
    ),
    fault(
        rf"NVRM:{_GPU}{_TEXT}postRxDetLinkMask",
        "nvrm",
        "nvlink-discovery",
        _LOOK,
        "NVLink discovery failed; look at links and fabric before blaming a GPU.",
    ),
)


def parse(text: str) -> Event | None:
    """Return what a line of the NVIDIA driver means, None when it is none of the known ones."""
    return first(PATTERNS, text)


def branch(text: str) -> int | None:
    """Return the driver branch (major version) when `text` is the banner of a driver being loaded."""
    match = BRANCH.match(text)
    return int(match[1]) if match else None
