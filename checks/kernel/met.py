"""Met: one fault at one place, to be remembered for longer than the fault and the boot."""

import msgspec

from checks.kernel.identity import Board


class When(msgspec.Struct, frozen=True):
    """A moment: seconds since boot of which boot, and Unix seconds by a clock that may have been wrong."""

    boot: str
    uptime: float
    wall: float


class Met(msgspec.Struct, frozen=True, omit_defaults=True):
    """One fault: on which GPU, at which part of it, when, and under which process if that matters."""

    code: str
    board: Board
    place: str
    when: When
    victim: str = ""

    def is_at(self, other: "Met") -> bool:
        """Whether both are the same fault of the same part."""
        return (self.code, self.place) == (other.code, other.place) and self.board.is_same(other.board)


def apart(one: When, other: When) -> float:
    """Return the seconds between two moments.

    Within a boot by the clock that does not jump; between boots by the other one, either way round: what was
    stamped in the future is far away like anything else, so it does not count for ever.
    """
    if one.boot == other.boot:
        return abs(one.uptime - other.uptime)
    return abs(one.wall - other.wall)
