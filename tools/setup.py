"""Prepares this machine for `make`: the virtual environment, and the programs that the tests start.

    python -m tools.setup demo     .venv with what the demo imports
    python -m tools.setup check    .venv with the linters and test tools too
    python -m tools.setup test     that, and Chromium, Go and the built control plane

Runs before anything is installed, so it needs the standard library only. Says nothing when nothing is to do.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import NamedTuple

from tests.lab.kube import binaries, build

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
STAMP = VENV / "installed.json"
LOCKS = ROOT / "requirements"
GO_HOME = binaries.cache() / "go"

LEVELS = {"demo": "demo", "check": "dev", "test": "dev"}
"""Which lock each level installs. dev.lock holds all of demo.lock, so an environment only ever grows."""


class Program(NamedTuple):
    """A program that tests start: the names it goes by, what for, and its package for each installer."""

    names: tuple[str, ...]
    purpose: str
    packages: dict[str, str]


PROGRAMS = (
    Program(
        ("chromium", "chromium-browser", "google-chrome"),
        "the browser tests",
        {"apt-get": "chromium", "dnf": "chromium", "pacman": "chromium", "brew": "--cask chromium"},
    ),
    Program(
        ("slurmctld",),
        "the tests on a real Slurm",
        {"apt-get": "slurmctld slurmd slurm-client munge", "dnf": "slurm-slurmctld slurm-slurmd slurm munge"},
    ),
    Program(
        ("cc",),
        "the stand-in NVML library",
        {"apt-get": "gcc libc6-dev", "dnf": "gcc", "pacman": "gcc", "brew": "gcc"},
    ),
)

INSTALLERS = {
    "apt-get": "apt-get install -y --no-install-recommends",
    "dnf": "dnf install -y",
    "pacman": "pacman -S --noconfirm",
    "brew": "brew install",
}


def main(level: str) -> int:
    """Prepare for `level` and return the exit status."""
    try:
        install(LEVELS[level])
        missing = [*system_programs(), *control_plane()] if level == "test" else []
    except subprocess.CalledProcessError as error:
        sys.exit(f"setup: {' '.join(map(str, error.cmd))} failed with status {error.returncode}, see above")
    except OSError as error:
        sys.exit(f"setup: {error}")
    except KeyboardInterrupt:
        sys.exit("setup: stopped; what was finished is kept")
    if missing and os.environ.get("CI") == "true":
        sys.exit("setup: missing in CI, where every part has to be real: " + "; ".join(missing))
    return 0


def say(text: str) -> None:
    """Tell the person who is waiting."""
    print(f"setup: {text}", file=sys.stderr, flush=True)


def run(*argv: str | Path, quiet: bool = False) -> None:
    """Run a program; raise CalledProcessError when it fails."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    output = subprocess.DEVNULL if quiet else sys.stderr
    subprocess.run(argv, check=True, cwd=ROOT, env=environment, stdout=output, stderr=output)


# ---- the virtual environment


def install(lock: str) -> None:
    """Bring .venv to `lock`, unless it stands there already or beyond."""
    if STAMP.exists():
        stamp = installed()
        lock = "dev" if stamp.get("lock") == "dev" else lock
        if stamp == {"lock": lock, "digest": digest(lock)} and (VENV / "bin" / "python").exists():
            return
        STAMP.unlink()
    started = time.monotonic()
    say(f"installing requirements/{lock}.lock into .venv, which takes a few seconds and is done once")
    if not (VENV / "bin" / "python").exists():
        run(sys.executable, "-m", "venv", "--clear", VENV)
    fill(LOCKS / f"{lock}.lock")
    STAMP.write_text(json.dumps({"lock": lock, "digest": digest(lock)}))
    say(f"done in {time.monotonic() - started:.0f} s")


def installed() -> dict[str, str]:
    """Return what .venv was last brought to; nothing when that cannot be read."""
    try:
        stamp = json.loads(STAMP.read_text())
    except ValueError:
        return {}
    return stamp if isinstance(stamp, dict) else {}


