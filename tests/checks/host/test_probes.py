"""Shared services: names, the API server, endpoints of the policy (table 1.2), by real sockets."""

import contextlib
import json
import os
import socket
import ssl
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.incidents.correlate import cause_of, faults
from checks.check import Check, CheckContext, NodeFacts, Observation
from checks.finding import Action
from checks.host import probes
from checks.host.net_probe import NetProbe
from checks.host.probes import API, ProbesCheck
from checks.policy import Expected, NetworkLimits, Policy
from checks.report import Inventory, NodeReport
from reconciler.incidents.records import Cause
from tests.checks.host.harness import WALL, Server, symptoms
from tests.lab.kube import certificates
from tests.lab.missing import require

SECONDS = 1.0


def expecting(*, names: tuple[str, ...] = (), endpoints: tuple[str, ...] = ()) -> Policy:
    return Policy(
        expected=Expected(names=names, endpoints=endpoints), network=NetworkLimits(probe_seconds=SECONDS)
    )


def check(port: int | None = None) -> Check:
    """The check as it is in a pod whose API server has this port, or outside of any cluster."""
    api = {} if port is None else dict(zip(API, ("127.0.0.1", str(port)), strict=True))
    return Check(name="probes", about="", observe=ProbesCheck(api).observe, rule=probes.CHECK.rule)


