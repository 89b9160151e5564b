"""conversations.* and reactions.*: looking at channels and what was said there."""

from collections.abc import Callable

from tests.lab.slack.message import Message
from tests.lab.slack.methods import Method, Site, flag, needed, whole
from tests.lab.slack.wire import Json, SlackError
from tests.lab.slack.workspace import Channel

_LARGEST_PAGE = 999


def info(site: Site, args: Json) -> Json:
    """conversations.info."""
    return {"channel": shown(site.workspace.channel(needed(args, "channel")))}


def listed(site: Site, args: Json) -> Json:
    """conversations.list, in one page."""
    channels = [shown(channel) for channel in site.workspace.channels.values() if not channel.is_im]
    return {"channels": channels, "response_metadata": {"next_cursor": ""}}


def opened(site: Site, args: Json) -> Json:
    """conversations.open with one user: the direct messages with them."""
    user = str(needed(args, "users"))
    if user not in site.workspace.users:
        raise SlackError("user_not_found")
    return {"channel": {"id": site.workspace.channel(user).id}}


def history(site: Site, args: Json) -> Json:
    """conversations.history: roots (and broadcast replies), newest first."""
    channel = _readable(site, args)
    roots = [message for message in reversed(channel.messages) if message.is_root]
    return _page(site, args, channel, roots)


def replies(site: Site, args: Json) -> Json:
    """conversations.replies: the root first, then its replies, oldest first."""
    channel = _readable(site, args)
    ts = needed(args, "ts")
    asked = next((message for message in channel.messages if message.ts == ts), None)
    if asked is None:
        raise SlackError("thread_not_found")
    root = asked.thread_ts or asked.ts
    thread = [message for message in channel.messages if root in (message.ts, message.thread_ts)]
    return _page(site, args, channel, thread)


def join(site: Site, args: Json) -> Json:
    """conversations.join."""
    channel = site.workspace.channel(needed(args, "channel"))
    if channel.is_archived:
        raise SlackError("is_archived")
    already = {"warning": "already_in_channel"} if channel.is_member else {}
    channel.is_member = True
    site.workspace.touch()
    return {"channel": shown(channel), **already}


def react(site: Site, args: Json) -> Json:
    """reactions.add."""
    workspace = site.workspace
    name = str(needed(args, "name")).strip(":")
    message = workspace.message(workspace.writable(needed(args, "channel")), needed(args, "timestamp"))
    users = message.reactions.setdefault(name, [])
    if workspace.app.user_id in users:
        raise SlackError("already_reacted")
    users.append(workspace.app.user_id)
    workspace.touch()
    return {}


def unreact(site: Site, args: Json) -> Json:
    """reactions.remove."""
    workspace = site.workspace
    name = str(needed(args, "name")).strip(":")
    message = workspace.message(workspace.writable(needed(args, "channel")), needed(args, "timestamp"))
    if workspace.app.user_id not in message.reactions.get(name, []):
        raise SlackError("no_reaction")
    message.reactions[name].remove(workspace.app.user_id)
    if not message.reactions[name]:
        del message.reactions[name]
    workspace.touch()
    return {}


def shown(channel: Channel) -> Json:
    """A channel on the wire."""
    return {
        "id": channel.id,
        "name": channel.name,
        "is_channel": not channel.is_im,
        "is_im": channel.is_im,
        "is_member": channel.is_member,
        "is_archived": channel.is_archived,
        "is_private": False,
    }


def _readable(site: Site, args: Json) -> Channel:
    channel = site.workspace.channel(needed(args, "channel"))
    if not channel.is_member and not channel.is_im:
        raise SlackError("not_in_channel")
    return channel


def _page(site: Site, args: Json, channel: Channel, messages: list[Message]) -> Json:
    kept = [message for message in messages if _within(args)(message.ts)]
    size = min(max(whole(args, "limit", 100), 1), _LARGEST_PAGE)
    start = whole(args, "cursor", 0)
    rest = kept[start + size :]
    page = site.workspace.wires(
        channel, kept[start : start + size], metadata=flag(args, "include_all_metadata")
    )
    cursor = str(start + size) if rest else ""
    return {"messages": page, "has_more": bool(rest), "response_metadata": {"next_cursor": cursor}}


def _within(args: Json) -> Callable[[str], bool]:
    oldest = str(args.get("oldest") or "0")
    latest = str(args.get("latest") or "9999999999.999999")
    inclusive = flag(args, "inclusive")

    def fits(ts: str) -> bool:
        moment = float(ts)
        if inclusive:
            return float(oldest) <= moment <= float(latest)
        return float(oldest) < moment < float(latest)

    return fits


METHODS = {
    "conversations.info": Method(info, form_only=True),
    "conversations.list": Method(listed, form_only=True),
    "conversations.open": Method(opened),
    "conversations.history": Method(history),
    "conversations.replies": Method(replies, form_only=True),
    "conversations.join": Method(join),
    "reactions.add": Method(react),
    "reactions.remove": Method(unreact),
}
