"""Who may report and who may read, by what Kubernetes says of a token."""

import asyncio
from dataclasses import dataclass

import httpx
import msgspec
import pytest
from starlette.applications import Starlette

from bot.incidents.reports import ReportStore
from bot.incidents.signal import Signal
from bot.incidents.store import IncidentStore
from bot.metrics import Metrics
from bot.web.findings_api import FindingsApi
from checks.finding import Finding
from checks.report import AUDIENCE, REPORT_PATH, Inventory, NodeReport, encode, node_report_path
from reconciler.kube.read import TokenIdentity
from reconciler.kube.results import UnavailableError
from tests.bot.samples import BOOT, NOW, finding

AGENT = TokenIdentity("system:serviceaccount:clusterwright:clusterwright-agent", "gpu-01", (AUDIENCE,))
RECONCILER = TokenIdentity("system:serviceaccount:clusterwright:clusterwright-reconciler", None, (AUDIENCE,))


@dataclass
class Tokens:
    """Kubernetes in memory: whose a token is, for the audience that the bot has to ask for."""

    known: dict[str, TokenIdentity]
    down: bool = False

    def review_token(self, token: str, audience: str) -> TokenIdentity | None:
        if self.down:
            raise UnavailableError("the API server does not answer")
        return self.known.get(token) if audience == AUDIENCE else None


class Api:
    """The HTTP API of a bot in namespace `clusterwright`."""

    def __init__(self, *identities: TokenIdentity) -> None:
        self.tokens = Tokens({f"token-{number}": each for number, each in enumerate(identities)})
        self.store = IncidentStore("example", Metrics(), lambda: NOW)
        self.reports = ReportStore(lambda: NOW)
        api = FindingsApi(self.store, self.reports, Signal(), self.tokens, "clusterwright")
        self.app = Starlette(routes=api.routes())

    def request(self, method: str, path: str, content: bytes = b"", token: str = "") -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"} if token else {}

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://bot") as client:
                return await client.request(method, path, content=content, headers=headers)

        return asyncio.run(send())

    def post(self, *findings: Finding, node: str = "gpu-01", token: str = "token-0") -> int:
        report = NodeReport(
            node=node, boot_id=BOOT, sequence=1, sent_at=0.0, agent_version="0.1.0",
            inventory=Inventory(gpus=None), findings=findings, blind_spots=(),
        )  # fmt: skip
        return self.request("POST", REPORT_PATH, encode(report), token).status_code

    def get(self, token: str = "token-0") -> int:
        return self.request("GET", node_report_path("gpu-01"), token=token).status_code


def test_the_agent_of_a_node_reports_and_the_reconciler_reads() -> None:
    api = Api(AGENT, RECONCILER)
    assert api.post(finding()) == 202
    assert api.get("token-1") == 200
    assert (api.get("token-0"), api.post(token="token-1")) == (403, 403)


@pytest.mark.parametrize(
    "username",
    [
        "system:serviceaccount:other:clusterwright-agent",
        "system:serviceaccount:clusterwright-other:clusterwright-agent",
        "system:serviceaccount:clusterwright:clusterwright-agent-2",
        "system:serviceaccount:clusterwright:agent",
        "clusterwright-agent",
    ],
)
def test_an_account_of_another_namespace_or_name_may_not_report(username: str) -> None:
    api = Api(TokenIdentity(username, "gpu-01", (AUDIENCE,)))
    assert api.post(finding()) == 403
    assert api.reports.all() == {}


def test_a_reconciler_of_another_namespace_may_not_read() -> None:
    api = Api(AGENT, TokenIdentity("system:serviceaccount:other:clusterwright-reconciler", None, (AUDIENCE,)))
    assert api.post() == 202
    assert api.get("token-1") == 403


@pytest.mark.parametrize("node", [None, "gpu-02"])
def test_an_agent_reports_only_about_the_node_of_its_token(node: str | None) -> None:
    api = Api(TokenIdentity(AGENT.username, node, (AUDIENCE,)))
    assert api.post(finding()) == 403
    assert api.reports.all() == {}


def test_a_token_that_kubernetes_does_not_know_is_refused() -> None:
    api = Api(AGENT)
    assert api.post(token="forged") == 401
    assert api.request("POST", REPORT_PATH, b"{}").status_code == 401


def test_while_tokens_cannot_be_verified_nothing_is_taken_and_the_agent_may_try_again() -> None:
    api = Api(AGENT)
    api.tokens.down = True
    assert api.post(finding()) == 503
    assert api.reports.all() == {}
    assert api.request("GET", "/healthz").json()["status"] == "degraded"


def test_a_subsystem_that_the_bot_does_not_know_is_counted() -> None:
    api = Api(AGENT)
    assert api.post(msgspec.structs.replace(finding(), subsystem="quantum"), finding()) == 202
    assert "clusterwright_bot_unknown_subsystems_total 1.0" in api.request("GET", "/metrics").text
    assert api.post(finding()) == 202
    assert "clusterwright_bot_unknown_subsystems_total 1.0" in api.request("GET", "/metrics").text
