"""Who may reach our pods and where they may go: the sum of all network policies, nothing else."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab import manifests

APP = "app.kubernetes.io/name"
EVERYWHERE = ""
PROGRAMS = {
    "clusterwright-agent": "DaemonSet",
    "clusterwright-bot": "Deployment",
    "clusterwright-reconciler": "Deployment",
}

AGENT = f"{APP}=clusterwright-agent"
BOT = f"{APP}=clusterwright-bot"
RECONCILER = f"{APP}=clusterwright-reconciler"
SCRAPERS = "namespaces clusterwright.dev/scrapes=agents"

INGRESS = {
    "clusterwright-agent": {(SCRAPERS, "TCP", 9836)},
    "clusterwright-bot": {(AGENT, "TCP", 8443), (RECONCILER, "TCP", 8443)},
    "clusterwright-reconciler": set(),
}
NAMES = {(EVERYWHERE, "UDP", 53), (EVERYWHERE, "TCP", 53)}
WEB = {(EVERYWHERE, "TCP", 443), (EVERYWHERE, "TCP", 6443)}
EGRESS = {
    "clusterwright-agent": {*NAMES, *WEB, (BOT, "TCP", 8443)},
    "clusterwright-bot": {*NAMES, *WEB},
    "clusterwright-reconciler": {*NAMES, *WEB, (BOT, "TCP", 8443)},
}


def ports() -> dict[str, int]:
    """The named ports of all our containers."""
    specs = [manifests.find(kind, name)["spec"]["template"]["spec"] for name, kind in PROGRAMS.items()]
    named = [port for spec in specs for each in spec["containers"] for port in each.get("ports", ())]
    return {each["name"]: each["containerPort"] for each in named}


def allowed(program: str, way: str, peers: str) -> Iterator[tuple[str, str, int]]:
    """Every peer and port that some policy about the program lets through."""
    for policy in (each for each in manifests.read() if each["kind"] == "NetworkPolicy"):
        spec = policy["spec"]
        if spec["podSelector"].get("matchLabels", {APP: program}) == {APP: program}:
            for rule in spec.get(way, ()):
                for peer in rule.get(peers, [None]):
                    for port in rule["ports"]:
                        yield words(peer), port["protocol"], ports().get(port["port"], port["port"])


def words(peer: dict[str, Any] | None) -> str:
    if peer is None:
        return EVERYWHERE
    ((kind, selector),) = peer.items()
    ((label, value),) = selector["matchLabels"].items()
    return f"{'namespaces ' if kind == 'namespaceSelector' else ''}{label}={value}"


@pytest.mark.parametrize("program", list(PROGRAMS))
def test_a_program_is_reached_by_exactly_those_who_are_listed(program: str) -> None:
    assert set(allowed(program, "ingress", "from")) == INGRESS[program]


@pytest.mark.parametrize("program", list(PROGRAMS))
def test_a_program_goes_exactly_where_it_is_listed(program: str) -> None:
    assert set(allowed(program, "egress", "to")) == EGRESS[program]


def test_what_no_policy_allows_is_denied_both_ways() -> None:
    spec = manifests.find("NetworkPolicy", "deny-unless-allowed")["spec"]
    assert spec == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


def test_a_policy_covers_every_way_that_it_lets_something_through() -> None:
    for policy in (each for each in manifests.read() if each["kind"] == "NetworkPolicy"):
        ways = {
            "Ingress" if way == "ingress" else "Egress"
            for way in ("ingress", "egress")
            if way in policy["spec"]
        }
        assert ways <= set(policy["spec"]["policyTypes"]), policy["metadata"]["name"]
