"""What one user sees of one channel, as the page in the browser draws it."""

from tests.lab.slack.conversation_methods import shown
from tests.lab.slack.message import Message
from tests.lab.slack.modals import Views
from tests.lab.slack.wire import Json
from tests.lab.slack.workspace import Channel, Workspace

# The newest roots that are drawn.
_ROOTS = 200
# So many earlier versions of a message are at hand in the page.
_EARLIER = 10


def page_state(workspace: Workspace, views: Views, user: str, channel: str) -> Json:
    """Everything the page needs, for one acting user and the channel in view."""
    with workspace.changed:
        place = workspace.channels.get(channel)
        stack = views.stacks.get(user, [])
        return {
            "revision": workspace.revision,
            "team": workspace.app.team_name,
            "app": {"id": workspace.app.user_id, "name": workspace.app.name},
            "users": {item.id: _user(item.name, is_bot=item.is_bot) for item in workspace.users.values()},
            "channels": [
                {**shown(item), "newest": item.messages[-1].ts if item.messages else ""}
                for item in workspace.channels.values()
            ],
            "groups": {name: len(members) for name, members in workspace.groups.items()},
            "messages": _messages(workspace, place, user) if place else [],
            "modal": stack[-1] if stack else None,
            "modalDepth": len(stack),
            "home": views.homes.get(user),
            "homeEnabled": views.home_enabled,
        }


def _user(name: str, *, is_bot: bool) -> Json:
    return {"name": name, "isBot": is_bot}


def _messages(workspace: Workspace, place: Channel, user: str) -> list[Json]:
    mine = [item for item in workspace.ephemerals if item.only_for == user and item.channel == place.id]
    roots = [message for message in place.messages if message.is_root][-_ROOTS:]
    drawn = [
        {**_drawn(workspace, place, root), "replies": _thread(workspace, place, root, mine)} for root in roots
    ]
    loose = [_drawn(workspace, place, item) for item in mine if not item.thread_ts]
    return sorted([*drawn, *loose], key=lambda message: str(message["ts"]))


def _thread(workspace: Workspace, place: Channel, root: Message, mine: list[Message]) -> list[Json]:
    below = [*workspace.thread(place, root.ts), *(item for item in mine if item.thread_ts == root.ts)]
    return [_drawn(workspace, place, item) for item in sorted(below, key=lambda item: item.ts)]


def _drawn(workspace: Workspace, place: Channel, message: Message) -> Json:
    old = list(enumerate(message.versions[:-1]))[-_EARLIER:]
    earlier = [
        {"index": index, "text": item.text, "blocks": item.blocks, "at": item.at} for index, item in old
    ]
    return {**workspace.wire(place, message), "earlier": earlier}
