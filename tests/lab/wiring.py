"""What connects the parts of the lab: files of the cluster repository, settings of the programs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from checks.report import AUDIENCE
from tests.lab import hardware
from tests.lab.machines import Delays

if TYPE_CHECKING:
    from tests.lab.cluster import Cluster

NAME = "lab"
POOL = "h100"
CHANNEL = "C0INCIDENTS"
APPROVER = "U0APPROVER"
SECOND_APPROVER = "U0SECOND"
STRANGER = "U0STRANGER"
PEOPLE = {
    APPROVER: ("Example Approver", "approver@example.com"),
    SECOND_APPROVER: ("Second Approver", "second@example.com"),
    STRANGER: ("Example Visitor", "visitor@example.com"),
}
"""Accounts of the lab's Slack; the stranger may look but not approve."""


NODE_CHECKS: Mapping[str, Any] = {
    "expected": {
        "ibPorts": list(hardware.IB_PORTS),
        "ibRateGbps": 400,
        "nvme": len(hardware.NVME),
        "memoryGib": 2016,
        "cpus": hardware.CPUS,
    },
    # A lab node has no NVML, and its disk is that of whoever runs the lab.
    "disabled": ["nvml-unavailable", "disk-free"],
}
"""What the checks of a lab node expect: the server that `hardware` lays out."""


@dataclass(frozen=True, slots=True)
class Timing:
    """How fast the lab runs: the product's own timings, shortened, because no real machine has to boot.

    Agents report every `report_seconds`. Bot and reconciler expect a report every `expected_seconds`, so that
    a busy machine does not make nodes look silent.
    """

    report_seconds: float = 4.0
    expected_seconds: float = 10.0
    clear_seconds: float = 6.0
    offer_seconds: float = 3600.0
    poll_seconds: float = 1.0
    git_seconds: float = 1.0
    boot_seconds: float = 2.0
    node_grace_seconds: float = 12.0
    """How long a node may be silent before Kubernetes calls it unreachable."""
    machines: Delays = field(default_factory=Delays)
    policy: Mapping[str, str | int] = field(
        default_factory=lambda: {
            "approvalLifetime": "60m",
            "drainTimeout": "2m",
            "gracefulTimeout": "30s",
            "bootTimeout": "60s",
            "verifyTimeout": "60s",
        }
    )


def configuration(cluster: "Cluster") -> dict[str, str]:
    """Return the files of the cluster's repository on branch main."""
    pool = {
        "name": POOL,
        "nodeSelector": {"clusterwright.dev/pool": POOL},
        "gpusPerNode": cluster.gpus,
        "redfish": {"system": cluster.bmc.system_template},
    }
    approvers = [
        dict(zip(("name", "email"), PEOPLE[each], strict=True)) for each in (APPROVER, SECOND_APPROVER)
    ]
    return {
        "cluster.yaml": _object("Cluster", {"pools": [pool]}),
        "access.yaml": _object("Access", {"approvers": approvers}),
        "repair-policy.yaml": _object("RepairPolicy", dict(cluster.timing.policy)),
        "node-checks.yaml": _object("NodeChecks", {"pools": {POOL: NODE_CHECKS}}),
    }


def bot_settings(cluster: "Cluster") -> dict[str, object]:
    """Return the bot's settings by environment variable, without the common prefix."""
    slack: dict[str, object] = {
        "BOT__SLACK__MODE": cluster.slack_mode,
        "BOT__SLACK__BASE_URL": cluster.slack.base_url,
        "BOT__SLACK__CHANNEL": CHANNEL,
        "BOT__SLACK__BOT_TOKEN_FILE": _secret(cluster, "slack-bot-token", cluster.slack.bot_token),
    }
    if cluster.slack_mode == "socket":
        slack["BOT__SLACK__APP_TOKEN_FILE"] = _secret(cluster, "slack-app-token", cluster.slack.app_token)
    else:
        secret = _secret(cluster, "slack-signing-secret", cluster.slack.signing_secret)
        slack["BOT__SLACK__SIGNING_SECRET_FILE"] = secret
    return {
        **_shared(cluster, "bot"),
        **slack,
        "BOT__LISTEN": cluster.bot_url.removeprefix("http://"),
        "BOT__REPORT_INTERVAL_SECONDS": cluster.timing.expected_seconds,
        "BOT__CLEAR_AFTER_SECONDS": cluster.timing.clear_seconds,
        "BOT__OFFER_LIFETIME_SECONDS": cluster.timing.offer_seconds,
        "BOT__SWEEP_SECONDS": cluster.timing.poll_seconds,
        "BOT__REPAIR_POLL_SECONDS": cluster.timing.poll_seconds,
        "BOT__NODES_POLL_SECONDS": 1.0,
        "BOT__OFFER_REFRESH_SECONDS": 1.0,
        "BOT__RECORD_RETRY_SECONDS": 1.0,
        "BOT__EDIT_SECONDS": cluster.timing.poll_seconds,
    }


def reconciler_settings(cluster: "Cluster") -> dict[str, object]:
    """Return the reconciler's settings by environment variable, without the common prefix."""
    token = cluster.kube.token("clusterwright", "clusterwright-reconciler", (AUDIENCE,))
    return {
        **_shared(cluster, "reconciler"),
        "RECONCILER__BOT_URL": cluster.bot_url,
        "RECONCILER__BOT_TOKEN_FILE": _secret(cluster, "reconciler-bot-token", token),
        "RECONCILER__REPORT_INTERVAL_SECONDS": cluster.timing.expected_seconds,
        "RECONCILER__PASS_SECONDS": cluster.timing.poll_seconds,
        "RECONCILER__REDFISH__USERNAME": cluster.bmc.username,
        "RECONCILER__REDFISH__PASSWORD_FILE": cluster.bmc.password_file,
    }


def _shared(cluster: "Cluster", program: str) -> dict[str, object]:
    return {
        "CLUSTER": NAME,
        "GIT__URL": cluster.github.clone_url,
        "GIT__MIRROR": cluster.workdir / f"{program}-mirror",
        "GIT__TOKEN_FILE": _secret(cluster, "git-token", cluster.github.token),
        "GIT__BACKEND": cluster.recorder,
        "GIT__API_URL": cluster.github.api_url,
        "GIT__REPOSITORY": cluster.github.repository,
        "GIT__POLL_SECONDS": cluster.timing.git_seconds,
        "KUBERNETES__KUBECONFIG": cluster.kube.kubeconfig_for(f"clusterwright-{program}"),
    }


def _object(kind: str, spec: dict[str, Any]) -> str:
    head = {"apiVersion": "clusterwright.dev/v1alpha1", "kind": kind, "metadata": {"name": NAME}}
    return yaml.safe_dump({**head, "spec": spec}, sort_keys=False)


def _secret(cluster: "Cluster", name: str, text: str) -> Path:
    file = cluster.workdir / "secrets" / name
    file.parent.mkdir(mode=0o700, exist_ok=True)
    file.write_text(text)
    return file
