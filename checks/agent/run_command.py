"""`clusterwright checks run`: look once with passive checks, and `list`: say which there are.

One look has no memory: what lasts, grows or comes back is for the agent to tell. What is shown is what a
first look found, before the agent's patience.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import BinaryIO, NoReturn

import msgspec

from checks import registry
from checks.agent.scheduler import look_once
from checks.check import Blind, Check, Look, Scene, Symptom
from checks.policy import Policy, PolicyError, decode


class WrongUseError(Exception):
    """The request cannot be carried out; the text says what is wrong and how to mend it."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise WrongUseError(f"{message}; see clusterwright checks --help")


class Result(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one check found: `state` is `well`, `sick` or `blind`."""

    check: str
    about: str
    state: str
    reason: str = ""
    symptoms: tuple[Symptom, ...] = ()


def main(argv: list[str], out: BinaryIO) -> int:
    """Run the command; return its exit code: 0 all well, 1 something is wrong or unseen, 2 wrong use."""
    try:
        arguments = _parser().parse_args(argv)
        policy = _policy(arguments.policy)
        chosen = _chosen(arguments.names)
    except WrongUseError as wrong:
        sys.stderr.write(f"clusterwright checks: {wrong}\n")
        return 2
    if arguments.command == "list":
        rows = ((each.name, each.about) for each in chosen)
        out.write("".join(f"{name:<20} {about}\n" for name, about in rows).encode())
        return 0
    results = run(chosen, arguments.root, policy)
    if arguments.format == "json":
        out.write(msgspec.json.encode(results) + b"\n")
    else:
        out.write("".join(_lines(each) for each in results).encode("utf-8", "replace"))
    return int(any(each.state != "well" for each in results))


def run(chosen: tuple[Check, ...], root: Path, policy: Policy) -> list[Result]:
    """Look once with each of the checks."""
    scene = Scene(root=root, now=time.time(), uptime=time.monotonic(), policy=policy)
    wanted = {each.needs for each in chosen}
    doors = [each for each in registry.doors() if each.gives in wanted]
    try:
        fetched = {each.gives: each.fetch(scene) for each in doors}
        scene = msgspec.structs.replace(scene, fetched=fetched)
        return [_result(each, look_once(each, scene)) for each in chosen]
    finally:
        for each in doors:
            each.close()


def _result(check: Check, look: Look) -> Result:
    if isinstance(look, Blind):
        return Result(check=check.name, about=check.about, state="blind", reason=look.reason)
    found = tuple(each for each in look.symptoms if not each.only_holds)
    return Result(check=check.name, about=check.about, state="sick" if found else "well", symptoms=found)


def _lines(result: Result) -> str:
    head = f"{result.state:<6} {result.check:<20} "
    match result.state:
        case "well":
            return f"{head}{result.about}\n"
        case "blind":
            return f"{head}{result.reason}\n"
        case _:
            return "".join(
                f"{head}{each.severity.value}/{each.action.value}  {each.summary}"
                + (f" ({' '.join(each.evidence.split())})" if each.evidence else "")
                + "\n"
                for each in result.symptoms
            )


def _chosen(names: list[str]) -> tuple[Check, ...]:
    unknown = sorted(set(names) - registry.NAMES)
    if unknown:
        raise WrongUseError(f"no such check: {', '.join(unknown)}; `clusterwright checks list` names them")
    # What only a running agent can know, such as the boot before, is not looked at.
    given = {each.gives for each in registry.doors()}
    looking = (each for each in registry.CHECKS if each.needs is None or each.needs in given)
    return tuple(each for each in looking if not names or each.name in names)


def _policy(file: Path | None) -> Policy:
    if file is None:
        return Policy()
    try:
        return decode(file.read_bytes(), registry.NAMES)
    except OSError as error:
        raise WrongUseError(f"--policy {file}: cannot be read ({error.strerror})") from error
    except PolicyError as error:
        raise WrongUseError(f"--policy {file}: {error}") from error


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="clusterwright checks",
        description="Look once with passive checks at this node, or list which there are.",
        epilog="Example: clusterwright checks run ib-state nvme --format json\n"
        "Exit codes: 0 all well, 1 something is wrong or cannot be seen, 2 wrong use",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("command", choices=("run", "list"), help="run: look and print; list: name the checks")
    parser.add_argument("names", nargs="*", metavar="NAME", help="checks to look with (all)")
    parser.add_argument("--root", type=Path, default=Path("/"), help="where the node's file system is (/)")
    parser.add_argument("--policy", type=Path, metavar="FILE", help="a pool's policy, as the agent reads it")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="how to print (table)")
    return parser
