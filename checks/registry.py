"""Catalogue: every check and every door there is. A new check is one new file and one line here."""

from checks.check import Check, Door
from checks.gpu import (
    board,
    driver_unresponsive,
    ecc,
    fabric,
    leftovers,
    nvlink,
    nvml_unavailable,
    pcie,
    presence,
    recovery_action,
    remap,
    slowdown,
)
from checks.gpu.sampler import GpuDoor
from checks.host import (
    boot,
    clock,
    cpu,
    disk_free,
    ethernet,
    fs_readonly,
    ib_link,
    ib_state,
    limits,
    memory,
    mounts,
    nvme,
    probes,
    services,
)

CHECKS: tuple[Check, ...] = (
    presence.CHECK,
    nvml_unavailable.CHECK,
    driver_unresponsive.CHECK,
    recovery_action.CHECK,
    ecc.UNCORRECTED,
    ecc.CORRECTED,
    ecc.SRAM,
    remap.PENDING,
    remap.FAILURE,
    remap.MANY,
    remap.RETIRED,
    slowdown.HARDWARE_CHECK,
    slowdown.SOFTWARE_CHECK,
    slowdown.TEMPERATURE,
    nvlink.WIDTH,
    nvlink.ERRORS,
    fabric.CHECK,
    pcie.LINK,
    pcie.REPLAY,
    board.POWER,
    board.INFOROM,
    board.PERSISTENCE,
    leftovers.CHECK,
    ib_state.CHECK,
    ib_link.FLAP,
    ib_link.RATE,
    ib_link.ERRORS,
    ethernet.CHECK,
    fs_readonly.CHECK,
    disk_free.CHECK,
    nvme.CHECK,
    memory.CHECK,
    memory.ERRORS,
    cpu.CHECK,
    clock.CHECK,
    services.CHECK,
    limits.CHECK,
    limits.ZOMBIES,
    boot.CHECK,
    # Last: they wait for servers that do not answer.
    probes.CHECK,
    mounts.CHECK,
)
"""In the order in which they look."""

NAMES = frozenset(each.name for each in CHECKS)
"""Their names, as a policy may switch them off."""


def doors() -> tuple[Door, ...]:
    """Return new doors, closed until their first fetch."""
    return (GpuDoor(),)
