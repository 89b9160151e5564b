"""The real back end: etcd, kube-apiserver and a cut kube-controller-manager as child processes.

Started in 4 to 5 s; stopped in the order controller-manager, kube-apiserver, etcd, because kube-apiserver
waits for half a minute when etcd is gone before it.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import json
import secrets
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.lab.kube import certificates
from tests.lab.kube.binaries import program
from tests.lab.kube.kube import TIMEOUT_SECONDS, Kube
from tests.lab.kube.program import Program
from tests.lab.ports import free_ports

CONTROLLERS = (
    "disruption-controller", "serviceaccount-controller", "namespace-controller",
    "garbage-collector-controller", "replicaset-controller", "deployment-controller",
    "resourcequota-controller",
)  # fmt: skip
NODE_CONTROLLERS = (
    "node-lifecycle-controller", "taint-eviction-controller", "pod-garbage-collector-controller",
)  # fmt: skip
"""Only from `watch_nodes` on: the nodes of most tests have no kubelet, and would all become unreachable."""
CONTROLLER_QPS = 1000
"""The default of 20 lets the emptying of namespaces fall behind a test run."""
FLOWS = "/apis/flowcontrol.apiserver.k8s.io/v1"
READY_SECONDS = 60.0
"""It takes 4 s on 2 idle cores."""
KUBECTL_SECONDS = 60.0


class RealKube(Kube):
    """HTTPS on a free port; RBAC on; data in etcd under workdir."""

    backend = "real"

    def __init__(self, workdir: Path) -> None:
        super().__init__(workdir)
        self._kubectl = program("kubectl")
        self.admin_token = secrets.token_urlsafe(24)
        certificates.write(workdir)
        self.ca_file = workdir / "ca.crt"
        tokens = workdir / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text(f'{self.admin_token},admin,admin-uid,"system:masters"\n')
        self._port, self._etcd_port, peer = free_ports(3)
        self.url = f"https://127.0.0.1:{self._port}"
        self._grace_seconds: float | None = None
        self._programs: list[Program] = []
        """etcd, kube-apiserver, kube-controller-manager: ended in the reverse order."""
        atexit.register(self.stop)
        try:
            self._run(_etcd(workdir, self._etcd_port, peer))
            self.resume()
            self._await_default_account()
        except BaseException:
            self.stop()
            raise

    def _run(self, argv: list[str]) -> Program:
        started = Program(argv, self.workdir / f"{Path(argv[0]).name}.log")
        self._programs.append(started)
        return started

    def kubectl(self, *args: str, kubeconfig: Path | None = None, stdin: str = "") -> str:
        """The output of the real kubectl, as admin unless another kubeconfig is named.

        Raises:
            subprocess.CalledProcessError: it failed; its stderr is in the error's notes.
        """
        # What kubectl remembers of a server it keeps by address, and another server may have had this one's.
        cache = f"--cache-dir={self.workdir / 'kubectl'}"
        argv = [str(self._kubectl), cache, "--kubeconfig", str(kubeconfig or self.admin_kubeconfig), *args]
        done = subprocess.run(
            argv, input=stdin, capture_output=True, text=True, timeout=KUBECTL_SECONDS, check=False
        )
        if done.returncode:
            error = subprocess.CalledProcessError(done.returncode, argv, done.stdout, done.stderr)
            error.add_note(done.stderr.strip())
            raise error
        return done.stdout

    def pause(self) -> None:
        """Kill the API server, and the controllers, which would back off for up to a minute."""
        while len(self._programs) > 1:
            self._programs.pop().kill()
        _until_refused(self._port)

    def resume(self) -> None:
        self._run(_api_server(self.workdir, self._port, self._etcd_port))
        self._await_ready()
        self._run(_controllers(self.workdir, self.admin_kubeconfig, self._grace_seconds))

    def compact(self) -> None:
        """Compact etcd and restart the API server, whose cache would go on serving old revisions (1.37)."""
        _, listed = self.request("GET", "/api/v1/namespaces", params={"limit": "1"})
        body = {"revision": listed["metadata"]["resourceVersion"], "physical": True}
        url = f"http://127.0.0.1:{self._etcd_port}/v3/kv/compaction"
        httpx.post(url, json=body, timeout=TIMEOUT_SECONDS, trust_env=False).raise_for_status()
        self.restart()

    def watch_nodes(self, grace_seconds: float) -> None:
        self._grace_seconds = grace_seconds
        self._programs.pop().stop()
        self._run(_controllers(self.workdir, self.admin_kubeconfig, grace_seconds))

    def throttle(self, namespace: str, account: str) -> httpx.Response:
        plurals = ("prioritylevelconfigurations", "flowschemas")
        made = [f"{FLOWS}/{plural}/lab-throttled" for plural in plurals]
        for path, spec in zip(made, _no_room_for(namespace, account), strict=True):
            body = {"metadata": {"name": "lab-throttled"}, "spec": spec}
            code, answer = self.request("POST", path.rpartition("/")[0], body)
            if code != 201:
                raise RuntimeError(f"{path}: {code} {answer.get('message')}")
        try:
            return self._throttled(self.token(namespace, account))
        finally:
            for path in reversed(made):
                self.request("DELETE", path)

    def _throttled(self, token: str) -> httpx.Response:
        """Ask several times at once: a level without seats still takes one request at a time."""
        ends = time.monotonic() + READY_SECONDS
        with self.client(token) as client, ThreadPoolExecutor(8) as pool:
            while time.monotonic() < ends:
                for reply in pool.map(client.get, ["/openapi/v2"] * 8):
                    if reply.status_code == 429:
                        return reply
        raise TimeoutError(f"kube-apiserver does not throttle; see {self.workdir}")

    def _hold_controllers(self, *, held: bool) -> None:
        controllers = self._programs[-1]
        controllers.freeze() if held else controllers.thaw()

    def stop(self) -> None:
        atexit.unregister(self.stop)
        if self._client is not None:
            self._client.close()
            self._client = None
        while self._programs:
            self._programs.pop().stop()

    def _await_ready(self) -> None:
        ends = time.monotonic() + READY_SECONDS
        while time.monotonic() < ends:
            for running in self._programs:
                running.check()
            with contextlib.suppress(TimeoutError):
                self.wait_ready(1.0)
                return
        raise TimeoutError(f"kube-apiserver was not ready within {READY_SECONDS:.0f} s; see {self.workdir}")

    def _await_default_account(self) -> None:
        ends = time.monotonic() + READY_SECONDS
        while time.monotonic() < ends:
            if self.request("GET", "/api/v1/namespaces/default/serviceaccounts/default")[0] == 200:
                return
            time.sleep(0.1)
        raise TimeoutError(f"no default ServiceAccount within {READY_SECONDS:.0f} s; see {self.workdir}")

    def _aged(self, token: str, seconds: int) -> str:
        head, payload, _ = token.split(".")
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        now = int(time.time())
        claims |= {
            "exp": now + seconds,
            "iat": now + min(seconds, 0) - 600,
            "nbf": now + min(seconds, 0) - 600,
        }
        signed = f"{head}.{_encoded(json.dumps(claims).encode())}"
        key = serialization.load_pem_private_key((self.workdir / "sa.key").read_bytes(), None)
        if not isinstance(key, rsa.RSAPrivateKey):
            raise TypeError(f"{self.workdir}/sa.key is not the RSA key that was written there")
        return f"{signed}.{_encoded(key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _etcd(workdir: Path, port: int, peer: int) -> list[str]:
    url, peers = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer}"
    return [
        str(program("etcd")),
        "--unsafe-no-fsync",
        f"--data-dir={workdir / 'etcd'}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=default={peers}",
    ]


def _api_server(workdir: Path, port: int, etcd_port: int) -> list[str]:
    return [
        str(program("kube-apiserver")),
        f"--etcd-servers=http://127.0.0.1:{etcd_port}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={port}",
        "--service-cluster-ip-range=10.0.0.0/24",
        f"--tls-cert-file={workdir / 'server.crt'}",
        f"--tls-private-key-file={workdir / 'server.key'}",
        f"--client-ca-file={workdir / 'ca.crt'}",
        f"--token-auth-file={workdir / 'tokens.csv'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={workdir / 'sa.pub'}",
        f"--service-account-signing-key-file={workdir / 'sa.key'}",
        "--authorization-mode=Node,RBAC",
        "--endpoint-reconciler-type=none",
        f"--cert-dir={workdir / 'generated'}",
    ]


def _no_room_for(namespace: str, account: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The specs of a priority level without seats and of the flow schema that sends an account there."""
    limited = {"nominalConcurrencyShares": 0, "lendablePercent": 0, "borrowingLimitPercent": 0}
    level = {"type": "Limited", "limited": {**limited, "limitResponse": {"type": "Reject"}}}
    subject = {"kind": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": account}}
    everything = {
        "subjects": [subject],
        "resourceRules": [
            {
                "verbs": ["*"],
                "apiGroups": ["*"],
                "resources": ["*"],
                "clusterScope": True,
                "namespaces": ["*"],
            }
        ],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    }
    schema = {"priorityLevelConfiguration": {"name": "lab-throttled"}, "matchingPrecedence": 2}
    return level, {**schema, "rules": [everything]}


def _controllers(workdir: Path, kubeconfig: Path, grace_seconds: float | None) -> list[str]:
    names = CONTROLLERS if grace_seconds is None else (*CONTROLLERS, *NODE_CONTROLLERS)
    watching = [
        f"--node-monitor-grace-period={grace_seconds}s",
        "--node-monitor-period=1s",
    ]
    return [
        str(program("kube-controller-manager")),
        f"--kubeconfig={kubeconfig}",
        f"--controllers={','.join(names)}",
        *(watching if grace_seconds is not None else []),
        f"--service-account-private-key-file={workdir / 'sa.key'}",
        "--leader-elect=false",
        "--secure-port=0",
        "--use-service-account-credentials=false",
        f"--kube-api-qps={CONTROLLER_QPS}",
        f"--kube-api-burst={CONTROLLER_QPS}",
    ]


def _until_refused(port: int) -> None:
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1.0).close()
        except OSError:
            return
        time.sleep(0.02)
