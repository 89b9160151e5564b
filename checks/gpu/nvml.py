"""The NVML calls of the child process: the library's answers → samples. Nothing else imports pynvml.

Every call can fail by itself; what is not supported is left out (rule T2). GPUs are addressed by PCI address,
because indexes shift after a loss. One batch of fields is read for each GPU. An unsupported field is left out
of later batches until the next reading of the board, which asks for everything again.
"""

import itertools
import time
from collections.abc import Callable, Iterable
from ctypes import byref
from functools import partial
from typing import Any, TypeVar

import pynvml

from checks.gpu_sample import SKIPPED, BoardSample, FabricSample, GpuSample, NvmlLibrary, NvmlRefused, ReadGpu
from checks.kernel.parse.event import pci_address

LISTING_SECONDS = 3.0
"""Time for listing GPUs when the library is opened: without persistence mode the driver takes seconds to
initialise each. Those that are left are opened when they are read, one by one (ours)."""

LINKS = 18
"""NVLinks that a GPU can have (NVML_NVLINK_MAX_LINKS)."""

FIELDS = (3, 4, 29, 30, 31, 38, 45, 52, 59, 94, 142, 143, 144, 145, 194, 230, 269, 270, 271)
"""Fields read of each GPU (nvml.h, NVML_FI_DEV_*): ECC totals, retired pages, NVLink CRC of flits and data,
its replays and recoveries, PCIe replays, row remapping, slowdown limit, recovery action, slowdown times."""

LINK_RECOVERIES, LINK_STATE, LINK_RECOVERY_EVENTS, LINK_BER = 59, 165, 215, 220
"""A total of all NVLinks, then fields of each link; the last two exist from NVLink 5 on."""

BATCH: tuple[tuple[int, int], ...] = (
    *((each, 0) for each in FIELDS),
    *((each, link) for each in (LINK_STATE, LINK_RECOVERY_EVENTS, LINK_BER) for link in range(LINKS)),
)
"""Field and scope of everything in a batch."""

Value = TypeVar("Value")

_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")


class NvmlSession:
    """The opened library. Handles are kept: opening one again costs 22 ms a GPU and strains a sick one."""

    def __init__(self) -> None:
        self._handles: dict[str, Any] = {}
        self._batches: dict[str, tuple[tuple[int, int], ...]] = {}

    def open(self) -> NvmlLibrary | NvmlRefused:
        """Open the library without touching the GPUs, and list them."""
        call = "nvmlInitWithFlags"
        try:
            pynvml.nvmlInitWithFlags(pynvml.NVML_INIT_FLAG_NO_GPUS | pynvml.NVML_INIT_FLAG_NO_ATTACH)
            call = "nvmlSystemGetDriverVersion"
            driver = pynvml.nvmlSystemGetDriverVersion()
            call = "nvmlDeviceGetCount"
            count = pynvml.nvmlDeviceGetCount()
        except pynvml.NVMLError as error:
            return NvmlRefused(call, error.value)
        until = time.monotonic() + LISTING_SECONDS
        listed = itertools.takewhile(lambda _: time.monotonic() < until, range(count))
        unreadable = tuple(filter(None, map(self._list, listed)))
        version = _value(pynvml.nvmlSystemGetNVMLVersion) or ""
        return NvmlLibrary(driver=driver, nvml=version, gpus=tuple(self._handles), unreadable=unreadable)

    def read(self, request: ReadGpu) -> GpuSample:
        """Read one GPU."""
        gpu = request.gpu
        denied: list[tuple[str, int]] = []
        if request.board:
            self._batches.pop(gpu, None)
        try:
            if gpu not in self._handles:
                self._handles[gpu] = pynvml.nvmlDeviceGetHandleByPciBusId(gpu)
            handle = self._handles[gpu]
            fields = self._fields(gpu, handle, denied)
        except pynvml.NVMLError as error:
            self._handles.pop(gpu, None)
            return GpuSample(gpu=gpu, failed=error.value)
        queries = GpuQueries(handle, denied)
        return GpuSample(
            gpu=gpu,
            **_memory(fields),
            **_links(fields, queries),
            recovery_action=fields.get((230, 0)),
            pcie_replays=fields.get((94, 0)),
            reasons=_reasons(queries),
            slowed_ns=_sum(fields, 270, 271),
            slowed_sw_ns=fields.get((269, 0)),
            margin=_margin(fields, queries),
            fabric=_fabric(queries),
            memory_used=_memory_used(handle) if request.memory else None,
            board=_board(queries) if request.board else None,
            denied=tuple(denied),
        )

    def _list(self, index: int) -> int:
        """Keep the handle of the GPU at `index` under its address; return the return code."""
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            address = pci_address(pynvml.nvmlDeviceGetPciInfo(handle).busId)
        except pynvml.NVMLError as error:
            return int(error.value)
        if address is not None:
            self._handles[address] = handle
        return 0

    def _fields(self, gpu: str, handle: Any, denied: list[tuple[str, int]]) -> dict[tuple[int, int], Any]:
        wanted = self._batches.get(gpu, BATCH)
        values = pynvml.nvmlDeviceGetFieldValues(handle, list(wanted))
        found = {}
        for key, each in zip(wanted, values, strict=True):
            if each.nvmlReturn == pynvml.NVML_SUCCESS:
                found[key] = getattr(each.value, _MEMBERS[each.valueType])
            elif each.nvmlReturn not in SKIPPED:
                denied.append((f"field {key[0]}", each.nvmlReturn))
        again = {name for name, _ in denied}
        self._batches[gpu] = tuple(key for key in wanted if key in found or f"field {key[0]}" in again)
        return found


