"""`make bench`: how long from a kernel line to a Slack message, and from an approval to the cordon.

Real agents, a real Git repository and the three programs with the timings they ship with, except how often a
plain file is polled for kernel lines. Prints a table, and writes JSON to artifacts/bench.json.
"""

import argparse
import itertools
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from tests.lab.cluster import Cluster
from tests.lab.program import ROOT, end_as_by_keyboard
from tests.lab.wiring import APPROVER, CHANNEL, Timing
from tools.arguments import count, output

NODES = 50
AT_ONCE = 5
"""What the guard lets be repaired at once in a pool of 50: 10 %, the most that the policy may allow."""

TARGET_SECONDS = {"line_to_slack": 60.0, "approval_to_cordon": 60.0}
"""Severe faults are told within 60 s, and an approved repair begins within as much."""

WORDS = {"line_to_slack": "kernel line → Slack message", "approval_to_cordon": "approval → cordon"}
SHIPPED = Timing(
    report_seconds=30.0,
    expected_seconds=30.0,
    git_seconds=2.0,
    poll_seconds=1.0,
    policy={**Timing().policy, "maxInRepairPercent": 10},
)
OUT = ROOT / "artifacts" / "bench.json"


def quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` of all values do not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def measure(cluster: Cluster, nodes: Sequence[str]) -> Iterator[dict[str, float]]:
    """Break the nodes at once, approve each as soon as it is told, and yield what each of them took."""
    known = {each["ts"] for each in cluster.slack.messages(CHANNEL)}
    broken: dict[str, float] = {}
    for node in nodes:
        broken[node] = time.monotonic()
        cluster.break_gpu(node)
    took: dict[str, dict[str, float]] = {node: {} for node in nodes}
    approved: dict[str, float] = {}
    until = time.monotonic() + 180
    while not all(len(each) == len(TARGET_SECONDS) for each in took.values()):
        if time.monotonic() > until:
            raise RuntimeError(f"not all of {', '.join(nodes)} were told and cordoned; see {cluster.workdir}")
        for node in nodes:
            _look(cluster, node, known, (broken, approved, took[node]))
        time.sleep(0.005)
    yield from took.values()


def _look(cluster: Cluster, node: str, known: set[str], what: tuple[dict[str, float], ...]) -> None:
    broken, approved, took = what
    if "line_to_slack" not in took:
        message = _new(cluster, node, known, lambda _: True)
        if message is None:
            return
        took["line_to_slack"] = time.monotonic() - broken[node]
    if node not in approved:
        message = _new(cluster, node, known, lambda each: "approve" in cluster.buttons(each))
        if message is not None:
            approved[node] = time.monotonic()
            cluster.slack.click(CHANNEL, message["ts"], "approve", APPROVER)
    elif "approval_to_cordon" not in took and cluster.kubernetes_node(node)["spec"].get("unschedulable"):
        took["approval_to_cordon"] = time.monotonic() - approved[node]


def _new(
    cluster: Cluster, node: str, known: set[str], fits: Callable[[dict[str, Any]], bool]
) -> dict[str, Any] | None:
    for each in cluster.slack.messages(CHANNEL):
        if each["ts"] not in known and node in each["text"] and fits(each):
            return each
    return None


def main() -> int:
    """Run the benchmark, print what it measured and return the exit status."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--faults", type=count, default=50, help="how many faults (default 50)")
    parser.add_argument("--out", type=output, default=str(OUT), help="write the JSON document here")
    arguments = parser.parse_args()
    faults, out = arguments.faults, arguments.out
    end_as_by_keyboard()
    console = Console()
    try:
        result = _result(_samples(console, faults))
    except (AssertionError, RuntimeError, OSError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    out.write_text(json.dumps(result, indent=2) + "\n")
    console.print(_table(result))
    console.print(f"written to {out}")
    return 0


def _samples(console: Console, faults: int) -> list[dict[str, float]]:
    samples: list[dict[str, float]] = []
    with (
        tempfile.TemporaryDirectory(prefix="clusterwright-bench-", ignore_cleanup_errors=True) as folder,
        Cluster(Path(folder), nodes=NODES, timing=SHIPPED) as cluster,
    ):
        order = itertools.cycle(cluster.nodes)
        waves = [list(itertools.islice(order, AT_ONCE)) for _ in range(math.ceil(faults / AT_ONCE))]
        for wave in track(waves, f"{faults} faults, {AT_ONCE} at once", console=console):
            closed = len([name for name in cluster.records() if name.endswith("/closed.yaml")])
            samples += measure(cluster, wave)
            cluster.wait(
                "the end of the wave",
                lambda closed=closed, wave=wave: _closed(cluster) >= closed + len(wave),
                180,
            )
    return samples


def _closed(cluster: Cluster) -> int:
    return sum(name.endswith("/closed.yaml") for name in cluster.records())


def _result(samples: Sequence[dict[str, float]]) -> dict[str, Any]:
    figures = {}
    for name, target in TARGET_SECONDS.items():
        values = [each[name] for each in samples]
        p50, p99 = quantile(values, 0.5), quantile(values, 0.99)
        figures[name] = {
            "p50_seconds": round(p50, 3),
            "p99_seconds": round(p99, 3),
            "target_seconds": target,
            "p99_of_target": round(p99 / target, 3),
        }
    return {"faults": len(samples), "nodes": NODES, "at_once": AT_ONCE, "figures": figures}


def _table(result: dict[str, Any]) -> Table:
    table = Table(title=f"{result['faults']} faults on {NODES} nodes, {AT_ONCE} at once")
    for column in ("from → to", "p50 s", "p99 s", "p99 : target"):
        table.add_column(column, justify="left" if column.startswith("from") else "right")
    for name, figure in result["figures"].items():
        table.add_row(
            WORDS[name],
            f"{figure['p50_seconds']:.2f}",
            f"{figure['p99_seconds']:.2f}",
            f"{figure['p99_of_target']:.3f}",
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
