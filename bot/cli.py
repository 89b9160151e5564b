"""The `clusterwright` command. A command imports what it needs when it runs: the agent must stay small.

Typer loads pydantic, 20 MB, as soon as it parses anything. The commands that run on nodes are therefore
started before it; it knows them for the list in its help.
"""

import json
import os
import sys
import time
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

WRONG_USE = 2
"""Exit code of a command line or settings that cannot be used."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells use it."""


class Form(StrEnum):
    """How a command prints."""

    TABLE = "table"
    JSON = "json"


app = typer.Typer(
    name="clusterwright",
    help="Keeps GPU clusters healthy, the GitOps way.",
    add_completion=False,
    rich_markup_mode=None,
)

_PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True}
_EXIT_CODES = "Exit codes: 0 stopped, 2 wrong use or settings."


def main() -> None:
    """Run the command line; an expected error is one line on stderr and exit code 2."""
    try:
        code = _run(sys.argv[1:] or ["--help"])
    except typer.TyperException as error:
        text = error.format_message().splitlines()[0].rstrip(".")
        sys.stderr.write(f"clusterwright: {text}; see clusterwright --help\n")
        code = WRONG_USE
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    match arguments:
        case ["classify", *rest]:
            return _classify(rest)
        case ["agent", *rest]:
            return _agent(rest)
        case ["checks", *rest]:
            return _checks(rest)
        case _:
            return int(app(arguments, standalone_mode=False) or 0)


def _classify(arguments: list[str]) -> int:
    from checks.kernel.classify import main as run  # noqa: PLC0415 - each command loads only its own program

    return run(arguments, sys.stdout.buffer, time.time())


def _agent(arguments: list[str]) -> int:
    # Another program from here on: what this one has imported would stay in memory on every node.
    os.execv(sys.executable, [sys.executable, "-m", "checks", *arguments])  # noqa: S606 - argv, no shell


def _checks(arguments: list[str]) -> int:
    from checks.agent.run_command import main as run  # noqa: PLC0415 - as above

    return run(arguments, sys.stdout.buffer)


@app.command(context_settings=_PASS_ON, add_help_option=False)
def classify(context: typer.Context) -> None:
    """Say what the lines of a kernel log mean: dmesg, syslog, the journal or raw kmsg."""
    raise typer.Exit(_classify(context.args))


@app.command(context_settings=_PASS_ON, add_help_option=False)
def agent(context: typer.Context) -> None:
    """Run the node agent: report what is wrong with this node to the bot, until stopped."""
    raise typer.Exit(_agent(context.args))


@app.command(context_settings=_PASS_ON, add_help_option=False)
def checks(context: typer.Context) -> None:
    """Run the passive checks once on this node and print what they find; `checks list` names them."""
    raise typer.Exit(_checks(context.args))


@app.command(
    epilog="Example: clusterwright lint . Exit codes: 0 nothing is wrong, 1 something is, 2 wrong use."
)
def lint(
    directory: Annotated[Path, typer.Argument(metavar="DIR", exists=True, file_okay=False)],
    output: Annotated[Form, typer.Option("--format", help="How to print.")] = Form.TABLE,
) -> None:
    """Validate a cluster repository: every error with its file and line."""
    from reconciler.config import lint as linter  # noqa: PLC0415 - as above

    faults = linter.lint(directory)
    if output is Form.JSON:
        sys.stdout.write(f"{json.dumps([asdict(each) for each in faults])}\n")
    else:
        sys.stdout.writelines(f"{each}\n" for each in faults)
    raise typer.Exit(1 if faults else 0)


@app.command(
    context_settings=_PASS_ON,
    epilog=f"Example: clusterwright bot --config /etc/clusterwright/clusterwright.toml. {_EXIT_CODES}",
)
def bot(context: typer.Context) -> None:
    """Run the bot: incidents, people, decisions, until stopped. --config FILE names the settings (TOML)."""
    arguments = _settings_only(context.args)
    from bot.__main__ import main as run  # noqa: PLC0415 - as above

    raise typer.Exit(run(arguments))


@app.command(
    context_settings=_PASS_ON,
    epilog=f"Example: clusterwright reconciler --config /etc/clusterwright/clusterwright.toml. {_EXIT_CODES}",
)
def reconciler(context: typer.Context) -> None:
    """Run the reconciler: make Kubernetes match Git, carry out repairs. --config FILE names the settings."""
    arguments = _settings_only(context.args)
    from reconciler.__main__ import main as run  # noqa: PLC0415 - as above

    raise typer.Exit(run(arguments))


def _settings_only(arguments: list[str]) -> list[str]:
    match arguments:
        case [] | ["--config", _]:
            return arguments
        case [only] if only.startswith("--config="):
            return arguments
        case _:
            raise typer.BadParameter(f"{' '.join(arguments)!r}: only --config FILE is known")


if __name__ == "__main__":
    main()
