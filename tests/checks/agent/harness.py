"""Harness of the agent's tests: a bot that speaks HTTP, and a node with a real agent process."""

import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from tests.lab.ports import free_ports

Found = TypeVar("Found")

BOOT = "0b6e1a52-1111-4222-8333-444455556666"
XID = "NVRM: Xid (PCI:0000:3d:00): {code}, pid=1, name=job"
PATIENCE = 20.0


class Bot:
    """Takes reports as the bot does, and can be told to answer otherwise."""

    def __init__(self) -> None:
        self.reports: list[dict[str, Any]] = []
        self.tokens: list[str] = []
        self.answers: dict[str, int] = {}
        self.says: dict[str, Any] = {}
        self.refuses: dict[str, Any] = {}
        self.status = 202
        self.resends = 0
        self._server: http.server.ThreadingHTTPServer | None = None
        self.port = free_ports()[0]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        bot = self

        class Request(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                token = self.headers["Authorization"].removeprefix("Bearer ")
                bot.tokens.append(token)
                status = bot.answers.get(token, bot.status)
                if bot.resends and "base" in body:
                    bot.resends, status = bot.resends - 1, 409
                if status == 202:
                    bot.reports.append(body)
                answer = json.dumps(
                    {"accepted": body["sequence"], **bot.says}
                    if status == 202
                    else {"error": "no", **bot.refuses}
                ).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Request)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def counts(self) -> dict[str, int]:
        """Return what the newest report says: count by code."""
        findings = self.reports[-1]["findings"] if self.reports else []
        return {each["code"]: each.get("count", 1) for each in findings}

    def blind_spots(self) -> dict[str, int]:
        spots = self.reports[-1]["blind_spots"] if self.reports else []
        return {each["code"]: each.get("count", 1) for each in spots}


class Node:
    """A node's root directory and its agent process."""

    def __init__(self, directory: Path, bot: Bot) -> None:
        self.root = directory / "root"
        self.kmsg = self.root / "dev/kmsg"
        self.token_file = directory / "token"
        self.log_file = directory / "agent.log"
        self.environment = {
            "PATH": os.environ["PATH"],
            "CLUSTERWRIGHT_AGENT__NODE": "gpu-01",
            "CLUSTERWRIGHT_AGENT__BOT_URL": bot.url,
            "CLUSTERWRIGHT_AGENT__TOKEN_FILE": str(self.token_file),
            "CLUSTERWRIGHT_AGENT__ROOT": str(self.root),
            "CLUSTERWRIGHT_AGENT__STATE_DIR": str(directory / "state"),
            "CLUSTERWRIGHT_AGENT__POLL_SECONDS": "0.05",
            "CLUSTERWRIGHT_AGENT__REPORT_INTERVAL_SECONDS": "5",
        }
        self.sequence = 0
        self.process: subprocess.Popen[bytes] | None = None
        self.kmsg.parent.mkdir(parents=True)
        self.kmsg.touch()
        self.token_file.write_text("token-1\n")
        self.boot(BOOT)

    def boot(self, boot_id: str) -> None:
        file = self.root / "proc/sys/kernel/random/boot_id"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(boot_id + "\n")

    def write(self, *texts: str) -> None:
        records = b""
        for text in texts:
            records += f"4,{self.sequence},{int(time.monotonic() * 1e6)},c;{text}\n SUBSYSTEM=pci\n".encode()
            self.sequence += 1
        with self.kmsg.open("ab") as file:
            file.write(records)

    def start(self) -> None:
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "checks"], env=self.environment, stdout=log, stderr=log
            )

    def kill(self) -> None:
        self.end(signal.SIGKILL)

    def end(self, number: int = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        code, self.process = self.process.wait(PATIENCE), None
        return code

    def log(self) -> str:
        return self.log_file.read_text()


def wait_for(what: Callable[[], Found]) -> Found:
    until = time.monotonic() + PATIENCE
    while not (found := what()):
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.02)
    return found
