"""The agent's side of the NVML child process: ask, wait at most ten seconds, end a child that is silent.

A child inside a call into a sick driver may not even die of SIGKILL. Nothing ever waits for it. While one is
left, one replacement is started and no more.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Mapping

import msgspec

from checks.gpu_sample import NvmlAnswer, NvmlRequest

DEADLINE_SECONDS = 10.0
"""Longest wait for an answer (table 1.1): a healthy driver needs milliseconds, a sick one 6 s or for ever."""

COMMAND = (sys.executable, "-m", "checks.gpu.nvml_child")
"""The command that starts the child."""

FRAME_LIMIT = 1 << 20
"""Largest answer in bytes that is accepted; one GPU takes less than 1 kB."""

_ANSWERS = msgspec.msgpack.Decoder(NvmlAnswer)


class NoAnswer(msgspec.Struct, frozen=True):
    """The child did not answer, and why. `missed`: the deadline passed; else it ended or did not start."""

    reason: str
    missed: bool


class NvmlChild:
    """At most one working child, and those that could not be ended."""

    def __init__(self, environment: Mapping[str, str], deadline_seconds: float = DEADLINE_SECONDS) -> None:
        self._environment = dict(environment)
        self._deadline = deadline_seconds
        self._stuck: list[int] = []
        self._requests = self._answers = -1
        self.pid: int | None = None

    @property
    def stuck(self) -> int:
        """Number of children that were killed and are still alive."""
        self._stuck = [pid for pid in self._stuck if not _is_over(pid)]
        return len(self._stuck)

    @property
    def works(self) -> bool:
        """Whether there is a child, and it has not ended by itself."""
        if self.pid is not None and _is_over(self.pid):
            os.close(self._requests)
            os.close(self._answers)
            self.pid = None
        return self.pid is not None

    def ask(self, request: NvmlRequest) -> NvmlAnswer | NoAnswer:
        """Return the answer. A child that does not answer is ended, and the next request starts another."""
        if self.pid is None and (refusal := self._start()) is not None:
            return refusal
        frame = msgspec.msgpack.encode(request)
        try:
            os.write(self._requests, len(frame).to_bytes(4, "little") + frame)
            return _ANSWERS.decode(self._receive(time.monotonic() + self._deadline))
        except TimeoutError:
            self.close()
            return NoAnswer(f"no answer in {self._deadline:g} s", missed=True)
        except (OSError, EOFError, msgspec.DecodeError) as error:
            self.close()
            return NoAnswer(f"the NVML process ended: {error}", missed=False)

    def close(self) -> None:
        """End the child, without waiting for it."""
        if self.pid is None:
            return
        os.close(self._requests)
        os.close(self._answers)
        os.kill(self.pid, signal.SIGKILL)
        if not _is_over(self.pid):
            self._stuck.append(self.pid)
        self.pid = None

    def _start(self) -> NoAnswer | None:
        if not may_start(self.stuck):
            return NoAnswer(f"{len(self._stuck)} NVML processes are stuck in the driver", missed=True)
        theirs_in, self._requests = os.pipe2(os.O_CLOEXEC)
        self._answers, theirs_out = os.pipe2(os.O_CLOEXEC)
        try:
            self.pid = os.posix_spawn(
                COMMAND[0],
                COMMAND,
                self._environment,
                file_actions=[(os.POSIX_SPAWN_DUP2, theirs_in, 0), (os.POSIX_SPAWN_DUP2, theirs_out, 1)],
            )
        except OSError as error:
            os.close(self._requests)
            os.close(self._answers)
            return NoAnswer(f"the NVML process cannot be started: {error}", missed=False)
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        return None

    def _receive(self, until: float) -> bytes:
        size = int.from_bytes(self._read(4, until), "little")
        if size > FRAME_LIMIT:
            raise EOFError(f"its answer would have {size} bytes")
        return self._read(size, until)

    def _read(self, count: int, until: float) -> bytes:
        body = b""
        while len(body) < count:
            readable, _, _ = select.select([self._answers], [], [], max(0.0, until - time.monotonic()))
            if not readable:
                raise TimeoutError
            part = os.read(self._answers, count - len(body))
            if not part:
                raise EOFError("it closed its output")
            body += part
        return body


def may_start(stuck: int) -> bool:
    """Whether another child may be started beside those that cannot be ended."""
    return stuck <= 1


def _is_over(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True
