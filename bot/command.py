"""Text after `/cluster` → one closed command, or a mistake with what was probably meant. Pure.

People type on telephones: typographic quotes and dashes, doubled blanks and any case are read as meant.
"""

import difflib
import re
import unicodedata
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ShowStatus:
    """`status`: nodes, reports and open incidents."""


@dataclass(frozen=True, slots=True)
class ListIncidents:
    """`incidents`: every open incident, worst first."""


@dataclass(frozen=True, slots=True)
class ShowIncident:
    """`incident ID`: one incident in full."""

    id: str


@dataclass(frozen=True, slots=True)
class ShowHelp:
    """`help`, or nothing at all."""


@dataclass(frozen=True, slots=True)
class UnknownCommand:
    """Not a command. `word` is the unknown word, `meant` the nearest command or empty, `missing` what it lacks."""

    word: str
    meant: str = ""
    missing: str = ""


Command = ShowStatus | ListIncidents | ShowIncident | ShowHelp | UnknownCommand

WORDS: Final = ("status", "incidents", "incident", "help")
"""Every sub-command."""

MAX_TEXT: Final = 1_000
"""Characters that are read at all."""

MAX_WORD: Final = 100
"""Characters of a word that are read; ids and commands are shorter."""

_QUOTES: Final = "\"'`\N{SINGLE LOW-9 QUOTATION MARK}\N{DOUBLE LOW-9 QUOTATION MARK}"
_AN_ID: Final = "an incident's id"
_ID: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


def parse(text: str) -> Command:
    """Return the command in `text`; never raises."""
    plain = "".join(map(_typed, text[:MAX_TEXT]))
    words = [word for each in plain.split() if (word := each.lstrip("-")[:MAX_WORD].casefold())]
    if not words:
        return ShowHelp()
    first, rest = words[0], words[1:]
    match first, len(rest):
        case "status", 0:
            return ShowStatus()
        case "incidents", 0:
            return ListIncidents()
        case (("incident" | "incidents"), 1):
            return (
                ShowIncident(rest[0]) if _ID.fullmatch(rest[0]) else UnknownCommand(rest[0], missing=_AN_ID)
            )
        case "incident", 0:
            return UnknownCommand(first, missing=_AN_ID)
        case (("help" | "?"), _):
            return ShowHelp()
    if first in WORDS:
        return UnknownCommand(" ".join(rest)[:MAX_WORD], meant=first)
    near = difflib.get_close_matches(first, WORDS, n=1, cutoff=0.6)
    return UnknownCommand(first, meant=near[0] if near else "")


def _typed(character: str) -> str:
    """Return the character that the person meant: any dash is a hyphen, quotes and invisible ones are dropped."""
    category = unicodedata.category(character)
    if category == "Pd" or character == "\N{MINUS SIGN}":
        return "-"
    if category in ("Pi", "Pf", "Cf") or character in _QUOTES:
        return ""
    return " " if category == "Cc" else character
