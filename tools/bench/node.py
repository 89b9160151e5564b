"""A node to measure an agent on: its root directory, a bot with TLS that takes every report, the agent."""

import http.server
import json
import shutil
import ssl
import threading
import time
import urllib.request
import uuid
from pathlib import Path
from typing import Any, Protocol, Self

from checks.agent.node_state import RECORDS_AHEAD
from tests.lab.kmsg.device import records
from tests.lab.kube import certificates
from tests.lab.noderoot import NodeRoot, gpu_address
from tests.lab.nvml import library
from tests.lab.nvml.library import Machine
from tests.lab.ports import free_ports
from tests.lab.program import Program

GPUS = 8

START_SECONDS = 60.0

PROBE_SECONDS = 60.0
"""How often the kubelet asks whether the agent lives (manifests/base/agent/daemonset.yaml)."""

READ_SECONDS = 300.0
"""Longest time that a flood may take to be read on a busy machine."""


class Kernel(Protocol):
    """A kernel log that can be written."""

    def __init__(self, path: Path) -> None: ...

    def write(self, texts: list[str]) -> int:
        """Log the texts, one record each; return the number of the last record."""

    def close(self) -> None:
        """Give back what it holds."""


class PlainFile:
    """The lab's stand-in: a file that grows."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab")
        self._sequence = -1

    def write(self, texts: list[str]) -> int:
        self._file.write(records(texts, self._sequence + 1))
        self._file.flush()
        self._sequence += len(texts)
        return self._sequence

    def close(self) -> None:
        self._file.close()


class Inbox:
    """The bot: takes every report over TLS and keeps the newest."""

    def __init__(self, folder: Path) -> None:
        certificates.write(folder)
        self.ca_file = folder / "ca.crt"
        self.newest: dict[str, Any] = {}
        self.reports = self._bytes = 0
        inbox = self

        class Request(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                inbox.take(body)
                answer = json.dumps({"accepted": inbox.newest["sequence"]}).encode()
                self.send_response(202)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.crt", folder / "server.key")
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Request)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def take(self, body: bytes) -> None:
        self.newest = json.loads(body)
        self.reports += 1
        self._bytes += len(body)

    def bytes_each(self) -> float:
        return self._bytes / max(1, self.reports)

    def counted(self) -> int:
        return sum(each.get("count", 1) for each in self.newest["findings"] if each["check"] == "xid")

    def lost(self) -> int:
        return sum(each.get("count", 1) for each in self.newest["blind_spots"] if each["code"] == "log-lost")

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class BenchNode:
    """One node in `folder`, with its kernel log of the given kind. Removes the folder at the end."""

    def __init__(self, folder: Path, kernel: type[Kernel], report_interval_seconds: float) -> None:
        self._folder = folder
        self._root = NodeRoot(folder / "root", "gpu-01")
        self._root.boot(str(uuid.uuid4()), gpus=GPUS)
        log = folder / "root/dev/kmsg"
        log.write_bytes(b"")
        self.kernel = kernel(log)
        self.bot = Inbox(folder)
        (folder / "token").write_text("bench-token\n")
        (folder / "state").mkdir()
        settings = {
            "node": "gpu-01",
            "bot_url": self.bot.url,
            "ca_file": folder / "ca.crt",
            "token_file": folder / "token",
            "state_dir": folder / "state",
            "root": folder / "root",
            "report_interval_seconds": report_interval_seconds,
            "health_listen": f"127.0.0.1:{free_ports()[0]}",
        }
        environment = {f"CLUSTERWRIGHT_AGENT__{key.upper()}": str(value) for key, value in settings.items()}
        driver = Machine(folder / "nvml").add(*map(gpu_address, range(GPUS))).write()
        environment |= {
            "LD_LIBRARY_PATH": str(library.build(folder / "lib")),
            "NVML_STATE": str(driver.file),
        }
        self._agent = Program("checks", environment, folder / "agent.log")
        self._health = f"http://{settings['health_listen']}/healthz"
        self._over = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._agent.stop()
        self.bot.stop()
        self.kernel.close()
        shutil.rmtree(self._folder)

    @property
    def pid(self) -> int:
        return self._agent.pid

    def start(self) -> None:
        """Start the agent and wait for its first report."""
        self._agent.start()
        deadline = time.monotonic() + START_SECONDS
        while not self.bot.reports and time.monotonic() < deadline:
            time.sleep(0.1)
        threading.Thread(target=self._probe, daemon=True).start()

    def wait_read(self, sequence: int) -> None:
        """Return once the agent has read record `sequence` and reported since."""
        deadline = time.monotonic() + READ_SECONDS
        while self._cursor() < sequence - RECORDS_AHEAD:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the agent has read only up to record {self._cursor()} of {sequence}")
            time.sleep(0.2)
        reports = self.bot.reports
        # Of the last records, which are not saved for themselves, the second report tells.
        while self.bot.reports < reports + 2:
            time.sleep(0.1)

    def _probe(self) -> None:
        while not self._over.wait(PROBE_SECONDS):
            urllib.request.urlopen(self._health, timeout=5.0).close()

    def _cursor(self) -> int:
        try:
            return json.loads((self._folder / "state/agent-state.json").read_text())["cursor"] or -1
        except (OSError, ValueError):
            return -1
