"""Slack's rate limits, when a test turns them on: a bucket a method, and a second a channel for posting."""

import math

from tests.lab.slack.wire import Clock, Json

# Calls a minute by tier (api docs, "rate limits"); `chat.postMessage` is about one a second a channel.
_TIER_3 = 50
_TIER_4 = 100
_PER_MINUTE = {
    "chat.update": _TIER_3,
    "chat.delete": _TIER_3,
    "conversations.info": _TIER_3,
    "conversations.history": _TIER_3,
    "conversations.replies": _TIER_3,
    "conversations.join": _TIER_3,
    "conversations.list": 20,
    "users.list": 20,
    "usergroups.list": 20,
    "usergroups.users.list": 20,
    "users.lookupByEmail": _TIER_3,
    "users.info": _TIER_4,
    "views.open": _TIER_4,
    "views.push": _TIER_4,
    "views.update": _TIER_4,
    "views.publish": _TIER_4,
    "chat.postEphemeral": _TIER_4,
}
_MINUTE = 60.0
# Slack lets short bursts of posts pass; more than these in 10 s to one channel are refused.
_POSTS_IN_TEN_SECONDS = 10


class RateLimits:
    """Off until `enforced` is set."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._calls: dict[tuple[str, str], list[float]] = {}
        self.enforced = False

    def seconds_to_wait(self, method: str, args: Json) -> int:
        """0 when the call may run (it is then counted); else whole seconds for Retry-After."""
        if not self.enforced:
            return 0
        if method == "chat.postMessage":
            return self._wait((method, str(args.get("channel"))), _POSTS_IN_TEN_SECONDS, 10.0)
        if method in _PER_MINUTE:
            return self._wait((method, ""), _PER_MINUTE[method], _MINUTE)
        return 0

    def _wait(self, bucket: tuple[str, str], most: int, seconds: float) -> int:
        now = self._clock()
        recent = [moment for moment in self._calls.get(bucket, []) if now - moment < seconds]
        self._calls[bucket] = recent
        if len(recent) >= most:
            return max(1, math.ceil(seconds - (now - recent[0])))
        recent.append(now)
        return 0
