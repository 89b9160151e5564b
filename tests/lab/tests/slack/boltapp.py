"""A small real Slack app: slack_bolt's AsyncApp over aiohttp Socket Mode, in its own thread."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from aiohttp import web
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from tests.lab.slack.emulator import Slack

T = TypeVar("T")
REASON_VIEW = {
    "type": "modal",
    "callback_id": "reason",
    "title": {"type": "plain_text", "text": "Reject"},
    "submit": {"type": "plain_text", "text": "Send"},
    "blocks": [
        {
            "type": "input",
            "block_id": "why",
            "label": {"type": "plain_text", "text": "Why?"},
            "element": {"type": "plain_text_input", "action_id": "text", "multiline": True},
        }
    ],
}
HOME_VIEW = {"type": "home", "blocks": [{"type": "divider"}]}


class BoltApp:
    """Answers `approve`, `reject`, the modal `reason`, `/cluster` and app_home_opened; notes what it saw."""

    def __init__(self, slack: Slack, *, over_http: bool = False, ping_seconds: float = 10.0) -> None:
        self._slack = slack
        self._over_http = over_http
        self._ping_seconds = ping_seconds
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.seen: list[dict[str, Any]] = []
        self.ack_late_seconds = 0.0

    def __enter__(self) -> "BoltApp":
        self._thread.start()
        self.run(self._start())
        return self

    def __exit__(self, *error: object) -> None:
        self.run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    async def _start(self) -> None:
        self.client = AsyncWebClient(token=self._slack.bot_token, base_url=self._slack.base_url)
        # Bolt's own answer to ssl_check comes before the signature is looked at.
        app = AsyncApp(client=self.client, signing_secret=self._slack.signing_secret, ssl_check_enabled=False)
        app.action("approve")(self._approve)
        app.action("reject")(self._reject)
        app.view("reason")(self._reason)
        app.command("/cluster")(self._cluster)
        app.event("app_home_opened")(self._home)
        if self._over_http:
            await self._serve(app)
        else:
            self._socket = self._handler(app)
            await self._socket.connect_async()

    def _handler(self, app: AsyncApp) -> Any:
        return AsyncSocketModeHandler(app, self._slack.app_token, ping_interval=self._ping_seconds)

    async def _serve(self, app: AsyncApp) -> None:
        self._runner = web.AppRunner(app.server(port=0, path="/slack/events").web_app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        self._slack.http.request_url = f"http://127.0.0.1:{port}/slack/events"

    async def _stop(self) -> None:
        if self._over_http:
            await self._runner.cleanup()
        else:
            await self._socket.close_async()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        if left:
            _, stuck = await asyncio.wait(left, timeout=1)
            for task in stuck:
                task.cancel()
            await asyncio.gather(*stuck, return_exceptions=True)
        await asyncio.sleep(0.05)

    async def _approve(self, ack: Any, body: dict[str, Any], client: AsyncWebClient) -> None:
        self.seen.append(body)
        await asyncio.sleep(self.ack_late_seconds)
        await ack()
        message = body["container"]
        await client.chat_update(
            channel=message["channel_id"],
            ts=message["message_ts"],
            text=f"approved by {body['user']['id']}: {body['actions'][0]['value']}",
        )

    async def _reject(self, ack: Any, body: dict[str, Any], client: AsyncWebClient) -> None:
        self.seen.append(body)
        await ack()
        await client.views_open(trigger_id=body["trigger_id"], view=REASON_VIEW)

    async def _reason(self, ack: Any, body: dict[str, Any]) -> None:
        self.seen.append(body)
        reason = body["view"]["state"]["values"]["why"]["text"]["value"]
        if len(reason) < 5:
            await ack(response_action="errors", errors={"why": "Say a little more."})
        else:
            await ack()

    async def _cluster(self, ack: Any, body: dict[str, Any], respond: Any) -> None:
        self.seen.append(body)
        await ack(f"you said {body['text']}")
        await respond("and one more")

    async def _home(self, event: dict[str, Any], client: AsyncWebClient) -> None:
        self.seen.append(event)
        await client.views_publish(user_id=event["user"], view=HOME_VIEW)
