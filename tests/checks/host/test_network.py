"""InfiniBand and Ethernet links: table 1.2 of the node checks, row by row."""

from pathlib import Path

import pytest

from checks.check import Check, Observation
from checks.host import ethernet, ib_link, ib_state
from checks.policy import Expected, Policy
from tests.checks.host.harness import Server, symptoms

PORT = "sys/class/infiniband/mlx5_3/ports/1"


def expecting(*ports: str, rate: float | None = None, nics: tuple[str, ...] = ()) -> Policy:
    return Policy(expected=Expected(ib_ports=ports, ib_rate_gbps=rate, nics=nics))


def test_a_port_that_is_down_is_a_warning_and_after_four_minutes_critical(tmp_path: Path) -> None:
    server = Server(tmp_path, ib_state.CHECK)
    assert server.look(2) == []
    server.write(f"{PORT}/state", "1: DOWN")
    server.write(f"{PORT}/phys_state", "2: Polling")
    assert server.look(2) == []
    assert server.look() == ["ib-state mlx5_3/1 warning/none"]
    assert server.look_for(180) == ["ib-state mlx5_3/1 critical/failover"]


def test_a_port_clears_when_it_has_been_up_for_ten_minutes(tmp_path: Path) -> None:
    server = Server(tmp_path, ib_state.CHECK)
    server.look()
    server.write(f"{PORT}/state", "2: INIT")
    server.look(3)
    server.write(f"{PORT}/state", "4: ACTIVE")
    assert server.look_for(570) == ["ib-state mlx5_3/1 warning/none"]
    assert server.look() == []


def test_a_port_that_was_never_up_is_nobodys_unless_it_is_expected(tmp_path: Path) -> None:
    for policy, wrong in ((Policy(), []), (expecting("mlx5_3"), ["ib-state mlx5_3/1 warning/none"])):
        server = Server(tmp_path, ib_state.CHECK, policy)
        server.write(f"{PORT}/state", "1: DOWN")
        assert server.look(3) == wrong


def test_only_expected_ports_are_watched(tmp_path: Path) -> None:
    server = Server(tmp_path, ib_state.CHECK, expecting("mlx5_0", "mlx5_1/1"))
    server.look()
    server.write(f"{PORT}/state", "1: DOWN")
    assert server.look(5) == []


def test_a_device_that_has_left_is_a_port_that_is_down(tmp_path: Path) -> None:
    server = Server(tmp_path, ib_state.CHECK)
    server.look()
    server.remove("sys/class/infiniband/mlx5_3")
    assert server.look(3) == ["ib-state mlx5_3/1 warning/none"]


def test_one_failed_read_is_not_a_port_that_is_gone(tmp_path: Path) -> None:
    server = Server(tmp_path, ib_state.CHECK)
    server.look()
    server.remove(f"{PORT}/state")
    assert server.look(10) == []


@pytest.mark.parametrize("gone", ["sys/class/infiniband", "sys/class/infiniband/mlx5_0/ports"])
def test_every_port_gone_at_once_is_reader_trouble(tmp_path: Path, gone: str) -> None:
    server = Server(tmp_path, ib_state.CHECK, expecting("mlx5_0/1", "mlx5_0/2"))
    server.write("sys/class/infiniband/mlx5_0/ports/2/state", "4: ACTIVE")
    server.write("sys/class/infiniband/mlx5_0/ports/2/phys_state", "5: LinkUp")
    assert server.look() == []
    server.remove(gone)
    assert server.look(20) == ["ib-all-gone - warning/ask"]
    for number in (1, 2):
        server.write(f"sys/class/infiniband/mlx5_0/ports/{number}/state", "4: ACTIVE")
        server.write(f"sys/class/infiniband/mlx5_0/ports/{number}/phys_state", "5: LinkUp")
    assert server.look() == []


def test_no_link_is_judged_in_the_first_five_minutes(tmp_path: Path) -> None:
    server = Server(tmp_path, ib_state.CHECK, expecting("mlx5_3"))
    server.uptime = 30
    server.write(f"{PORT}/state", "1: DOWN")
    assert server.look(8) == []
    assert server.look_for(120) != []


@pytest.mark.parametrize(
    "off",
    [
        {f"{PORT}/phys_state": "3: Disabled"},
        {
            f"{PORT}/link_layer": "Ethernet",
            f"{PORT}/gid_attrs/ndevs/0": "ens3",
            "sys/class/net/ens3/flags": "0x1002",
        },
    ],
)
def test_a_port_that_an_administrator_took_down_is_no_fault(tmp_path: Path, off: dict[str, str]) -> None:
    server = Server(tmp_path, ib_state.CHECK, expecting("mlx5_3"))
    server.write(f"{PORT}/state", "1: DOWN")
    for path, content in off.items():
        server.write(path, content)
    assert server.look(10) == []


def test_three_losses_of_a_link_in_three_hours_are_flapping(tmp_path: Path) -> None:
    server = Server(tmp_path, ib_link.FLAP)
    server.write(f"{PORT}/counters/link_downed", 17)
    server.look()
    for downs in (18, 19):
        server.write(f"{PORT}/counters/link_downed", downs)
        assert server.look_for(3000) == []
    server.write(f"{PORT}/counters/link_downed", 20)
    assert server.look() == ["ib-flap mlx5_3/1 critical/failover"]
    assert server.look_for(10_000) == ["ib-flap mlx5_3/1 critical/failover"]
    assert server.look_for(3600) == []


