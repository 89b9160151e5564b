"""One thing that Slack sent to the app, and whether and how the app acknowledged it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from tests.lab.slack.wire import Json

Kind = Literal["events_api", "interactive", "slash_commands"]
Way = Literal["socket", "http"]

# Slack waits this long for an acknowledgement (docs of interactivity, commands and the Events API).
ACK_SECONDS = 3.0


@dataclass
class Delivery:
    """What was sent. `acked` is only true when the answer came within the 3 s.

    `why` says in words why it was not acknowledged. `response` is the body that came with the ack;
    `errors` are the field errors a person sees in a modal. `attempts` counts redeliveries of events.
    """

    kind: Kind
    payload: Json
    acked: bool = False
    response: Json = field(default_factory=dict)
    seconds: float | None = None
    why: str = ""
    attempts: int = 0
    retry_attempts: list[int] = field(default_factory=list)
    connection: int | None = None
    status: int | None = None
    late: bool = False
    errors: dict[str, str] = field(default_factory=dict)
    on_ack: Callable[[], None] | None = None

    def accept(self, response: Json, seconds: float) -> None:
        """Note the ack and let it have its effect at once, before anything else the app sends is read."""
        self.acked, self.why, self.seconds = True, "", seconds
        self.response = response if accepts_response(self) else {}
        if self.on_ack is not None:
            self.on_ack()


class Line(Protocol):
    """A way to the app: Socket Mode or signed HTTP."""

    async def send(self, delivery: Delivery, retry_attempt: int, retry_reason: str) -> bool:
        """Send once, wait for the ack at most 3 s, note the outcome in `delivery`; False: do not retry."""
        ...


def accepts_response(delivery: Delivery) -> bool:
    """Whether Slack reads a body with the ack: not for events and not for clicks."""
    if delivery.kind == "interactive":
        return delivery.payload.get("type") not in ("block_actions", "view_closed")
    return delivery.kind == "slash_commands"
