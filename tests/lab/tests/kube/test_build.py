"""The one-time build: what it says when it cannot, and that half a binary never counts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.kube import binaries
from tests.lab.kube.build import MODULE, OLDEST_GO, TARGETS

ROOT = Path(__file__).parents[4]
TOOLS = "/usr/bin:/bin"


def run(tmp_path: Path, go: str | None, **environment: str) -> subprocess.CompletedProcess[str]:
    """The build with a `go` of our own on PATH and an empty cache."""
    folder = tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    if go is not None:
        (folder / "go").write_text(f"#!/bin/sh\n{go}\n")
        (folder / "go").chmod(0o755)
    env = {"PATH": f"{folder}:{TOOLS}" if go else str(folder), "HOME": str(tmp_path)}
    env |= {"LAB_CACHE": str(tmp_path / "cache"), **environment}
    argv = [sys.executable, "-m", "tests.lab.kube.build"]
    return subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)


def cached(tmp_path: Path) -> list[str]:
    made = tmp_path / "cache" / "controlplane" / f"k8s-{binaries.KUBERNETES}-etcd-{binaries.ETCD}"
    return sorted(path.name for path in made.iterdir() if not path.name.endswith((".log", ".lock")))


def test_without_go_it_says_what_to_install(tmp_path: Path) -> None:
    done = run(tmp_path, None)
    assert done.returncode == 1
    assert done.stderr == (
        "control plane: go is not on PATH; install Go 1.26 or newer (https://go.dev/dl/) and try again\n"
    )


def test_an_old_go_is_named(tmp_path: Path) -> None:
    done = run(tmp_path, "echo go1.22.3")
    assert done.returncode == 1
    assert done.stderr.startswith("control plane: go is 1.22.3, too old; install Go 1.26 or newer")


def test_a_go_that_fails_is_quoted(tmp_path: Path) -> None:
    done = run(tmp_path, "echo 'go: cannot find a toolchain' >&2; exit 1")
    assert done.returncode == 1
    assert "go does not work (go: cannot find a toolchain)" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_failed_compilation_leaves_no_binary(tmp_path: Path) -> None:
    go = '[ "$1" = env ] && { echo go1.26.8; exit 0; }; echo half > "$4"; echo "link: out of memory"; exit 2'
    done = run(tmp_path, go)
    assert done.returncode == 1
    assert "go build failed (link: out of memory); all of its output is in" in done.stderr
    assert cached(tmp_path) == []


def test_what_is_built_is_shown_and_kept(tmp_path: Path) -> None:
    go = '[ "$1" = env ] && { echo go1.26.8; exit 0; }; echo binary > "$4"'
    done = run(tmp_path, go)
    assert done.returncode == 0, done.stderr
    assert "[1/4] etcd" in done.stdout
    assert "[4/4] kubectl" in done.stdout
    assert cached(tmp_path) == sorted(binaries.PROGRAMS)
    again = run(tmp_path, "exit 1")
    assert (again.returncode, "already built" in again.stdout) == (0, True)


def test_the_versions_are_those_of_the_module() -> None:
    module = (MODULE / "go.mod").read_text()
    assert f"k8s.io/kubernetes v{binaries.KUBERNETES} " in module
    assert f"go.etcd.io/etcd/server/v3 v{binaries.ETCD} " in module
    line = re.search(r"^go (\d+)\.(\d+)", module, re.MULTILINE)
    assert line is not None
    assert (int(line[1]), int(line[2])) == OLDEST_GO
    tools = module.partition("tool (")[2].partition(")")[0].split()
    assert {package for _, package, _, _ in TARGETS} == set(tools)


@pytest.mark.parametrize(("ci", "outcome"), [("", "1 skipped"), ("true", "1 failed")])
def test_a_missing_control_plane_is_seen(tmp_path: Path, ci: str, outcome: str) -> None:
    env = {name: value for name, value in os.environ.items() if name not in ("CI", "KUBEBUILDER_ASSETS")}
    env |= {"LAB_CACHE": str(tmp_path)} | ({"CI": ci} if ci else {})
    test = "tests/lab/tests/kube/test_published.py"
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
    done = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)
    shown = " ".join(done.stdout.split())
    assert outcome in shown or outcome.replace("failed", "error") in shown
    assert "build it once with: python -m tests.lab.kube.build" in shown


def test_foreign_binaries_are_taken_by_the_ecosystems_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    assert binaries.folder() == tmp_path
    why = binaries.problem()
    assert why is not None
    assert why.startswith(f"KUBEBUILDER_ASSETS={tmp_path} lacks etcd, kube-apiserver")
