"""Signal: wakes the loops that wait for a change."""

from collections.abc import Callable


class Signal:
    """Calls every subscriber when something has changed."""

    def __init__(self) -> None:
        self._subscribers: list[Callable[[], None]] = []

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Call `wake` at every notification."""
        self._subscribers.append(wake)

    def notify(self) -> None:
        """Call every subscriber."""
        for wake in self._subscribers:
            wake()
