"""Records that a tool prints over several lines become one line of JSON again.

`dmesg --json` and `journalctl -o json-pretty` print an object with one field a line; `-o export` prints
`NAME=value` lines and a blank line after each record.
"""

import re

import msgspec

FIELD_LIMIT = 512
"""Fields of one record that are kept at most; the journal's records have about 30."""


class RecordUnfolder:
    """Collects the lines of one record; lines of every other form pass through."""

    def __init__(self) -> None:
        self._fields: list[bytes] = []
        self._export: dict[str, str] | None = None

    def feed(self, raw: bytes) -> bytes | None:
        """Return a line to read, None while a record is incomplete."""
        if self._export is not None:
            return self._feed_export(raw, self._export)
        if raw[:1] not in _FIRST:
            return raw
        if raw.startswith(b"__CURSOR="):
            self._export = {}
            return None
        if _BEGIN.match(raw):
            return self.finish()
        if field := _FIELD.match(raw):
            if len(self._fields) < FIELD_LIMIT:
                self._fields.append(field[1])
            return None
        return self.finish() if _END.match(raw) else raw

    def finish(self) -> bytes | None:
        """Return the record that is being collected, None without one."""
        fields, export = self._fields, self._export
        self._fields, self._export = [], None
        if export:
            return msgspec.json.encode(export)
        return b"{%b}" % b",".join(fields) if fields else None

    def _feed_export(self, raw: bytes, export: dict[str, str]) -> bytes | None:
        name, equals, value = raw.rstrip(b"\r").partition(b"=")
        if not name:
            return self.finish()
        if name == b"__CURSOR" and export:
            whole = self.finish()
            self._export = {}
            return whole
        if equals and len(export) < FIELD_LIMIT:
            export[name.decode("utf-8", "replace")] = value.decode("utf-8", "backslashreplace")
        return None


_FIRST = frozenset((b"{", b"}", b"\t", b" ", b"_"))
_BEGIN = re.compile(rb"\s*(?:\}\s*,?\s*)?\{\s*$")
_FIELD = re.compile(rb'\s+("\w{1,64}"\s*:\s*[^\[{\s].*?|"MESSAGE"\s*:\s*\[.*?\]),?\s*$')
_END = re.compile(rb"\s*\},?\s*$")
