"""One line of any kernel log, with its prefix understood: who speaks, when, how often, and what is said.

Accepts what dmesg, syslog, the journal and /dev/kmsg print (rules K3-K5, K9-K13). A line that user space
wrote is refused, however kernel-like its text.
"""

import re

import msgspec

from checks.kernel import stamp

KERNEL_FACILITY = 0
"""Syslog facility of the kernel; user writes to /dev/kmsg always carry another (K4)."""


class Line(msgspec.Struct, frozen=True):
    """A kernel line without its prefix.

    `texts` is the text, then the further text lines that were escaped inside it. `count` is what a repeat
    wrapper says. `uptime` is seconds since boot and `wall` Unix seconds, each None when the prefix has none.
    `indented` marks a line that begins with blanks.
    """

    texts: tuple[str, ...]
    count: int = 1
    uptime: float | None = None
    wall: float | None = None
    indented: bool = False


class Header(msgspec.Struct, frozen=True):
    """What stands before the first `;` of a /dev/kmsg record (K3). `usec` is microseconds since boot."""

    priority: int
    sequence: int
    usec: int
    text: bytes

    @property
    def of_kernel(self) -> bool:
        """Whether the kernel wrote the record."""
        return self.priority >> 3 == KERNEL_FACILITY


def read_header(record: bytes) -> Header | None:
    """Return the first line of a /dev/kmsg record, its escapes undone; None when it is not one."""
    match = _KMSG.match(record)
    if match is None:
        return None
    text = record[match.end() :].partition(b"\n")[0]
    return Header(int(match[1]), int(match[2]), int(match[3]), unescape(text))


def read_line(raw: bytes, now: float) -> Line | None:
    """Return the kernel line in `raw`, None when user space wrote it or it says nothing.

    `now` (Unix seconds) gives a syslog stamp its year. Never raises, whatever the bytes.
    """
    raw = clean(raw)
    header = read_header(raw)
    if header is not None:
        return record_line(header)
    text = raw.decode("utf-8", "surrogateescape")
    if _JSON.match(text):
        return _journal_line(raw)
    return _printed_line(text, now)


def record_line(header: Header) -> Line | None:
    """Return the line of a /dev/kmsg record, None when user space wrote it."""
    if not header.of_kernel:
        return None
    return Line(_split(decode(header.text)), uptime=header.usec / 1e6)


def clean(raw: bytes) -> bytes:
    """Return `raw` without colours, NUL and line ends (K12); colours may stand inside a driver's word."""
    if b"\x1b" in raw or b"^[" in raw:
        raw = _ANSI.sub(b"", raw)
    return raw.replace(b"\x00", b"").removeprefix(b"\xef\xbb\xbf").rstrip(b"\r\n").replace(b"\r", b"")


def unescape(text: bytes) -> bytes:
    """Return a /dev/kmsg text with its `\\xNN` escapes undone (K5)."""
    if b"\\x" not in text:
        return text
    return clean(_KMSG_ESCAPE.sub(lambda match: bytes((int(match[1], 16),)), text))


def decode(text: bytes) -> str:
    """Return bytes as text; a byte that is no UTF-8 never loses a line (K12)."""
    return text.decode("utf-8", "surrogateescape")


def _printed_line(text: str, now: float) -> Line | None:
    indented = text[:1] in (" ", "\t")
    text = text.strip()
    priority = _PRIORITY.match(text)
    if priority is not None:
        if priority["word"] != "kern" and int(priority["number"] or 8) >> 3 != KERNEL_FACILITY:
            return None
        text = text[priority.end() :].lstrip()
    when = stamp.read(text, now)
    spoken = _spoken(text[when.end :].lstrip(), syslog=when.syslog)
    if spoken is None:
        return None
    uptime = _UPTIME.match(spoken)
    if uptime is not None:
        spoken = spoken[uptime.end() :]
    spoken, count = _unwrap(_RSYSLOG_ESCAPE.sub(_octal, spoken))
    return Line(
        _split(spoken),
        count,
        float(uptime["uptime"]) if uptime else when.uptime,
        when.wall,
        indented=indented and priority is None and when.end == 0,
    )


def _spoken(text: str, *, syslog: bool) -> str | None:
    """Return what stands after host and tag, None when the tag is not the kernel's (K10)."""
    tag = _KERNEL_TAG.match(text)
    if tag is not None:
        return text[tag.end() :]
    if not syslog or KERNEL_WORD.match(text):
        return text
    host = _HOST.match(text)
    rest = text[host.end() :] if host else ""
    uptime = _UPTIME.match(rest)
    return rest if uptime or KERNEL_WORD.match(rest) else None


