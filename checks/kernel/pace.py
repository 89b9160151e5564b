"""Pace: whether something harmless happens too often, by the minute (table 3.7, aer-corrected)."""

import msgspec

MINUTE_SECONDS = 60.0

PER_MINUTE = 60
"""More than so many PCIe errors that one port corrects in a minute are too many (section 3.7)."""

MINUTES = 10
"""So many minutes in a row make it a warning (section 3.7), and so many below end that (ours)."""


class Pace(msgspec.Struct):
    """The occurrences of one fault. Times are seconds on a clock that does not jump.

    `began` is when the minute that is being counted began, `count` what it has so far. `streak` is how many
    minutes before it were too fast in a row, as a negative number how many were not.
    """

    began: float
    count: int = 0
    streak: int = 0

    def add(self, count: int, at: float) -> bool:
        """Take in so many occurrences at `at`; return whether there are too many, and have been for long."""
        self._pass(at)
        self.count += count
        return self.streak >= MINUTES

    def is_calm(self, at: float) -> bool:
        """Whether there have not been too many for as long, at `at`."""
        self._pass(at)
        return self.streak <= -MINUTES

    def _pass(self, at: float) -> None:
        passed = int((at - self.began) // MINUTE_SECONDS)
        if passed <= 0:
            return
        fast = self.count > PER_MINUTE
        self.streak = max(self.streak, 0) + 1 if fast else min(self.streak, 0) - 1
        if passed > 1:
            self.streak = min(self.streak, 0) - (passed - 1)
        self.began += passed * MINUTE_SECONDS
        self.count = 0
