"""Policy: what the cluster's repository says about the checks of one pool of nodes.

People write it as `kind: NodeChecks` in Git, where these structs validate it, and the agent reads it from a
file that is mounted on the node. Field names are camelCase in files, as in Kubernetes. Every number has a
default, and its docstring names the source: "ours", or the project that published it.
"""

from typing import Annotated

import msgspec

Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
Number = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
Percent = Annotated[float, msgspec.Meta(gt=0, le=100)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=604_800)]
AbsolutePath = Annotated[str, msgspec.Meta(pattern=r"^/[^\x00\n]*$", max_length=4096)]
DeviceName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]*$", max_length=64)]
PortName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]*(/[0-9]{1,3})?$", max_length=68)]
HostName = Annotated[
    str, msgspec.Meta(pattern=r"^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?$", max_length=253)
]
Endpoint = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^([A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?|\[[0-9a-fA-F:.]+\]):"
        r"([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$",
        max_length=259,
    ),
]
PciId = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{4}:[0-9a-f]{4}$")]


class PolicyStruct(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True, rename="camel"
):
    """A value that people write: unknown fields are refused, and defaults are not written back."""


class Expected(PolicyStruct, frozen=True):
    """What a healthy node of the pool has; what is left out is not expected and not judged.

    `gpu_device` and `gpu_board` are the GPUs' PCI device and subsystem ids (`10de:2330`). `ib_ports` are
    `mlx5_0` (its port 1) or `mlx5_0/2`; by default the ports that were up at any time in this boot. `nics`
    are Ethernet interfaces. `memory_gib` is the installed memory, `cpus` the number of online processors.
    `mounts` must be mounted and answer. `writable` must not be read-only, nor must the root unless it was so
    from the start. `disks` must have space left. `names` must resolve, and `endpoints` (`host:port`) must
    accept a connection: services that the nodes share.
    """

    gpus: Count | None = None
    gpu_device: PciId | None = None
    gpu_board: PciId | None = None
    nvlinks: Count | None = None
    fabric: bool | None = None
    pcie_generation: Count | None = None
    pcie_width: Count | None = None
    persistence: bool | None = None
    ib_ports: tuple[PortName, ...] = ()
    ib_rate_gbps: Number | None = None
    nics: tuple[DeviceName, ...] = ()
    nvme: Count | None = None
    memory_gib: Number | None = None
    cpus: Count | None = None
    mounts: tuple[AbsolutePath, ...] = ()
    writable: tuple[AbsolutePath, ...] = ("/var/lib/kubelet",)
    disks: tuple[AbsolutePath, ...] = ("/", "/var/lib/kubelet", "/var/lib/containerd")
    names: Annotated[tuple[HostName, ...], msgspec.Meta(max_length=16)] = ()
    endpoints: Annotated[tuple[Endpoint, ...], msgspec.Meta(max_length=16)] = ()


class Service(PolicyStruct, frozen=True):
    """A program that the init system keeps running; `process` is its short name (at most 15 characters)."""

    name: DeviceName
    process: Annotated[str, msgspec.Meta(min_length=1, max_length=15)]


SERVICES = (
    Service(name="kubelet", process="kubelet"),
    Service(name="containerd", process="containerd"),
    Service(name="cri-o", process="crio"),
    Service(name="slurmd", process="slurmd"),
)
"""Watched once they have run in this boot, unless the policy names others."""


class GpuLimits(PolicyStruct, frozen=True):
    """Thresholds of table 1.1, per GPU.

    Corrected ECC errors a second that warn (ours: 10 for 5 min) and that are critical (1,000; NVSentinel saw
    17,700 stall the driver). Uncorrectable remaps that ask (DCGM 512), retired pages that ask (60; AzNHC 62,
    DCGM 63). Polls of ten with a slowdown reason (gpud 0.6 a minute). Degrees below the slowdown temperature
    that warn and that clear (ours). NVLink CRC errors a second (DCGM 100) and bit error rate (healthagent
    1e-6). PCIe replays per minute and lane for generations 1 to 6 (DCGM), and the factor above that which is
    critical (ours). Memory in use without a process (ours, MiB).
    """

    ecc_corrected_per_second: Number = 10.0
    ecc_corrected_critical_per_second: Number = 1000.0
    ecc_corrected_seconds: Seconds = 300.0
    remapped_rows: Count = 512
    retired_pages: Count = 60
    slowdown_polls: Annotated[int, msgspec.Meta(ge=1, le=10)] = 6
    margin_celsius: Number = 2.0
    margin_clear_celsius: Number = 5.0
    nvlink_crc_per_second: Number = 100.0
    nvlink_bit_error_rate: Number = 1e-6
    pcie_replays_per_minute: tuple[Number, ...] = (0.15, 0.3, 0.48, 0.96, 1.92, 3.84)
    pcie_replay_critical_factor: Number = 10.0
    leftover_mib: Number = 500.0


