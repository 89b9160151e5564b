"""Critical devices: block devices with the file systems that a node cannot run without."""

from pathlib import Path

from checks.host import mountinfo

PATHS = ("/", "/var/lib/kubelet")
"""The root and the kubelet's directory: an error of their device concerns the node itself (section 3.7)."""


def devices(root: Path) -> frozenset[str]:
    """Return the kernel's names of those devices, nothing where the node's mounts cannot be read."""
    mounts = mountinfo.read(root) or {}
    on = (mountinfo.holds(mounts, path) for path in PATHS)
    names = (mountinfo.block_device(root, mount) for mount in on if mount is not None)
    return frozenset(filter(None, names))
