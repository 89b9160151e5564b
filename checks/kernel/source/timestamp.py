"""The time stamp that a printed kernel line begins with, in every form of rule K9, whatever its language."""

import re
from datetime import UTC, datetime

import msgspec

FUTURE_SECONDS = 86_400.0
"""How far after now a stamp without a year may lie (K13): clocks and time zones differ, years do not."""


class Timestamp(msgspec.Struct, frozen=True):
    """A time stamp: how many characters it takes, what it says, and whether host and tag follow it.

    `uptime` is seconds since boot, `wall` Unix seconds; a delta stamp says neither.
    """

    end: int = 0
    uptime: float | None = None
    wall: float | None = None
    syslog: bool = False


def read_timestamp(text: str, now: float) -> Timestamp:
    """Return the stamp that `text` begins with, an empty one without a stamp; `now` is Unix seconds."""
    match = _STAMP.match(text)
    if match is None:
        return Timestamp()
    kind = match.lastgroup
    if kind is None:
        return Timestamp(match.end())
    value = match[kind]
    if kind in ("local", "bracketed"):
        return Timestamp(match.end(), wall=_local(value, now), syslog=kind == "local")
    if kind == "uptime":
        return Timestamp(match.end(), uptime=float(value))
    return Timestamp(
        match.end(), wall=_wall(kind, value, now), syslog=kind in ("iso", "full", "month", "unix")
    )


def _wall(kind: str, value: str, now: float) -> float | None:
    """Return Unix seconds; dmesg and syslog print local time, so a stamp without a time zone is local."""
    try:
        match kind:
            case "ctime":
                _, month, day, clock, year = value.split()
                return _time(int(year), month, day, clock)
            case "iso":
                return datetime.fromisoformat(value.replace(",", ".")).timestamp()
            case "full":
                return datetime.fromisoformat(value[4:23]).replace(tzinfo=UTC).timestamp()
            case "month" | "minute":
                return _nearest_year(value[:3], *value[3:].split(), now=now)
            case _:
                return float(value)
    except (ValueError, OverflowError, OSError):
        return None


def _nearest_year(month: str, day: str, clock: str, *, now: float) -> float | None:
    """Return the time in the year that puts it nearest to now, but not after now + 1 day (K13)."""
    this_year = datetime.fromtimestamp(now, tz=UTC).year
    # A leap day exists in one year of four (eight, around 2100), so one invalid year is not the end.
    for year in range(this_year + 1, this_year - 8, -1):
        try:
            time = _time(year, month, day, clock)
        except ValueError:
            continue
        if time <= now + FUTURE_SECONDS:
            return time
    return None


def _local(text: str, now: float) -> float | None:
    """Return Unix seconds of a date whose month is English, None for a month in another language (K9)."""
    words = text.replace(",", " ").replace(".", " ").split()
    month = next((word for word in words if word[:3].title() in _MONTHS), None)
    clock = next((word for word in words if ":" in word), "")
    numbers = [word for word in words if word.isascii() and word.isdigit()]
    day = next((word for word in numbers if len(word) < 3), None)
    year = next((word for word in numbers if len(word) == 4), None)
    if month is None or day is None or words[-1] in ("AM", "PM"):
        return None
    try:
        if year is not None:
            return _time(int(year), month[:3].title(), day, clock)
        return _nearest_year(month[:3].title(), day, clock, now=now)
    except (ValueError, OverflowError, OSError):
        return None


def _time(year: int, month: str, day: str, clock: str) -> float:
    hour, minute, second = int(clock[:2]), int(clock[3:5]), float(clock[6:] or 0)
    whole = datetime(year, _MONTHS.index(month) + 1, int(day), hour, minute)  # noqa: DTZ001 - the log's own zone
    return whole.timestamp() + second


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH = rf"(?:{'|'.join(_MONTHS)})"
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_CLOCK = r"[0-9]{2}:[0-9]{2}:[0-9]{2}"
_FRACTION = r"(?:\.[0-9]{1,9})?"
_DELTA = r"(?:\s{0,8}<\s{0,12}\+?[0-9.]{1,16}>)?"
_ZONE = r"(?:Z|[+-][0-9]{2}:?[0-9]{2})?"

# One word of a date in any language: a day or a year, the name of a month or of a weekday, or both in one.
_DATE_NUMBER = r"[0-9]{1,4}(?:[.,]{1,2}|\w{1,2}[.,]?|[-/.][0-9]{1,2}[-/.][0-9]{1,4})?"
_DATE_NAME = r"[^\W\d_][^\W_]{0,11}[.,]{0,2}"
_LOCAL = (
    rf"(?=(?:\S{{1,14}}\s{{1,2}}){{0,3}}[0-9])(?:(?:{_DATE_NUMBER}|{_DATE_NAME})\s{{1,2}}){{1,5}}"
    rf"{_CLOCK}(?:[.,][0-9]{{1,9}})?(?: [AP]M)?(?: [0-9]{{4}})?"
)

_STAMP = re.compile(
    r"\[\s{0,12}\+[0-9.]{1,16}\]"
    rf"|\[\s{{0,12}}(?P<uptime>[0-9]{{1,12}}{_FRACTION}){_DELTA}\](?:\[\s{{0,8}}[TC][0-9]{{1,10}}\])?"
    rf"|\[(?P<minute>{_MONTH}\s?[0-9]{{1,2}} [0-9]{{2}}:[0-9]{{2}})\]"
    rf"|\[(?P<ctime>{_DAY} {_MONTH}\s{{1,2}}[0-9]{{1,2}} {_CLOCK} [0-9]{{4}}){_DELTA}\]"
    rf"|(?P<iso>[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ]{_CLOCK}(?:[.,][0-9]{{1,9}})?{_ZONE})(?=\s)"
    rf"|(?P<full>{_DAY} [0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}} {_CLOCK}{_FRACTION} [A-Z+-][A-Z0-9:+-]{{0,6}})(?=\s)"
    rf"|(?P<month>{_MONTH}\s{{1,2}}[0-9]{{1,2}} {_CLOCK}{_FRACTION})(?=\s(?![AP]M\b))"
    r"|(?P<unix>[0-9]{9,11}\.[0-9]{1,9})(?=\s)"
    rf"|(?P<local>{_LOCAL})(?=\s)"
    rf"|\[(?P<bracketed>{_LOCAL}){_DELTA}\]"
)
