"""The channel, everybody who is in it, and what they read there."""

from collections.abc import Mapping
from typing import Any

from tests.lab.slack.emulator import Slack

CHANNEL = "C0INCIDENTS"
APPROVER, SECOND, STRANGER, GUEST, SHY, ROBOT = (
    "U0APPROVER",
    "U0SECOND",
    "U0STRANGER",
    "U0GUEST",
    "U0SHY",
    "U0ROBOT",
)


def people(slack: Slack) -> None:
    """Everybody whose clicks the tests try."""
    slack.add_channel(CHANNEL, "gpu-incidents")
    slack.add_user(APPROVER, "Example Approver", "approver@example.com")
    slack.add_user(SECOND, "Second Approver", "second@example.com")
    slack.add_user(STRANGER, "Example Visitor", "visitor@example.com")
    slack.add_user(GUEST, "Example Guest", "approver@example.com", is_restricted=True)
    slack.add_user(SHY, "Example Shy", "")
    slack.add_user(ROBOT, "Example Robot", "approver@example.com", is_bot=True)


def shown(message: Mapping[str, Any]) -> str:
    """Return all texts of a message."""
    return message["text"] + "\n" + "\n".join(_texts(message.get("blocks") or ()))


def buttons(message: Mapping[str, Any]) -> set[str]:
    """Ids of the buttons on a message."""
    return {
        element["action_id"]
        for block in message.get("blocks") or ()
        if block["type"] == "actions"
        for element in block["elements"]
    }


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["text"]] if isinstance(value.get("text"), str) else []
        return own + [text for each in value.values() for text in _texts(each)]
    return [text for each in value for text in _texts(each)] if isinstance(value, (list, tuple)) else []
