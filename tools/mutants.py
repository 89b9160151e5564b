"""`make mutants`: change a module in one small way at a time and list the changes that no test notices.

    python -m tools.mutants reconciler/repair/guard.py [MORE …] [--tests PATH …] [--workers 2]

Runs the tests of the folder that mirrors the module, or of the nearest one above it: those named after the
module first. Each worker has a copy of the repository, so the working tree is never touched. Prints survivors
as FILE:LINE. Exit status 0, also with survivors; 2 when nothing could be tried.

mutmut was tried and judges tests that call the module in their own process. It leaves tables and constants of
a module alone, and programs that tests start as processes run without its changes. This tool covers both.
"""

import argparse
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tools.arguments import count
from tools.mutation import Mutant, mutants

ROOT = Path(__file__).resolve().parents[1]
WORKERS = 2
SLACK_SECONDS = 20.0
"""Added to three times what the tests take unchanged: a mutant may loop for ever, and a machine be busy."""
UNCHANGED_SECONDS = 900.0


class NothingToTryError(Exception):
    """The tests cannot judge the module; the text says why in one line."""


class Subject(NamedTuple):
    """A module, relative to the repository, and the test runs that judge it, cheapest first."""

    module: Path
    runs: tuple[tuple[str, ...], ...]


def find(root: Path, name: str, chosen: Sequence[str] = ()) -> Subject:
    """Find the tests of a module: `chosen` ones, else the folder of tests/ that mirrors its package."""
    module = Path(name)
    if module.is_absolute() or module.suffix != ".py" or not (root / module).is_file():
        raise NothingToTryError(f"{name} is not a Python file of this repository, named from its root")
    if chosen:
        return Subject(module, (tuple(chosen),))
    mirrored = "tests" / module.parent
    folder = next(each for each in (mirrored, *mirrored.parents) if (root / each).is_dir())
    named = sorted(f"{folder}/{path.name}" for path in (root / folder).glob(f"test_{module.stem}*.py"))
    others = {f"{folder}/{path.relative_to(root / folder)}" for path in (root / folder).rglob("test_*.py")}
    rest = (str(folder), *(f"--ignore={each}" for each in named))
    runs = [*([tuple(named)] if named else []), *([rest] if others - set(named) else [])]
    return Subject(module, tuple(runs))


def survivors(root: Path, what: Subject, workers: int = WORKERS) -> Iterator[Mutant | None]:
    """Yield one value per mutant as it is tried: the mutant when it survived, None when a test noticed it.

    Raises:
        NothingToTryError: the tests fail, or find nothing to run, with the module as it is.
    """
    tried = list(mutants((root / what.module).read_text()))
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies: queue.Queue[Path] = queue.Queue()
        for number in range(workers):
            copies.put(copied(root, Path(folder) / str(number)))
        trial = Trial(what, copies)
        trial.limit(0)
        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(trial.judge, tried)


class Trial:
    """Judges the mutants of one module. A run is timed without a change when it is first needed."""

    def __init__(self, what: Subject, copies: "queue.Queue[Path]") -> None:
        self._what, self._copies = what, copies
        self._limits: dict[int, float] = {}
        self._lock = threading.Lock()

    def judge(self, mutant: Mutant) -> Mutant | None:
        """Return the mutant when every run passes with it."""
        passed = all(self._passes(number, mutant) for number in range(len(self._what.runs)))
        return mutant if passed else None

    def limit(self, number: int) -> float:
        """Return how long a run may take, in seconds; raises NothingToTryError when it fails by itself."""
        with self._lock:
            if number not in self._limits:
                began, run = time.monotonic(), self._what.runs[number]
                with self._copy() as copy:
                    status = _pytest(copy, run, UNCHANGED_SECONDS)
                if status != 0:
                    shown = f"pytest {' '.join(run)}"
                    raise NothingToTryError(
                        f"{self._what.module}: {shown} ends with {status} without a change"
                    )
                self._limits[number] = 3 * (time.monotonic() - began) + SLACK_SECONDS
            return self._limits[number]

    def _passes(self, number: int, mutant: Mutant) -> bool:
        limit = self.limit(number)
        with self._copy() as copy:
            module = copy / self._what.module
            unchanged = module.read_text()
            try:
                module.write_text(mutant.text)
                return _pytest(copy, self._what.runs[number], limit) == 0
            finally:
                module.write_text(unchanged)

    @contextmanager
    def _copy(self) -> Iterator[Path]:
        copy = self._copies.get()
        try:
            yield copy
        finally:
            self._copies.put(copy)


def copied(root: Path, target: Path) -> Path:
    """Copy what Git knows of the repository, with changes that are not committed."""
    argv = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(argv, cwd=root, check=True, capture_output=True, text=True).stdout
    for name in listed.split("\0"):
        if name and (root / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, target / name)
    return target


def _pytest(copy: Path, tests: Sequence[str], seconds: float) -> int | None:
    """Run tests until the first fails; return pytest's status, None when it took too long."""
    argv = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", *tests]
    # No bytecode: two versions of a module may have the same size and be written in the same second.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(copy)}
    process = subprocess.Popen(
        argv, cwd=copy, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def main(argv: Sequence[str]) -> int:
    """Try every mutant of the named modules and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="make mutants", description="List small changes to modules that no test notices.",
        epilog="Example: make mutants ARGS='reconciler/repair/guard.py'",
    )  # fmt: skip
    parser.add_argument("modules", nargs="+", help="Python files, relative to the repository")
    parser.add_argument(
        "--tests", nargs="+", default=(), help="what pytest runs (default: the mirrored folder)"
    )
    parser.add_argument(
        "--workers", type=count, default=WORKERS, help=f"runs side by side (default {WORKERS})"
    )
    arguments = parser.parse_args(argv)
    try:
        for what in [find(ROOT, each, arguments.tests) for each in arguments.modules]:
            _report(what, arguments.workers)
    except NothingToTryError as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("mutants: stopped", file=sys.stderr)
        return 130
    return 0


def _report(what: Subject, workers: int) -> None:
    shown = "; ".join(" ".join(run) for run in what.runs)
    print(f"mutants: {what.module}, judged by {shown}", file=sys.stderr, flush=True)
    tried = survived = 0
    for mutant in survivors(ROOT, what, workers):
        tried += 1
        if mutant is not None:
            survived += 1
            print(f"{what.module}:{mutant.line}: `{mutant.was}` → `{mutant.now}`", flush=True)
        elif tried % 20 == 0:
            print(f"mutants: {tried} tried, {survived} survived", file=sys.stderr, flush=True)
    print(f"mutants: {what.module}: {survived} of {tried} survived", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
