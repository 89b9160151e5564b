"""NVLink, fabric and PCIe."""

import pytest

from checks.finding import Action, Severity
from checks.gpu import fabric, nvlink, pcie
from checks.gpu_sample import BoardSample, FabricSample, GpuSnapshot
from checks.policy import Expected, Policy
from tests.checks.gpu.harness import ONE, TWO, GpuHarness, bus, gpus, sample

THREE = "0000:52:00.0"
JOINED = FabricSample(state=3, status=0, clique=0, multinode=False)


def links(up: int | None, device: str = "10de:2330", **known: object) -> GpuSnapshot:
    return gpus(
        sample(ONE, links_up=up, **known),
        sample(TWO),
        pci=(bus(ONE, device=device), bus(TWO)),
    )


# ---- nvlink-width


def test_a_link_that_is_down_asks_for_a_reset_after_two_looks() -> None:
    harness = GpuHarness(nvlink.WIDTH)
    assert harness.look(links(17)) == {}
    found = harness.look(links(17))[f"nvlink-width/{ONE}"]
    assert (found.severity, found.action, found.evidence) == (
        Severity.CRITICAL,
        Action.RESET_GPU,
        "17 of 18 up",
    )
    assert harness.look(links(18), 2) == {}


def test_links_that_are_still_trained_after_a_boot_are_not_down() -> None:
    harness = GpuHarness(nvlink.WIDTH, uptime=60.0)
    assert harness.look(links(0), 4) == {}
    assert harness.look(links(0), 2) != {}


@pytest.mark.parametrize(
    ("device", "up", "sick"),
    [
        ("10de:20b0", 12, False),
        ("10de:20b2", 11, True),
        ("10de:2335", 18, False),
        ("10de:2901", 17, True),
        ("10de:2331", 12, False),
        ("10de:20b5", 0, False),
    ],
)
def test_how_many_links_there_should_be_is_known_by_the_pci_id(device: str, up: int, sick: bool) -> None:
    assert bool(GpuHarness(nvlink.WIDTH).look(links(up, device), 3)) is sick


def test_a_board_we_do_not_know_is_compared_with_its_own_best() -> None:
    harness = GpuHarness(nvlink.WIDTH)
    assert harness.look(links(12, "10de:2331"), 3) == {}
    assert harness.look(links(11, "10de:2331"), 2)[f"nvlink-width/{ONE}"].evidence == "11 of 12 up"
    assert harness.minutes(links(11, "10de:2331"), 24 * 60) != {}, "the best is not forgotten"


def test_the_policy_says_better_than_the_table() -> None:
    eight = Policy(expected=Expected(nvlinks=8))
    up = gpus(sample(ONE, links_up=8), sample(TWO, links_up=8))
    assert GpuHarness(nvlink.WIDTH, eight).look(up, 3) == {}


def test_a_gpu_alone_in_its_node_needs_no_links() -> None:
    assert GpuHarness(nvlink.WIDTH).look(gpus(sample(ONE, links_up=0)), 3) == {}


def test_a_divided_gpu_and_one_without_links_are_not_judged() -> None:
    assert GpuHarness(nvlink.WIDTH).look(links(0, board=BoardSample(mig=True)), 3) == {}
    assert GpuHarness(nvlink.WIDTH).look(links(None), 3) == {}


def test_all_links_of_all_gpus_down_at_once_is_the_readers_trouble_first() -> None:
    found = GpuHarness(nvlink.WIDTH).look(gpus(sample(ONE, links_up=0), sample(TWO, links_up=0)), 3)
    assert [(each.code, each.severity) for each in found.values()] == [("nvlink-width-all", Severity.WARNING)]


# ---- nvlink-errors


def counting(harness: GpuHarness, name: str, by: int, times: int, start: int = 1000) -> list[str]:
    for each in range(times):
        harness.look(gpus(sample(ONE, **{name: start + each * by})))
    return [each.code for each in harness.findings().values()]


@pytest.mark.parametrize("name", ["link_replays", "link_recoveries"])
def test_replays_or_recoveries_in_three_looks_in_a_row_warn(name: str) -> None:
    harness = GpuHarness(nvlink.ERRORS)
    assert counting(harness, name, 1, 3) == []
    assert counting(harness, name, 1, 1, start=1003) == ["nvlink-replay"]
    assert next(iter(harness.findings().values())).action is Action.NONE


