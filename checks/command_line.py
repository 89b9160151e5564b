"""Command line: an argument parser that raises, so that every wrong use ends as one line on stderr."""

import argparse
from typing import NoReturn


class UsageError(Exception):
    """The request cannot be carried out; the text says what is wrong and how to correct it."""


class CommandParser(argparse.ArgumentParser):
    """Raises UsageError for arguments that are wrong, and for abbreviated options."""

    def __init__(self, command: str, description: str, epilog: str) -> None:
        super().__init__(
            prog=command,
            description=description,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def error(self, message: str) -> NoReturn:
        """Raise UsageError instead of ending the program."""
        raise UsageError(f"{message}; see {self.prog} --help")
