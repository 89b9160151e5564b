"""Builds the real control plane and kubectl once, from pinned Go modules, into the cache.

    python -m tests.lab.kube.build

About 8 minutes on 2 cores with empty Go caches, 12 s with warm ones; needs 6 GB of disk and 3 GB of memory.
A binary that is there is complete: each is built under another name and renamed.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.lab.kube.binaries import ETCD, KUBERNETES, built

if TYPE_CHECKING:
    from collections.abc import Iterator

MODULE = Path(__file__).parents[1] / "controlplane"
OLDEST_GO = (1, 26)
"""The go line of tests/lab/controlplane/go.mod."""
NEEDED_BYTES = 6 * 1024**3
"""Go's build and module caches (4.7 GB) and the binaries."""
TELL_SECONDS = 20.0
"""Between two signs of life while one binary builds."""

_VERSION = "k8s.io/component-base/version"
_STAMP = f"-X {_VERSION}.gitVersion=v{KUBERNETES} -X {_VERSION}.gitMajor=1 -X {_VERSION}.gitMinor=37"
TARGETS = (
    ("etcd", "go.etcd.io/etcd/server/v3", f"etcd {ETCD}", 45),
    ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", f"kube-apiserver {KUBERNETES}", 275),
    ("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager",
     f"kube-controller-manager {KUBERNETES}", 110),
    ("kubectl", "k8s.io/kubernetes/cmd/kubectl", f"kubectl {KUBERNETES}", 25),
)  # fmt: skip
"""Name, package, words, seconds on 2 cores with an empty build cache."""


class BuildError(RuntimeError):
    """The build cannot go on; one line that says why and what to do."""


def build() -> None:
    """Build what is missing.

    Raises:
        BuildError: Go is missing or too old, the disk too full, or a compilation failed.
    """
    target = built()
    missing = [item for item in TARGETS if not (target / item[0]).exists()]
    if not missing:
        _say(f"control plane: already built in {target}")
        return
    _check_go()
    target.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(target).free < NEEDED_BYTES:
        raise BuildError(f"control plane: {target} has less than 6 GB free, which the Go caches need")
    with _only_one(target):
        missing = [item for item in TARGETS if not (target / item[0]).exists()]
        minutes = round(sum(item[3] for item in missing) / 60 + 1)
        _say(f"control plane: building {len(missing)} programs once, about {minutes} min, into {target}")
        for number, (name, package, words, seconds) in enumerate(missing, 1):
            _build_one(f"[{number}/{len(missing)}] {words}", package, target / name, seconds)
    _say("control plane: ready")


def _say(text: str) -> None:
    print(text, flush=True)


def _check_go() -> None:
    needed = ".".join(str(part) for part in OLDEST_GO)
    how = f"install Go {needed} or newer (https://go.dev/dl/) and try again"
    if shutil.which("go") is None:
        raise BuildError(f"control plane: go is not on PATH; {how}")
    asked = subprocess.run(
        ["go", "env", "GOVERSION"], cwd=MODULE, capture_output=True, text=True, timeout=300, check=False
    )
    found = re.match(r"go(\d+)\.(\d+)", asked.stdout.strip())
    if asked.returncode or found is None:
        why = (asked.stderr.strip().splitlines() or ["no version printed"])[-1]
        raise BuildError(f"control plane: go does not work ({why}); {how}")
    if (int(found[1]), int(found[2])) < OLDEST_GO:
        raise BuildError(f"control plane: go is {asked.stdout.strip()[2:]}, too old; {how}")


@contextmanager
def _only_one(target: Path) -> Iterator[None]:
    with (target / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("control plane: another build is running here; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build_one(words: str, package: str, path: Path, seconds: int) -> None:
    _say(f"{words}: compiling, up to {seconds} s and the download of modules")
    began, unfinished = time.monotonic(), path.with_name(f".{path.name}.{os.getpid()}")
    flags = "-s -w" if path.name == "etcd" else f"-s -w {_STAMP}"
    argv = ["go", "build", f"-ldflags={flags}", "-o", str(unfinished), package]
    log, environment = path.with_name(f"{path.name}.log"), {**os.environ, "CGO_ENABLED": "0"}
    try:
        with log.open("w") as output:
            process = subprocess.Popen(
                argv, cwd=MODULE, env=environment, stdout=output, stderr=subprocess.STDOUT
            )
            code = _watched(process, words, began)
        if code:
            last = (log.read_text().strip().splitlines() or ["no output"])[-1]
            raise BuildError(f"{words}: go build failed ({last}); all of its output is in {log}")
        unfinished.rename(path)
        log.unlink()
    finally:
        unfinished.unlink(missing_ok=True)
    _say(f"{words}: built in {time.monotonic() - began:.0f} s, {path.stat().st_size / 1e6:.0f} MB")


def _watched(process: subprocess.Popen[bytes], words: str, began: float) -> int:
    """Wait for a process with a sign of life now and then; end it when we are ended."""
    try:
        while True:
            try:
                return process.wait(TELL_SECONDS)
            except subprocess.TimeoutExpired:
                _say(f"{words}: {time.monotonic() - began:.0f} s")
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(10)


def main() -> int:
    """Run the build; the exit code says whether all is there."""
    try:
        build()
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("control plane: stopped; what was finished is kept", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
