"""What a person does, as the payload that Slack makes of it: a click, a submission, a command."""

from collections.abc import Iterable
from typing import Any

from tests.lab.slack.blocks import elements
from tests.lab.slack.grants import Grants
from tests.lab.slack.message import Message, Version, wire
from tests.lab.slack.wire import Json
from tests.lab.slack.workspace import Workspace

_SINGLE = {
    "users_select": "user",
    "channels_select": "channel",
    "conversations_select": "conversation",
    "datepicker": "date",
    "timepicker": "time",
}


class Interactions:
    """Builds payloads; every payload carries a fresh trigger id."""

    def __init__(self, workspace: Workspace, grants: Grants, root_url: str) -> None:
        self._workspace = workspace
        self._grants = grants
        self._root_url = root_url

    def click_on_message(
        self, message: Message, version: Version, found: tuple[Json, Json], user: str, value: object
    ) -> Json:
        """block_actions from a message, perhaps from an old version of it."""
        channel = self._workspace.channels[message.channel]
        container: Json = {
            "type": "message",
            "message_ts": message.ts,
            "channel_id": channel.id,
            "is_ephemeral": message.only_for is not None,
            **({"thread_ts": message.thread_ts} if message.thread_ts else {}),
        }
        answer = self._grants.response(user, channel.id, message.ts, message.thread_ts)
        payload = self._actions(user, container, found, value)
        payload |= {
            "channel": {"id": channel.id, "name": channel.name},
            "state": {"values": {}},
            "response_url": f"{self._root_url}/actions/{self._workspace.app.team_id}/{answer}",
        }
        if message.only_for is None:
            payload["message"] = {**wire(message, version=version), "app_id": self._workspace.app.app_id}
        return payload

    def click_in_view(self, view: Json, found: tuple[Json, Json], user: str, value: object) -> Json:
        """block_actions from a modal or a home."""
        container = {"type": "view", "view_id": view["id"]}
        return {**self._actions(user, container, found, value), "view": view}

    def submission(self, view: Json, user: str, values: Json) -> Json:
        """view_submission with the state that the person entered."""
        return {
            "type": "view_submission",
            **self._who(user),
            "trigger_id": self._grants.trigger(user),
            "view": {**view, "state": {"values": values}},
            "response_urls": [],
        }

    def closing(self, view: Json, user: str, *, cleared: bool) -> Json:
        """view_closed."""
        return {"type": "view_closed", **self._who(user), "view": view, "is_cleared": cleared}

    def command(self, command: str, text: str, user: str, channel: str) -> Json:
        """The fields of a slash command."""
        app = self._workspace.app
        found = self._workspace.channels[channel]
        answer = self._grants.response(user, channel, None, None)
        return {
            "token": "lab",
            "team_id": app.team_id,
            "team_domain": "example-lab",
            "channel_id": channel,
            "channel_name": found.name,
            "user_id": user,
            "user_name": self._name(user),
            "command": command,
            "text": text,
            "api_app_id": app.app_id,
            "is_enterprise_install": "false",
            "response_url": f"{self._root_url}/commands/{app.team_id}/{answer}",
            "trigger_id": self._grants.trigger(user),
        }

    def _actions(self, user: str, container: Json, found: tuple[Json, Json], value: object) -> Json:
        block, element = found
        stamp = f"{self._workspace.clock():.6f}"
        action = {
            "action_id": element["action_id"],
            "block_id": block["block_id"],
            "type": element["type"],
            "action_ts": stamp,
            **entered(element, value),
        }
        if element["type"] == "button":
            action["text"] = element["text"]
        return {
            "type": "block_actions",
            **self._who(user),
            "container": container,
            "trigger_id": self._grants.trigger(user),
            "actions": [action],
        }

    def _who(self, user: str) -> Json:
        app = self._workspace.app
        name = self._name(user)
        return {
            "user": {"id": user, "username": name, "name": name, "team_id": app.team_id},
            "team": {"id": app.team_id, "domain": "example-lab"},
            "api_app_id": app.app_id,
            "token": "lab",
            "enterprise": None,
            "is_enterprise_install": False,
        }

    def _name(self, user: str) -> str:
        return self._workspace.users[user].name.lower().replace(" ", ".")


def find_element(blocks: Iterable[Json], action_id: str, block_id: str | None = None) -> tuple[Json, Json]:
    """The block and element of an action id; LookupError names what there is instead."""
    there = []
    for block, element in elements(list(blocks)):
        there.append(element.get("action_id"))
        if element.get("action_id") == action_id and block_id in (None, block.get("block_id")):
            return block, element
    raise LookupError(f"no element with action_id {action_id!r}; there are {there}")


def entered(element: Json, value: Any) -> Json:
    """The part of an action or of a view's state that holds what was chosen or typed."""
    kind = element["type"]
    if kind == "button":
        return {"value": element["value"]} if "value" in element else {}
    if kind == "plain_text_input":
        return {"value": value if value not in ("", None) else None}
    if kind in _SINGLE:
        return {f"selected_{_SINGLE[kind]}": value}
    if kind == "datetimepicker":
        return {"selected_date_time": value}
    if kind in ("checkboxes", "multi_static_select"):
        wanted = [value] if isinstance(value, str) else list(value or [])
        return {"selected_options": [option for option in options(element) if option["value"] in wanted]}
    chosen = [option for option in options(element) if option["value"] == value]
    return {"selected_option": chosen[0] if chosen else None}


def options(element: Json) -> list[Json]:
    """All options of a chooser, groups flattened."""
    grouped = [option for group in element.get("option_groups", []) for option in group["options"]]
    return [*element.get("options", []), *grouped]
