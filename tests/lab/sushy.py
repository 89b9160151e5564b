"""A real sushy-emulator with one machine per node: what the lab's own Redfish is held against.

    client ── http ──► sushy-emulator ── PUT on a power change ──► hook ──► on_power(node, "Off")
                             ▲                                      │
                             └────── reads what is pending ◄────────┘

The emulator applies a power change 0 to 11 s after it was asked for, and only when somebody reads the system.
So a poller reads exactly the machines that have something pending, when it is due. `tests/lab/sushy_hook.py`
says which notification means what. A restart takes the power away inside the POST, as no real machine does,
and random seconds make it slow: that is why the lab itself uses `tests/lab/bmc.py`.
"""

import base64
import http.client
import json
import os
import queue
import secrets
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

import bcrypt

from tests.lab.ports import free_ports
from tests.lab.sushy_hook import Power, PowerHook

START_SECONDS = 40.0
REREAD_SECONDS = 0.5
USERNAME = "clusterwright"

RUN_EMULATOR = """
import os, sys, threading
def leave_with_parent():
    sys.stdin.read()
    os._exit(0)
threading.Thread(target=leave_with_parent, daemon=True).start()
from sushy_tools.emulator.main import main
sys.exit(main())
"""
"""The `sushy-emulator` script by import, so that any interpreter runs it; ends when its stdin closes."""


class SushyBmc:
    """One emulated BMC per node, reached through one address.

    `on_power(node, "Off" | "On")` is called for every power change, in order and in a thread of its own.
    `stop()` and `start()` may alternate: machines keep their power state, a pending change applies later.
    """

    def __init__(
        self, workdir: Path, nodes: Sequence[str], on_power: Callable[[str, str], None] | None = None
    ) -> None:
        self.on_power = on_power
        self.username, self.password = USERNAME, secrets.token_urlsafe(12)
        self._dir = workdir / "bmc"
        self._dir.mkdir(parents=True, exist_ok=True)
        self.password_file = self._dir / "password"
        self.password_file.write_text(self.password)
        self._names = {node: str(uuid.uuid5(uuid.NAMESPACE_DNS, node)) for node in nodes}
        self._port = 0
        self._emulator: subprocess.Popen[bytes] | None = None
        self._hook = PowerHook(self._changed)
        self._events: queue.Queue[tuple[str, str] | None] = queue.Queue()
        self._wake = threading.Event()
        self._stopping = False
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def system_url(self, node: str) -> str:
        """Where a client finds the machine of `node`: by name, which the emulator answers with a 307."""
        return f"http://127.0.0.1:{self._port}/redfish/v1/Systems/{node}"

    def resets(self, node: str) -> int:
        """How often the machine really went down: restarts begun and power-offs applied."""
        return self._hook.machine(node).resets

    def power(self, node: str) -> str:
        """The machine's power state as last notified."""
        return self._hook.machine(node).state

    def start(self) -> None:
        """Start emulator, hook and poller; returns when the emulator answers."""
        self._stopping = False
        self._start_emulator(self._hook.start())
        self._threads = [
            threading.Thread(target=target, name=f"bmc-{target.__name__.strip('_')}", daemon=True)
            for target in (self._poll, self._deliver)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Kill the emulator; what is pending waits on its disk for the next `start`."""
        self._stopping = True
        self._wake.set()
        self._events.put(None)
        for thread in self._threads:
            thread.join(timeout=10)
        self._threads = []
        if self._emulator is not None:
            self._emulator.kill()
            self._emulator.communicate()
            self._emulator = None
        self._hook.stop()

    def _changed(self, node: str, before: Power, after: Power) -> None:
        if after.state != before.state:
            self._events.put((node, after.state))
        self._wake.set()

    def _deliver(self) -> None:
        while (event := self._events.get()) is not None:
            if self.on_power is not None:
                self.on_power(*event)

    def _poll(self) -> None:
        not_before: dict[str, float] = {}
        while not self._stopping:
            self._wake.clear()
            pending = {node: due for node in self._names if (due := self._hook.machine(node).due) is not None}
            times = {node: max(due, not_before.get(node, 0.0)) for node, due in pending.items()}
            ready = [node for node, at in times.items() if at <= time.time()]
            for node in ready:
                not_before[node] = time.time() + REREAD_SECONDS
                self._read(node)
            if not ready and not self._stopping:
                self._wake.wait(max(0.0, min(times.values()) - time.time()) if times else None)

    def _read(self, node: str) -> None:
        with suppress(OSError, http.client.HTTPException, ValueError):
            body = self._get(f"/redfish/v1/Systems/{self._names[node]}")
            if "PowerState" in body:
                self._hook.read(node, str(body["PowerState"]))

    def _get(self, path: str) -> dict[str, object]:
        link = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
        login = base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
        try:
            link.request("GET", path, headers={"Authorization": f"Basic {login}"})
            return dict(json.loads(link.getresponse().read()))
        finally:
            link.close()

    def _start_emulator(self, hook_url: str) -> None:
        config, log = self._dir / "emulator.conf", self._dir / "emulator.log"
        for _ in range(3):
            self._port = self._port or free_ports()[0]
            config.write_text(self._config(self._port, hook_url))
            with log.open("ab") as output:
                self._emulator = subprocess.Popen(
                    [sys.executable, "-c", RUN_EMULATOR, "--config", str(config)],
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=output,
                    env={name: value for name, value in os.environ.items() if "proxy" not in name.lower()},
                )
            if self._answers(self._emulator):
                return
            self._port = 0
        raise RuntimeError(f"sushy-emulator does not start; the end of {log}:\n{log.read_text()[-2000:]}")

    def _answers(self, process: subprocess.Popen[bytes]) -> bool:
        deadline = time.monotonic() + START_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            with suppress(OSError, http.client.HTTPException, ValueError):
                return bool(self._get("/redfish/v1/Systems"))
            time.sleep(0.1)
        process.kill()
        process.communicate()
        return False

    def _config(self, port: int, hook_url: str) -> str:
        logins = self._dir / "htpasswd"
        hashed = bcrypt.hashpw(self.password.encode(), bcrypt.gensalt(rounds=4)).decode()
        logins.write_text(f"{self.username}:{hashed}\n")
        systems = [
            {
                "uuid": each,
                "name": node,
                "power_state": "On",
                "external_notifier": True,
                "nics": [{"mac": f"02:00:00:00:{number >> 8:02x}:{number & 255:02x}", "ip": "192.0.2.1"}],
            }
            for number, (node, each) in enumerate(self._names.items())
        ]
        settings = {
            "SUSHY_EMULATOR_LISTEN_IP": "127.0.0.1",
            "SUSHY_EMULATOR_LISTEN_PORT": port,
            "SUSHY_EMULATOR_FAKE_DRIVER": True,
            "SUSHY_EMULATOR_STATE_DIR": str(self._dir / "state"),
            "SUSHY_EMULATOR_AUTH_FILE": str(logins),
            "SUSHY_EMULATOR_FAKE_SYSTEMS": systems,
            "EXTERNAL_NOTIFICATION_URL": hook_url,
        }
        return "".join(f"{name} = {value!r}\n" for name, value in settings.items())
