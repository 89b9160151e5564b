"""Rows of `scontrol --oneliner show nodes`: one node a line, `Key=value` pairs, free texts at the end."""

import re
from collections.abc import Iterator

import msgspec

COMMAND = ("scontrol", "--oneliner", "show", "nodes")
"""Prints the rows. Read-only; the controller alone answers."""


class SlurmNode(msgspec.Struct, frozen=True, kw_only=True):
    """One node as Slurm sees it.

    `base` is one of Slurm's base states, `flags` what Slurm shows beside it. `reason` is why somebody drained
    it, with `reason_by` and `reason_at` as Slurm prints them; empty for none. `gpus` is the number of GPUs in
    its Gres, None when it has none. `kubernetes_node` is what Slinky's operator notes in the comment.
    """

    name: str
    hostname: str
    base: str
    flags: frozenset[str]
    reason: str = ""
    reason_by: str = ""
    reason_at: str = ""
    gpus: int | None = None
    kubernetes_node: str = ""

    @property
    def draining(self) -> bool:
        """Whether somebody has drained it, so that it takes no new jobs."""
        return "DRAIN" in self.flags

    @property
    def busy(self) -> bool:
        """Whether jobs run on it or are being cleaned up."""
        return self.base in ("ALLOCATED", "MIXED") or "COMPLETING" in self.flags


def parse(text: str) -> tuple[SlurmNode, ...]:
    """Return the nodes in the output of COMMAND.

    Raises ValueError for a line that is no node: half an answer must not read as fewer nodes.
    """
    return tuple(_nodes(text))


def _nodes(text: str) -> Iterator[SlurmNode]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line.startswith("No nodes in the system"):
            continue
        # The free texts come last and may contain anything that looks like a pair.
        first = _FREE.search(line)
        row, free = (line[: first.start()], line[first.start() :]) if first else (line, "")
        pairs: dict[str, str] = dict(_PAIR.findall(row))
        if "NodeName" not in pairs or "State" not in pairs:
            raise ValueError(f"line {number} of scontrol's answer is no node: {line[:80]!r}")
        why = _REASON.search(free) or _BARE_REASON.search(free)
        comment = _COMMENT.search(free, why.end() if why else 0)
        facts = why.groupdict() if why else {}
        base, *flags = _WORD.findall(pairs["State"]) or ["UNKNOWN"]
        yield SlurmNode(
            name=pairs["NodeName"],
            hostname=pairs.get("NodeHostName") or pairs["NodeName"],
            base=base,
            flags=frozenset(flags) | ({"NOT_RESPONDING"} if "*" in pairs["State"] else set()),
            reason=facts.get("text", "").strip(),
            reason_by=facts.get("by", ""),
            reason_at=facts.get("at", ""),
            gpus=_gpus(pairs.get("Gres", "")),
            kubernetes_node=_kubernetes_node(comment[1] if comment else ""),
        )


def _gpus(gres: str) -> int | None:
    found = [int(count) for count in _GPU.findall(gres)]
    return sum(found) if found else None


def _kubernetes_node(comment: str) -> str:
    try:
        return msgspec.json.decode(comment, type=_Comment).node if comment else ""
    except msgspec.DecodeError:
        return ""


class _Comment(msgspec.Struct):
    node: str = ""


_PAIR = re.compile(r"(?:^| )([A-Za-z]+)=(\S*)")
_WORD = re.compile(r"[A-Z_]+")
_FREE = re.compile(r" (?=(?:Reason|Comment|Extra)=)")
_REASON = re.compile(r" Reason=(?P<text>.*?) \[(?P<by>[^\s@\[\]]{1,64})@(?P<at>[0-9T:.-]{10,32})\](?= |$)")
_BARE_REASON = re.compile(r" Reason=(?P<text>.*?)(?= (?:Comment|Extra)=|$)")
_COMMENT = re.compile(r" Comment=(\{[^{}]*\})")
_GPU = re.compile(r"(?:^|,)gpu(?::[^:,()]+)?:([0-9]{1,5})")
