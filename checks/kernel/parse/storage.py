"""Storage: local file systems, NVMe drives, software arrays, NFS servers, and RDMA's hold on GPU memory.

A drive that is gone does not come back with a clean image; a corrupt file system does.
"""

from collections.abc import Callable, Collection

import msgspec

from checks.finding import Action, Severity
from checks.kernel.event import Event, Verdict
from checks.kernel.pattern import echo, fault, noise

_DEAD = (Severity.CRITICAL, Action.FAILOVER)
_IMAGE = (Severity.CRITICAL, Action.REPROVISION)
_LOOK = (Severity.WARNING, Action.ASK)
_WATCH = (Severity.WARNING, Action.NONE)
_JOB = (Severity.APP, Action.NONE)

_EXT = r"EXT[234]-fs"
_EXT_ERROR = rf"{_EXT} error \(device (?P<device>[^)]{{1,64}})\)(?::| in) "
# The process name stands in the middle of the line and may hold any word, so it is stepped over.
_EXT_TEXT = r"(?:(?!comm ).){0,160}?(?:comm .{1,15}?: .{0,300}?)?"
_CORRUPT = (
    r"(?:bad (?:entry|header|extent|extra_isize|block bitmap)|checksum|csum|[Cc]orrupt|invalid magic"
    r"|inconsistent|deleted inode referenced|invalid inode|bogus)"
)
_XFS = r"XFS \((?P<device>[^)]{1,64})\): "
_NVME = r"nvme (?P<device>nvme\d{1,4}|@): "
_NAMESPACE = r"block (?P<device>nvme\d{1,4}(?:c\d{1,4})?n\d{1,4})"

_CORRUPT_TEXT = "the file system's structures are damaged; a clean image rewrites them."

PATTERNS = (
    noise(rf"{_EXT} \([^)]{{1,64}}\): (?:error count since|initial error at|last error at)", "ext4"),
    fault(rf"{_EXT_ERROR}{_EXT_TEXT}{_CORRUPT}", "ext4", "ext4-corruption", _IMAGE, _CORRUPT_TEXT),
    fault(
        rf"{_EXT}(?: warning| error)? ?\((?:device )?(?P<device>[^)]{{1,64}})\): .{{0,80}}?"
        r"(?:csum_verify|invalid superblock checksum|checksum invalid|Checksum for group)",
        "ext4",
        "ext4-corruption",
        _IMAGE,
        _CORRUPT_TEXT,
    ),
    fault(
        rf"{_EXT} \((?P<device>[^)]{{1,64}})\): Remounting filesystem read-only",
        "ext4",
        "ext4-remount-ro",
        _IMAGE,
        "the kernel made the file system read-only after an error.",
    ),
    fault(
        rf"{_EXT} (?:error \(device |\((?=[^)]{{1,64}}\): I/O error while writing superblock))"
        r"(?P<device>[^)]{1,64})\)(?::| in )",
        "ext4",
        "ext4-error",
        _LOOK,
        "the file system met an error; on the root or kubelet device the node needs a clean image.",
    ),
    fault(
        rf"{_XFS}.{{0,200}}?(?:Shutting down filesystem|[Ff]ilesystem has been shut down)",
        "xfs",
        "xfs-shutdown",
        _IMAGE,
        "the file system has shut itself down.",
    ),
    echo(
        fault(
            rf"{_XFS}xfs_do_force_shutdown",
            "xfs",
            "xfs-shutdown",
            _IMAGE,
            "the file system has shut itself down.",
        )
    ),
    fault(
        rf"{_XFS}(?:[Mm]etadata I/O [Ee]rror|[Mm]etadata (?:corruption|CRC error) detected"
        r"|[Ll]og (?:recovery )?(?:write )?I/O [Ee]rror|Internal error)",
        "xfs",
        "xfs-metadata-io",
        _IMAGE,
        "the file system cannot read or write its own structures.",
    ),
    noise(rf"{_NVME}Abort status", "nvme"),
    fault(
        rf"{_NVME}(?:Disabling device after reset failure|Removing after probe failure"
        r"|Device not ready; aborting (?:reset|initiali[sz]ation))",
        "nvme",
        "nvme-dead",
        _DEAD,
        "the drive does not come back after a reset.",
    ),
    fault(
        rf"{_NVME}(?:I/O .{{1,80}}?\btimeout\b|controller is down; will reset)",
        "nvme",
        "nvme-timeout",
        _WATCH,
        "the drive did not answer in time.",
    ),
    fault(
        rf"{_NAMESPACE}: no (?:available|usable) path - requeuing",
        "nvme",
        "nvme-path-wait",
        _WATCH,
        "the drive's paths are being restored; its I/O waits.",
    ),
    fault(
        rf"{_NAMESPACE}: no (?:available|usable) path",
        "nvme",
        "nvme-no-path",
        _DEAD,
        "no path to the drive is left; its I/O fails.",
    ),
    fault(
        r"md/[\w-]{1,16}:(?P<device>[\w/]{1,32}): (?:Disk failure on|Operation continuing on 0 devices"
        r"|Cannot continue operation|not enough operational|failed to run raid set)",
        "md",
        "md-failed",
        _DEAD,
        "a drive of the software array failed.",
    ),
    fault(
        r"(?:md: (?=md\w{1,16}: .{0,80}?(?:missing/failed member|array is failed))"
        r"|raid\d{1,2}: Disk failure on )"
        r"(?P<device>\w{1,32})",
        "md",
        "md-failed",
        _DEAD,
        "a drive of the software array failed.",
    ),
    fault(
        r"(?:nfs4?|NFS|lockd): server (?P<device>\S{1,128}) not responding",
        "nfs",
        "nfs-timeout",
        _WATCH,
        "the file server did not answer; one server, never a node's repair.",
    ),
    noise(r"(?:nfs4?|NFS|lockd): server (?P<device>\S{1,128}) OK", "nfs", "nfs-ok"),
    fault(
        r"(?:nvidia[-_]peermem|nv_peer_mem|nv_get_p2p).{0,80}?ERROR detected invalid context",
        "peermem",
        "peermem-context",
        _JOB,
        "a process died while RDMA held its GPU memory.",
    ),
)


def judge(event: Event, vital: Callable[[], Collection[str]]) -> Event:
    """Return the event as it is judged on this node; `vital` names the devices of its root and kubelet."""
    if (event.subsystem, event.code) != ("ext4", "ext4-error") or event.device not in vital():
        return event
    text = f"{event.device}: the node's own file system met an error; a clean image rewrites it."
    return msgspec.structs.replace(event.judged(_VITAL), summary=text)


_VITAL = Verdict(*_IMAGE, "3.7 ext4-error on the root or kubelet device")
