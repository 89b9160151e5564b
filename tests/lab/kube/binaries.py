"""Where the real control plane's binaries are: KUBEBUILDER_ASSETS, else a cache outside the repository."""

from __future__ import annotations

import os
from pathlib import Path

KUBERNETES = "1.37.2"
ETCD = "3.7.3"
"""Versions pinned in tests/lab/controlplane/go.mod."""

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
BUILD_COMMAND = "python -m tests.lab.kube.build"


class MissingBinariesError(RuntimeError):
    """The real back end cannot start; the text says what is missing where, and the command that builds it."""


def cache() -> Path:
    """Where the build puts what it makes: LAB_CACHE, else the user's cache folder."""
    named = os.environ.get("LAB_CACHE")
    if named:
        return Path(named)
    user = os.environ.get("XDG_CACHE_HOME")
    return (Path(user) if user else Path.home() / ".cache") / "clusterwright"


def built() -> Path:
    """The folder of the binaries that we build."""
    return cache() / "controlplane" / f"k8s-{KUBERNETES}-etcd-{ETCD}"


def folder() -> Path:
    """The folder that the binaries are taken from: KUBEBUILDER_ASSETS if set, else what we built."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    return Path(assets) if assets else built()


def problem() -> str | None:
    """Why the real back end cannot start, in one line with the mend; None if it can."""
    at = folder()
    absent = [name for name in PROGRAMS if not os.access(at / name, os.X_OK)]
    if not absent:
        return None
    listed = ", ".join(absent)
    if os.environ.get("KUBEBUILDER_ASSETS"):
        return f"KUBEBUILDER_ASSETS={at} lacks {listed}; unset it to use our own build ({BUILD_COMMAND})"
    return f"the real control plane is not built ({at} lacks {listed}); build it once with: {BUILD_COMMAND}"


def program(name: str) -> Path:
    """The path of one binary.

    Raises:
        MissingBinariesError: something is missing; no part of the back end starts then.
    """
    why = problem()
    if why:
        raise MissingBinariesError(why)
    return folder() / name
