"""GPU samples: what is known of the GPUs at one moment. The NVML child sends these values to the agent.

`None` always means that the board, the driver or the library does not say, which is never a fault (rule T2).
"""

import msgspec


class OpenLibrary(msgspec.Struct, frozen=True, tag="open"):
    """Asks the child to open the library and to list its GPUs."""


class ReadGpu(msgspec.Struct, frozen=True, tag="read"):
    """Asks the child for one GPU, by its PCI address.

    `board` also asks for what is slow to read and seldom changes, `memory` for how much memory is in use.
    """

    gpu: str
    board: bool = False
    memory: bool = False


NvmlRequest = OpenLibrary | ReadGpu


class NvmlLibrary(msgspec.Struct, frozen=True, kw_only=True, tag="library"):
    """The opened library: its versions, and the addresses of the GPUs that it listed in time.

    `unreadable` are the return codes of GPUs that did not even return their address.
    """

    driver: str
    nvml: str
    gpus: tuple[str, ...]
    unreadable: tuple[int, ...] = ()


class NvmlRefused(msgspec.Struct, frozen=True, tag="refused"):
    """The library could not be opened: which call failed, and its return code."""

    call: str
    code: int


class FabricSample(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU's place in the NVLink fabric: nvmlGpuFabricState_t, a return code, and the clique.

    `multinode` says whether the fabric has a cluster id, as fabrics that span nodes do.
    """

    state: int
    status: int
    clique: int
    multinode: bool


class BoardSample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is read every ten minutes. `inforom` and `power` are return codes, 0 when they could be read.

    `read_at` is the uptime in seconds at the start of the round that read it.
    """

    uuid: str | None = None
    serial: str | None = None
    sram_exceeded: bool | None = None
    inforom: int | None = None
    power: int | None = None
    persistence: bool | None = None
    mig: bool | None = None
    read_at: float = 0.0


class GpuSample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag="sample"):
    """One GPU at one moment. `failed` is the return code when it could not be read at all, 0 otherwise.

    `asked_at` is the uptime in seconds at the start of the round that read it. Counters are totals since the
    driver was loaded. `slowed_ns` is the time slowed by hardware for heat or power, `slowed_sw_ns` by
    software for heat. `margin` is degrees Celsius below the temperature at which the hardware slows down. Of
    `links` NVLinks `links_up` are up; `link_ber` is the worst bit error rate of one, `link_crc` counts CRC
    errors, `link_replays` and `link_recoveries` what was tried again. `reasons` is NVML's mask of why
    clocks are lowered, `denied` the calls that failed and should not. `memory_used` is in bytes, without what
    the driver keeps for itself; None while a program has the GPUs open.
    """

    gpu: str
    failed: int = 0
    asked_at: float = 0.0
    ecc_corrected: int | None = None
    ecc_uncorrected: int | None = None
    retired_pages: int | None = None
    retired_pending: bool | None = None
    remapped_rows: int | None = None
    remap_pending: bool | None = None
    remap_failure: bool | None = None
    recovery_action: int | None = None
    pcie_replays: int | None = None
    link_crc: int | None = None
    link_replays: int | None = None
    link_recoveries: int | None = None
    link_ber: float | None = None
    links: int | None = None
    links_up: int | None = None
    reasons: int | None = None
    slowed_ns: int | None = None
    slowed_sw_ns: int | None = None
    margin: int | None = None
    memory_used: int | None = None
    fabric: FabricSample | None = None
    board: BoardSample | None = None
    denied: tuple[tuple[str, int], ...] = ()


NvmlAnswer = NvmlLibrary | NvmlRefused | GpuSample


class PciGpu(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU as the kernel shows it in sysfs. `device` and `board` are `vendor:id` of chip and board.

    `driver` is what is bound to it, `alive` whether its configuration space answers. Link speed is in GT/s.
    """

    gpu: str
    device: str
    board: str
    driver: str | None = None
    alive: bool = True
    width: int | None = None
    speed: float | None = None

    @property
    def is_ours(self) -> bool:
        """Whether NVIDIA's driver has it or should; one that is passed through to a guest is the guest's."""
        return self.driver in (None, "nvidia")


class GpuSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """All GPUs of a node as three sources show them: the PCI bus, the driver's files, NVML.

    A source that could not be read is None. `switches` counts NVSwitch bridges. `samples` holds the newest
    sample of each GPU, also of one in `excluded`, which NVML is no longer asked about. `library` is None
    until the library was opened and again while it cannot be: `refused` says why. `misses` counts deadlines
    that NVML has missed since it last answered every call of a round, `missed` says where. `rounds` counts
    how often NVML was asked, `opened_at` is the uptime in seconds of the last attempt to open the library.
    """

    pci: tuple[PciGpu, ...] | None = None
    switches: int = 0
    driver: tuple[str, ...] | None = None
    library: NvmlLibrary | None = None
    refused: NvmlRefused | None = None
    samples: tuple[GpuSample, ...] = ()
    excluded: tuple[str, ...] = ()
    misses: int = 0
    missed: str = ""
    rounds: int = 0
    opened_at: float = 0.0

    @property
    def ours(self) -> tuple[PciGpu, ...]:
        """The GPUs that NVIDIA's driver has or should have."""
        return tuple(each for each in self.pci or () if each.is_ours)

    @property
    def has_peers(self) -> bool:
        """Whether there are several GPUs, which links can join."""
        return len(self.ours) > 1

    def bus(self, gpu: str) -> PciGpu | None:
        """Return what the PCI bus says of a GPU."""
        return next((each for each in self.pci or () if each.gpu == gpu), None)


SUCCESS = 0
UNINITIALIZED = 1
NOT_SUPPORTED = 3
NO_PERMISSION = 4
DRIVER_NOT_LOADED = 9
TIMEOUT = 10
LIBRARY_NOT_FOUND = 12
CORRUPTED_INFOROM = 14
GPU_IS_LOST = 15
RESET_REQUIRED = 16
MISMATCH = 18
UNKNOWN = 999
"""Return codes that are judged (nvml.h, nvmlReturn_t)."""

ENDED = -1
"""Stands for a return code when the child process ended in the middle of a call."""

SKIPPED = frozenset({2, 3, 13, 21, 22, 25, 26})
"""Return codes that mean "not on this board, driver or library": invalid argument (a field unknown to an
older driver), not supported, no such function, no data, no ECC, another struct version, deprecated."""

ABSENT = frozenset({6, 15, 28, 999})
"""Return codes of a GPU that NVML cannot find: not found, lost, GPU not found, unknown."""

CODE_NAMES = {
    ENDED: "process ended",
    2: "invalid argument",
    4: "no permission",
    6: "not found",
    9: "driver not loaded",
    10: "timeout",
    12: "library not found",
    14: "corrupted InfoROM",
    15: "GPU is lost",
    16: "reset required",
    17: "blocked by the operating system",
    18: "library and driver differ",
    28: "GPU not found",
    999: "unknown error",
}
"""What a person reads instead of a return code."""


def describe(code: int) -> str:
    """Return a return code in words and as a number."""
    return f"{CODE_NAMES.get(code, 'error')} ({code})"
