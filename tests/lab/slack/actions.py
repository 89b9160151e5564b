"""People act: the payload goes out, and what the ack says happens to their screen."""

from typing import Any

from tests.lab.slack.blocks import refuse_bad_message
from tests.lab.slack.delivery import Delivery
from tests.lab.slack.interaction import Interactions, entered, find_element
from tests.lab.slack.message import Message
from tests.lab.slack.modals import Views
from tests.lab.slack.outbox import Outbox
from tests.lab.slack.wire import Json, SlackError
from tests.lab.slack.workspace import Channel, Workspace


class Actions:
    """Everything a person can do to the app; lives on the emulator's event loop."""

    def __init__(
        self, workspace: Workspace, views: Views, outbox: Outbox, interactions: Interactions
    ) -> None:
        self._workspace = workspace
        self._views = views
        self._outbox = outbox
        self._make = interactions

    async def click(self, channel: str, ts: str, action_id: str, user: str, **how: Any) -> Delivery:
        """Click in a message (`version` index, `block_id`, `value` may be given)."""
        with self._workspace.changed:
            self._person(user)
            message = self._visible(channel, ts, user)
            version = message.versions[how.get("version", -1)]
            found = find_element(version.blocks, action_id, how.get("block_id"))
            payload = self._make.click_on_message(message, version, found, user, how.get("value"))
        return await self._outbox.send(Delivery("interactive", payload))

    async def click_view(self, user: str, action_id: str, *, home: bool, value: Any) -> Delivery:
        """Click in the user's top modal or home."""
        with self._workspace.changed:
            view = self._views.homes.get(user) if home else self._views.top(user)
            if view is None:
                raise LookupError(f"{user} has no {'home' if home else 'modal'} open")
            payload = self._make.click_in_view(view, find_element(view["blocks"], action_id), user, value)
        return await self._outbox.send(Delivery("interactive", payload))

    async def submit(self, user: str, values: Json, view_id: str | None = None) -> Delivery:
        """Submit a modal. `values` maps a block_id or action_id to what was typed or chosen."""
        with self._workspace.changed:
            view = self._views.top(user, view_id)
            if view is None:
                raise LookupError(f"{user} has no modal open{f' with id {view_id}' if view_id else ''}")
            state, errors = _state(view, values)
            payload = self._make.submission(view, user, state)
        delivery = Delivery("interactive", payload, errors=errors)
        if errors:
            delivery.why = "not sent: the form is not complete"
            return delivery
        delivery.on_ack = lambda: self._after_submission(user, view, delivery)
        return await self._outbox.send(delivery)

    async def close(self, user: str) -> Delivery | None:
        """Close the user's top modal; the delivery of view_closed when the view asked for it."""
        with self._workspace.changed:
            view = self._views.close(user)
            payload = self._make.closing(view, user, cleared=False) if view else {}
        if view is None or not view["notify_on_close"]:
            return None
        return await self._outbox.send(Delivery("interactive", payload))

    async def slash(self, user: str, channel: str, command: str, text: str) -> Delivery:
        """Type a slash command; its answer (or Slackbot's regret) appears to the user."""
        with self._workspace.changed:
            self._person(user)
            place = self._workspace.channel(channel)
            payload = self._make.command(command, text, user, place.id)
        delivery = Delivery("slash_commands", payload)
        delivery.on_ack = lambda: self._after_command(place, user, command, delivery)
        await self._outbox.send(delivery)
        if not delivery.acked:
            word = "operation_timeout" if "within" in delivery.why else "dispatch_failed"
            self._regret(place, user, f"{command} failed with the error “{word}”")
        return delivery

    def _after_command(self, channel: Channel, user: str, command: str, delivery: Delivery) -> None:
        answer = delivery.response
        if not answer.get("text") and not answer.get("blocks"):
            return
        try:
            refuse_bad_message(answer.get("blocks") or [])
        except SlackError as error:
            self._regret(channel, user, f"{command} failed with the error “{error.error}”")
            return
        only_for = None if answer.get("response_type") == "in_channel" else user
        app = self._workspace.app
        text, blocks = answer.get("text") or "", answer.get("blocks") or []
        self._workspace.add(channel, app.user_id, text, blocks, bot_id=app.bot_id, only_for=only_for)

    def _regret(self, channel: Channel, user: str, text: str) -> None:
        with self._workspace.changed:
            self._workspace.add(channel, "USLACKBOT", text, [], only_for=user)

    def _after_submission(self, user: str, view: Json, delivery: Delivery) -> None:
        action = delivery.response.get("response_action")
        if action == "errors":
            delivery.errors = dict(delivery.response.get("errors") or {})
        elif action == "clear":
            self._views.clear(user)
        elif action in ("update", "push"):
            self._show_instead(user, view, delivery)
        else:
            self._views.close(user, view["id"])

    def _show_instead(self, user: str, view: Json, delivery: Delivery) -> None:
        new = delivery.response.get("view")
        try:
            if delivery.response["response_action"] == "push":
                self._views.push(user, new)
            else:
                self._views.update(new, view["id"], None, None)
        except SlackError as error:
            delivery.errors = {"": f"the app answered with a bad view: {error.answer()}"}

    def _person(self, user: str) -> None:
        if user not in self._workspace.users:
            raise LookupError(f"no user {user!r}; there are {sorted(self._workspace.users)}")

    def _visible(self, channel: str, ts: str, user: str) -> Message:
        for message in self._workspace.ephemerals:
            if (message.channel, message.ts, message.only_for) == (channel, ts, user):
                return message
        try:
            return self._workspace.message(self._workspace.channel(channel), ts)
        except SlackError as error:
            raise LookupError(f"{error.error}: {channel} {ts}") from None


def _state(view: Json, values: Json) -> tuple[Json, dict[str, str]]:
    """The state.values of a view, and what Slack itself would not let through."""
    state: Json = {}
    errors: dict[str, str] = {}
    for block in view["blocks"]:
        if block["type"] != "input":
            continue
        element = block["element"]
        initial = _initial(element)
        value = values.get(block["block_id"], values.get(element["action_id"], initial))
        chosen = entered(element, value)
        state[block["block_id"]] = {element["action_id"]: {"type": element["type"], **chosen}}
        complaint = _complaint(block, chosen)
        if complaint:
            errors[block["block_id"]] = complaint
    return state, errors


def _initial(element: Json) -> Any:
    for name in ("initial_value", "initial_date", "initial_time", "initial_user", "initial_channel"):
        if name in element:
            return element[name]
    if "initial_option" in element:
        return element["initial_option"]["value"]
    return [option["value"] for option in element.get("initial_options", [])] or None


def _complaint(block: Json, chosen: Json) -> str:
    value = next(iter(chosen.values()))
    if value in (None, "", []):
        return "" if block.get("optional") else "Please complete this required field."
    element = block["element"]
    if element["type"] != "plain_text_input":
        return ""
    if len(value) < element.get("min_length", 0):
        return f"Please enter at least {element['min_length']} characters."
    if len(value) > element.get("max_length", 3000):
        return f"Please enter at most {element.get('max_length', 3000)} characters."
    return ""