def test_a_hundred_checksum_errors_a_second_ask() -> None:
    assert counting(GpuHarness(nvlink.ERRORS), "link_crc", 5_900, 5) == []
    harness = GpuHarness(nvlink.ERRORS)
    assert counting(harness, "link_crc", 6_000, 2) == ["nvlink-crc"]
    assert next(iter(harness.findings().values())).action is Action.ASK


def test_a_high_bit_error_rate_asks_and_clears_after_half_an_hour() -> None:
    harness = GpuHarness(nvlink.ERRORS)
    assert harness.look(gpus(sample(ONE, link_ber=1e-6)), 5) == {}
    assert list(harness.look(gpus(sample(ONE, link_ber=3e-6)))) == [f"nvlink-ber/{ONE}"]
    assert harness.minutes(gpus(sample(ONE, link_ber=1e-12)), 30) != {}
    assert harness.minutes(gpus(sample(ONE, link_ber=1e-12)), 1) == {}


def test_lifetime_counters_and_a_reset_are_no_errors() -> None:
    harness = GpuHarness(nvlink.ERRORS)
    assert harness.look(gpus(sample(ONE, link_crc=10**9, link_replays=10**6)), 5) == {}
    assert harness.look(gpus(sample(ONE, link_crc=0, link_replays=0)), 5) == {}
    assert harness.look(gpus(sample(ONE, link_crc=None, link_replays=None, link_recoveries=None)), 5) == {}


# ---- fabric


def joined(state: FabricSample | None, switches: int = 4, **known: object) -> GpuSnapshot:
    return gpus(sample(ONE, fabric=state), switches=switches, **known)


@pytest.mark.parametrize(
    "state",
    [
        FabricSample(state=1, status=0, clique=0, multinode=False),
        FabricSample(state=2, status=0, clique=0, multinode=False),
        FabricSample(state=3, status=999, clique=0, multinode=False),
        FabricSample(state=3, status=0, clique=0, multinode=True),
    ],
)
def test_a_gpu_that_has_not_joined_the_fabric_is_critical(state: FabricSample) -> None:
    harness = GpuHarness(fabric.CHECK)
    assert harness.look(joined(state)) == {}
    found = harness.look(joined(state))[f"fabric/{ONE}"]
    assert (found.severity, found.action) == (Severity.CRITICAL, Action.ASK)
    assert harness.look(joined(JOINED), 2) == {}


def test_clique_zero_is_right_inside_one_node() -> None:
    assert GpuHarness(fabric.CHECK).look(joined(JOINED), 3) == {}


def test_the_fabric_is_not_judged_in_the_first_five_minutes() -> None:
    starting = FabricSample(state=2, status=0, clique=0, multinode=False)
    assert GpuHarness(fabric.CHECK, uptime=60.0).look(joined(starting), 4) == {}


def test_a_board_without_switches_needs_no_fabric() -> None:
    never = FabricSample(state=1, status=0, clique=0, multinode=False)
    assert GpuHarness(fabric.CHECK).look(joined(never, switches=0), 3) == {}
    assert GpuHarness(fabric.CHECK).look(joined(None), 3) == {}
    assert (
        GpuHarness(fabric.CHECK).look(joined(FabricSample(state=0, status=0, clique=0, multinode=False)), 3)
        == {}
    )


def test_a_b200_has_a_fabric_though_its_switches_are_not_on_the_bus() -> None:
    never = FabricSample(state=1, status=0, clique=0, multinode=False)
    assert (
        GpuHarness(fabric.CHECK).look(
            joined(never, switches=0, pci=(bus(ONE, device="10de:2901"), bus(TWO))), 2
        )
        != {}
    )


def test_the_policy_decides_whether_there_is_a_fabric() -> None:
    unsupported = FabricSample(state=0, status=0, clique=0, multinode=False)
    assert (
        GpuHarness(fabric.CHECK, Policy(expected=Expected(fabric=True))).look(joined(unsupported, 0), 2) != {}
    )
    never = FabricSample(state=1, status=0, clique=0, multinode=False)
    assert GpuHarness(fabric.CHECK, Policy(expected=Expected(fabric=False))).look(joined(never), 2) == {}


# ---- pcie-link


def slot(reasons: int | None = 0, **known: object) -> GpuSnapshot:
    return gpus(sample(ONE, reasons=reasons), sample(TWO), pci=(bus(ONE, **known), bus(TWO)))


