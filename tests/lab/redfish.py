"""A Redfish service for the lab's machines: what the product reads and sends, as DSP0268 defines it.

`tests/lab/tests/test_bmc.py` holds it against a real sushy-emulator.
"""

import base64
import hmac
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.lab.machines import CHANGES, Machines

SYSTEMS = "/redfish/v1/Systems"
RESET = "/Actions/ComputerSystem.Reset"


class RedfishServer(ThreadingHTTPServer):
    """Serves one system per node on a free port of 127.0.0.1: by UUID, and by name through a redirect."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, machines: Machines, uuids: dict[str, str], login: str) -> None:
        self.machines = machines
        self.uuids = uuids
        self.nodes = {uuid: node for node, uuid in uuids.items()}
        self.authorization = "Basic " + base64.b64encode(login.encode()).decode()
        super().__init__(("127.0.0.1", 0), Exchange)
        threading.Thread(target=self.serve_forever, args=(0.1,), name="redfish", daemon=True).start()

    def stop(self) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that left is not an event here."""


class Exchange(BaseHTTPRequestHandler):
    """One client connection."""

    protocol_version = "HTTP/1.1"
    server: RedfishServer

    def do_GET(self) -> None:
        if self._is_allowed() and (uuid := self._system(self.path)):
            self._answer(200, system(uuid, self.server.nodes[uuid], self._power(uuid)))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self._is_allowed() or not (uuid := self._system(self.path.removesuffix(RESET))):
            return
        if not self.path.endswith(RESET):
            self._refuse(405, "The method is not allowed for this resource.")
            return
        try:
            reset_type = json.loads(body)["ResetType"]
        except (ValueError, TypeError, KeyError):
            reset_type = None
        if reset_type not in CHANGES:
            self._refuse(400, f"The value {reset_type!r} of ResetType is not supported.")
            return
        self.server.machines.order(self.server.nodes[uuid], reset_type)
        self._answer(204)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library names it
        """The proxy in front keeps what matters."""

    def _is_allowed(self) -> bool:
        allowed = hmac.compare_digest(self.headers.get("Authorization", ""), self.server.authorization)
        if not allowed:
            self._refuse(401, "Valid credentials are required.")
        return allowed

    def _system(self, path: str) -> str | None:
        """Return the system that the path names; answers itself when it names none, or names it by node."""
        name = path.removeprefix(SYSTEMS + "/")
        if name in self.server.nodes:
            return name
        if uuid := self.server.uuids.get(name):
            self._answer(307, location=f"{SYSTEMS}/{uuid}")
        else:
            self._refuse(404, f"There is no resource {path}.")
        return None

    def _power(self, uuid: str) -> str:
        return self.server.machines.state(self.server.nodes[uuid])

    def _refuse(self, status: int, message: str) -> None:
        self._answer(status, {"error": {"code": "Base.1.12.GeneralError", "message": message}})

    def _answer(self, status: int, body: dict[str, Any] | None = None, location: str = "") -> None:
        content = json.dumps(body).encode() if body is not None else b""
        self.send_response_only(status)
        if location:
            self.send_header("Location", location)
        if status != 204:
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def system(uuid: str, node: str, power: str) -> dict[str, Any]:
    """Return the ComputerSystem of one machine."""
    place = f"{SYSTEMS}/{uuid}"
    return {
        "@odata.type": "#ComputerSystem.v1_13_0.ComputerSystem",
        "@odata.id": place,
        "Id": uuid,
        "Name": node,
        "UUID": uuid,
        "PowerState": power,
        "Actions": {
            "#ComputerSystem.Reset": {
                "target": place + RESET,
                "ResetType@Redfish.AllowableValues": list(CHANGES),
            }
        },
    }
