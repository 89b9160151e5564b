"""A URL path → what it addresses."""

from __future__ import annotations

from dataclasses import dataclass

NAMESPACE_SUBRESOURCES = {"status", "finalize"}


@dataclass(frozen=True, slots=True)
class Route:
    """The parts of a resource path; empty where the path has none."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def parse(path: str) -> Route | None:
    """The resource a path addresses; None for /version, /healthz, discovery and the unknown."""
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["api"] and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[:1] == ["apis"] and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in NAMESPACE_SUBRESOURCES:
        namespace, rest = rest[1], rest[2:]
    elif rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
    if len(rest) > 3:
        return None
    name, subresource = ([*rest[1:], "", ""])[:2]
    return Route(group, version, rest[0], namespace, name, subresource)
