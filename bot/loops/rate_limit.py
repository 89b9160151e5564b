"""RateLimit: a token bucket over time that the caller passes in. Pure."""

from datetime import UTC, datetime, timedelta


class RateLimit:
    """Lets `burst` calls pass at once and then one every `every`."""

    def __init__(self, burst: int, every: timedelta) -> None:
        self._burst, self._every = burst, every
        self._full_at = datetime.min.replace(tzinfo=UTC)

    def take(self, now: datetime) -> bool:
        """Whether one more call may pass now; counts it if so."""
        full_at = max(self._full_at, now) + self._every
        if full_at - now > self._burst * self._every:
            return False
        self._full_at = full_at
        return True