def test_slow_losses_are_not_flapping(tmp_path: Path) -> None:
    server = Server(tmp_path, ib_link.FLAP)
    for downs in range(10):
        server.write(f"{PORT}/counters/link_downed", downs)
        assert server.look_for(5400) == []


def test_flaps_and_errors_of_a_port_that_nobody_expects_are_nobodys(tmp_path: Path) -> None:
    for check, counter in ((ib_link.FLAP, "link_downed"), (ib_link.ERRORS, "symbol_error")):
        for expected, found in (("mlx5_0", 0), ("mlx5_3", 1)):
            server = Server(tmp_path, check, expecting(expected))
            server.look()
            server.write(f"{PORT}/counters/{counter}", 500)
            assert len(server.look(2)) == found


def test_losses_while_a_fabric_comes_up_do_not_count(tmp_path: Path) -> None:
    server = Server(tmp_path, ib_link.FLAP)
    server.uptime = 60
    server.look()
    server.write(f"{PORT}/counters/link_downed", 9)
    assert server.look_for(4000) == []


def test_a_slower_link_than_configured_is_found_and_clears_at_once(tmp_path: Path) -> None:
    server = Server(tmp_path, ib_link.RATE, expecting(rate=400))
    assert server.look(2) == []
    server.write(f"{PORT}/rate", "200 Gb/sec (4X HDR)")
    assert server.look(2) == ["ib-rate mlx5_3/1 warning/ask"]
    server.write(f"{PORT}/rate", "400 Gb/sec (4X NDR)")
    assert server.look(2) == []


def test_without_a_configured_rate_no_rate_is_wrong(tmp_path: Path) -> None:
    server = Server(tmp_path, ib_link.RATE)
    server.write(f"{PORT}/rate", "10 Gb/sec (4X SDR)")
    assert server.look(5) == []


def test_symbol_errors_count_by_the_hour_and_never_in_total(tmp_path: Path) -> None:
    server = Server(tmp_path, ib_link.ERRORS)
    server.write(f"{PORT}/counters/symbol_error", 65_000)
    assert server.look(3) == []
    server.write(f"{PORT}/counters/symbol_error", 65_100)
    assert server.look(3) == []
    server.write(f"{PORT}/counters/symbol_error", 65_130)
    assert server.look(2) == ["ib-errors mlx5_3/1 warning/ask"]
    assert server.look_for(3000) == ["ib-errors mlx5_3/1 warning/ask"]
    assert server.look_for(900) == []


@pytest.mark.parametrize("check", [ib_state.CHECK, ib_link.FLAP, ib_link.RATE, ib_link.ERRORS])
def test_a_node_without_infiniband_is_well(tmp_path: Path, check: Check) -> None:
    server = Server(tmp_path, check)
    server.remove("sys/class/infiniband")
    assert server.look(5) == []
    assert isinstance(server.glance(), Observation)


def test_a_network_link_without_a_carrier_is_found_after_two_minutes(tmp_path: Path) -> None:
    server = Server(tmp_path, ethernet.CHECK)
    server.look()
    server.write("sys/class/net/eno2/carrier", 0)
    assert server.look(2) == []
    assert server.look() == ["ethernet eno2 warning/ask"]
    server.write("sys/class/net/eno2/carrier", 1)
    assert server.look_for(240) == ["ethernet eno2 warning/ask"]
    assert server.look() == []


def test_every_link_down_at_once_is_given_two_minutes_too(tmp_path: Path) -> None:
    server = Server(tmp_path, ethernet.CHECK)
    server.look()
    for name in ("eno1", "eno2"):
        server.write(f"sys/class/net/{name}/carrier", 0)
    assert server.look(2) == []
    assert server.look() == ["ethernet-all - warning/ask"]
    server.write("sys/class/net/eno1/carrier", 1)
    assert server.look() == []


def test_a_link_that_is_switched_off_is_no_fault(tmp_path: Path) -> None:
    server = Server(tmp_path, ethernet.CHECK)
    server.look()
    server.write("sys/class/net/eno2/flags", "0x1002")
    server.remove("sys/class/net/eno2/carrier")
    assert server.look(5) == []


def test_an_interface_that_moved_away_is_missed_only_where_it_is_expected(tmp_path: Path) -> None:
    for policy, wrong in ((Policy(), []), (expecting(nics=("eno1", "eno2")), ["ethernet eno2 warning/ask"])):
        server = Server(tmp_path, ethernet.CHECK, policy)
        server.look()
        server.remove("sys/class/net/eno2")
        assert server.look(5) == wrong


def test_interfaces_that_are_no_hardware_are_not_watched(tmp_path: Path) -> None:
    server = Server(tmp_path, ethernet.CHECK)
    for name, value in {"flags": "0x1003", "type": 1, "carrier": 1}.items():
        server.write(f"sys/class/net/cni0/{name}", value)
    server.look()
    server.write("sys/class/net/cni0/carrier", 0)
    assert server.look(5) == []
    assert list(symptoms(server.glance())) == []
