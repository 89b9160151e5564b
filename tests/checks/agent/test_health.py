"""The agent's own health: what its pages say, and that no client and no trouble outside can hang them."""

import json
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from checks.agent.health import REPORT_LIMIT_SECONDS, STEP_LIMIT_SECONDS, Health, healthz, metrics
from checks.agent.http_server import REQUEST_SECONDS, HttpServer
from checks.agent.runtime import SystemRuntime
from tests.checks.agent.harness import XID, Bot, Node, wait_for

WELL = Health(
    age=500.0,
    step_age=3.0,
    report_age=12.0,
    sequence=4711,
    lost=0,
    blind_spots=(),
    child=True,
    findings={"critical": 1, "info": 2},
    answers={"202": 17, "none": 1},
    cpu_seconds=1.5,
    resident_bytes=24_000_000,
)


def changed(**changes: Any) -> Health:
    fields = {name: getattr(WELL, name) for name in WELL.__struct_fields__}
    return Health(**{**fields, **changes})


@pytest.mark.parametrize(
    ("changes", "status", "word", "trouble"),
    [
        ({}, 200, "ok", []),
        ({"child": None, "sequence": None, "report_age": None, "age": 5.0}, 200, "ok", []),
        ({"step_age": STEP_LIMIT_SECONDS + 1}, 503, "hung", ["not been read for 91 s"]),
        (
            {"report_age": REPORT_LIMIT_SECONDS + 1},
            200,
            "degraded",
            ["no report has been accepted for 121 s"],
        ),
        ({"report_age": None}, 200, "degraded", ["no report has been accepted since the start"]),
        ({"blind_spots": ("log-blind", "check-blind")}, 200, "degraded", ["log-blind", "check-blind"]),
        ({"child": False}, 200, "ok", []),
    ],
)
def test_only_a_reader_that_hangs_asks_for_a_restart(
    changes: dict[str, Any], status: int, word: str, trouble: list[str]
) -> None:
    code, kind, body = healthz(changed(**changes))
    said = json.loads(body)
    assert (code, kind, said["status"]) == (status, "application/json", word)
    assert len(said["trouble"]) == len(trouble)
    assert all(part in text for part, text in zip(trouble, said["trouble"], strict=True))


def test_the_metrics_are_what_prometheus_reads() -> None:
    code, kind, body = metrics(WELL)
    assert (code, kind.partition(";")[0]) == (200, "text/plain")
    families = {each.name: each for each in text_string_to_metric_families(body.decode())}
    values = {
        (sample.name, *sample.labels.values()): sample.value
        for family in families.values()
        for sample in family.samples
    }
    assert values["clusterwright_agent_kernel_log_sequence",] == 4711
    assert values["clusterwright_agent_reports_total", "202"] == 17
    assert values["clusterwright_agent_findings", "info"] == 2
    assert values["clusterwright_agent_nvml_child_up",] == 1
    assert all(family.documentation and family.type in ("gauge", "counter") for family in families.values())


def test_what_is_not_known_is_no_sample() -> None:
    _, _, body = metrics(changed(child=None, sequence=None, report_age=None, findings={}))
    names = {each.name for each in text_string_to_metric_families(body.decode()) if each.samples}
    assert not names & {
        "clusterwright_agent_nvml_child_up",
        "clusterwright_agent_kernel_log_sequence",
        "clusterwright_agent_report_age_seconds",
        "clusterwright_agent_findings",
    }


@pytest.fixture
def server() -> Iterator[HttpServer]:
    pages = {"/healthz": lambda: healthz(WELL), "/metrics": lambda: metrics(WELL)}
    server = HttpServer("127.0.0.1:0", pages, SystemRuntime())
    server.start()
    yield server
    server.stop()


def asked(server: HttpServer, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", server.port or 0), 5) as client:
        client.sendall(request)
        answer = b""
        while part := client.recv(4096):
            answer += part
    return answer


@pytest.mark.parametrize(
    ("request_line", "answer"),
    [
        (b"GET /healthz HTTP/1.1", b"HTTP/1.1 200 OK"),
        (b"GET /metrics?x=1 HTTP/1.0", b"HTTP/1.1 200 OK"),
        (b"HEAD /healthz HTTP/1.1", b"HTTP/1.1 200 OK"),
        (b"GET / HTTP/1.1", b"HTTP/1.1 404 Not Found"),
        (b"POST /healthz HTTP/1.1", b"HTTP/1.1 405 Method Not Allowed"),
        (b"\xff\xfe\x00", b"HTTP/1.1 404 Not Found"),
        (b"x" * 20_000, b"HTTP/1.1 404 Not Found"),
    ],
)
def test_any_request_gets_an_answer(server: HttpServer, request_line: bytes, answer: bytes) -> None:
    said = asked(server, request_line[:8000] + b"\r\n\r\n")
    assert said.startswith(answer)
    assert (b'"ok"' in said.partition(b"\r\n\r\n")[2]) == (request_line.startswith(b"GET /healthz"))


def test_a_client_that_says_nothing_holds_up_the_others_only_briefly(server: HttpServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port or 0)):
        began = time.monotonic()
        assert asked(server, b"GET /healthz HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 200")
        assert time.monotonic() - began < 10 * REQUEST_SECONDS, "without a limit it would be for ever"


def test_a_client_that_leaves_in_the_middle_harms_nobody(server: HttpServer) -> None:
    for request in (b"", b"GET /met", b"GET /metrics HTTP/1.1\r\n\r\n"):
        client = socket.create_connection(("127.0.0.1", server.port or 0))
        client.sendall(request)
        client.close()
    assert asked(server, b"GET /healthz HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 200")


@pytest.fixture
def node(tmp_path: Path, bot: Bot) -> Iterator[Node]:
    node = Node(tmp_path, bot)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        node.environment["CLUSTERWRIGHT_AGENT__HEALTH_LISTEN"] = f"127.0.0.1:{probe.getsockname()[1]}"
    yield node
    if node.process is not None:
        node.kill()


def page(node: Node, path: str) -> str | None:
    listen = node.environment["CLUSTERWRIGHT_AGENT__HEALTH_LISTEN"]
    try:
        with urllib.request.urlopen(f"http://{listen}{path}", timeout=5) as answer:
            return str(answer.read().decode())
    except urllib.error.URLError:
        return None


def test_the_running_agent_tells_of_itself_whatever_the_bot_does(bot: Bot, node: Node) -> None:
    node.start()
    node.write(XID.format(code=79), XID.format(code=31))
    wait_for(lambda: bot.counts() == {"79": 1, "31": 1})
    assert json.loads(page(node, "/healthz") or "")["status"] == "ok"
    text = page(node, "/metrics") or ""
    assert 'clusterwright_agent_findings{severity="critical"} 1' in text
    assert "clusterwright_agent_kernel_log_sequence 1" in text
    assert "clusterwright_agent_nvml_child_up" not in text
    bot.stop()
    node.write(XID.format(code=79))
    wait_for(lambda: 'reports_total{status="none"}' in (page(node, "/metrics") or ""))
    assert json.loads(page(node, "/healthz") or "")["status"] == "ok"


def test_an_address_in_use_costs_the_pages_only_and_is_said(bot: Bot, node: Node) -> None:
    host, _, port = node.environment["CLUSTERWRIGHT_AGENT__HEALTH_LISTEN"].partition(":")
    with socket.create_server((host, int(port))):
        node.start()
        node.write(XID.format(code=79))
        wait_for(lambda: bot.counts() == {"79": 1})
    assert node.log().count("health pages cannot be served") == 1
