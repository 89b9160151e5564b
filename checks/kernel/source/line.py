"""One line of any kernel log without its prefix: who wrote it, when, how often, and its text.

Accepts what dmesg, syslog, the journal and /dev/kmsg print (rules K3-K5, K9-K13), with time stamps in every
form of rule K9. Refuses a line that user
space wrote, even when its text looks like the kernel's.
"""

import re

import msgspec

from checks.kernel.source.records import KERNEL_FACILITY, RecordHeader, clean, read_header
from checks.kernel.source.timestamp import Timestamp, read_timestamp


class KernelLine(msgspec.Struct, frozen=True):
    """A kernel line without its prefix.

    `texts` is the text, then the further text lines that were escaped inside it. `count` is the number that a
    repeat wrapper gives. `uptime` is seconds since boot and `wall` Unix seconds, each None when the prefix
    has none. `indented` marks a line that begins with blanks. `host` is the node that the prefix names (K9a).
    """

    texts: tuple[str, ...]
    count: int = 1
    uptime: float | None = None
    wall: float | None = None
    indented: bool = False
    host: str | None = None


def read_line(raw: bytes, now: float) -> KernelLine | None:
    """Return the kernel line in `raw`, None when user space wrote it or it has no text.

    `now` (Unix seconds) gives a syslog time stamp its year. Never raises, whatever the bytes.
    """
    raw = clean(raw)
    if netconsole := _NETCONSOLE.match(raw):
        raw = raw[netconsole.end() :]
    header = read_header(raw)
    if header is not None:
        return record_line(header)
    # A byte that is not UTF-8 never loses a line (K12).
    text = raw.decode("utf-8", "surrogateescape")
    if _JSON.match(text):
        return _journal_line(raw.strip(b"\x1e \t").removeprefix(b"data: "))
    return _printed_line(text, now)


def record_line(header: RecordHeader) -> KernelLine | None:
    """Return the line of a /dev/kmsg record, None when user space wrote it."""
    if header.priority >> 3 != KERNEL_FACILITY:
        return None
    text = header.text.decode("utf-8", "surrogateescape")
    return KernelLine(tuple(text.split("\n")), uptime=header.usec / 1e6)


def _printed_line(text: str, now: float) -> KernelLine | None:
    indented = text[:1] in (" ", "\t")
    text = text.strip()
    priority = _PRIORITY.match(text)
    if priority is not None:
        if priority["word"] != "kern" and int(priority["number"] or 8) >> 3 != KERNEL_FACILITY:
            return None
        text = text[priority.end() :].lstrip()
    talos = _TALOS.match(text)
    if talos is not None:
        text = f"{talos['time']} {'kernel' if talos['facility'] == 'kern' else 'user'}: {text[talos.end() :]}"
    text, when = _stamped(text, now)
    spoken = _spoken(text[when.end :].lstrip(), syslog=when.syslog)
    if spoken is None:
        return None
    uptime = _UPTIME.match(spoken)
    if uptime is not None:
        spoken = spoken[uptime.end() :]
    spoken, count = _unwrap(_RSYSLOG_ESCAPE.sub(_octal, spoken))
    return KernelLine(
        tuple(spoken.split("\n")),
        count,
        float(uptime["uptime"]) if uptime else when.uptime,
        when.wall,
        indented=indented and priority is None and when.end == 0,
        host=_host(text[when.end :].lstrip()) if when.syslog else None,
    )


def _stamped(text: str, now: float) -> tuple[str, Timestamp]:
    """Return the text from its time stamp on, and the stamp; what search tools put before it is cut off."""
    when = read_timestamp(text, now)
    searched = _SEARCHED.match(text) if when.end == 0 else None
    if searched is not None:
        inner = read_timestamp(text[searched.end() :], now)
        if inner.end:
            return text[searched.end() :], inner
    return text, when


def _spoken(text: str, *, syslog: bool) -> str | None:
    """Return the text after host and tag, None when the tag is not the kernel's (K10)."""
    tag = _KERNEL_TAG.match(text)
    if tag is not None:
        return text[tag.end() :]
    if not syslog or KERNEL_WORD.match(text):
        return text
    host = _HOST.match(text)
    rest = text[host.end() :] if host else ""
    uptime = _UPTIME.match(rest)
    return rest if uptime or KERNEL_WORD.match(rest) else None


def _host(text: str) -> str | None:
    """Return the host that stands before the kernel's tag."""
    tag = _KERNEL_TAG.match(text)
    return tag["host"] if tag is not None else None


def _unwrap(text: str) -> tuple[str, int]:
    match = _REPEATED.match(text)
    if match is None:
        return text, 1
    inner = text[match.end() :].rstrip()
    inner = inner.removesuffix("]") if inner.endswith("]") else inner
    uptime = _UPTIME.match(inner.lstrip())
    return inner.lstrip()[uptime.end() if uptime else 0 :].strip(), int(match["count"])


def _journal_line(raw: bytes) -> KernelLine | None:
    try:
        entry = _JOURNAL.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if entry.text is not None:
        return _dmesg_line(entry)
    if entry.transport != "kernel" or entry.facility not in (None, "0"):
        return None
    # The journal writes a text that is not UTF-8 as a list of bytes.
    message = entry.message or ""
    if isinstance(message, list):
        text = clean(bytes(each for each in message if 0 <= each < 256))
    else:
        text = clean(message.encode("utf-8", "surrogatepass"))
    if not text:
        return None
    return KernelLine(
        tuple(text.decode("utf-8", "surrogateescape").split("\n")),
        uptime=_microseconds(entry.source_monotonic or entry.monotonic),
        wall=_microseconds(entry.realtime),
        host=entry.hostname,
    )