@contextlib.contextmanager
def listening(tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """A server on 127.0.0.1 that takes connections, and speaks TLS when it is given a context."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        accepting = threading.Thread(target=accept, args=(server, tls), daemon=True)
        if tls is not None:
            accepting.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        if tls is not None:
            accepting.join(5)


def accept(server: socket.socket, tls: ssl.SSLContext) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection, _ = server.accept()
            with contextlib.suppress(OSError), tls.wrap_socket(connection, server_side=True) as spoken:
                spoken.recv(1)


@pytest.fixture
def certificate(tmp_path: Path) -> ssl.SSLContext:
    """Of an authority that nobody here trusts."""
    folder = tmp_path / "certificates"
    folder.mkdir()
    certificates.write(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    return context


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_a_name_that_does_not_resolve_is_found_at_the_third_look_and_clears_at_the_second(
    tmp_path: Path,
) -> None:
    server = Server(tmp_path, check(), expecting(names=("no-such-host.invalid", "localhost")))
    assert server.look(2) == []
    assert server.look() == ["dns-fails no-such-host.invalid warning/none"]
    server.policy = expecting(names=("localhost",))
    assert server.look() == ["dns-fails no-such-host.invalid warning/none"]
    assert server.look() == []


@pytest.mark.parametrize(
    ("url", "wrong"),
    [
        ("https://clusterwright-bot.invalid:8443", ["clusterwright-bot.invalid"]),
        ("https://127.0.0.1:8443", []),
        ("https://[::1]:8443", []),
        ("https://localhost:8443/below", []),
    ],
)
def test_the_bots_own_name_is_looked_up_where_it_is_one(tmp_path: Path, url: str, wrong: list[str]) -> None:
    context = CheckContext(
        root=tmp_path, now=WALL, uptime=0.0, policy=expecting(), facts=NodeFacts(bot_url=url)
    )
    assert [each.device for each in symptoms(check().observe(context))] == wrong


def test_an_api_server_that_speaks_tls_is_well_whoever_signed_for_it(
    tmp_path: Path, certificate: ssl.SSLContext
) -> None:
    with listening(certificate) as port:
        server = Server(tmp_path, check(port), expecting())
        assert server.look(3) == []
        assert server.glance() == Observation()


def test_an_api_server_that_refuses_or_stays_silent_is_found(tmp_path: Path) -> None:
    port = closed_port()
    assert Server(tmp_path, check(port), expecting()).look(3) == [
        f"api-unreachable 127.0.0.1:{port} warning/none"
    ]
    with listening() as port:
        assert Server(tmp_path, check(port), expecting()).look(3) == [
            f"api-unreachable 127.0.0.1:{port} warning/none"
        ]


def test_outside_of_a_cluster_no_api_server_is_missed(tmp_path: Path) -> None:
    assert Server(tmp_path, check(), expecting()).glance() == Observation()


def test_each_endpoint_of_the_policy_is_reached_for_by_itself(tmp_path: Path) -> None:
    refused, unknown = f"127.0.0.1:{closed_port()}", "registry.invalid:443"
    with listening() as port:
        policy = expecting(endpoints=(f"localhost:{port}", refused, unknown, "[::ffff:127.0.0.1]:1"))
        assert Server(tmp_path, check(), policy).look(3) == [
            f"endpoint-unreachable {refused} warning/none",
            "endpoint-unreachable registry.invalid:443 warning/none",
            "endpoint-unreachable [::ffff:127.0.0.1]:1 warning/none",
        ]


def test_no_shared_service_is_judged_in_the_first_five_minutes(tmp_path: Path) -> None:
    server = Server(tmp_path, check(), expecting(names=("no-such-host.invalid",)))
    server.uptime = 30
    assert server.look(7) == []
    assert server.look() == ["dns-fails no-such-host.invalid warning/none"]


def test_a_shared_service_that_fails_opens_no_incident_and_calls_for_no_repair(tmp_path: Path) -> None:
    endpoints = (f"127.0.0.1:{closed_port()}",)
    policy = expecting(names=("no-such-host.invalid",), endpoints=endpoints)
    server = Server(tmp_path, check(closed_port()), policy)
    server.look(3)
    found = tuple(server.debouncer.findings())
    assert {each.code for each in found} == {"dns-fails", "api-unreachable", "endpoint-unreachable"}
    assert {(each.action, cause_of(each)) for each in found} == {(Action.NONE, Cause.NETWORK)}
    report = NodeReport(
        node="gpu-01", boot_id="b1", sequence=1, sent_at=0.0, agent_version="0.1.0",
        inventory=Inventory(gpus=None), findings=found, blind_spots=(),
    )  # fmt: skip
    assert faults(report) == {}


def test_a_probe_that_hangs_is_waited_for_once_and_not_started_again() -> None:
    release, net = threading.Event(), NetProbe()
    count = 0

    def hang() -> None:
        nonlocal count
        count += 1
        release.wait(30)

    before = threading.active_count()
    began = time.monotonic()
    assert net.run_all({"a": hang, "b": lambda: None}, SECONDS) == {"a": "no answer in 1 s", "b": ""}
    assert SECONDS <= time.monotonic() - began < 5
    for _ in range(20):
        assert net.run_all({"a": hang}, 30)["a"]
    assert (count, threading.active_count()) == (1, before + 1)
    release.set()
    while threading.active_count() > before:
        time.sleep(0.01)
    assert net.run_all({"a": hang}, 5) == {"a": ""}
    assert count == 2


LOOKS = """
    import json, sys, threading, time
    from pathlib import Path
    from checks.check import CheckContext
    from checks.host.probes import ProbesCheck
    from checks.policy import Expected, NetworkLimits, Policy
    policy = Policy(expected=Expected(names=("nas-1.example",)), network=NetworkLimits(probe_seconds=1.0))
    probes, rows = ProbesCheck({}), []
    for _ in range(5):
        began = time.monotonic()
        seen = probes.observe(CheckContext(root=Path("/"), now=0, uptime=0, policy=policy))
        took = time.monotonic() - began
        rows.append(([each.code for each in seen.symptoms], took, threading.active_count()))
    print(json.dumps(rows))
"""
"""Five runs in a row, by a program of its own: its resolver asks the name server of its mount namespace."""


@pytest.mark.xdist_group("resolver")
def test_a_name_server_that_never_answers_holds_nobody_up(tmp_path: Path) -> None:
    require(None if os.geteuid() == 0 else "a resolver of one's own needs root, for port 53 and a mount")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.83.53.1", 53))
        silent.settimeout(5)
        (tmp_path / "resolv.conf").write_text("nameserver 127.83.53.1\noptions timeout:5 attempts:2\n")
        mount = f"mount --bind {tmp_path}/resolv.conf /etc/resolv.conf"
        script = f'{mount} && exec "$0" -c "$1"'
        command = ["unshare", "--mount", "sh", "-c", script, sys.executable, textwrap.dedent(LOOKS)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
        assert b"nas-1" in silent.recv(512)
    rows = json.loads(done.stdout)
    assert [codes for codes, _, _ in rows] == [["dns-fails"]] * 5
    assert [threads for _, _, threads in rows] == [2] * 5
    # The resolver gives up after 20 s; the first run waited for its own limit, 1 s. The others did not wait
    # for the look-up that still ran: had each waited, the four would have taken 4 s.
    assert 1 <= rows[0][1] < 8
    assert sum(took for _, took, _ in rows[1:]) < 4
