"""The BMCs of the lab: one Redfish address, machines that obey later, a proxy in front that breaks things.

    product ── http ──► proxy ──► Redfish ──► machines ── after a while ──► on_power(node, "Off")

A BMC accepts an order and answers; the machine loses its power some time later. Meanwhile the old boot keeps
running and its agent keeps reporting.
"""

import re
import secrets
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from tests.lab.machines import Delays, Machines
from tests.lab.proxy import BmcProxy, Fault
from tests.lab.redfish import RedfishServer

USERNAME = "clusterwright"


class Bmc:
    """One emulated BMC per node, all reached through one address.

    `on_power(node, "Off" | "On")` is called for every power change, in order and in a thread of its own.
    `stop()` and `start()` may alternate: machines keep their power state, a pending change applies later.
    """

    def __init__(
        self,
        workdir: Path,
        nodes: Sequence[str],
        on_power: Callable[[str, str], None] | None = None,
        delays: Delays | None = None,
    ) -> None:
        self.on_power = on_power
        self.username, self.password = USERNAME, secrets.token_urlsafe(12)
        workdir.mkdir(parents=True, exist_ok=True)
        self.password_file = workdir / "password"
        self.password_file.write_text(self.password)
        self._uuids = {node: str(uuid.uuid5(uuid.NAMESPACE_DNS, node)) for node in nodes}
        self._nodes = {each: node for node, each in self._uuids.items()} | {node: node for node in nodes}
        self._machines = Machines(nodes, delays or Delays(), self._changed)
        self.proxy = BmcProxy(self._node_of)
        self._server: RedfishServer | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def system_template(self) -> str:
        """The `redfish.system` of a pool in the cluster repository."""
        return self.proxy.url + "/redfish/v1/Systems/{node}"

    def system_url(self, node: str) -> str:
        """Where the product finds the machine of `node`: by name, which the BMC answers with a 307."""
        return self.system_template.format(node=node)

    def resets(self, node: str) -> int:
        """How often the machine really lost its power."""
        return self._machines.resets(node)

    def power(self, node: str) -> str:
        """The machine's power state."""
        return self._machines.state(node)

    def reset_posts(self, node: str) -> int:
        """How many reset POSTs arrived at the proxy, refused ones included."""
        return len(self.orders(node))

    def orders(self, node: str) -> list[str]:
        """The reset types of the POSTs that arrived for `node`, oldest first."""
        return [post.reset_type for post in tuple(self.proxy.posts) if post.node == node]

    def lose_next_reply(self, node: str) -> None:
        """Let the BMC accept the next reset, then drop the connection without an answer."""
        self.proxy.trouble(node, Fault.LOSE)

    def fail_next_reply(self, node: str) -> None:
        """Let the BMC accept the next reset, then answer 500."""
        self.proxy.trouble(node, Fault.FAIL)

    def refuse(self, node: str) -> None:
        """Answer every reset with 409 and carry out none, until `clear`."""
        self.proxy.trouble(node, Fault.REFUSE)

    def hang(self, node: str, seconds: float, method: str = "POST") -> None:
        """Make requests wait `seconds` before they are carried out, client or no client, until `clear`."""
        self.proxy.trouble(node, Fault.HANG, method=method, seconds=seconds)

    def clear(self, node: str) -> None:
        """Behave again."""
        self.proxy.clear(node)

    def ignore_next_order(self, node: str) -> None:
        """Accept the next order and carry out nothing, as an operating system that hangs in its shutdown."""
        self._machines.ignore_next_order(node)

    def down(self) -> None:
        """Take the network to all BMCs away; connections are refused."""
        self.proxy.down()

    def up(self) -> None:
        """Bring the network back, at the same address."""
        self.proxy.up()

    def start(self) -> None:
        """Start machines, Redfish and proxy."""
        self._machines.start()
        self._server = RedfishServer(self._machines, self._uuids, f"{self.username}:{self.password}")
        self.proxy.upstream = ("127.0.0.1", self._server.server_address[1])
        self.proxy.up()

    def stop(self) -> None:
        """Stop everything; pending changes wait for the next `start`."""
        self.proxy.down()
        if self._server is not None:
            self._server.stop()
            self._server = None
        self._machines.stop()

    def _node_of(self, path: str) -> str | None:
        found = re.match(r"/redfish/v1/Systems/([^/?]+)", path)
        return self._nodes.get(found[1]) if found else None

    def _changed(self, node: str, state: str) -> None:
        if self.on_power is not None:
            self.on_power(node, state)
