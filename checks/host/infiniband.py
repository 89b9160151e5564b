"""The InfiniBand and RoCE ports of a node, as sysfs shows them; only files that cost the firmware little.

Reading all counters of a port floods the kernel log and slows the firmware, so each check reads the one it
judges.
"""

from pathlib import Path

import msgspec

from checks.check import CheckContext
from checks.counters import Past
from checks.host.files import names, number, text

CLASS = "sys/class/infiniband"
"""One directory for each device, with `ports/<n>/{state,phys_state,rate,link_layer,counters/…}`."""

ACTIVE = "ACTIVE"
LINK_UP = "LinkUp"

IFF_UP = 1
"""Flag of a network interface that an administrator has switched on."""


class Port(msgspec.Struct, frozen=True):
    """One port: `name` is `mlx5_0/1`; `state` and `physical` are None where they cannot be read.

    `place` is its directory, as a string: joining `Path`s would cost more than reading the files.
    """

    name: str
    place: str
    state: str | None
    physical: str | None

    @property
    def up(self) -> bool:
        """Whether it carries traffic."""
        return self.state == ACTIVE and self.physical == LINK_UP


def ports(root: Path) -> dict[str, Port]:
    """Return every port of every device by name."""
    found = {}
    for device in names(root / CLASS) or ():
        ports_of = f"{root}/{CLASS}/{device}/ports"
        for port in names(ports_of) or ():
            name, place = f"{device}/{port}", f"{ports_of}/{port}"
            found[name] = Port(name, place, _word(f"{place}/state"), _word(f"{place}/phys_state"))
    return found


def watched(context: CheckContext, known: Past) -> tuple[str, ...]:
    """Return the ports to watch: those of the policy, else those that were up before in this boot."""
    expected = context.policy.expected.ib_ports
    return tuple(each if "/" in each else f"{each}/1" for each in expected) or tuple(sorted(known))


def watched_ports(context: CheckContext) -> list[Port]:
    """Return the ports that are there and that the policy names; every one where it names none."""
    found = ports(context.root)
    return [found[name] for name in watched(context, dict.fromkeys(found, ())) if name in found]


def is_switched_off(root: Path, port: Port) -> bool:
    """Whether an administrator took the port down, which is no fault (rule T24)."""
    if port.physical == "Disabled":
        return True
    netdev = (
        text(f"{port.place}/gid_attrs/ndevs/0") if text(f"{port.place}/link_layer") == "Ethernet" else None
    )
    flags = text(root / "sys/class/net" / netdev / "flags") if netdev else None
    return flags is not None and not int(flags, 16) & IFF_UP


def counter(port: Port, name: str) -> int | None:
    """Return one counter of the port, None when the firmware does not provide it."""
    return number(f"{port.place}/counters/{name}")


def rate_gbps(port: Port) -> float | None:
    """Return the port's rate in Gb/s."""
    found = (text(f"{port.place}/rate") or "").split(" ")[0]
    try:
        return float(found)
    except ValueError:
        return None


def _word(file: str) -> str | None:
    """Return the word in a state such as `4: ACTIVE`."""
    found = text(file)
    return found.partition(":")[2].strip() if found else None