def _dmesg_line(entry: "_Journal") -> KernelLine | None:
    """Return the line of a record of `dmesg --json` or of fluent-bit's kmsg input."""
    if entry.dmesg_facility not in (None, "kern") or (
        entry.dmesg_facility is None and entry.sequence is None
    ):
        return None
    text = clean((entry.text or "").encode("utf-8", "surrogatepass")).decode("utf-8", "surrogateescape")
    seconds = entry.seconds
    uptime = entry.time if seconds is None else seconds + (entry.fraction or 0) / 1e6
    return KernelLine(tuple(text.split("\n")), uptime=uptime) if text else None


def _microseconds(text: str | None) -> float | None:
    return int(text[:20]) / 1e6 if text and text.isascii() and text[:20].isdigit() else None


def _octal(match: re.Match[str]) -> str:
    return _CONTROL.get(match[1], "")


class _Journal(msgspec.Struct):
    """The fields of a journal entry in JSON that matter here."""

    transport: object = msgspec.field(name="_TRANSPORT", default=None)
    facility: object = msgspec.field(name="SYSLOG_FACILITY", default=None)
    message: str | list[int] | None = msgspec.field(name="MESSAGE", default=None)
    hostname: str | None = msgspec.field(name="_HOSTNAME", default=None)
    realtime: str | None = msgspec.field(name="__REALTIME_TIMESTAMP", default=None)
    monotonic: str | None = msgspec.field(name="__MONOTONIC_TIMESTAMP", default=None)
    dmesg_facility: str | None = msgspec.field(name="fac", default=None)
    text: str | None = msgspec.field(name="msg", default=None)
    time: float | None = None
    sequence: int | None = None
    seconds: int | None = msgspec.field(name="sec", default=None)
    fraction: int | None = msgspec.field(name="usec", default=None)
    source_monotonic: str | None = msgspec.field(name="_SOURCE_MONOTONIC_TIMESTAMP", default=None)


_JOURNAL = msgspec.json.Decoder(_Journal)
_JSON = re.compile(r'[\x1e\s]*(?:data: )?\{\s*"')
_RSYSLOG_ESCAPE = re.compile(r"#([0-3][0-7]{2})(?![0-9])")
_CONTROL = {"012": "\n", "011": "\t"}
_PRIORITY = re.compile(
    r"<(?P<number>[0-9]{1,4})>(?:1 (?=[0-9]{4}-|- ))?(?:- (?=\S))?"
    r"|(?P<word>kern|user|mail|daemon|auth|syslog|lpr|news|uucp|cron|authpriv|ftp|res[0-9]+|local[0-7])"
    r"\s{0,8}:(?:emerg|alert|crit|err|warn|notice|info|debug)\s{0,8}:"
)
_UPTIME = re.compile(
    r"\s{0,8}\[\s{0,12}(?P<uptime>[0-9]{1,12}(?:\.[0-9]{1,9})?)\](?:\[\s{0,8}[TC][0-9]{1,10}\])?\s{0,2}"
)
_HOST = re.compile(r"[^\s:\[\]]{1,255}\s+")
_HOST_NAME = r"(?:[^\s:\[\]]{0,255}|[0-9a-fA-F:.]{2,45}(?:%[\w.-]{1,16})?)"
_KERNEL_TAG = re.compile(
    rf"(?:(?P<host>(?!kern\.){_HOST_NAME})\s+)?(?:(?:kern\.)?[a-zA-Z]{{1,8}}\s+)?kernel"
    # RFC 5424: process id, message id and structured data, then a byte-order mark.
    r"(?: (?:-|[0-9]{1,10}) (?:-|[^\s\[]{1,32}) "
    r"(?:-|(?:\[[^\s\]\"]{1,64}(?: [^\]\"]{1,64}\"(?:[^\"\\]|\\.){0,256}\"){0,16}\]){1,8}))?"
    r"(?::| |$)\s{0,2}\ufeff?"
)
# `talosctl dmesg`, with the address of the node when it asks several.
_TALOS = re.compile(
    r"(?:\S{1,255}: )?(?P<facility>kern|user|daemon|auth|syslog|local[0-7]): {1,8}"
    r"(?:emerg|alert|crit|err|warning|notice|info|debug): \[(?P<time>[0-9T:.+-]{19,35}Z?)\]: "
)
# grep and tools that ask many hosts put a file, a host or a line number before a whole line.
_SEARCHED = re.compile(r"[^\s\[\]]{1,255}?[:-](?:[0-9]{1,9}[:-])?\s{0,4}(?=[\[0-9]|[^\W\d_]{2,4}\.? )")
_NETCONSOLE = re.compile(rb"[0-9][\w.+~-]{2,100},(?=[0-9]{1,4},[0-9]{1,20},[0-9]{1,20},)")
_REPEATED = re.compile(r"message repeated (?P<count>[0-9]{1,9}) times: \[\s?")

KERNEL_WORD = re.compile(
    r"NVRM:|nvidia[: -]|SXid|AER:|[a-z][\w-]{1,31} [0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:|EDAC |mce:|RAS:|BERT:|"
    r"CMCI |(?:\{\d{1,9}\})?\[Hardware Error\]|INFO: task |watchdog: |NMI watchdog|BUG: |"
    r"Oops|Internal error: |Unable to handle|general protection|Kernel panic|"
    r"Memory cgroup out|Out of memory|EXT[234]-fs |XFS \(|nvme nvme|block nvme|md/|md: |raid\d|nfs: |lockd: |"
    r"Linux version |message repeated "
)
"""Beginnings of the kernel texts that matter: in syslog without `kernel:`, not a host name (K9)."""