def _unwrap(text: str) -> tuple[str, int]:
    match = _REPEATED.match(text)
    if match is None:
        return text, 1
    inner = text[match.end() :].rstrip()
    inner = inner.removesuffix("]") if inner.endswith("]") else inner
    uptime = _UPTIME.match(inner.lstrip())
    return inner.lstrip()[uptime.end() if uptime else 0 :].strip(), int(match["count"])


def _journal_line(raw: bytes) -> Line | None:
    try:
        entry = _JOURNAL.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if entry.transport != "kernel" or entry.facility not in (None, "0"):
        return None
    message = entry.message
    if isinstance(message, list):
        message = decode(clean(bytes(each for each in message if 0 <= each < 256)))
    elif message is not None:
        message = decode(clean(message.encode("utf-8", "surrogatepass")))
    if not message:
        return None
    return Line(
        _split(message),
        uptime=_microseconds(entry.source_monotonic or entry.monotonic),
        wall=_microseconds(entry.realtime),
    )


def _microseconds(text: str | None) -> float | None:
    return int(text[:20]) / 1e6 if text and text.isascii() and text[:20].isdigit() else None


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split("\n")) if "\n" in text else (text,)


def _octal(match: re.Match[str]) -> str:
    return _CONTROL.get(match[1], "")


class _Journal(msgspec.Struct):
    """The fields of a journal entry in JSON that matter here."""

    transport: object = msgspec.field(name="_TRANSPORT", default=None)
    facility: object = msgspec.field(name="SYSLOG_FACILITY", default=None)
    message: str | list[int] | None = msgspec.field(name="MESSAGE", default=None)
    realtime: str | None = msgspec.field(name="__REALTIME_TIMESTAMP", default=None)
    monotonic: str | None = msgspec.field(name="__MONOTONIC_TIMESTAMP", default=None)
    source_monotonic: str | None = msgspec.field(name="_SOURCE_MONOTONIC_TIMESTAMP", default=None)


_JOURNAL = msgspec.json.Decoder(_Journal)
_JSON = re.compile(r'\s*\{\s*"')
_KMSG = re.compile(rb"(\d{1,4}),(\d{1,20}),(\d{1,20}),[^;\n]{0,200};")
_KMSG_ESCAPE = re.compile(rb"\\x([0-9a-fA-F]{2})")
_ANSI = re.compile(
    rb"(?:\x1b|\^\[)(?:\[[0-?]{0,32}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)?)|\x1b[@-Z\\^_]?"
)
_RSYSLOG_ESCAPE = re.compile(r"#([0-3][0-7]{2})(?![0-9])")
_CONTROL = {"012": "\n", "011": "\t"}
_PRIORITY = re.compile(
    r"<(?P<number>[0-9]{1,4})>(?:1 (?=[0-9]{4}-))?"
    r"|(?P<word>kern|user|mail|daemon|auth|syslog|lpr|news|uucp|cron|authpriv|ftp|res[0-9]+|local[0-7])"
    r"\s{0,8}:(?:emerg|alert|crit|err|warn|notice|info|debug)\s{0,8}:"
)
_UPTIME = re.compile(
    r"\s{0,8}\[\s{0,12}(?P<uptime>[0-9]{1,12}(?:\.[0-9]{1,9})?)\](?:\[\s{0,8}[TC][0-9]{1,10}\])?\s{0,2}"
)
_HOST = re.compile(r"[^\s:\[\]]{1,255}\s+")
_KERNEL_TAG = re.compile(r"(?:[^\s:\[\]]{0,255}\s+)?(?:kern\.[a-z]{1,7}\s+)?kernel(?: - - -)?(?::| )\s{0,2}")
_REPEATED = re.compile(r"message repeated (?P<count>[0-9]{1,9}) times: \[\s?")

KERNEL_WORD = re.compile(
    r"NVRM:|nvidia[: -]|SXid|AER:|[a-z][\w-]{1,31} [0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:|EDAC |mce:|RAS:|BERT:|"
    r"CMCI |(?:\{\d{1,9}\})?\[Hardware Error\]|INFO: task |watchdog: |NMI watchdog|BUG: |Kernel panic|"
    r"Memory cgroup out|Out of memory|EXT[234]-fs |XFS \(|nvme nvme|block nvme|md/|md: |raid\d|nfs: |lockd: |"
    r"Linux version |message repeated "
)
"""How kernel texts begin that matter here; tells text from host name where syslog has no `kernel:` (K9)."""
