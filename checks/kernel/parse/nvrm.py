"""Lines of the NVIDIA driver other than Xids: lost GPUs, failed starts, missing firmware (section 3.7).

Also the kernel's own lines about the driver's devices, `nvidia ADDRESS: ...`.
"""

import re

from checks.kernel.parse.event import ADDRESS, fault, noise

BANNER = "NVRM: loading NVIDIA UNIX "
"""How the banner begins that a driver prints when it loads."""

PART_LIMIT = 6
"""Lines that one text is broken into at most; the longest known text has four."""

PART_SECONDS = 1.0
"""Time between the first and the last line of one text at most (K17)."""

_GPU = r"(?:.{0,200}?\b(?:PCI:)?(?P<gpu>@))?"
_TEXT = r".{0,400}?"

WORDINGS = (
    *noise(
        "nvrm",
        r"NVRM: GPU at (?:PCI:)?@: GPU-|NVRM: GPU Board Serial|NVRM: GPU @: GPU serial",
        rf"NVRM:{_TEXT}(?:RPC history|crash dump|nvidia-bug-report|memdesc)",
    ),
    *fault("gpu-lost", rf"NVRM:{_GPU}{_TEXT}fallen off the bus"),
    *fault(
        "probe-unsupported",
        rf"NVRM: The NVIDIA GPU{_GPU}{_TEXT}(?:is not supported by|requires use of the NVIDIA open)",
    ),
    *fault("uvm-fatal", rf"NVRM:{_GPU}{_TEXT}global fatal error{_TEXT}requiring os reboot"),
    *fault(
        "gpu-lost",
        rf"NVRM:{_GPU}{_TEXT}(?:NV_ERR_GPU_IS_LOST|\b[Ss]tatus ?[:=] ?(?:code )?0x0{{0,7}}[fF]\b)",
        r"nvidia (?P<gpu>@): .{0,80}?device inaccessible",
    ),
    # vfio-pci holds a GPU that a virtual machine is meant to use.
    *noise("nvrm", r"NVRM: GPU @ is already bound to vfio"),
    *fault("probe-failed", r"NVRM: GPU (?P<gpu>@) is already bound to "),
    *fault("probe-failed", r"NVRM: The NVIDIA probe routine was not called for", echo=True),
    *fault("rm-init-failed", rf"NVRM:{_GPU}{_TEXT}RmInitAdapter failed"),
    *fault("rm-init-failed", rf"NVRM:{_GPU}{_TEXT}rm_init_adapter", echo=True),
    *fault(
        "gsp-init-failed",
        rf"NVRM:{_GPU}{_TEXT}(?:[Cc]annot|[Ff]ailed to|[Cc]ould not|[Uu]nable to) initiali[sz]e GSP",
    ),
    *fault(
        "gsp-fw-missing",
        rf"NVRM:{_GPU}{_TEXT}[Nn]o (?:GSP )?firmware image",
        # The log firmware is optional; -4 and -12 say that the load was interrupted or lacked memory.
        rf"nvidia (?P<gpu>@): (?:Direct )?firmware{_TEXT}gsp_(?!log_)\w{{1,32}}\.bin failed with error -2\b",
        r"nvidia (?P<gpu>@): firmware: failed to load \S{0,80}gsp_(?!log_)\w{1,32}\.bin \(-2\)",
    ),
    *fault(
        "reset-required",
        rf"NVRM:{_GPU}{_TEXT}(?:NV_ERR_RESET_REQUIRED|\(0x0{{0,6}}62\)"
        r"|\b[Ss]tatus[ :=]{1,3}(?:code )?0x0{0,6}62\b)",
    ),
    *fault(
        "probe-failed",
        r"NVRM: The NVIDIA probe routine failed",
        r"nvidia (?P<gpu>@): probe with driver nvidia failed",
        r"nvidia: probe of (?P<gpu>@) failed",
    ),
    *fault("api-mismatch", r"NVRM: API mismatch"),
    *fault("nvlink-discovery", rf"NVRM:{_GPU}{_TEXT}postRxDetLinkMask"),
)


def branch(text: str) -> int | None:
    """Return the driver branch (major version) when `text` is the banner of a driver that loads."""
    match = _VERSION.match(text)
    return int(match[1]) if match else None


class Reassembly:
    """Makes one text again of a text that the driver breaks over several lines (K17).

    Only `The NVIDIA GPU ADDRESS ...` needs it: the address stands in the first line, the fault in the last.
    Lines of other drivers may stand between them and pass through. A text ends at a known ending, at a line
    that is a text of its own, and at a line that was logged more than `PART_SECONDS` later.
    """

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._lines: list[int] = []
        self._at: float | None = None

    def feed(
        self, text: str, line: int, at: float | None, *, indented: bool
    ) -> tuple[str, tuple[int, ...]] | None:
        """Return a whole text and the lines that it came from, None while it is incomplete.

        `at` is the second at which the line was logged, None when that is unknown.
        """
        if _OPENING.match(text):
            self._parts, self._lines, self._at = [text], [line], at
        elif not self._parts:
            return text, (line,)
        elif self._is_over(text, at):
            self._parts, self._lines = [], []
            return text, (line,)
        elif indented or text.startswith("NVRM:"):
            self._parts.append(text.removeprefix("NVRM:").strip())
            self._lines.append(line)
        else:
            return text, (line,)
        whole = " ".join(self._parts)
        if not _COMPLETE.search(whole):
            if len(self._parts) >= PART_LIMIT:
                self._parts, self._lines = [], []
            return None
        lines = tuple(self._lines)
        self._parts, self._lines = [], []
        return whole, lines

    def _is_over(self, text: str, at: float | None) -> bool:
        if at is not None and self._at is not None and abs(at - self._at) > PART_SECONDS:
            return True
        return _OWN_TEXT.match(text) is not None


_VERSION = re.compile(
    r"NVRM: loading NVIDIA UNIX .{0,60}?\bKernel Module\b.{0,40}?\s([0-9]{3,4})\.[0-9]{1,4}"
)
# Without its address a head tells nothing: a cut one must not collect the lines after it.
_OPENING = re.compile(r"NVRM: The NVIDIA GPU\b(?: (?:at )?(?:PCI:)?(?:%s)\b| *$)" % ADDRESS)  # noqa: UP031 - braces
_COMPLETE = re.compile(
    r"fallen off the bus|is not supported by|open kernel modules?\b|NVIDIA kernel module again|falling? off"
)
_OWN_TEXT = re.compile(
    r"NVRM: *(?:Xid|GPU|API mismatch|The NVIDIA (?:probe|GPU)|None of the|No NVIDIA|loading|nv[A-Z_]|\w{1,60}:"
    r"|.{0,200}?(?:NV_ERR_|[Ss]tatus ?[=:]|failed[!:]|RmInit|rm_init|firmware|probe routine|Xid))"
)
