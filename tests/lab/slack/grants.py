"""What Slack hands out for a short while: trigger ids (3 s, once) and response URLs (30 min, 5 uses)."""

from dataclasses import dataclass
from random import Random

from tests.lab.slack.wire import Clock, SlackError

TRIGGER_SECONDS = 3.0
RESPONSE_SECONDS = 30 * 60.0
RESPONSE_USES = 5


@dataclass
class Trigger:
    """The right to open one view for one user."""

    user: str
    made_at: float
    used: bool = False


@dataclass
class ResponseGrant:
    """The right to answer a command or a click; `source` is the (channel, ts) it may replace."""

    user: str
    channel: str
    made_at: float
    source_ts: str | None = None
    thread_ts: str | None = None
    uses: int = 0


class Grants:
    """Everything handed out so far."""

    def __init__(self, clock: Clock, random: Random) -> None:
        self._clock = clock
        self._random = random
        self._triggers: dict[str, Trigger] = {}
        self._responses: dict[str, ResponseGrant] = {}

    def trigger(self, user: str) -> str:
        """A new trigger id."""
        name = f"{self._random.randrange(10**12)}.{self._random.randrange(10**12)}.{self._token(32)}"
        self._triggers[name] = Trigger(user, self._clock())
        return name

    def use_trigger(self, name: object) -> str:
        """The user whose trigger it is; raises Slack's word for unknown, used or too old."""
        trigger = self._triggers.get(name) if isinstance(name, str) else None
        if trigger is None:
            raise SlackError("invalid_trigger_id")
        if trigger.used:
            raise SlackError("exchanged_trigger_id")
        if self._clock() - trigger.made_at > TRIGGER_SECONDS:
            raise SlackError("expired_trigger_id")
        trigger.used = True
        return trigger.user

    def response(self, user: str, channel: str, source_ts: str | None, thread_ts: str | None) -> str:
        """The secret last part of a new response URL."""
        name = self._token(24)
        self._responses[name] = ResponseGrant(user, channel, self._clock(), source_ts, thread_ts)
        return name

    def use_response(self, name: str) -> ResponseGrant:
        """The grant, one use less; raises Slack's word for unknown, used up or too old."""
        grant = self._responses.get(name)
        if grant is None:
            raise SlackError("invalid_url")
        if self._clock() - grant.made_at > RESPONSE_SECONDS:
            raise SlackError("expired_url")
        if grant.uses >= RESPONSE_USES:
            raise SlackError("used_url")
        grant.uses += 1
        return grant

    def _token(self, length: int) -> str:
        return "".join(self._random.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=length))
