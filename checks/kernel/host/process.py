"""Processes and the kernel itself: hung tasks, lockups, panics, out of memory, crashes inside NCCL.

A task's name may be anything, so its pid is what stands after the last colon; names and pids are victims.
"""

from checks.finding import Action, Severity
from checks.kernel.event import Verdict
from checks.kernel.pattern import fault

_REBOOT = (Severity.CRITICAL, Action.REBOOT)
_WATCH = (Severity.WARNING, Action.NONE)
_LOOK = (Severity.WARNING, Action.ASK)
_JOB = (Severity.APP, Action.NONE)

SOFT_LOCKUPS = 3
"""So many soft lockups in `SOFT_LOCKUP_SECONDS` are critical (section 3.7)."""

SOFT_LOCKUP_SECONDS = 600.0

REPEATED_LOCKUP = Verdict(*_REBOOT, "3.7 soft-lockup, third in 10 min")

_BLOCKED = r":\d{1,10} blocked (?:in I/O wait )?for more than \d{1,9} seconds"
_GPU_STACK = r"(?:nvc:\[driver\]|nvidia|nv-hostengine|nv_queue|nv_open_q|cache_mgr_|dcgm|UVM)"
_WATCHDOG = r"(?:NMI )?(?:watchdog: )?"

PATTERNS = (
    fault(
        rf"INFO: task {_GPU_STACK}.{{0,64}}{_BLOCKED}",
        "hung-task",
        "hung-gpu-stack",
        _LOOK,
        "a task of the GPU driver is stuck in the kernel; if the driver hangs, the node needs a reboot.",
    ),
    fault(
        rf"INFO: task .{{1,96}}{_BLOCKED}",
        "hung-task",
        "hung-task",
        _WATCH,
        "a task is stuck in the kernel, often on storage.",
    ),
    fault(
        rf"{_WATCHDOG}BUG: soft lockup - CPU#\d{{1,5}} stuck for (?:1[2-9]\d|[2-9]\d\d|\d{{4,9}})s",
        "lockup",
        "soft-lockup",
        _REBOOT,
        "a processor has run kernel code without a pause for two minutes or more.",
    ),
    fault(
        rf"{_WATCHDOG}BUG: soft lockup - CPU#\d{{1,5}}",
        "lockup",
        "soft-lockup",
        _WATCH,
        "a processor ran kernel code without a pause.",
    ),
    fault(
        rf"{_WATCHDOG}(?:CPU ?\d{{1,5}}: )?Watchdog detected hard LOCKUP",
        "lockup",
        "hard-lockup",
        _REBOOT,
        "a processor no longer takes interrupts.",
    ),
    fault(r"Kernel panic\b", "lockup", "kernel-panic", _REBOOT, "the kernel stopped itself."),
    fault(
        r"Memory cgroup out of memory\b",
        "oom",
        "oom-cgroup",
        _JOB,
        "a container reached its memory limit and lost a process.",
    ),
    fault(
        r"Out of memory\b",
        "oom",
        "oom-global",
        _WATCH,
        "the node ran out of memory and killed a process.",
    ),
    fault(
        r"(?:traps: )?.{1,64}?\[\d{1,10}\]:? (?:segfault at|general protection|trap ).{1,200}? in libnccl",
        "segfault",
        "segfault-nccl",
        _JOB,
        "a job crashed inside the NCCL library.",
    ),
)
