"""The table of Web API methods and how their arguments are read."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from tests.lab.slack.grants import Grants
from tests.lab.slack.modals import Views
from tests.lab.slack.wire import Json, SlackError, missing
from tests.lab.slack.workspace import Workspace

TokenKind = Literal["bot", "app", "none"]


@dataclass(frozen=True)
class Site:
    """What a method may look at and change."""

    workspace: Workspace
    views: Views
    grants: Grants
    root_url: Callable[[], str]
    new_ticket: Callable[[], str]


@dataclass(frozen=True)
class Method:
    """One method: what it does, whose token it takes, whether Slack reads JSON bodies for it."""

    run: Callable[[Site, Json], Json]
    token: TokenKind = "bot"
    form_only: bool = False


def needed(args: Json, name: str) -> Any:
    """A required argument."""
    value = args.get(name)
    if value is None or value == "":
        raise missing(name)
    return value


def flag(args: Json, name: str) -> bool:
    """A boolean argument, as JSON or as the words of a form."""
    return args.get(name) in (True, "true", "True", "1", 1)


def whole(args: Json, name: str, otherwise: int) -> int:
    """A positive number, as JSON or as the digits of a form."""
    value = args.get(name)
    if value is None or value == "":
        return otherwise
    try:
        return int(value)
    except (TypeError, ValueError):
        raise SlackError("invalid_limit") from None


def structure(args: Json, name: str, error: str) -> Any:
    """An argument that is JSON inside a form, or plain JSON in a JSON body; None when it is not given."""
    value = args.get(name)
    if not isinstance(value, str):
        return value
    if not value:
        return None
    try:
        return json.loads(value)
    except ValueError:
        raise SlackError(error) from None
