"""`make demo`: a 16-node GPU cluster on this machine, one broken GPU, one approval, one repair.

With AUTO=1 the lab's approver presses the button, and the demo prints the commits that tell the story. PORT
fixes the Slack page's port. Exit status 0 when the node came back, 1 when it did not, 2 when the demo cannot
run as it was asked to.
"""

import argparse
import select
import shutil
import sys
import tempfile
import termios
import time
import tty
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.table import Table

from tests.lab.cluster import REBOOT_REQUIRED, Cluster
from tests.lab.pods import run_job
from tests.lab.program import end_as_by_keyboard
from tests.lab.web import bound
from tests.lab.wiring import APPROVER, CHANNEL, PEOPLE
from tools.arguments import port, switch, variable

NODES = 16
GPUS = 8
SICK = "gpu-07"
SELF_BREAK_SECONDS = 25.0
"""How long the demo waits for a key before it breaks a GPU by itself."""
STORY_SECONDS = 80.0
"""AUTO=1 has to end within 90 s of its start; a story longer than this has failed."""

PATIENCE_SECONDS = 3600.0
"""How long the demo waits for a person."""

STEPS = {
    "lock": "took the node's lock",
    "revalidate": "checked that fault, boot and plan are still what was approved",
    "pre-state": "noted power, cordon and taints before touching anything",
    "cordon": "cordoned the node",
    "drain": "evicted its pods",
    "recheck": "checked everything once more, right before the reset",
    "reset": "reset the machine through its BMC, once",
    "return": "saw it come back: new boot id, Ready, all GPUs",
    "verify": "verified the new boot: no critical finding",
    "uncordon": "gave the node back to its users",
}
"""The journal's steps, told to a person."""


class StoryFailedError(Exception):
    """The demo did not end as it has to."""


