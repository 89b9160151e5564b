"""State file: the agent's state as one file, replaced in one step so that a kill never leaves half of it."""

import logging
from pathlib import Path

import msgspec

from checks.debounce import CheckMemory
from checks.finding import Finding
from checks.kernel.faults.kernel_faults import SavedFaults

STATE_FILE = "agent-state.json"
"""Name of the saved state in the state directory."""

log = logging.getLogger("checks.agent.state_file")


class SavedState(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is saved. `cursor` is the sequence of the last kernel record read, None before the first.

    `pool` outlives a boot, and so does what `kernel` remembers of each GPU. `previous` is the boot before
    this one, empty when unknown. No report has a number above `sequence`.
    """

    boot_id: str
    previous: str = ""
    pool: str = ""
    checks: dict[str, CheckMemory] = {}
    cursor: int | None = None
    sequence: int = 0
    branch: int | None = None
    kernel: SavedFaults = SavedFaults()
    blind_spots: tuple[Finding, ...] = ()


class StateFile:
    """The file in a directory that survives the agent."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / STATE_FILE
        self._failed = False

    def load(self) -> SavedState | None:
        """Return what was saved, None when nothing usable is there."""
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=SavedState)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            log.warning("saved state cannot be read, starting without it: %s: %s", self._file, error)
            return None

    def save(self, saved: SavedState) -> bool:
        """Write the state and say whether it worked; a failure is logged once."""
        new = self._file.with_suffix(".new")
        try:
            new.write_bytes(msgspec.json.encode(saved))
            new.replace(self._file)
        except OSError as error:
            if not self._failed:
                log.warning("state cannot be saved, a restart would lose it: %s: %s", self._file, error)
            self._failed = True
        else:
            self._failed = False
        return not self._failed


def for_boot(saved: SavedState | None, boot_id: str) -> SavedState:
    """Return the part of what was saved that still holds in this boot."""
    if saved is None:
        return SavedState(boot_id=boot_id)
    if saved.boot_id == boot_id:
        return saved
    return SavedState(
        boot_id=boot_id, previous=saved.boot_id, pool=saved.pool, kernel=saved.kernel.of_next_boot()
    )
