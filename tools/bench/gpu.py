"""What asking a real GPU costs: each NVML call, a whole look of the agent's child, the agent on the node.

    python -m tools.bench.gpu [--rounds 200] [--load COMMAND] [--agent-minutes 3] [--stand-in] [--out F]

Needs nothing but a node with an NVIDIA driver; says so where there is none. With --load, everything is
measured again while COMMAND runs. Nothing is changed on the GPU. With --stand-in a machine without one asks
the library of the tests instead: what is measured then is what asking costs us, without the driver.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from checks.gpu.gpu_users import COMPUTE, DRAWING
from checks.gpu.nvml_process import NoAnswer, NvmlChild
from checks.gpu.pci import PciBus, text
from checks.gpu_sample import NvmlLibrary, NvmlRefused, OpenLibrary, ReadGpu, describe
from tests.lab.noderoot import gpu_address
from tests.lab.nvml import library
from tests.lab.nvml.library import Machine
from tests.lab.program import end_as_by_keyboard
from tools.arguments import command, count, folder, minutes, output
from tools.bench.cost import cost
from tools.bench.node import GPUS
from tools.bench.process import Usage, together_mb

BATCH_ROUNDS = 200
LOAD_SECONDS = 10.0
"""Time that a load gets to warm up."""


def main(argv: list[str]) -> int:
    """Measure and print; 0 also where there is no GPU."""
    arguments = _arguments(argv)
    end_as_by_keyboard()
    with tempfile.TemporaryDirectory() as directory:
        found = _gpus(arguments.root)
        if isinstance(found, str) and arguments.stand_in:
            print(f"bench-gpu: no GPU here ({found}): the stand-in library, without a driver's cost")
            os.environ.update(_stand_in(Path(directory)))
            found = _gpus(arguments.root)
        if isinstance(found, str):
            print(f"bench-gpu: no GPU to measure on this machine: {found}")
            return 0
        document = _document(*found, arguments)
    if arguments.out:
        arguments.out.write_text(json.dumps(document, indent=2) + "\n")
    print(_table(document))
    return 0


def _stand_in(directory: Path) -> dict[str, str]:
    """Return the environment in which NVML is the library of the tests, with eight GPUs."""
    machine = Machine(directory / "state").add(*map(gpu_address, range(GPUS))).write()
    return machine.environment(library.build(directory / "lib"))


def _document(found: NvmlLibrary, gpus: list[str], arguments: argparse.Namespace) -> dict[str, Any]:
    document: dict[str, Any] = {"driver": found.driver, "nvml": found.nvml, "gpus": gpus}
    document["idle"] = _measure(gpus, arguments.rounds, arguments.root)
    if arguments.load:
        with _load(arguments.load):
            document["under load"] = _measure(gpus, arguments.rounds, arguments.root)
    if arguments.agent_minutes:
        document["agent"] = _agent(arguments.root, arguments.agent_minutes)
    return document


def _gpus(root: Path) -> tuple[NvmlLibrary, list[str]] | str:
    """Return the library and the addresses of the GPUs, or why there is nothing to measure."""
    child = NvmlChild(os.environ)
    try:
        answer = child.ask(OpenLibrary())
    finally:
        child.close()
    match answer:
        case NvmlLibrary(gpus=listed) if listed:
            on_bus = {each.gpu for each in PciBus().read(root)[0] or () if each.is_ours}
            return answer, [gpu for gpu in listed if not on_bus or gpu in on_bus]
        case NvmlRefused(call, code):
            return f"{call}: {describe(code)}"
        case NoAnswer(reason):
            return reason
        case _:
            return "NVML lists none"


def _measure(gpus: list[str], rounds: int, root: Path) -> dict[str, Any]:
    child = NvmlChild(os.environ)
    try:
        began = time.perf_counter()
        child.ask(OpenLibrary())
        first = [_ask(child, ReadGpu(gpu, board=True)) for gpu in gpus]
        opened = (time.perf_counter() - began) * 1000
        assert child.pid is not None
        usage = Usage(child.pid)
        costs = [
            cost(
                "round trip, board",
                [_ask(child, ReadGpu(gpu, board=True)) for _ in range(rounds // 10) for gpu in gpus],
            ),
            cost("round trip, minute", [_ask(child, ReadGpu(gpu)) for _ in range(rounds) for gpu in gpus]),
        ]
        cpu = usage.cpu_seconds() / (rounds + rounds // 10) / len(gpus) * 1000
        handles = {each: text(root / each) for each in (COMPUTE, DRAWING)}
        memory = {"rss_mb": usage.rss_mb(), "peak_mb": usage.peak_mb(), "private_mb": usage.anonymous_mb()}
    finally:
        child.close()
    argv = [sys.executable, "-m", "tools.bench.gpu_calls", gpus[0], str(rounds)]
    calls = json.loads(subprocess.run(argv, check=True, capture_output=True, timeout=600).stdout)
    return {
        "open and first look, ms": opened,
        "first look at each GPU, ms": first,
        "child CPU a look, ms": cpu,
        "child memory": memory,
        "open handles": handles,
        "round trips": [each._asdict() for each in costs],
        "calls": calls,
    }


def _ask(child: NvmlChild, request: ReadGpu) -> float:
    began = time.perf_counter()
    answer = child.ask(request)
    assert not isinstance(answer, NoAnswer), answer
    return (time.perf_counter() - began) * 1000


@contextmanager
def _load(line: str) -> Iterator[None]:
    with subprocess.Popen(shlex.split(line), stdout=subprocess.DEVNULL) as process:
        try:
            time.sleep(LOAD_SECONDS)
            if process.poll() is not None:
                sys.exit(f"bench-gpu: the load ended with status {process.returncode}: {line}")
            yield
        finally:
            process.terminate()


def _agent(root: Path, length: float) -> dict[str, Any]:
    """Run the whole agent on the node for a while and say what it used."""
    with tempfile.TemporaryDirectory() as directory:
        token = Path(directory, "token")
        token.write_text("example\n")
        environment = {
            **os.environ,
            "CLUSTERWRIGHT_AGENT__NODE": "gpu-01",
            "CLUSTERWRIGHT_AGENT__BOT_URL": "http://127.0.0.1:9",
            "CLUSTERWRIGHT_AGENT__TOKEN_FILE": str(token),
            "CLUSTERWRIGHT_AGENT__STATE_DIR": directory,
            "CLUSTERWRIGHT_AGENT__ROOT": str(root),
        }
        with subprocess.Popen([sys.executable, "-m", "checks"], env=environment) as process:
            try:
                time.sleep(LOAD_SECONDS)
                usage = Usage(process.pid)
                time.sleep(length * 60)
                children = usage.children()
                return {
                    "minutes": length,
                    "CPU, % of a core": usage.cpu_seconds() / (length * 60) * 100,
                    "parent RSS, MB": usage.rss_mb(),
                    "child RSS, MB": [each.rss_mb() for each in children],
                    "together, MB": together_mb([usage, *children]),
                }
            finally:
                process.terminate()


def _table(document: dict[str, Any]) -> str:
    lines = [f"driver {document['driver']}, NVML {document['nvml']}, {len(document['gpus'])} GPUs"]
    for state in ("idle", "under load"):
        if state not in document:
            continue
        part = document[state]
        lines += ["", f"{state:<40}{'times':>8}{'median ms':>12}{'p99 ms':>12}{'longest ms':>12}"]
        for each in (*part["round trips"], *part["calls"]):
            numbers = (each["median"], each["p99"], each["longest"])
            lines.append(f"{each['name']:<40}{each['count']:>8}" + "".join(f"{n:>12.3f}" for n in numbers))
        memory, cpu = part["child memory"]["rss_mb"], part["child CPU a look, ms"]
        lines.append(f"child: {memory:.1f} MB RSS, {cpu:.2f} ms CPU a look")
        lines.append(f"open and first look: {part['open and first look, ms']:.0f} ms")
        handles = part["open handles"]
        lines += [
            f"{each} with our NVML open: {count or 'cannot be read'}" for each, count in handles.items()
        ]
    lines += [f"agent, {name}: {value}" for name, value in document.get("agent", {}).items()]
    return "\n".join(lines)


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-gpu", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=count, default=BATCH_ROUNDS)
    parser.add_argument("--load", type=command, help="a command that keeps the GPU busy until it is ended")
    parser.add_argument("--agent-minutes", type=minutes, default=3.0, help="0: leave the agent out")
    parser.add_argument("--root", type=folder, default="/")
    parser.add_argument("--stand-in", action="store_true", help="without a GPU, ask the tests' library")
    parser.add_argument("--out", type=output, help="write a JSON document here too")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
