"""Policy file: the file on the node that holds what the cluster's repository says about its checks.

The agent looks at it on every tick and reads it again when it changed, so a new policy needs no restart. A
file that cannot be used leaves the last valid policy in force, and the reason is reported.
"""

import logging
import re
import threading
from pathlib import Path

from checks.policy import Policy, PolicyError, decode

log = logging.getLogger("checks.agent.policy_file")

_POOL = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\Z")


class PolicyFile:
    """The policy in force. `directory` holds one `<pool>.json` for each pool; `checks` are the
    names of all checks.

    Safe to refresh from several threads.
    """

    def __init__(self, directory: Path, checks: frozenset[str]) -> None:
        self._directory = directory
        self._checks = checks
        self._lock = threading.Lock()
        self._stamp: tuple[str, int, int, int] | None = None
        self.current = Policy()
        self.trouble = ""
        """Why the file cannot be used, with its name and key; empty when it can or there is none."""

    def refresh(self, pool: str) -> None:
        """Read the pool's file if it changed. No pool and no file mean the defaults."""
        with self._lock:
            self._refresh(pool)

    def _refresh(self, pool: str) -> None:
        file = self._directory / f"{pool}.json"
        if not _POOL.match(pool):
            self._use(Policy(), None)
            return
        try:
            status = file.stat()
            stamp = (pool, status.st_ino, status.st_mtime_ns, status.st_size)
            if stamp == self._stamp:
                return
            self._use(decode(file.read_bytes(), self._checks), stamp)
            log.info("policy read: %s", file)
        except FileNotFoundError:
            self._use(Policy(), None)
        except PolicyError as error:
            self._stamp = stamp
            self._complain(f"{file.name}: {error}")
        except OSError as error:
            self._complain(f"{file.name}: cannot be read ({error.strerror})")

    def _use(self, policy: Policy, stamp: tuple[str, int, int, int] | None) -> None:
        self.current, self._stamp, self.trouble = policy, stamp, ""

    def _complain(self, trouble: str) -> None:
        if trouble != self.trouble:
            log.warning("policy cannot be used, the last valid one stays in force: %s", trouble)
        self.trouble = trouble
