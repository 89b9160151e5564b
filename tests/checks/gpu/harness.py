"""Harness of the GPU checks: samples in, findings out, through the real debouncer, minute by minute."""

from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from checks.check import Check, CheckContext, NodeFacts, run_check
from checks.debounce import Debouncer, Instant
from checks.finding import Finding
from checks.gpu_sample import BoardSample, GpuSample, GpuSnapshot, NvmlLibrary, PciGpu
from checks.policy import Policy

ONE, TWO = "0000:1b:00.0", "0000:43:00.0"
H100 = "10de:2330"
START = 1_790_000_000.0


@dataclass
class GpuHarness:
    """One check on one node. `uptime` is when the next look is, in seconds since boot."""

    check: Check
    policy: Policy = field(default_factory=Policy)
    uptime: float = 3600.0
    debouncer: Debouncer = field(default_factory=Debouncer)

    def look(self, gpus: GpuSnapshot, times: int = 1) -> dict[str, Finding]:
        """Look so many times, each at the check's own pace; return the findings by code and GPU."""
        for _ in range(times):
            context = CheckContext(
                root=Path("/nowhere"),
                now=START + self.uptime,
                uptime=self.uptime,
                policy=self.policy,
                past=self.debouncer.past(self.check.name),
                facts=NodeFacts(gpus=gpus),
            )
            self.debouncer.record(
                self.check, run_check(self.check, context), Instant(START + self.uptime, self.uptime)
            )
            self.uptime += self.check.every_seconds
        return self.findings()

    def minutes(self, gpus: GpuSnapshot, count: int) -> dict[str, Finding]:
        """Look for so many minutes."""
        return self.look(gpus, round(count * 60 / self.check.every_seconds))

    def findings(self) -> dict[str, Finding]:
        """Return what is raised now, by code and GPU."""
        return {"/".join(filter(None, (each.code, each.gpu))): each for each in self.debouncer.findings()}

    def blind(self) -> list[str]:
        """Return why the check is blind, if it is."""
        return [each.evidence for each in self.debouncer.blind_spots()]


def sample(gpu: str = ONE, **known: object) -> GpuSample:
    """Return a sample of a healthy H100, with what is given in place of it."""
    healthy: dict[str, object] = {
        "ecc_corrected": 0,
        "ecc_uncorrected": 0,
        "remapped_rows": 0,
        "remap_pending": False,
        "remap_failure": False,
        "recovery_action": 0,
        "pcie_replays": 0,
        "link_crc": 0,
        "link_replays": 0,
        "link_recoveries": 0,
        "links": 18,
        "links_up": 18,
        "reasons": 0,
        "slowed_ns": 0,
        "slowed_sw_ns": 0,
        "margin": 40,
        "memory_used": 1 << 20,
        "board": BoardSample(sram_exceeded=False, inforom=0, power=0, persistence=True, mig=False),
    }
    return msgspec.structs.replace(GpuSample(gpu=gpu), **{**healthy, **known})


def bus(gpu: str = ONE, **known: object) -> PciGpu:
    """Return an H100 on the PCI bus."""
    healthy = PciGpu(gpu=gpu, device=H100, board="10de:16c1", driver="nvidia", width=16, speed=32.0)
    return msgspec.structs.replace(healthy, **known)


def gpus(*samples: GpuSample, pci: tuple[PciGpu, ...] | None = None, **known: object) -> GpuSnapshot:
    """Return what all three witnesses say of the GPUs of `samples`."""
    addresses = tuple(each.gpu for each in samples)
    whole = GpuSnapshot(
        pci=tuple(map(bus, addresses)) if pci is None else pci,
        driver=addresses,
        library=NvmlLibrary(driver="570.172.08", nvml="13.570", gpus=addresses),
        samples=samples,
        rounds=1,
    )
    return msgspec.structs.replace(whole, **known)
