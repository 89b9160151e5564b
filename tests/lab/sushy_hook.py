"""The emulator's power notifications, turned into what happened to each machine.

sushy-emulator's fake driver PUTs its whole record of a system to a URL on every change. Seen in its source
and on the wire (version 2.2.0):

- `GracefulRestart` and `ForceRestart` are alike. During the POST, before it is answered, one notification
  says `power_state: Off` with `pending_power: {power_state: GracefulRestart, apply_time: <Unix second>}`: the
  machine is down at once. A second one, `power_state: On, pending_power: null`, comes when somebody reads the
  system at or after `apply_time`, which is 0 to 11 s later. A second restart meanwhile is again an `Off` with
  a new pending restart: the machine was cut a second time.
- `ForceOff` and `GracefulShutdown` notify `On` with a pending `Off`; `Off, null` follows at such a read. `On`
  and `ForceOn` likewise. Asking for the state a machine is in changes and notifies nothing.
- The change is stored before it is notified. So a read at `apply_time` may notify `On` before the POST's own
  `Off` arrives here, and a hook that is away loses the notice but not the change: `read` mends both.
"""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True)
class Power:
    """A machine as last heard of. `due` is when a pending change may apply, in Unix seconds."""

    state: str = "On"
    due: float | None = None
    resets: int = 0
    record: Any = None


def notified(before: Power, record: Any) -> Power:
    """Return the machine after a notification: a restart counts when begun, a power-off when applied."""
    pending = record.get("pending_power") or None
    restart = pending is not None and "Restart" in pending["power_state"]
    state = str(record["power_state"])
    off = state == "Off" and before.state == "On"
    down = _restarts_anew(before.record, record) if restart else off
    due = float(pending["apply_time"]) if pending else None
    return Power(state=state, due=due, resets=before.resets + int(down), record=record)


def read(before: Power, state: str, now: float) -> Power:
    """Return the machine after somebody read `state` from it at `now`: the truth once nothing is pending."""
    if before.due is not None and now < before.due:
        return before
    return replace(before, state=state, due=None)


def _restarts_anew(before: Any, record: Any) -> bool:
    """Tell a restart from a change of something else (boot device, media) while a restart is pending."""
    if before is None or before.get("pending_power") != record["pending_power"]:
        return True
    return bool(before == record)


class PowerHook:
    """The server that the emulator notifies; what it knows of the machines outlives `stop` and `start`.

    `on_change(node, before, after)` is called in order and one at a time, while the emulator waits.
    """

    def __init__(self, on_change: Callable[[str, Power, Power], None]) -> None:
        self._on_change = on_change
        self._lock = threading.Lock()
        self._machines: dict[str, Power] = {}
        self._server: HookListener | None = None

    def start(self) -> str:
        """Listen; returns the URL to notify."""
        self._server = HookListener(self)
        threading.Thread(target=self._server.serve_forever, args=(0.2,), name="bmc-hook", daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_address[1]}/bmc"

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def machine(self, node: str) -> Power:
        with self._lock:
            return self._machines.get(node, Power())

    def notify(self, record: Any) -> None:
        self._apply(record["name"], lambda before: notified(before, record))

    def read(self, node: str, state: str) -> None:
        self._apply(node, lambda before: read(before, state, time.time()))

    def _apply(self, node: str, change: Callable[[Power], Power]) -> None:
        with self._lock:
            before = self._machines.get(node, Power())
            after = self._machines[node] = change(before)
            if after != before:
                self._on_change(node, before, after)


class HookListener(ThreadingHTTPServer):
    """The hook's socket."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, hook: PowerHook) -> None:
        self.hook = hook
        super().__init__(("127.0.0.1", 0), Notification)


class Notification(BaseHTTPRequestHandler):
    """One PUT of a system by the emulator, which waits for the answer: the work behind it must be short."""

    server: HookListener

    def do_PUT(self) -> None:
        self.server.hook.notify(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response_only(204)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library names it
        """`PowerHook` keeps what matters."""