def digest(lock: str) -> str:
    """Return what changes whenever the environment has to be brought up to date."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    locks = [(LOCKS / f"{each}.lock").read_text() for each in (lock, "build")]
    return hashlib.sha256(json.dumps([project, *locks, str(ROOT)]).encode()).hexdigest()


def fill(lock: Path) -> None:
    """Install the lock and this repository, with uv where it runs and else with pip (five times slower)."""
    python = VENV / "bin" / "python"
    pip = [python, "-m", "pip", "install", "-q", "--require-hashes", "--no-deps", "-r"]
    try:
        run(python, "-c", "import pip", quiet=True)
    except subprocess.CalledProcessError:
        run(python, "-m", "ensurepip", quiet=True)
    try:
        run(*pip, LOCKS / "build.lock")
        uv = [VENV / "bin" / "uv", "pip"]
        run(*uv, "sync", "-q", "--python", python, "--require-hashes", lock)
        run(*uv, "install", "-q", "--python", python, "--no-deps", "--no-build-isolation", "-e", ROOT)
    except (subprocess.CalledProcessError, OSError) as error:
        say(f"uv does not work here ({error}); going on with pip")
        run(*pip, lock)
        run(python, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "-e", ROOT)


# ---- what the tests start


def system_programs() -> list[str]:
    """Install what is missing, as root on Debian; elsewhere say how. Return what stays missing."""
    absent = [each for each in PROGRAMS if not any(map(shutil.which, each.names))]
    installer = next((each for each in INSTALLERS if shutil.which(each)), None)
    if not absent:
        return []
    packages = [each.packages[installer] for each in absent if installer in each.packages]
    if installer == "apt-get" and os.geteuid() == 0:
        say("installing " + " ".join(packages))
        run("apt-get", "update", "-q")
        run(*INSTALLERS["apt-get"].split(), "-q", *" ".join(packages).split())
        return []
    missing = [f"{each.names[0]} (for {each.purpose})" for each in absent]
    sudo = "" if installer == "brew" else "sudo "
    command = f"{sudo}{INSTALLERS[installer]} {' '.join(packages)}" if installer else "your package manager"
    say(f"missing: {', '.join(missing)}; those tests are skipped. Install with: {command}")
    return missing


def control_plane() -> list[str]:
    """Build etcd, kube-apiserver and kubectl once, into a cache. Return what stays missing."""
    missing = binaries.problem()
    if missing and not os.environ.get("KUBEBUILDER_ASSETS"):
        try:
            if not go_on_path():
                install_go()
            build.build()
        except (build.BuildError, subprocess.CalledProcessError) as error:
            say(str(error))
        missing = binaries.problem()
    if missing:
        say(f"{missing}; the tests on the real API server are skipped")
    return [missing] if missing else []


def go_on_path() -> bool:
    """Whether the `go` that a build would find is new enough."""
    if shutil.which("go") is None:
        return False
    printed = subprocess.run(["go", "version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"go(\d+)\.(\d+)", printed)
    return version is not None and (int(version[1]), int(version[2])) >= build.OLDEST_GO


def install_go() -> None:
    """Put a pinned Go toolchain first on PATH, from an environment of its own under ~/.cache."""
    if not (GO_HOME / "bin" / "go").exists():
        say(f"no Go {'.'.join(map(str, build.OLDEST_GO))} or newer here; installing one into {GO_HOME}")
        run(sys.executable, "-m", "venv", "--clear", GO_HOME)
        pip = (GO_HOME / "bin" / "python", "-m", "pip", "install", "-q", "--require-hashes", "--no-deps")
        run(*pip, "-r", LOCKS / "go.lock")
    os.environ["PATH"] = f"{GO_HOME / 'bin'}{os.pathsep}{os.environ['PATH']}"


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in LEVELS:
        print(f"usage: python -m tools.setup {'|'.join(LEVELS)}", file=sys.stderr)
        sys.exit(2)
    sys.exit(main(sys.argv[1]))
