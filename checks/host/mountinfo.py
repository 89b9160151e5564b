"""The node's mounts, according to the kernel's mountinfo."""

import re
from pathlib import Path

import msgspec

from checks.host.files import names, text

SOURCES = ("proc/1/mountinfo", "proc/self/mountinfo")
"""The mounts of process 1; where the kernel refuses them (it requires rights over that process) our own, in
which the node's root is mounted under ours."""

NUMBERS = "sys/dev/block"
"""Block devices by number: links to their kernel names."""

BLOCK = "sys/class/block"
"""Block devices by name; device-mapper devices have a second name in `dm/name`."""

_ESCAPE = re.compile(r"\\([0-7]{3})")


class Mount(msgspec.Struct, frozen=True):
    """One mount. `path` is the node's; `read_only` is the file system's state, not that of this mount.

    `number` is the device's, `major:minor`, with major 0 for a file system that has none of its own.
    A bind mount may be read-only on purpose; after errors the kernel makes the file system itself read-only.
    """

    path: str
    kind: str
    source: str
    read_only: bool
    number: str = ""


def read(root: Path) -> dict[str, Mount] | None:
    """Return the mounts of the node under `root` by path, the topmost where several are stacked.

    None when the kernel does not show them.
    """
    for source in SOURCES:
        content = text(root / source)
        found = parse(content or "", "" if source == SOURCES[0] else str(root))
        if found:
            return found
    return None


def parse(content: str, prefix: str) -> dict[str, Mount]:
    """Return the mounts in a mountinfo; of those under `prefix` only, as the node sees them."""
    prefix = prefix.rstrip("/")
    found = {}
    for line in content.splitlines():
        before, _, after = line.partition(" - ")
        left, right = before.split(" "), after.split(" ")
        if len(left) < 6 or len(right) < 3:
            continue
        path = _plain(left[4])
        if path == prefix or path.startswith(f"{prefix}/"):
            path = path.removeprefix(prefix) or "/"
            found[path] = Mount(path, right[0], _plain(right[1]), "ro" in right[2].split(","), left[2])
    return found


def holds(mounts: dict[str, Mount], path: str) -> Mount | None:
    """Return the mount that `path` lies on."""
    while path not in mounts and path not in ("/", ""):
        path = path.rpartition("/")[0] or "/"
    return mounts.get(path)


def block_device(root: Path, mount: Mount) -> str | None:
    """Return the kernel's name of a mount's block device (`sda1`, `dm-0`), None when it has none."""
    try:
        return (root / NUMBERS / mount.number).readlink().name
    except OSError:
        pass
    path, _, name = mount.source.rpartition("/")
    if path == "/dev/mapper":
        mapped = (each for each in names(root / BLOCK) or [] if text(root / BLOCK / each / "dm/name") == name)
        return next(mapped, None)
    return name if path == "/dev" else None


def _plain(text: str) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1], 8)), text)