class GpuQueries:
    """Calls about one GPU. Failures other than "not supported" are collected in `denied`."""

    def __init__(self, handle: Any, denied: list[tuple[str, int]]) -> None:
        self._handle = handle
        self._denied = denied

    def value(self, call: str, *arguments: Any) -> Any:
        """Return what the call answers, None when it fails."""
        return self._ask(call, *arguments)[1]

    def code(self, call: str) -> int | None:
        """Return the call's return code, None when it is not supported."""
        code = self._ask(call)[0]
        return None if code in SKIPPED else code

    def _ask(self, call: str, *arguments: Any) -> tuple[int, Any]:
        try:
            return 0, getattr(pynvml, call)(self._handle, *arguments)
        except pynvml.NVMLError as error:
            if error.value not in SKIPPED and (call, error.value) not in self._denied:
                self._denied.append((call, error.value))
            return int(error.value), None


def _reasons(queries: GpuQueries) -> int | None:
    for call in ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"):
        if (mask := queries.value(call)) is not None:
            return int(mask)
    return None


def _memory(fields: dict[tuple[int, int], Any]) -> dict[str, Any]:
    return {
        "ecc_corrected": fields.get((3, 0)),
        "ecc_uncorrected": fields.get((4, 0)),
        "retired_pages": _sum(fields, 29, 30),
        "retired_pending": _flag(fields.get((31, 0))),
        "remapped_rows": fields.get((143, 0)),
        "remap_pending": _flag(fields.get((144, 0))),
        "remap_failure": _flag(fields.get((145, 0))),
    }


def _links(fields: dict[tuple[int, int], Any], queries: GpuQueries) -> dict[str, Any]:
    up = _links_up(fields, queries)
    rates = [fields[LINK_BER, link] for link in range(LINKS) if (LINK_BER, link) in fields]
    recovered = [fields[key] for key in fields if key[0] in (LINK_RECOVERIES, LINK_RECOVERY_EVENTS)]
    return {
        "link_crc": _sum(fields, 38, 45),
        "link_replays": fields.get((52, 0)),
        "link_recoveries": sum(recovered) if recovered else None,
        "link_ber": max(map(bit_error_rate, rates), default=None),
        "links": len(up) or None,
        "links_up": sum(up) if up else None,
    }


def _links_up(fields: dict[tuple[int, int], Any], queries: GpuQueries) -> list[bool]:
    """Return for each link whether it is up; nothing when the GPU has no links."""
    found: list[bool] = []
    for link in range(LINKS):
        # A sleeping link (2) is up. The older call has to confirm that a link is down.
        if fields.get((LINK_STATE, link)):
            found.append(True)
            continue
        state = queries.value("nvmlDeviceGetNvLinkState", link)
        if state is None and (LINK_STATE, link) not in fields:
            break
        found.append(bool(state))
    return found


def bit_error_rate(packed: int) -> float:
    """Return the rate in a field's value: mantissa in bits 8-11, negative exponent in bits 0-7 (nvml.h)."""
    return float((packed >> 8 & 0xF) * 10.0 ** -(packed & 0xFF))


def _margin(fields: dict[tuple[int, int], Any], queries: GpuQueries) -> int | None:
    margin, slowdown = queries.value("nvmlDeviceGetMarginTemperature"), fields.get((194, 0))
    return None if margin is None or slowdown is None else int(margin - slowdown)


def _fabric(queries: GpuQueries) -> FabricSample | None:
    for kind in (pynvml.c_nvmlGpuFabricInfo_v3_t, pynvml.c_nvmlGpuFabricInfo_v2_t):
        info = kind()
        if queries.value("nvmlDeviceGetGpuFabricInfoV", byref(info)) is not None:
            return FabricSample(
                state=info.state,
                status=info.status,
                clique=info.cliqueId,
                multinode=any(info.clusterUuid),
            )
    return None


def _memory_used(handle: Any) -> int | None:
    """Return the bytes in use. The older call includes what the driver reserves, so it is not used.

    On a GPU with MIG on only privileged callers may ask: that is no fault of the agent.
    """
    memory = _value(partial(pynvml.nvmlDeviceGetMemoryInfo, handle, pynvml.nvmlMemory_v2))
    return None if memory is None else int(memory.used)


def _board(queries: GpuQueries) -> BoardSample:
    sram = pynvml.c_nvmlEccSramErrorStatus_v1_t()
    told = queries.value("nvmlDeviceGetSramEccErrorStatus", byref(sram))
    mig = queries.value("nvmlDeviceGetMigMode")
    return BoardSample(
        uuid=queries.value("nvmlDeviceGetUUID"),
        serial=queries.value("nvmlDeviceGetSerial"),
        sram_exceeded=None if told is None else bool(sram.bThresholdExceeded),
        inforom=queries.code("nvmlDeviceValidateInforom"),
        power=queries.code("nvmlDeviceGetEnforcedPowerLimit"),
        persistence=_flag(queries.value("nvmlDeviceGetPersistenceMode")),
        mig=None if mig is None else bool(mig[0]),
    )


def _value(call: Callable[[], Value]) -> Value | None:
    try:
        return call()
    except pynvml.NVMLError:
        return None


def _flag(value: int | None) -> bool | None:
    return None if value is None else bool(value)


def _sum(fields: dict[tuple[int, int], Any], *numbers: int) -> int | None:
    found: Iterable[int] = [fields[each, 0] for each in numbers if (each, 0) in fields]
    return sum(found) if found else None
