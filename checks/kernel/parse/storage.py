"""Storage: local file systems, NVMe drives, software arrays, NFS servers, and RDMA's hold on GPU memory.

A drive that is gone does not come back with a clean image; a corrupt file system does.
"""

from collections.abc import Callable, Collection

import msgspec

from checks.finding import Action, Severity
from checks.kernel.parse.event import KernelEvent, KernelVerdict, fault, noise

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

WORDINGS = (
    *noise("ext4", rf"{_EXT} \([^)]{{1,64}}\): (?:error count since|initial error at|last error at)"),
    *fault(
        "ext4-corruption",
        rf"{_EXT_ERROR}{_EXT_TEXT}{_CORRUPT}",
        rf"{_EXT}(?: warning| error)? ?\((?:device )?(?P<device>[^)]{{1,64}})\): .{{0,80}}?"
        r"(?:csum_verify|invalid superblock checksum|checksum invalid|Checksum for group)",
    ),
    *fault("ext4-remount-ro", rf"{_EXT} \((?P<device>[^)]{{1,64}})\): Remounting filesystem read-only"),
    *fault(
        "ext4-error",
        rf"{_EXT} (?:error \(device |\((?=[^)]{{1,64}}\): I/O error while writing superblock))"
        r"(?P<device>[^)]{1,64})\)(?::| in )",
    ),
    *fault(
        "xfs-shutdown", rf"{_XFS}.{{0,200}}?(?:Shutting down filesystem|[Ff]ilesystem has been shut down)"
    ),
    *fault("xfs-shutdown", rf"{_XFS}xfs_do_force_shutdown", echo=True),
    *fault(
        "xfs-metadata-io",
        rf"{_XFS}(?:[Mm]etadata I/O [Ee]rror|[Mm]etadata (?:corruption|CRC error) detected"
        r"|[Ll]og (?:recovery )?(?:write )?I/O [Ee]rror|Internal error)",
    ),
    *noise("nvme", rf"{_NVME}Abort status"),
    *fault(
        "nvme-dead",
        rf"{_NVME}(?:Disabling device after reset failure|Removing after probe failure"
        r"|Device not ready; aborting (?:reset|initiali[sz]ation))",
    ),
    *fault("nvme-timeout", rf"{_NVME}(?:I/O .{{1,80}}?\btimeout\b|controller is down; will reset)"),
    *fault("nvme-path-wait", rf"{_NAMESPACE}: no (?:available|usable) path - requeuing"),
    *fault("nvme-no-path", rf"{_NAMESPACE}: no (?:available|usable) path"),
    *fault(
        "md-failed",
        r"md/(?:[\w-]{1,16}:|raid\d{1,2})(?P<device>[\w/]{1,32}): (?:Disk failure on|Operation continuing on 0 devices"
        r"|Cannot continue operation|not enough operational|failed to run raid set)",
        r"(?:md: (?=md\w{1,16}: .{0,80}?(?:missing/failed member|array is failed))"
        r"|raid\d{1,2}: Disk failure on )"
        r"(?P<device>\w{1,32})",
    ),
    *fault("nfs-timeout", r"(?:nfs4?|NFS|lockd): server (?P<device>\S{1,128}) not responding"),
    *noise("nfs", r"(?:nfs4?|NFS|lockd): server (?P<device>\S{1,128}) OK", code="nfs-ok"),
    *fault(
        "peermem-context",
        r"(?:nvidia[-_]peermem|nv_peer_mem|nv_get_p2p).{0,80}?ERROR detected invalid context",
    ),
)


_CRITICAL_DEVICE = KernelVerdict(
    Severity.CRITICAL, Action.REPROVISION, "3.7 ext4-error on the root or kubelet device"
)


def judge(event: KernelEvent, critical_devices: Callable[[], Collection[str]]) -> KernelEvent:
    """Return the event with its verdict on this node.

    `critical_devices` returns the devices of the node's root and of kubelet.
    """
    if event.kind != ("ext4", "ext4-error") or event.device not in critical_devices():
        return event
    text = f"{event.device}: the node's own file system met an error; a clean image rewrites it."
    return msgspec.structs.replace(event.judged(_CRITICAL_DEVICE), summary=text)
