"""What only the real back end has: kubectl, and processes that must end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lab.kube.fixture import require_real
from tests.lab.watchdog import running_in

if TYPE_CHECKING:
    from tests.lab.kube.real import RealKube

ROOT = Path(__file__).parents[4]

ORPHAN = """
import pathlib, sys, time
from tests.lab.kube.server import start
kube = start("real", pathlib.Path(sys.argv[1]))
print("ready", flush=True)
time.sleep(60)
"""


def test_kubectl_speaks_as_admin(real_kube: RealKube) -> None:
    assert real_kube.kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}") == "admin"


def test_kubectl_speaks_as_an_account(real_kube: RealKube) -> None:
    kubeconfig = real_kube.kubeconfig_for("default", "default")
    whoami = ("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
    assert real_kube.kubectl(*whoami, kubeconfig=kubeconfig) == "system:serviceaccount:default:default"


def test_a_failed_kubectl_says_why(real_kube: RealKube) -> None:
    with pytest.raises(subprocess.CalledProcessError) as caught:
        real_kube.kubectl("get", "node", "nobody")
    assert 'nodes "nobody" not found' in caught.value.stderr


def test_a_deployment_gets_its_pods(real_kube: RealKube) -> None:
    real_kube.kubectl("create", "deployment", "web", "--image=example", "--replicas=2", "-n", "default")
    ends = time.monotonic() + 60
    while len(real_kube.kubectl("get", "pods", "-l", "app=web", "-o", "name").split()) < 2:
        assert time.monotonic() < ends
        time.sleep(0.1)
    real_kube.kubectl("delete", "deployment", "web")


def test_nothing_is_left_when_the_parent_is_killed(tmp_path: Path) -> None:
    require_real()
    parent = subprocess.Popen([sys.executable, "-c", ORPHAN, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    with parent.stdout as output:
        assert output.readline() == b"ready\n"
        assert len(running_in(tmp_path)) >= 3
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait(10)
    ends = time.monotonic() + 60
    while left := running_in(tmp_path):
        assert time.monotonic() < ends, left
        time.sleep(0.1)
