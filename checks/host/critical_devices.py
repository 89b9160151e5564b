"""Which block devices hold the file systems without which a node is none: its root and the kubelet's."""

from pathlib import Path

from checks.host import mountinfo

PATHS = ("/", "/var/lib/kubelet")
"""An error on what these lie on is the node's own (section 3.7)."""


def devices(root: Path) -> frozenset[str]:
    """Return the kernel's names of those devices; none where the node's mounts cannot be read."""
    mounts = mountinfo.read(root) or {}
    on = (mountinfo.holds(mounts, path) for path in PATHS)
    names = (mountinfo.block_device(root, mount) for mount in on if mount is not None)
    return frozenset(filter(None, names))
