"""What the tools' arguments and variables may be; anything else is told in one line with exit status 2."""

import argparse
import os
import shlex
import shutil
from pathlib import Path

HIGHEST_PORT = 65_535
SWITCHED_ON = frozenset({"1", "true", "yes", "on"})
SWITCHED_OFF = frozenset({"", "0", "false", "no", "off"})


def count(text: str) -> int:
    """Return a whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def minutes(text: str) -> float:
    """Return a length of time in minutes, 0 included."""
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0.0 <= found < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of minutes, 0 or more")
    return found


def output(text: str) -> Path:
    """Return a file that can be written, whose folder is made: known before hours of measuring, not after."""
    file = Path(text)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        is_new = not file.exists()
        with file.open("a"):
            pass
        if is_new:
            file.unlink()
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{text} cannot be written: {error.strerror}") from None
    return file


def folder(text: str) -> Path:
    """Return a folder that exists."""
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"{text} is not a folder")
    return Path(text)


def command(text: str) -> str:
    """Return a command line whose program can be run."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a command: {error}") from None
    if not words or shutil.which(words[0]) is None:
        raise argparse.ArgumentTypeError(f"{(words or [text])[0]} is not a program that can be run")
    return text


def port(text: str) -> int:
    """Return a TCP port; 0, for any free one, when the text is empty."""
    if text and (not text.isdecimal() or int(text) > HIGHEST_PORT):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: a number up to {HIGHEST_PORT}")
    return int(text or 0)


def switch(text: str) -> bool:
    """Return whether a variable is switched on."""
    if text.lower() not in SWITCHED_ON | SWITCHED_OFF:
        raise argparse.ArgumentTypeError(f"{text!r} is neither 1 nor 0")
    return text.lower() in SWITCHED_ON


def variable(name: str) -> str:
    """Return an environment variable; empty when it is not set."""
    return os.environ.get(name, "").strip()
