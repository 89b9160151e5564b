"""Sends things to the app over the way that is set up, and events again when they were not acknowledged."""

import asyncio

from tests.lab.slack.delivery import Delivery
from tests.lab.slack.signed import SignedHttp
from tests.lab.slack.socketmode import SocketMode
from tests.lab.slack.wire import Json
from tests.lab.slack.workspace import Workspace

# Events come again at once, after a minute and after five (docs of the Events API).
RETRY_SECONDS = (0.0, 60.0, 300.0)


class Outbox:
    """Keeps every delivery in `log`. `retry_seconds` may be shortened by a test."""

    def __init__(self, workspace: Workspace, sockets: SocketMode, http: SignedHttp) -> None:
        self._workspace = workspace
        self._sockets = sockets
        self._http = http
        self._retries: set[asyncio.Task[None]] = set()
        self._events = 0
        self.retry_seconds: tuple[float, ...] = RETRY_SECONDS
        self.log: list[Delivery] = []

    async def send(self, delivery: Delivery) -> Delivery:
        """Send a command or an interaction: once, never again."""
        with self._workspace.changed:
            self.log.append(delivery)
        await self._once(delivery, 0, "")
        return delivery

    async def event(self, event: Json) -> Delivery:
        """Send an event; what is not acknowledged is sent up to three more times in the background."""
        delivery = Delivery("events_api", self._wrapped(event))
        with self._workspace.changed:
            self.log.append(delivery)
        again = await self._once(delivery, 0, "")
        if again and not delivery.acked:
            task = asyncio.create_task(self._retry(delivery))
            self._retries.add(task)
            task.add_done_callback(self._retries.discard)
        return delivery

    async def close(self) -> None:
        """Give up what is still to be sent again."""
        for task in list(self._retries):
            task.cancel()
        await asyncio.gather(*self._retries, return_exceptions=True)

    async def _retry(self, delivery: Delivery) -> None:
        for attempt, wait in enumerate(self.retry_seconds, start=1):
            await asyncio.sleep(wait)
            reason = "http_timeout" if "within" in delivery.why else "http_error"
            again = await self._once(delivery, attempt, reason)
            if delivery.acked or not again:
                return

    async def _once(self, delivery: Delivery, attempt: int, reason: str) -> bool:
        line = self._sockets if self._http.request_url is None else self._http
        with self._workspace.changed:
            delivery.attempts += 1
            delivery.retry_attempts.append(attempt)
        again = await line.send(delivery, attempt, reason)
        self._workspace.touch()
        return again

    def _wrapped(self, event: Json) -> Json:
        app = self._workspace.app
        self._events += 1
        return {
            "token": "lab",
            "team_id": app.team_id,
            "api_app_id": app.app_id,
            "event": event,
            "type": "event_callback",
            "event_id": f"Ev{self._events:010d}",
            "event_time": int(self._workspace.clock()),
            "authorizations": [
                {"team_id": app.team_id, "user_id": app.user_id, "is_bot": True, "enterprise_id": None}
            ],
        }
