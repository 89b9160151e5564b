"""The Redfish provider against the lab's BMCs behind a proxy that breaks things."""

import http.server
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from reconciler.incidents.progress import OrderResult
from reconciler.repair.providers.provider import Machine, Order, OrderOutcome, Power, UnknownMachine
from reconciler.repair.providers.redfish import Redfish
from tests.lab.bmc import Bmc

NODES = ("gpu-01", "gpu-02", "gpu-03", "gpu-04", "gpu-05", "gpu-06", "gpu-07")
PATIENCE_SECONDS = 60.0
"""A machine obeys some time after its order was accepted."""


ACTION = "aaaaaaaaaaaa"

Answers = dict[str, tuple[int, dict[str, str], bytes]]


@pytest.fixture(scope="module")
def bmc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bmc]:
    with Bmc(tmp_path_factory.mktemp("redfish"), NODES) as running:
        yield running


@pytest.fixture
def redfish(bmc: Bmc) -> Redfish:
    return Redfish(bmc.username, bmc.password, timeout_seconds=2)


def certainly_not_sent(outcome: OrderOutcome) -> bool:
    return outcome.result is OrderResult.NOT_SENT and bool(outcome.reason)


@contextmanager
def answering(answers: Answers, certificate: Path | None = None) -> Iterator[tuple[str, list[Any]]]:
    """A BMC that gives one fixed answer per method, and the requests it received."""
    seen: list[Any] = []

    class Fixed(http.server.BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            seen.append((self.command, self.path, self.headers.get("Authorization")))
            status, headers, body = answers[self.command]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = answer  # noqa: N815 - the library's names

        def log_message(self, *_: object) -> None:
            pass

    class Quiet(http.server.ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            pass

    with Quiet(("127.0.0.1", 0), Fixed) as server:
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_address[1]}", seen
        finally:
            server.shutdown()
            thread.join()


def self_signed(path: Path) -> Path:
    """A key and its certificate for 127.0.0.1, in one PEM file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, path.stem)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(private + certificate.public_bytes(pem))
    return path


def system_with_reset_at(target: str) -> bytes:
    return (
        b'{"PowerState": "On", "SerialNumber": "SN1", "BootProgress": {"LastState": "OSRunning"}, '
        b'"Actions": {"#ComputerSystem.Reset": {"target": "%s"}}}' % target.encode()
    )


def count_resets(bmc: Bmc, node: str) -> tuple[int, int]:
    """Wait for the machine to go down; return how often it did, and how many orders arrived."""
    until = time.monotonic() + PATIENCE_SECONDS
    while bmc.resets(node) == 0 and time.monotonic() < until:
        time.sleep(0.05)
    return bmc.resets(node), bmc.reset_posts(node)


def test_a_machine_is_observed_by_name_through_the_redirect(bmc: Bmc, redfish: Redfish) -> None:
    machine = redfish.observe(bmc.system_url("gpu-01"))
    assert isinstance(machine, Machine)
    assert machine.power is Power.ON
    assert machine.orders == frozenset(Order)
    assert machine.uuid


def test_a_reset_is_executed_exactly_once(bmc: Bmc, redfish: Redfish) -> None:
    assert redfish.act(bmc.system_url("gpu-01"), ACTION, Order.RESTART) == OrderOutcome(OrderResult.ACCEPTED)
    assert count_resets(bmc, "gpu-01") == (1, 1)


def test_a_machine_that_is_off_is_observed_so(bmc: Bmc, redfish: Redfish) -> None:
    system = httpx.get(bmc.system_url("gpu-07"), auth=(bmc.username, bmc.password), follow_redirects=True)
    target = system.url.join(system.json()["Actions"]["#ComputerSystem.Reset"]["target"])
    off = httpx.post(target, json={"ResetType": "ForceOff"}, auth=(bmc.username, bmc.password))
    assert off.is_success
    until = time.monotonic() + PATIENCE_SECONDS
    while bmc.power("gpu-07") != "Off" and time.monotonic() < until:
        time.sleep(0.1)
    down = redfish.observe(bmc.system_url("gpu-07"))
    assert isinstance(down, Machine)
    assert down.power is Power.OFF


def test_a_lost_reply_is_unknown_and_the_reset_happened_once(bmc: Bmc, redfish: Redfish) -> None:
    bmc.lose_next_reply("gpu-02")
    assert redfish.act(bmc.system_url("gpu-02"), ACTION, Order.FORCE_RESTART).result is OrderResult.UNKNOWN
    assert count_resets(bmc, "gpu-02") == (1, 1)


def test_an_internal_error_is_unknown_because_the_reset_may_have_happened(bmc: Bmc, redfish: Redfish) -> None:
    bmc.fail_next_reply("gpu-03")
    outcome = redfish.act(bmc.system_url("gpu-03"), ACTION, Order.FORCE_RESTART)
    assert outcome.result is OrderResult.UNKNOWN
    assert "answered 500 to ForceRestart: Internal error" in outcome.reason
    assert count_resets(bmc, "gpu-03") == (1, 1)


def test_a_refused_reset_is_certainly_not_done(bmc: Bmc, redfish: Redfish) -> None:
    bmc.refuse("gpu-04")
    outcome = redfish.act(bmc.system_url("gpu-04"), ACTION, Order.RESTART)
    bmc.clear("gpu-04")
    assert outcome.result is OrderResult.REFUSED
    assert "409" in outcome.reason
    assert "refuses this request" in outcome.reason
    assert (bmc.resets("gpu-04"), bmc.reset_posts("gpu-04")) == (0, 1)


def test_an_order_that_is_not_offered_is_never_sent() -> None:
    body = system_with_reset_at("/reset").replace(
        b'"target"', b'"ResetType@Redfish.AllowableValues": ["On", "GracefulRestart"], "target"'
    )
    with answering({"GET": (200, {}, body), "POST": (204, {}, b"")}) as (url, seen):
        machine = Redfish().observe(url + "/redfish/v1/Systems/1")
        outcome = Redfish().act(url + "/redfish/v1/Systems/1", ACTION, Order.FORCE_RESTART)
    assert isinstance(machine, Machine)
    assert machine.orders == {Order.RESTART}
    assert certainly_not_sent(outcome)
    assert "does not offer ForceRestart" in outcome.reason
    assert [method for method, _, _ in seen] == ["GET", "GET"]


@pytest.mark.parametrize(
    ("word", "power"),
    [("On", Power.ON), ("Off", Power.OFF), ("PoweringOn", Power.CHANGING), ("Paused", Power.CHANGING)],
)
def test_every_power_state_has_its_meaning(word: str, power: Power) -> None:
    body = system_with_reset_at("/reset").replace(b'"PowerState": "On"', f'"PowerState": "{word}"'.encode())
    with answering({"GET": (200, {}, body)}) as (url, _):
        machine = Redfish().observe(url + "/redfish/v1/Systems/1")
    assert isinstance(machine, Machine)
    assert (machine.power, machine.detail) == (power, word)


def test_a_bmc_knows_nothing_of_an_order_that_was_given_before(redfish: Redfish) -> None:
    assert redfish.outcome("http://127.0.0.1:9/redfish/v1/Systems/1", ACTION).result is OrderResult.UNKNOWN


def test_a_hanging_reset_is_given_up_in_time_and_stays_unknown(bmc: Bmc) -> None:
    bmc.hang("gpu-05", 6.0)
    started = time.monotonic()
    outcome = Redfish(bmc.username, bmc.password, timeout_seconds=1).act(
        bmc.system_url("gpu-05"), ACTION, Order.FORCE_RESTART
    )
    assert time.monotonic() - started < 5.0
    bmc.clear("gpu-05")
    assert outcome.result is OrderResult.UNKNOWN
    assert bmc.resets("gpu-05") == 0
    assert count_resets(bmc, "gpu-05") == (1, 1)


def test_a_hanging_read_is_given_up_in_time_and_nothing_is_sent(bmc: Bmc) -> None:
    bmc.hang("gpu-06", 30.0, method="GET")
    impatient = Redfish(bmc.username, bmc.password, timeout_seconds=0.3)
    started = time.monotonic()
    assert isinstance(impatient.observe(bmc.system_url("gpu-06")), UnknownMachine)
    outcome = impatient.act(bmc.system_url("gpu-06"), ACTION, Order.FORCE_RESTART)
    assert time.monotonic() - started < 3
    bmc.clear("gpu-06")
    assert certainly_not_sent(outcome)
    assert (bmc.resets("gpu-06"), bmc.reset_posts("gpu-06")) == (0, 0)


def test_an_unreachable_bmc_is_unknown_to_look_at_and_certainly_not_reset(bmc: Bmc, redfish: Redfish) -> None:
    bmc.down()
    seen = redfish.observe(bmc.system_url("gpu-06"))
    outcome = redfish.act(bmc.system_url("gpu-06"), ACTION, Order.FORCE_RESTART)
    bmc.up()
    assert isinstance(seen, UnknownMachine)
    assert "refused" in seen.reason
    assert certainly_not_sent(outcome)
    assert isinstance(redfish.observe(bmc.system_url("gpu-06")), Machine)


def test_a_wrong_password_is_said_without_showing_it(bmc: Bmc) -> None:
    wrong = Redfish(bmc.username, "not-the-password", timeout_seconds=2)
    seen = wrong.observe(bmc.system_url("gpu-06"))
    assert isinstance(seen, UnknownMachine)
    assert "401" in seen.reason
    assert "not-the-password" not in seen.reason + repr(wrong)


def test_a_machine_the_bmc_does_not_know_is_unknown(bmc: Bmc, redfish: Redfish) -> None:
    seen = redfish.observe(bmc.system_url("gpu-99"))
    assert isinstance(seen, UnknownMachine)
    assert "404" in seen.reason


def test_the_whole_answer_is_read_into_the_machine() -> None:
    with answering({"GET": (200, {}, system_with_reset_at("/reset"))}) as (url, _):
        seen = Redfish().observe(url + "/redfish/v1/Systems/1")
    assert seen == Machine(power=Power.ON, orders=frozenset(Order), serial="SN1", detail="On")


def test_credentials_do_not_follow_a_redirect_to_another_host() -> None:
    with answering({"GET": (200, {}, system_with_reset_at("/reset"))}) as (elsewhere, stolen):
        away: Answers = {"GET": (307, {"Location": elsewhere + "/redfish/v1/Systems/1"}, b"")}
        with answering(away) as (url, seen):
            redfish = Redfish("admin", "secret")
            machine = redfish.observe(url + "/redfish/v1/Systems/1")
            outcome = redfish.act(url + "/redfish/v1/Systems/1", ACTION, Order.FORCE_RESTART)
    assert isinstance(machine, UnknownMachine)
    assert "credentials must not go" in machine.reason
    assert certainly_not_sent(outcome)
    assert len(seen) == 2
    assert stolen == []


@pytest.mark.parametrize("shape", ["{elsewhere}/reset", "//{authority}/reset"])
def test_credentials_do_not_go_to_a_reset_target_on_another_host(shape: str) -> None:
    with answering({"GET": (200, {}, b"{}"), "POST": (204, {}, b"")}) as (elsewhere, stolen):
        target = shape.format(elsewhere=elsewhere, authority=elsewhere.removeprefix("http://"))
        answers: Answers = {"GET": (200, {}, system_with_reset_at(target)), "POST": (204, {}, b"")}
        with answering(answers) as (url, seen):
            outcome = Redfish("admin", "secret").act(
                url + "/redfish/v1/Systems/1", ACTION, Order.FORCE_RESTART
            )
    assert certainly_not_sent(outcome)
    assert [method for method, _, _ in seen] == ["GET"]
    assert stolen == []


def test_a_redirected_reset_is_refused_and_not_followed() -> None:
    answers: Answers = {
        "GET": (200, {}, system_with_reset_at("/reset")),
        "POST": (307, {"Location": "/other"}, b""),
    }
    with answering(answers) as (url, seen):
        outcome = Redfish("admin", "secret").act(url + "/redfish/v1/Systems/1", ACTION, Order.FORCE_RESTART)
    assert outcome.result is OrderResult.REFUSED
    assert [(method, path) for method, path, _ in seen] == [
        ("GET", "/redfish/v1/Systems/1"),
        ("POST", "/reset"),
    ]


MEANINGS = {
    **dict.fromkeys((200, 202, 204), OrderResult.ACCEPTED),
    **dict.fromkeys((400, 403, 429), OrderResult.REFUSED),
    **dict.fromkeys((408, 499, 500, 501, 503), OrderResult.UNKNOWN),
}


@pytest.mark.parametrize(("status", "result"), MEANINGS.items())
def test_every_answer_to_a_reset_has_its_meaning(status: int, result: OrderResult) -> None:
    answers: Answers = {"GET": (200, {}, system_with_reset_at("/reset")), "POST": (status, {}, b"")}
    with answering(answers) as (url, seen):
        outcome = Redfish().act(url + "/redfish/v1/Systems/1", ACTION, Order.FORCE_RESTART)
    assert outcome.result is result
    assert [method for method, _, _ in seen] == ["GET", "POST"]


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b'"On"', b"{}", b'{"PowerState": null}', b'{"PowerState": 1}', b"\xff\xfe"],
)
def test_an_answer_that_is_not_a_system_is_unknown_and_resets_nothing(body: bytes) -> None:
    with answering({"GET": (200, {}, body)}) as (url, seen):
        assert isinstance(Redfish().observe(url), UnknownMachine)
        assert certainly_not_sent(Redfish().act(url, ACTION, Order.FORCE_RESTART))
    assert [method for method, _, _ in seen] == ["GET", "GET"]


def test_a_bmc_that_redirects_in_circles_is_given_up() -> None:
    with answering({"GET": (302, {"Location": "/again"}, b"")}) as (url, seen):
        machine = Redfish().observe(url)
    assert isinstance(machine, UnknownMachine)
    assert "circles" in machine.reason
    assert len(seen) == 4


def test_an_endless_answer_is_cut_off() -> None:
    with answering({"GET": (200, {}, b" " * (2 << 20))}) as (url, _):
        assert isinstance(Redfish().observe(url), UnknownMachine)


@pytest.mark.parametrize(
    "system", ["", "gpu-01", "ftp://127.0.0.1/x", "http://", "http://admin:secret@127.0.0.1/x", "http://[::1"]
)
def test_an_address_that_cannot_be_used_is_said_and_not_tried(system: str) -> None:
    seen, outcome = Redfish().observe(system), Redfish().act(system, ACTION, Order.FORCE_RESTART)
    assert isinstance(seen, UnknownMachine)
    assert certainly_not_sent(outcome)
    assert "secret" not in seen.reason + outcome.reason


def test_a_ca_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    missing, empty = tmp_path / "missing.pem", tmp_path / "empty.pem"
    empty.write_text("not a certificate")
    for path in (missing, empty):
        seen = Redfish(ca_file=path).observe("https://127.0.0.1:1/redfish/v1/Systems/1")
        outcome = Redfish(ca_file=path).act(
            "https://127.0.0.1:1/redfish/v1/Systems/1", ACTION, Order.FORCE_RESTART
        )
        assert isinstance(seen, UnknownMachine)
        assert str(path) in seen.reason
        assert certainly_not_sent(outcome)


def test_a_bmc_is_trusted_by_its_ca_and_by_no_other(tmp_path: Path) -> None:
    own, other = self_signed(tmp_path / "own.pem"), self_signed(tmp_path / "other.pem")
    answers: Answers = {"GET": (200, {}, system_with_reset_at("/reset")), "POST": (204, {}, b"")}
    with answering(answers, certificate=own) as (url, seen):
        for stranger in (Redfish("admin", "secret"), Redfish("admin", "secret", ca_file=other)):
            machine, outcome = stranger.observe(url), stranger.act(url, ACTION, Order.FORCE_RESTART)
            assert isinstance(machine, UnknownMachine)
            assert "certificate" in machine.reason
            assert certainly_not_sent(outcome)
        assert seen == []
        assert Redfish("admin", "secret", ca_file=own).act(url, ACTION, Order.FORCE_RESTART) == OrderOutcome(
            OrderResult.ACCEPTED
        )
        assert [method for method, _, _ in seen] == ["GET", "POST"]