def test_a_link_narrower_than_its_siblings_asks_at_the_third_look() -> None:
    harness = GpuHarness(pcie.LINK)
    assert harness.look(slot(width=8), 2) == {}
    found = harness.look(slot(width=8))[f"pcie-link/{ONE}"]
    assert (found.severity, found.action) == (Severity.WARNING, Action.ASK)
    assert found.evidence == "x8 generation 5"
    assert harness.look(slot(), 2) == {}


def test_a_link_narrower_than_it_was_asks() -> None:
    harness = GpuHarness(pcie.LINK)
    harness.look(gpus(sample(ONE), pci=(bus(ONE),)))
    assert harness.look(gpus(sample(ONE), pci=(bus(ONE, width=4),)), 3) != {}


def test_slots_that_are_all_narrow_are_made_so() -> None:
    narrow = gpus(sample(ONE), sample(TWO), pci=(bus(ONE, width=8), bus(TWO, width=8)))
    assert GpuHarness(pcie.LINK).look(narrow, 5) == {}
    wanted = Policy(expected=Expected(pcie_width=16))
    assert len(GpuHarness(pcie.LINK, wanted).look(narrow, 3)) == 2


def test_a_sibling_of_another_kind_is_no_measure() -> None:
    mixed = gpus(sample(ONE), sample(TWO), pci=(bus(ONE, width=8, device="10de:2331"), bus(TWO)))
    assert GpuHarness(pcie.LINK).look(mixed, 5) == {}


@pytest.mark.parametrize(("reasons", "sick"), [(0x0, True), (0x4, True), (0x1, False), (None, False)])
def test_a_lower_generation_counts_only_under_load(reasons: int | None, sick: bool) -> None:
    assert bool(GpuHarness(pcie.LINK).look(slot(reasons, speed=2.5), 3)) is sick


def test_a_link_that_does_not_tell_is_not_judged() -> None:
    assert GpuHarness(pcie.LINK).look(slot(width=None, speed=None), 3) == {}
    assert GpuHarness(pcie.LINK).look(slot(speed=None), 3) == {}
    assert GpuHarness(pcie.LINK).look(slot(alive=False, width=None), 3) == {}


# ---- pcie-replay


def replays(
    harness: GpuHarness, per_minute: float, minutes: int, start: float = 0, **known: object
) -> list[str]:
    for minute in range(minutes):
        total = int(start + per_minute * minute)
        harness.look(gpus(sample(ONE, pcie_replays=total), pci=(bus(ONE, **known),)))
    return [f"{each.severity} {each.action}" for each in harness.findings().values()]


@pytest.mark.parametrize(
    ("speed", "limit"), [(2.5, 0.15), (5.0, 0.3), (8.0, 0.48), (16.0, 0.96), (32.0, 1.92), (64.0, 3.84)]
)
def test_replays_are_judged_by_lane_and_generation(speed: float, limit: float) -> None:
    assert replays(GpuHarness(pcie.REPLAY), 16 * limit * 0.8, 20, speed=speed) == []
    assert replays(GpuHarness(pcie.REPLAY), 16 * limit * 1.5, 20, speed=speed) == ["warning ask"]
    assert replays(GpuHarness(pcie.REPLAY), 16 * limit * 12, 20, speed=speed) == ["critical failover"]


def test_replays_are_counted_over_ten_minutes() -> None:
    assert replays(GpuHarness(pcie.REPLAY), 1000, 10) == []
    assert replays(GpuHarness(pcie.REPLAY), 1000, 11) == ["critical failover"]


def test_a_link_that_falls_back_is_judged_as_what_it_was() -> None:
    harness = GpuHarness(pcie.REPLAY)
    replays(harness, 0, 2)
    assert replays(harness, 16 * 0.5, 20, speed=2.5) == []


def test_replays_are_over_after_half_an_hour() -> None:
    harness = GpuHarness(pcie.REPLAY)
    replays(harness, 100, 20)
    quiet = gpus(sample(ONE, pcie_replays=1900))
    assert harness.minutes(quiet, 35) != {}
    assert harness.minutes(quiet, 10) == {}


def test_a_link_of_unknown_width_is_not_judged() -> None:
    assert replays(GpuHarness(pcie.REPLAY), 1000, 20, width=None) == []
    assert GpuHarness(pcie.REPLAY).look(gpus(sample(ONE, pcie_replays=None)), 20) == {}
