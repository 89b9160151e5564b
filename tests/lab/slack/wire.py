"""The words that every part of the Slack emulator uses: JSON objects and the way Slack says no."""

from collections.abc import Callable
from typing import Any

Json = dict[str, Any]
Clock = Callable[[], float]


class SlackError(Exception):
    """An answer `{"ok": false, "error": …}`; `extra` is merged into the answer."""

    def __init__(self, error: str, **extra: object) -> None:
        super().__init__(error)
        self.error = error
        self.extra = extra

    def answer(self) -> Json:
        """The body Slack would send."""
        return {"ok": False, "error": self.error, **self.extra}


def refused(error: str, messages: list[str]) -> SlackError:
    """An error with details the way Slack gives them: `errors`, and `[ERROR] …` in the metadata."""
    return SlackError(
        error,
        errors=messages,
        response_metadata={"messages": [f"[ERROR] {message}" for message in messages]},
    )


def missing(field: str) -> SlackError:
    """A required argument is not there."""
    return refused("invalid_arguments", [f"missing required field: {field}"])
