"""Runs scontrol, Slurm's own client, to ask the controller for its nodes."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from bot.loops.slurm import SlurmUnavailableError
from checks.slurm.node import COMMAND


def scontrol_reader(program: str, conf_file: Path | None, timeout_seconds: float) -> Callable[[], str]:
    """Return a function that returns the rows of all nodes, or raises SlurmUnavailableError with Slurm's message.

    `conf_file` is the slurm.conf to use; None leaves it to the environment.
    """
    environment = dict(os.environ)
    if conf_file is not None:
        environment["SLURM_CONF"] = str(conf_file)

    def ask() -> str:
        try:
            done = subprocess.run(
                (program, *COMMAND[1:]),
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=timeout_seconds,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise SlurmUnavailableError(f"{program}: no answer in {timeout_seconds:g} s") from error
        except OSError as error:
            raise SlurmUnavailableError(f"{program} cannot be run: {error.strerror}") from error
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise SlurmUnavailableError(f"{program}: {said[0] if said else f'exit code {done.returncode}'}")
        return done.stdout.decode("utf-8", "replace")

    return ask
