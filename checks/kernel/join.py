"""Texts that a driver breaks over several lines become one text again (rule K17).

Only the driver's `The NVIDIA GPU ADDRESS ...` needs it: the address stands in the first line, the fault in
the last. Lines of other drivers may stand between them and pass through.
"""

import re

_OPENING = re.compile(r"NVRM: The NVIDIA GPU\b")
_COMPLETE = re.compile(r"fallen off the bus|is not supported by")
_OWN_EVENT = re.compile(r"NVRM: *(?:Xid|GPU|API mismatch)\b")

PART_LIMIT = 6
"""Lines that one text is broken into at most; the longest known text has four."""


class Join:
    """The broken text that is being put together, if any."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._lines: list[int] = []

    def feed(self, text: str, line: int, *, indented: bool) -> tuple[str, tuple[int, ...]] | None:
        """Return a whole text and the lines it came from, None while it is incomplete."""
        if _OPENING.match(text):
            self._parts, self._lines = [text], [line]
        elif self._parts and (indented or text.startswith("NVRM:")) and not _OWN_EVENT.match(text):
            self._parts.append(text.removeprefix("NVRM:").strip())
            self._lines.append(line)
        else:
            return text, (line,)
        whole = " ".join(self._parts)
        if not _COMPLETE.search(whole) and len(self._parts) < PART_LIMIT:
            return None
        lines = tuple(self._lines)
        self._parts, self._lines = [], []
        return whole, lines
