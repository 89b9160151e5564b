"""Response URLs: `POST /actions/…` and `/commands/…`, five uses in 30 minutes."""

import json

from aiohttp import web

from tests.lab.slack.chat_methods import contents
from tests.lab.slack.faults import Faults
from tests.lab.slack.grants import ResponseGrant
from tests.lab.slack.message import Message
from tests.lab.slack.methods import Site, flag
from tests.lab.slack.webapi import reset
from tests.lab.slack.wire import Json, SlackError

# The name under which faults for response URLs are planned.
FAULT_NAME = "response_url"


class Hooks:
    """Takes what apps send to a response URL; keeps all of it in `log`."""

    def __init__(self, site: Site, faults: Faults) -> None:
        self._site = site
        self._faults = faults
        self.log: list[Json] = []

    async def take(self, request: web.Request) -> web.StreamResponse:
        """Answer one request to a response URL."""
        fault = self._faults.take(FAULT_NAME)
        if fault is not None and fault.kind in ("status", "ratelimited", "error"):
            status = {"status": fault.status, "ratelimited": 429, "error": 404}[fault.kind]
            return web.Response(status=status, text=str(fault.answer.get("error", "")))
        try:
            body = json.loads(await request.text() or "{}")
        except ValueError:
            return web.Response(status=400, text="invalid_payload")
        with self._site.workspace.changed:
            self.log.append(body)
            try:
                self._carry_out(self._site.grants.use_response(request.match_info["token"]), body)
            except SlackError as error:
                status = 404 if error.error.endswith("_url") else 400
                return web.json_response(error.answer(), status=status)
        if fault is not None and fault.kind == "reset_after":
            reset(request)
        return web.json_response({"ok": True})

    def _carry_out(self, grant: ResponseGrant, body: Json) -> None:
        workspace = self._site.workspace
        source = self._source(grant)
        if flag(body, "delete_original"):
            if source is not None:
                workspace.remove(source)
            return
        text, blocks = contents(body)
        if flag(body, "replace_original") and source is not None:
            workspace.edit(source, text or "", blocks or [])
            return
        in_channel = body.get("response_type") == "in_channel"
        workspace.add(
            workspace.channels[grant.channel],
            workspace.app.user_id,
            text or "",
            blocks or [],
            bot_id=workspace.app.bot_id,
            thread_ts=body.get("thread_ts") or None,
            only_for=None if in_channel else grant.user,
        )

    def _source(self, grant: ResponseGrant) -> Message | None:
        workspace = self._site.workspace
        here = [*workspace.ephemerals, *workspace.channels[grant.channel].messages]
        return next(
            (item for item in here if (item.channel, item.ts) == (grant.channel, grant.source_ts)), None
        )
