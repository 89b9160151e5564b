"""`python -m reconciler [--config FILE]`: runs the reconciler until SIGTERM or SIGINT.

Exit code 0 after SIGTERM or SIGINT, 2 if the settings cannot be used.
"""

import signal
import sys
import threading
from datetime import UTC, datetime

import structlog

from reconciler.build import build
from reconciler.log import log_as_json
from reconciler.settings import ReconcilerSettings, SettingsError, config_argument, load


def main(argv: list[str] | None = None) -> int:
    """Run the reconciler and return its exit code."""
    file = config_argument("reconciler", "Makes Kubernetes match Git and carries out approved repairs.", argv)
    log_as_json()
    try:
        reconciler = build(load(ReconcilerSettings, file), lambda: datetime.now(UTC))
    except SettingsError as error:
        print(error, file=sys.stderr)  # noqa: T201 - for the person who started it
        return 2
    for number in (signal.SIGTERM, signal.SIGINT):
        # In a thread: the signal may interrupt this thread while it holds a lock that `stop` needs.
        signal.signal(number, lambda *_: threading.Thread(target=reconciler.stop).start())
    log = structlog.get_logger()
    log.info("reconciler started")
    reconciler.run()
    log.info("reconciler stopped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
