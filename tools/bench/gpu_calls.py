"""What each NVML call of the child costs on one GPU: `gpu_calls ADDRESS ROUNDS`, JSON on stdout."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from ctypes import byref
from typing import Any

import pynvml

from checks.gpu.nvml import BATCH, FIELDS
from checks.gpu_sample import describe
from tools.bench.cost import Cost, cost


def calls(gpu: str, rounds: int) -> Iterator[Cost]:
    """Yield the cost of each NVML call that the child makes, on one GPU."""
    pynvml.nvmlInitWithFlags(pynvml.NVML_INIT_FLAG_NO_GPUS | pynvml.NVML_INIT_FLAG_NO_ATTACH)
    handle = pynvml.nvmlDeviceGetHandleByPciBusId(gpu)
    fabric, sram = pynvml.c_nvmlGpuFabricInfo_v3_t(), pynvml.c_nvmlEccSramErrorStatus_v1_t()
    work: dict[str, Callable[[], Any]] = {
        f"field batch, all {len(BATCH)}": lambda: pynvml.nvmlDeviceGetFieldValues(handle, list(BATCH)),
        f"field batch, {len(FIELDS)} of the GPU": lambda: pynvml.nvmlDeviceGetFieldValues(
            handle, list(FIELDS)
        ),
        **{
            f"field {each}": lambda each=each: pynvml.nvmlDeviceGetFieldValues(handle, [each])
            for each in FIELDS
        },
        "clocks event reasons": lambda: pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle),
        "margin temperature": lambda: pynvml.nvmlDeviceGetMarginTemperature(handle),
        "fabric info": lambda: pynvml.nvmlDeviceGetGpuFabricInfoV(handle, byref(fabric)),
        "NVLink state, one link": lambda: pynvml.nvmlDeviceGetNvLinkState(handle, 0),
        "SRAM status": lambda: pynvml.nvmlDeviceGetSramEccErrorStatus(handle, byref(sram)),
        "memory in use": lambda: pynvml.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2),
        "MIG mode": lambda: pynvml.nvmlDeviceGetMigMode(handle),
        "persistence mode": lambda: pynvml.nvmlDeviceGetPersistenceMode(handle),
        "enforced power limit": lambda: pynvml.nvmlDeviceGetEnforcedPowerLimit(handle),
        "InfoROM validation": lambda: pynvml.nvmlDeviceValidateInforom(handle),
        "handle by PCI address": lambda: pynvml.nvmlDeviceGetHandleByPciBusId(gpu),
    }
    for name, call in work.items():
        times, refusal = [], ""
        for _ in range(rounds if name != "InfoROM validation" else max(1, rounds // 20)):
            began = time.perf_counter()
            try:
                call()
            except pynvml.NVMLError as error:
                refusal = f" [{describe(error.value)}]"
            times.append((time.perf_counter() - began) * 1000)
        yield cost(name + refusal, times)


if __name__ == "__main__":
    print(json.dumps([each._asdict() for each in calls(sys.argv[1], int(sys.argv[2]))]))
