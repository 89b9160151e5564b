"""Whether anybody has the node's GPUs open, as the kernel counts it, without a list of processes (section 6).

Every CUDA program holds /dev/nvidia-uvm from start to end, and a graphics program holds a device of
nvidia-drm. NVML, and so this agent, holds neither. Open handles count as references to the module.
"""

from pathlib import Path

from checks.gpu.pci import text

COMPUTE, DRAWING = "sys/module/nvidia_uvm/refcnt", "sys/module/nvidia_drm/refcnt"
"""Reference counts of the modules that serve compute programs and graphics programs."""

NODES = "sys/devices/system/node"
"""Directory with the lists of NUMA nodes that have memory and of those that have processors."""


def has_no_users(root: Path) -> bool:
    """Whether nobody uses the GPUs' memory; False also where the kernel does not say."""
    return (
        text(root / COMPUTE) == "0"
        and text(root / DRAWING) in (None, "0")
        and not _kernel_is_user(root / NODES)
    )


def _kernel_is_user(nodes: Path) -> bool:
    """Whether the kernel may use GPU memory itself: on Grace it is a NUMA node without processors."""
    memory, processors = (_numbers(text(nodes / each) or "") for each in ("has_memory", "has_cpu"))
    return memory is None or processors is None or not memory <= processors


def _numbers(ranges: str) -> set[int] | None:
    """Return the numbers in `0-1,8`, None when it is not understood."""
    found: set[int] = set()
    try:
        for part in filter(None, ranges.split(",")):
            first, _, last = part.partition("-")
            found.update(range(int(first), int(last or first) + 1))
    except ValueError:
        return None
    return found
