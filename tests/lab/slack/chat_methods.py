"""chat.*: posting, editing and deleting messages."""

import json
from typing import Any

from tests.lab.slack.blocks import refuse_bad_message
from tests.lab.slack.message import Message, wire
from tests.lab.slack.methods import Method, Site, flag, needed, structure
from tests.lab.slack.wire import Json, SlackError

POST_TEXT = 40_000
UPDATE_TEXT = 4_000
# About 8 kB (api docs of message metadata).
METADATA_BYTES = 8_000


def post_message(site: Site, args: Json) -> Json:
    """chat.postMessage. With a thread_ts that is no root's the message is accepted and never shown."""
    workspace = site.workspace
    text, blocks = contents(args)
    channel = workspace.writable(needed(args, "channel"))
    message = workspace.add(
        channel,
        workspace.app.user_id,
        (text or "")[:POST_TEXT],
        blocks or [],
        bot_id=workspace.app.bot_id,
        metadata=_metadata(args),
        thread_ts=args.get("thread_ts") or None,
        broadcast=flag(args, "reply_broadcast"),
    )
    return {"channel": channel.id, "ts": message.ts, "message": wire(message, metadata=True)}


def update(site: Site, args: Json) -> Json:
    """chat.update. Text without blocks removes the blocks; metadata stays when it is not given."""
    workspace = site.workspace
    channel = workspace.writable(needed(args, "channel"))
    message = workspace.message(channel, needed(args, "ts"))
    if message.user != workspace.app.user_id:
        raise SlackError("cant_update_message")
    text, blocks = contents(args)
    if text is not None and len(text) > UPDATE_TEXT:
        raise SlackError("msg_too_long")
    metadata = _metadata(args)
    if metadata is not None:
        message.metadata = metadata
    workspace.edit(message, text or "", blocks or [])
    return {
        "channel": channel.id,
        "ts": message.ts,
        "text": message.shown.text,
        "message": wire(message, metadata=True),
    }


def post_ephemeral(site: Site, args: Json) -> Json:
    """chat.postEphemeral."""
    workspace = site.workspace
    text, blocks = contents(args)
    channel = workspace.writable(needed(args, "channel"))
    user = needed(args, "user")
    if user not in workspace.users:
        raise SlackError("user_not_in_channel")
    message = workspace.add(
        channel,
        workspace.app.user_id,
        text or "",
        blocks or [],
        bot_id=workspace.app.bot_id,
        thread_ts=args.get("thread_ts") or None,
        only_for=user,
    )
    return {"message_ts": message.ts}


def delete(site: Site, args: Json) -> Json:
    """chat.delete."""
    channel = site.workspace.channel(needed(args, "channel"))
    message = site.workspace.message(channel, needed(args, "ts"))
    if message.user != site.workspace.app.user_id:
        raise SlackError("cant_delete_message")
    site.workspace.remove(message)
    return {"channel": channel.id, "ts": message.ts}


def permalink(site: Site, args: Json) -> Json:
    """chat.getPermalink: an address that the emulator's page understands."""
    channel = site.workspace.channel(needed(args, "channel"))
    message = site.workspace.message(channel, needed(args, "message_ts"))
    return {"channel": channel.id, "permalink": address(site, message)}


def address(site: Site, message: Message) -> str:
    """Where the page shows a message."""
    link = f"{site.root_url()}/archives/{message.channel}/p{message.ts.replace('.', '')}"
    if message.thread_ts and message.thread_ts != message.ts:
        link += f"?thread_ts={message.thread_ts}&cid={message.channel}"
    return link


def contents(args: Json) -> tuple[str | None, list[Json] | None]:
    """The text and blocks of a message to be, checked; at least one is there."""
    text = args.get("text")
    if text is not None and not isinstance(text, str):
        text = str(text)
    blocks = structure(args, "blocks", "invalid_blocks_format")
    if blocks is not None:
        refuse_bad_message(blocks)
    if not text and not blocks and not structure(args, "attachments", "invalid_attachments"):
        raise SlackError("no_text")
    return text, blocks


def _metadata(args: Json) -> Json | None:
    value: Any = structure(args, "metadata", "invalid_metadata_format")
    if value is None:
        return None
    if not isinstance(value, dict) or set(value) != {"event_type", "event_payload"}:
        raise SlackError("invalid_metadata_format")
    if not isinstance(value["event_type"], str) or not isinstance(value["event_payload"], dict):
        raise SlackError("invalid_metadata_schema")
    if len(json.dumps(value)) > METADATA_BYTES:
        raise SlackError("metadata_too_large")
    return value


METHODS = {
    "chat.postMessage": Method(post_message),
    "chat.update": Method(update),
    "chat.postEphemeral": Method(post_ephemeral),
    "chat.delete": Method(delete),
    "chat.getPermalink": Method(permalink, form_only=True),
}