class Story:
    """Tells what happens to one node, from what Slack, Git and Kubernetes show."""

    def __init__(self, cluster: Cluster, console: Console) -> None:
        self._cluster, self._console = cluster, console
        self._began = time.monotonic()

    def say(self, text: str) -> None:
        """Print a line with the seconds since the fault."""
        seconds = time.monotonic() - self._began
        self._console.print(f"[dim]{seconds:5.1f} s[/]  {text}", no_wrap=True, overflow="ellipsis")

    def run(self, node: str, *, auto: bool) -> None:
        """Break a GPU of `node` and tell the story to its end; raises StoryFailedError."""
        self._console.rule(f"[bold]A GPU of {node} breaks")
        self._began = time.monotonic()
        self._cluster.break_gpu(node)
        self.say(f"[red]kernel log of {node}[/]  {REBOOT_REQUIRED.format(gpu='0000:1b:00')}")
        message = self._until("a Slack thread", lambda: self._cluster.thread(node), 20)
        self.say(f"[magenta]Slack[/]  {_first_line(message)}")
        waiting = STORY_SECONDS if auto else PATIENCE_SECONDS
        if auto:
            self._until("an answer to the click", lambda: self._press(message), 20)
            self.say(f"[magenta]Slack[/]  {PEOPLE[APPROVER][0]} pressed Approve and confirmed")
        else:
            self.say(f"[bold yellow]your turn[/]  open {self._cluster.slack.page_url} and press Approve")
        if self._until("a decision in Git", lambda: self._decision(node), waiting) == "rejected-1.yaml":
            self.say(
                "[green]Git[/]  the refusal is a commit on branch incidents; nothing is done to the node"
            )
            return
        self.say("[green]Git[/]  the approval is a commit on branch incidents")
        self._tell_repair(node)
        self._until("the end in Git", lambda: self._cluster.record(node, "closed.yaml"), 30)
        self.say("[green]Git[/]  outcome and end of the incident are committed")
        if self._cluster.bmc.resets(node) != 1:
            raise StoryFailedError(f"{node} was reset {self._cluster.bmc.resets(node)} times, not once")
        self._console.print(
            f"[bold green]{node} is back in service[/], after one reset that a person approved."
        )

    def _press(self, message: Mapping[str, Any]) -> bool:
        return self._cluster.slack.click(CHANNEL, message["ts"], "approve", APPROVER).acked

    def _decision(self, node: str) -> str | None:
        names = ("repair-1.yaml", "rejected-1.yaml")
        return next((each for each in names if self._cluster.record(node, each)), None)

    def _tell_repair(self, node: str) -> None:
        told: set[str] = set()
        until = time.monotonic() + STORY_SECONDS
        while time.monotonic() < until:
            status = (self._cluster.repair(node) or {}).get("status") or {}
            for step in status.get("steps") or ():
                if step["state"] == "done" and step["name"] in STEPS.keys() - told:
                    told.add(step["name"])
                    self.say(f"[cyan]reconciler[/]  {STEPS[step['name']]}")
            if status.get("phase") == "Succeeded":
                return
            if status.get("phase") in ("Failed", "Held", "Lapsed", "Cancelled"):
                raise StoryFailedError(f"the repair ended as {status['phase']}: {status.get('message')}")
            time.sleep(0.1)
        raise StoryFailedError("the repair did not end in time")

    def _until(self, what: str, found: Any, seconds: float) -> Any:
        try:
            return self._cluster.wait(what, found, seconds)
        except AssertionError as error:
            raise StoryFailedError(str(error)) from None

    def show_log(self) -> None:
        """Print the commits of the incident branch, oldest first: the incident log."""
        self._console.rule("[bold]git log incidents")
        form = "--format=%C(yellow)%h%C(reset) %s%n        %C(dim)%an, committed by %cn%C(reset)"
        sys.stdout.flush()
        print(
            self._cluster.git(
                "log",
                "--reverse",
                "--color=always" if self._console.is_terminal else "--color=never",
                form,
                "incidents",
            ),
            flush=True,
        )


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the variables ask for, and where the demo keeps its files. `port` 0 is any free one."""

    auto: bool
    port: int
    folder: Path


def main() -> int:
    """Run the demo and return its exit status."""
    console = Console(highlight=False)
    try:
        wishes = _wishes()
    except argparse.ArgumentTypeError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 2
    end_as_by_keyboard()
    status = 1
    try:
        status = _play(wishes, console)
    except (StoryFailedError, AssertionError, OSError, RuntimeError) as error:
        console.print(f"[bold red]The demo failed:[/] {error}. Its files and logs stay in {wishes.folder}")
        return 1
    except KeyboardInterrupt:
        console.print("\nStopped.")
        status = 1 if wishes.auto else 0
    shutil.rmtree(wishes.folder, ignore_errors=True)
    return status


def _wishes() -> Wishes:
    """Read the variables and try what can be tried before anything starts; raises ArgumentTypeError."""
    found: dict[str, Any] = {}
    for name, read in {"PORT": _free_port, "AUTO": switch}.items():
        try:
            found[name.lower()] = read(variable(name))
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentTypeError(f"{name}: {error}") from None
    if shutil.which("git") is None:
        raise argparse.ArgumentTypeError("git is not on PATH; the demo's Git host and our programs use it")
    try:
        return Wishes(**found, folder=Path(tempfile.mkdtemp(prefix="clusterwright-")))
    except OSError as error:
        raise argparse.ArgumentTypeError(f"no temporary folder can be made: {error.strerror}") from None


def _free_port(text: str) -> int:
    wanted = port(text)
    try:
        bound(wanted).close()
    except OSError as error:
        raise argparse.ArgumentTypeError(f"port {wanted} cannot be used: {error.strerror}") from None
    return wanted


def _play(wishes: Wishes, console: Console) -> int:
    auto = wishes.auto
    console.print(
        Panel.fit(
            f"[bold]Clusterwright[/]  {NODES} nodes of {GPUS} GPUs on this machine", border_style="magenta"
        )
    )
    began = time.monotonic()
    with console.status("starting an API server, a Git host, Slack, BMCs, the nodes and the three programs…"):
        cluster = Cluster(wishes.folder, nodes=NODES, gpus=GPUS, slack_port=wishes.port)
        cluster.__enter__()
    try:
        for index, node in enumerate(list(cluster.nodes)[:12]):
            run_job(cluster.kube, node, f"train-{index + 1:02d}", gpus=GPUS)
        console.print(_addresses(cluster, time.monotonic() - began))
        story = Story(cluster, console)
        if not auto:
            _wait_for_key(console)
        story.run(SICK, auto=auto)
        story.show_log()
        if not auto:
            _stay(cluster, console, story)
        return 0
    finally:
        with console.status("stopping…"):
            cluster.__exit__(None, None, None)


def _addresses(cluster: Cluster, seconds: float) -> Table:
    table = Table.grid(padding=(0, 2))
    rows = {
        "Slack": f"[link={cluster.slack.page_url}]{cluster.slack.page_url}[/link]",
        "Git": str(cluster.github.bare),
        "logs": str(cluster.workdir),
        "started in": f"{seconds:.1f} s",
    }
    for name, value in rows.items():
        table.add_row(f"[bold]{name}", value)
    return table


def _wait_for_key(console: Console) -> None:
    console.print(
        f"Press any key to break a GPU (it breaks by itself in {SELF_BREAK_SECONDS:.0f} s), Ctrl-C to stop."
    )
    with _raw_keys():
        _key(SELF_BREAK_SECONDS)


def _stay(cluster: Cluster, console: Console, story: Story) -> None:
    healthy: Iterator[str] = iter([name for name in cluster.nodes if name != SICK])
    console.print(
        "Press b to break another GPU, l for the log, q or Ctrl-C to stop. Try /cluster status in Slack."
    )
    while True:
        with _raw_keys():
            pressed = _key(3600)
        match pressed:
            case "b":
                story.run(next(healthy), auto=False)
            case "l":
                story.show_log()
            case "q":
                return


@contextmanager
def _raw_keys() -> Iterator[None]:
    """Deliver keys one by one; a terminal is left as it was found."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _key(seconds: float) -> str:
    if not sys.stdin.isatty():
        time.sleep(seconds)
        return ""
    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    return sys.stdin.read(1) if ready else ""


def _first_line(message: Mapping[str, Any]) -> str:
    return str(message.get("text", "")).splitlines()[0]


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        sys.exit(main())
