"""Checks requirements/*.lock against pyproject.toml, and writes them with `--write`.

A lock pins and hashes every package it holds, names no host, satisfies what pyproject.toml asks for, and
agrees with the larger locks on every version. Run with the .venv, which has uv and packaging.
"""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
LOCKS = {
    "build": ["--only-group", "build"],
    "go": ["--only-group", "go"],
    "runtime": ["--no-default-groups"],
    "demo": ["--no-default-groups", "--group", "lab"],
    "dev": ["--group", "dev"],
}
"""The options of `uv export` for what each lock holds."""

NESTED = (("build", "demo"), ("runtime", "demo"), ("demo", "dev"))
"""Each first lock is wholly contained in the second."""

HOST = re.compile(r"[a-z]+://|--(?:index|extra-index|find-links)|\b[\w-]+\.(?:org|com|io|dev|net)\b(?!==)")


def write() -> None:
    """Resolve, keeping the versions of a uv.lock that lies here, and export every lock."""
    uv = str(Path(sys.executable).with_name("uv"))
    if not Path(uv).exists():
        sys.exit(f"{uv} is missing; run `make lock`, which installs it")
    subprocess.run([uv, "lock", "--quiet"], cwd=ROOT, check=True)
    form = ["--frozen", "--format", "requirements-txt", "--no-emit-project", "--no-header", "--no-annotate"]
    for name, selection in LOCKS.items():
        target = f"requirements/{name}.lock"
        subprocess.run([uv, "export", "--quiet", *form, *selection, "-o", target], cwd=ROOT, check=True)


def check() -> list[str]:
    """Return what is wrong, one line each."""
    pins: dict[str, dict[str, str]] = {}
    faults: list[str] = []
    missing = [name for name in LOCKS if not (ROOT / "requirements" / f"{name}.lock").is_file()]
    if missing:
        return [f"requirements/{name}.lock is missing" for name in missing]
    for name in LOCKS:
        text = (ROOT / "requirements" / f"{name}.lock").read_text()
        entries = re.sub(r"\\\n", " ", text).splitlines()
        pins[name] = dict(re.findall(r"^(\S+)==(\S+)", "\n".join(entries), re.MULTILINE))
        faults += [f"{name}.lock: not pinned with a hash: {e}" for e in entries if "--hash=sha256:" not in e]
        faults += [f"{name}.lock: names a host: {e[:80]}" for e in entries if HOST.search(e)]
    for inner, outer in NESTED:
        differing = pins[inner].items() - pins[outer].items()
        faults += [f"{inner}.lock: {each}=={version} is not in {outer}.lock" for each, version in differing]
    for lock, requirement in asked():
        version = pins[lock].get(canonicalize_name(requirement.name))
        if version is None or not requirement.specifier.contains(version):
            faults.append(f"{lock}.lock: has {requirement.name} {version}, pyproject.toml asks {requirement}")
    return faults


def asked() -> Iterator[tuple[str, Requirement]]:
    """Yield each requirement of pyproject.toml with the lock that has to satisfy it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for each in project["project"]["dependencies"]:
        yield "runtime", Requirement(each)
    for group, requirements in project["dependency-groups"].items():
        lock = "demo" if group == "lab" else group
        yield from ((lock, Requirement(each)) for each in requirements if isinstance(each, str))


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        try:
            write()
        except subprocess.CalledProcessError as error:
            sys.exit(f"uv failed with status {error.returncode}, see above")
    found = check()
    if found:
        sys.exit("\n".join([*found, "repair it with `make lock`, then commit requirements/"]))