class NetworkLimits(PolicyStruct, frozen=True):
    """Thresholds of table 1.2.

    An InfiniBand port that is down is critical after `ib_down_seconds` (gpud 4 min). `ib_flaps` link losses
    in `ib_flap_seconds` (healthagent 3 in 3 h) are flapping; losses in the first `ib_flap_grace_seconds` of
    uptime do not count (OCI 30 min). Symbol errors an hour (NVSentinel 120). An Ethernet link may be down for
    `ethernet_down_seconds` (2 min, ours). A shared service has to answer a probe within `probe_seconds`
    (ours; a resolver waits 5 s for a dead name server).
    """

    ib_down_seconds: Seconds = 240.0
    ib_flaps: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 3
    ib_flap_seconds: Seconds = 10_800.0
    ib_flap_grace_seconds: Seconds = 1800.0
    ib_symbol_errors_per_hour: Number = 120.0
    ethernet_down_seconds: Seconds = 120.0
    probe_seconds: Annotated[float, msgspec.Meta(gt=0, le=10)] = 3.0


class HostLimits(PolicyStruct, frozen=True):
    """Thresholds of table 1.3.

    Free space that warns (gpud 10 % or 500 MB) and that clears (15 %). A mount hangs when `stat` takes
    `mount_seconds` `mount_polls` times in a row (gpud 5 s, 5 times). Memory below this share of the installed
    memory (NHC: 5 % missing). Corrected memory errors an hour and DIMM (ours 100). Clock offset (ours 1 s)
    and how long it may be unsynchronised (10 min). A service that is down warns after 2 min, is critical
    after 10 min or with more than 5 restarts in 30 min, slurmd with more than 3 in 10 min (ours). Processes
    and open files in percent of the kernel's limit, zombies (gpud 80 %, 80 %, 1,000). A boot that none of our
    repairs caused is reported for an hour (ours).
    """

    disk_free_percent: Percent = 10.0
    disk_free_mb: Number = 500.0
    disk_clear_percent: Percent = 15.0
    mount_seconds: Annotated[float, msgspec.Meta(gt=0, le=15)] = 5.0
    mount_polls: Annotated[int, msgspec.Meta(ge=1, le=20)] = 5
    memory_percent: Percent = 95.0
    memory_corrected_per_hour: Number = 100.0
    clock_offset_seconds: Number = 1.0
    clock_seconds: Seconds = 600.0
    service_down_seconds: Seconds = 120.0
    service_critical_seconds: Seconds = 600.0
    service_restarts: Count = 5
    service_restart_seconds: Seconds = 1800.0
    slurmd_restarts: Count = 3
    slurmd_restart_seconds: Seconds = 600.0
    processes_percent: Percent = 80.0
    files_percent: Percent = 80.0
    zombies: Count = 1000
    boot_seconds: Seconds = 3600.0

    def __post_init__(self) -> None:
        if self.disk_clear_percent < self.disk_free_percent:
            raise ValueError("diskClearPercent is below diskFreePercent")


class Policy(PolicyStruct, frozen=True):
    """What nodes of one pool must have, the thresholds of their checks, and which checks are off, by name."""

    expected: Expected = Expected()
    gpu: GpuLimits = GpuLimits()
    network: NetworkLimits = NetworkLimits()
    host: HostLimits = HostLimits()
    services: tuple[Service, ...] = ()
    disabled: tuple[str, ...] = ()


class PolicyError(Exception):
    """A policy cannot be used; the text names the key and what is wrong with it."""


def decode(content: bytes, checks: frozenset[str]) -> Policy:
    """Return the policy in a file's JSON; `checks` are the names there are. Raises PolicyError."""
    try:
        policy = msgspec.json.decode(content, type=Policy)
    except msgspec.ValidationError as error:
        text, _, key = str(error).partition(" - at `$.")
        raise PolicyError(f"{key.rstrip('`') or 'document'}: {text}") from error
    except msgspec.DecodeError as error:
        raise PolicyError(f"is not JSON: {error}") from error
    for name in policy.disabled:
        if name not in checks:
            raise PolicyError(f"disabled: {name}: no such check; there are {', '.join(sorted(checks))}")
    return policy
