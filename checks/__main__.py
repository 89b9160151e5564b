"""`python -m checks [--config FILE]`: run the node agent."""

import logging
import os
import sys
from pathlib import Path

if __name__ == "__main__":
    # msgspec imports typing_extensions wherever it is installed: 5 MB on every node, for nothing.
    sys.modules.setdefault("typing_extensions", None)  # type: ignore[arg-type]

from checks.agent import agent
from checks.agent.settings import AgentSettingsError, load

USAGE = """usage: clusterwright agent [--config FILE], or python -m checks [--config FILE]

Run the node agent: report what is wrong with this node to the bot, until stopped.
Settings come from FILE (else from the file that CLUSTERWRIGHT_CONFIG names) and the environment.

Example: clusterwright agent --config /etc/clusterwright/agent.toml
Exit codes: 0 stopped, 2 wrong use or settings
"""


def main(argv: list[str] | None = None) -> int:
    """Run the agent until it is stopped; return the exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments in (["-h"], ["--help"]):
        sys.stdout.write(USAGE)
        return 0
    try:
        settings = load(_config(arguments), os.environ)
        logging.basicConfig(
            level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr
        )
        agent.run(settings)
    except AgentSettingsError as error:
        sys.stderr.write(f"clusterwright agent: {error}\n")
        return 2
    except OSError as error:
        sys.stderr.write(f"clusterwright agent: {error}; is state_dir writable?\n")
        return 2
    return 0


def _config(arguments: list[str]) -> Path | None:
    match arguments:
        case []:
            return None
        case ["--config", file]:
            return Path(file)
        case [only] if only.startswith("--config="):
            return Path(only.removeprefix("--config="))
        case _:
            raise AgentSettingsError(
                f"unknown arguments {' '.join(arguments)!r}; only --config FILE is known"
            )


if __name__ == "__main__":
    sys.exit(main())
