"""The `clusterwright` command. A command imports what it needs when it runs: the agent must stay small."""

import sys
import time
from pathlib import Path
from typing import Annotated, Literal

import typer

app = typer.Typer(
    name="clusterwright",
    help="Keeps GPU clusters healthy, the GitOps way.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Format = Literal["json", "table"]
Config = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Settings in TOML.")]

_EXIT_CODES = "\n\nExit codes: 0 done, 2 wrong use or settings."


def main() -> None:
    """Run the command line; an expected error is one line on stderr and exit code 2."""
    app()


@app.command(
    epilog="Example: journalctl -k -o json | clusterwright classify --format table" + _EXIT_CODES,
)
def classify(  # noqa: PLR0913 - Typer makes an option of every parameter
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="Kernel log; stdin without it.")
    ] = None,
    *,
    driver: Annotated[
        str | None, typer.Option(metavar="VERSION", help="NVIDIA driver version, such as 580.105.08.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Skip older lines: 30m, 2h, 7d, or 2026-11-30T08:00:00."),
    ] = None,
    output: Annotated[Format, typer.Option("--format", help="How to print.")] = "json",
    explain: Annotated[
        str | None, typer.Option(metavar="CODE", help="Say what a code means and what we do, then stop.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Print known lines that are no faults, too.")
    ] = False,
) -> None:
    """Say what the lines of a kernel log mean: dmesg, syslog, the journal or raw kmsg."""
    from checks.kernel import command  # noqa: PLC0415 - each command loads only its own program

    request = command.Request(file, driver, since, output, explain, everything)
    _finish(command.run(request, sys.stdout.buffer, time.time()))


@app.command(epilog="Example: clusterwright agent --config /etc/clusterwright/agent.toml" + _EXIT_CODES)
def agent(config: Config = None) -> None:
    """Run the node agent: report what is wrong with this node to the bot, until stopped."""
    from checks.__main__ import main as run  # noqa: PLC0415 - as above

    _finish(run(_arguments(config)))


@app.command(epilog="Example: clusterwright bot --config /etc/clusterwright/clusterwright.toml" + _EXIT_CODES)
def bot(config: Config = None) -> None:
    """Run the bot: incidents, people, decisions, until stopped."""
    from bot.__main__ import main as run  # noqa: PLC0415 - as above

    _finish(run(_arguments(config)))


@app.command(
    epilog="Example: clusterwright reconciler --config /etc/clusterwright/clusterwright.toml" + _EXIT_CODES
)
def reconciler(config: Config = None) -> None:
    """Run the reconciler: make Kubernetes match Git and carry out repairs, until stopped."""
    from reconciler.__main__ import main as run  # noqa: PLC0415 - as above

    _finish(run(_arguments(config)))


def _arguments(config: Path | None) -> list[str]:
    return [] if config is None else ["--config", str(config)]


def _finish(code: int) -> None:
    if code:
        raise typer.Exit(code)


if __name__ == "__main__":
    main()
