"""The NVML child process: requests on stdin, answers on stdout, one at a time, until stdin ends.

A call into a sick driver may never return, so it is made here, where the agent can end it. A frame is four
bytes of length, little-endian, and a MessagePack document.
"""

import ctypes
import os
import signal
import sys

if __name__ == "__main__":
    # msgspec imports typing_extensions wherever it is installed: 5 MB on every node, for nothing.
    sys.modules.setdefault("typing_extensions", None)  # type: ignore[arg-type]

import msgspec

from checks.gpu.nvml import NvmlSession
from checks.gpu_sample import NvmlAnswer, NvmlRequest, OpenLibrary

PR_SET_PDEATHSIG = 1
"""prctl: the signal that this process gets when its parent ends (linux/prctl.h)."""


def main() -> None:
    """Answer until the agent is gone."""
    # A child that is stuck in a call does not see the end of stdin.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    requests = msgspec.msgpack.Decoder(NvmlRequest)
    session = NvmlSession()
    while (body := _receive()) is not None:
        answer = msgspec.msgpack.encode(_answer(session, requests.decode(body)))
        os.write(1, len(answer).to_bytes(4, "little") + answer)


def _answer(session: NvmlSession, request: NvmlRequest) -> NvmlAnswer:
    if isinstance(request, OpenLibrary):
        return session.open()
    return session.read(request)


def _receive() -> bytes | None:
    size = sys.stdin.buffer.read(4)
    if len(size) < 4:
        return None
    return sys.stdin.buffer.read(int.from_bytes(size, "little"))


if __name__ == "__main__":
    main()
