"""Logging: JSON lines on stderr without secrets, and a way to log each message once."""

import logging
import re
import sys
import threading
from dataclasses import dataclass, field
from typing import Any, Final

import structlog

_SECRET: Final = re.compile(
    r"(xox[a-z]-|xapp-|gh[a-z]_|github_pat_|eyJ)[A-Za-z0-9_.\-]+"
    r"|(ticket|response_url)=[^\s\"]+|https?://[^\s\"]*/(actions|commands)/[^\s\"]+"
)
"""Tokens, tickets and one-time URLs of Slack, GitHub and Kubernetes."""


def log_as_json() -> None:
    """Send our log and the warnings of libraries to stderr, as JSON lines without secrets."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
            _mask,
        ],
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
    )
    forward = _Forward()
    forward.setLevel(logging.WARNING)
    logging.basicConfig(handlers=[forward], level=logging.WARNING)


@dataclass(slots=True)
class LogOnce:
    """The last message about each subject, so that it is logged once. Safe for many threads."""

    last: dict[str, str] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def is_new(self, about: str, text: str) -> bool:
        """Whether `text` differs from the last message about the same subject; remembers it."""
        with self.lock:
            new = self.last.get(about, "") != text
            if text:
                self.last[about] = text
            else:
                self.last.pop(about, None)
        return new


class _Forward(logging.Handler):
    """Forwards the logs of libraries to our log."""

    def emit(self, record: logging.LogRecord) -> None:
        structlog.get_logger(record.name).warning("library_spoke", text=record.getMessage()[:500])


def _mask(_: Any, __: str, line: Any) -> str:
    return _SECRET.sub("(secret)", str(line))
