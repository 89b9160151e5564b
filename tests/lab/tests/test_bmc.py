"""The lab's BMCs: they speak Redfish as a real emulator does, and their machines obey later."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from reconciler.incidents.progress import OrderResult
from reconciler.repair.providers.provider import Machine, Order, Power, UnknownMachine
from reconciler.repair.providers.redfish import Redfish
from tests.lab.bmc import Bmc
from tests.lab.machines import Delays
from tests.lab.sushy import SushyBmc

DELAYS = Delays(obey_seconds=2.0, off_seconds=0.3)
NODES = ("gpu-01", "gpu-02", "gpu-03", "gpu-04")
PATIENCE_SECONDS = 60.0
"""A real sushy-emulator obeys up to 11 s late, and a busy machine notices later still."""


@pytest.fixture(scope="module")
def events() -> list[tuple[str, str]]:
    return []


@pytest.fixture(scope="module")
def bmc(tmp_path_factory: pytest.TempPathFactory, events: list[tuple[str, str]]) -> Iterator[Bmc]:
    def remember(node: str, state: str) -> None:
        events.append((node, state))

    with Bmc(tmp_path_factory.mktemp("bmc"), NODES, remember, DELAYS) as running:
        yield running


@pytest.fixture
def redfish(bmc: Bmc) -> Redfish:
    return Redfish(bmc.username, bmc.password)


def order(redfish: Redfish, address: str, which: Order) -> OrderResult:
    return redfish.act(address, "aaaaaaaaaaaa", which).result


def switch(bmc: Bmc, node: str, reset_type: str) -> int:
    """Send what the product never orders, and return the status."""
    login = (bmc.username, bmc.password)
    place = httpx.get(bmc.system_url(node), auth=login, follow_redirects=True).json()["@odata.id"]
    target = f"{bmc.proxy.url}{place}/Actions/ComputerSystem.Reset"
    return httpx.post(target, auth=login, json={"ResetType": reset_type}).status_code


def wait_for(what: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not what():
        assert time.monotonic() < until, "not seen in time"
        time.sleep(0.02)


@pytest.mark.parametrize("kind", [Bmc, SushyBmc])
def test_ours_and_a_real_emulator_restart_a_machine_alike(kind: type[Bmc | SushyBmc], tmp_path: Path) -> None:
    events: list[tuple[str, str]] = []
    with kind(tmp_path, ("gpu-01", "gpu-02"), lambda node, state: events.append((node, state))) as bmc:
        redfish, address = Redfish(bmc.username, bmc.password), bmc.system_url("gpu-01")
        assert httpx.get(address, auth=(bmc.username, bmc.password)).status_code == 307
        assert httpx.get(address).status_code == 401
        assert isinstance(redfish.observe(bmc.system_url("gpu-99")), UnknownMachine)
        machine = redfish.observe(address)
        assert isinstance(machine, Machine)
        assert (machine.power, len(machine.uuid)) == (Power.ON, 36)
        assert machine.orders == frozenset(Order)
        assert order(redfish, address, Order.FORCE_RESTART) is OrderResult.ACCEPTED
        wait_for(lambda: ("gpu-01", "Off") in events)
        bmc.stop()
        assert order(redfish, address, Order.FORCE_RESTART) is OrderResult.NOT_SENT
        bmc.start()
        wait_for(lambda: events == [("gpu-01", "Off"), ("gpu-01", "On")])
        assert bmc.system_url("gpu-01") == address
        back = redfish.observe(address)
        assert isinstance(back, Machine)
        assert (back.power, back.uuid) == (Power.ON, machine.uuid)
        assert (bmc.resets("gpu-01"), bmc.resets("gpu-02")) == (1, 0)


def test_a_machine_stays_on_for_a_while_after_its_order_was_accepted(bmc: Bmc, redfish: Redfish) -> None:
    began = time.monotonic()
    assert order(redfish, bmc.system_url("gpu-01"), Order.FORCE_RESTART) is OrderResult.ACCEPTED
    answered = redfish.observe(bmc.system_url("gpu-01"))
    seen_at = time.monotonic() - began
    assert isinstance(answered, Machine)
    assert answered.power is Power.ON
    assert seen_at < DELAYS.obey_seconds, "this machine is too slow to see it"
    wait_for(lambda: bmc.resets("gpu-01") == 1)
    assert time.monotonic() - began >= DELAYS.obey_seconds
    wait_for(lambda: bmc.power("gpu-01") == "On")
    assert time.monotonic() - began >= DELAYS.obey_seconds + DELAYS.off_seconds


def test_an_order_that_is_ignored_is_accepted_all_the_same(
    bmc: Bmc, redfish: Redfish, events: list[tuple[str, str]]
) -> None:
    bmc.ignore_next_order("gpu-02")
    assert order(redfish, bmc.system_url("gpu-02"), Order.RESTART) is OrderResult.ACCEPTED
    assert order(redfish, bmc.system_url("gpu-02"), Order.FORCE_RESTART) is OrderResult.ACCEPTED
    wait_for(lambda: ("gpu-02", "On") in events)
    assert bmc.orders("gpu-02") == ["GracefulRestart", "ForceRestart"]
    assert bmc.resets("gpu-02") == 1


def test_a_machine_that_is_off_stays_off_until_it_is_switched_on(bmc: Bmc, redfish: Redfish) -> None:
    address = bmc.system_url("gpu-03")
    assert switch(bmc, "gpu-03", "GracefulShutdown") == 204
    wait_for(lambda: bmc.power("gpu-03") == "Off")
    assert isinstance(seen := redfish.observe(address), Machine)
    assert seen.power is Power.OFF
    assert switch(bmc, "gpu-03", "On") == 204
    wait_for(lambda: bmc.power("gpu-03") == "On")
    assert bmc.resets("gpu-03") == 1


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "", 405),
        ("POST", "/Actions/ComputerSystem.Reset", 400),
        ("GET", "/Processors", 404),
    ],
)
def test_what_redfish_does_not_offer_is_refused(bmc: Bmc, method: str, path: str, status: int) -> None:
    login = (bmc.username, bmc.password)
    place = httpx.get(bmc.system_url("gpu-04"), auth=login, follow_redirects=True).json()["@odata.id"]
    answer = httpx.request(method, f"{bmc.proxy.url}{place}{path}", auth=login, json={"ResetType": "Nmi"})
    assert answer.status_code == status
    assert answer.json()["error"]["message"]
