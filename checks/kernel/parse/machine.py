"""The machine and its kernel: PCIe, memory and processor errors, hung tasks, lockups, panics, out of memory.

PCIe errors (AER) are Corrected and Uncorrected or, since 2020, Correctable and Uncorrectable. The root port's
line announces an error and the device's `PCIe Bus Error` line gives the details: two lines, one fault. EDAC,
machine checks and GHES print a block of lines for one error: the line with CE, UE or the severity decides,
headers and dumps do not. A task may have any name, so its pid is what stands after the last colon; names and
pids are victims (T16).
"""

import msgspec

from checks.finding import Action, Severity
from checks.kernel.parse.event import KernelEvent, KernelVerdict, fault, noise, variant

BOOT_LEFTOVER_SECONDS = 1.0
"""Machine checks logged this early in a boot are left over from the boot before (K20)."""

# Only the NVIDIA driver's own devices are GPUs; every other driver's address is a port, a NIC or a drive.
_DEVICE = r"(?:nvidia (?P<gpu>@)|[\w-]{1,32} (?P<address>@)): (?:pciehp: |DPC: )?"
_AER = rf"(?:{_DEVICE})?(?:AER: )?"

PCIE = (
    *fault("aer-fatal", rf"{_AER}(?:Multiple )?Uncorrect(?:ed|able) \(Fatal\) error (?:message )?received"),
    *fault("aer-fatal", rf"{_AER}PCIe Bus Error: severity=Uncorrect(?:ed|able) \(Fatal\)", echo=True),
    *fault(
        "aer-nonfatal", rf"{_AER}(?:Multiple )?Uncorrect(?:ed|able) \(Non-Fatal\) error (?:message )?received"
    ),
    *fault("aer-nonfatal", rf"{_AER}PCIe Bus Error: severity=Uncorrect(?:ed|able) \(Non-Fatal\)", echo=True),
    *fault("aer-corrected", rf"{_AER}(?:Multiple )?Correct(?:ed|able) error (?:message )?received"),
    *fault("aer-corrected", rf"{_AER}PCIe Bus Error: severity=Correct(?:ed|able)", echo=True),
    *fault(
        "aer-surprise-down",
        rf"{_AER}\s*\[ *5\] (?:SDES|Surprise Down)",
        rf"{_AER}.{{0,80}}?Surprise (?:Link )?Down",
    ),
    *fault("aer-fatal", rf"{_AER}containment event.{{0,120}}?\bERR_FATAL\b"),
    *noise("aer", rf"{_AER}[Dd]evice recovery successful"),
    *fault(
        "aer-recovery-failed", rf"{_AER}(?:[Dd]evice recovery failed|[\w ]{{0,32}}reset .{{0,60}}?failed)"
    ),
    *fault("aer-no-recovery", rf"{_AER}(?:device has no AER-aware driver|can't recover)"),
    *fault("pcie-degraded", rf"{_DEVICE}[\d.]{{1,12}} Gb/s available (?:PCIe )?bandwidth, limited by"),
)

_MC = r"EDAC (?:\w{1,24} )?(?P<device>(?:MC|PCI|DEVICE)\d{1,4}): (?:(?P<count>\d{1,9}) )?"
_HW = r"(?:\{\d{1,9}\})?\[Hardware Error\]:\s{0,8}"
_PREFIX = r"(?:mce: ?|RAS: ?)?"

MACHINE_CHECKS = (
    *noise("edac", r"EDAC .{0,60}?HANDLING MCE MEMORY ERROR"),
    *fault("edac-ue", rf"{_MC}(?:UE\b|Uncorrect(?:ed|able))"),
    *fault("edac-ce", rf"{_MC}(?:CE\b|Corrected|Correctable)"),
    *fault("edac-ue", rf"{_PREFIX}(?:\[Hardware Error\]: )?Uncorrected hardware memory error"),
    *noise("edac", r"EDAC\b"),
    *noise("mce", rf"{_PREFIX}CMCI storm subsided"),
    *fault("cmci-storm", rf"{_PREFIX}(?:CPU ?\d{{1,5}} BANK ?\d{{1,3}} )?CMCI storm detected"),
    *fault("mce-before-boot", r"BERT: Error records from previous boot"),
    *fault("mce-logged", rf"{_PREFIX}\[Hardware Error\]: Machine check events logged"),
    *fault("mce-logged", rf"{_PREFIX}\[Hardware Error\]: CPU ?\d{{1,5}}: Machine Check", echo=True),
    *fault("ghes-recoverable", rf"{_HW}event severity: recoverable"),
    *fault("ghes-fatal", rf"{_HW}event severity: fatal"),
    *fault("mce-uncorrected", rf"{_PREFIX}{_HW}Uncorrected, "),
    *noise("ghes", rf"{_HW}"),
)

_BLOCKED = r":\d{1,10} blocked (?:in I/O wait )?for more than \d{1,9} seconds"
_GPU_STACK = r"(?:nvc:\[driver\]|nvidia|nv-hostengine|nv_queue|nv_open_q|cache_mgr_|dcgm|UVM)"
_WATCHDOG = r"(?:NMI )?(?:watchdog: )?"

TASKS = (
    *fault("hung-gpu-stack", rf"INFO: task {_GPU_STACK}.{{0,64}}{_BLOCKED}"),
    *fault("hung-task", rf"INFO: task .{{1,96}}{_BLOCKED}"),
    *fault(
        "soft-lockup",
        rf"{_WATCHDOG}BUG: soft lockup - CPU#\d{{1,5}} stuck for (?:1[2-9]\d|[2-9]\d\d|\d{{4,9}})s",
    ),
    *variant(
        fault("soft-lockup", rf"{_WATCHDOG}BUG: soft lockup - CPU#\d{{1,5}}"),
        "a processor ran kernel code without a pause.",
        (Severity.WARNING, Action.NONE),
    ),
    *fault("hard-lockup", rf"{_WATCHDOG}(?:CPU ?\d{{1,5}}: )?Watchdog detected hard LOCKUP"),
    # The first line of an oops says what happened, `Oops: ... [#n]` that it is one: two lines, one fault.
    *fault(
        "kernel-oops",
        r"BUG: (?:unable to handle|kernel NULL pointer)",
        r"Unable to handle kernel .{1,80}? at virtual address",
    ),
    *fault(
        "kernel-oops",
        r"(?:.{0,80}? )?Oops(?: - [\w ]{1,40})?: .{0,80}?\[#(?P<device>\d{1,6})\]",
        r"(?:stack segment|general protection fault|invalid opcode|divide error|double fault|kernel stack overflow)"
        r"\b.{0,160}?\[#(?P<device>\d{1,6})\]",
        r"Internal error: .{1,80}?\[#(?P<device>\d{1,6})\]",
        echo=True,
    ),
    *fault("kernel-panic", r"Kernel panic\b"),
    *fault("oom-cgroup", r"Memory cgroup out of memory\b"),
    *fault("oom-global", r"Out of memory\b"),
    *fault(
        "segfault-nccl",
        r"(?:traps: )?.{1,64}?\[\d{1,10}\]:? (?:segfault at|general protection|trap ).{1,200}? in libnccl",
    ),
)

_LEFTOVER = KernelVerdict(Severity.WARNING, Action.ASK, "K20")


def before_boot(event: KernelEvent) -> KernelEvent:
    """Return an event of a boot's first second; a machine check is left over from the boot before."""
    if event.code != "mce-logged":
        return event
    return msgspec.structs.replace(
        event.judged(_LEFTOVER),
        code="mce-before-boot",
        summary="The processor reports machine checks that are left over from the previous boot.",
    )
