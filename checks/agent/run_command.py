"""`clusterwright checks run`: run passive checks once on this node; `list`: name them.

A single run has no memory: only the agent can tell what lasts, grows or comes back. The output shows what one
observation found, before any debouncing.
"""

import os
import sys
import time
from pathlib import Path
from typing import BinaryIO

import msgspec

from checks.check import Check, CheckContext, CheckResult, NodeFacts, Symptom, Unobservable, failed, run_check
from checks.command_line import CommandParser, UsageError
from checks.gpu.nvml_process import DEADLINE_SECONDS
from checks.gpu.sampler import GpuSampler
from checks.policy import Policy, PolicyError, decode
from checks.registry import CHECKS, NAMES


class RunResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
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
    except UsageError as wrong:
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


def run(chosen: tuple[Check, ...], root: Path, policy: Policy) -> list[RunResult]:
    """Run each of the checks once."""
    context = CheckContext(root=root, now=time.time(), uptime=time.monotonic(), policy=policy)
    if any(each.needs_gpus for each in chosen):
        context = msgspec.structs.replace(context, facts=_sample_gpus(context))
    return [_result(each, run_check(each, context)) for each in chosen]


def _sample_gpus(context: CheckContext) -> NodeFacts:
    sampler = GpuSampler(os.environ, DEADLINE_SECONDS)
    try:
        return NodeFacts(gpus=sampler.sample(context))
    except Exception as error:  # noqa: BLE001 - without a sample the checks that need it are blind
        return NodeFacts(gpus=failed(error))
    finally:
        sampler.close()


def _result(check: Check, result: CheckResult) -> RunResult:
    if isinstance(result, Unobservable):
        return RunResult(check=check.name, about=check.about, state="blind", reason=result.reason)
    found = tuple(each for each in result.symptoms if not each.only_holds)
    return RunResult(check=check.name, about=check.about, state="sick" if found else "well", symptoms=found)


def _lines(result: RunResult) -> str:
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
    unknown = sorted(set(names) - NAMES)
    if unknown:
        raise UsageError(f"no such check: {', '.join(unknown)}; `clusterwright checks list` names them")
    single_run = (each for each in CHECKS if not each.needs_agent)
    return tuple(each for each in single_run if not names or each.name in names)


def _policy(file: Path | None) -> Policy:
    if file is None:
        return Policy()
    try:
        return decode(file.read_bytes(), NAMES)
    except OSError as error:
        raise UsageError(f"--policy {file}: cannot be read ({error.strerror})") from error
    except PolicyError as error:
        raise UsageError(f"--policy {file}: {error}") from error


def _parser() -> CommandParser:
    parser = CommandParser(
        "clusterwright checks",
        description="Run passive checks once on this node, or list them.",
        epilog="Example: clusterwright checks run ib-state nvme --format json\n"
        "Exit codes: 0 all well, 1 something is wrong or cannot be seen, 2 wrong use",
    )
    parser.add_argument(
        "command", choices=("run", "list"), help="run: check and print; list: name the checks"
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="checks to run (all)")
    parser.add_argument("--root", type=Path, default=Path("/"), help="where the node's file system is (/)")
    parser.add_argument("--policy", type=Path, metavar="FILE", help="a pool's policy, as the agent reads it")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="how to print (table)")
    return parser
