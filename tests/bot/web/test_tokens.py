"""Reports and their readers with real tokens, which the API server verifies."""

from typing import Any

from checks.report import AUDIENCE
from tests.bot.agent import reboot_required
from tests.bot.harness import BotProcess


def test_a_node_speaks_for_itself_alone_with_a_fresh_token_of_its_agent(bot: BotProcess) -> None:
    mine, other = bot.agent("gpu-121"), bot.agent("gpu-122")
    kube = bot.kube

    def status(**how: Any) -> tuple[int, str]:
        answer = bot.post(mine, reboot_required(), **how)
        return answer.status_code, answer.text

    assert status(node="gpu-122")[0] == 403
    assert status(token=other.token)[0] == 403
    assert bot.http.post("/v1/reports", content=b"{}").status_code == 401
    assert status(token="nonsense")[0] == 401
    assert status(token=kube.token("clusterwright", "clusterwright-agent", ("other-audience",)))[0] == 401
    assert status(token=kube.token("clusterwright", "clusterwright-agent", (AUDIENCE,)))[0] == 403
    assert (
        status(token=kube.token("clusterwright", "clusterwright-agent", (AUDIENCE,), seconds=-10))[0] == 401
    )
    assert status(token=kube.token("clusterwright", "clusterwright-reconciler", (AUDIENCE,)))[0] == 403
    reconciler = {
        "Authorization": f"Bearer {kube.token('clusterwright', 'clusterwright-reconciler', (AUDIENCE,))}"
    }
    for node in ("gpu-121", "gpu-122"):
        assert bot.http.get(f"/v1/nodes/{node}/report", headers=reconciler).status_code == 404


def test_bad_reports_are_answered_with_what_is_wrong(bot: BotProcess) -> None:
    agent = bot.agent("gpu-123")
    headers = {"Authorization": f"Bearer {agent.token}"}
    bad = bot.http.post("/v1/reports", content=b'{"node": "gpu-123"}', headers=headers)
    assert (bad.status_code, "boot_id" in bad.json()["error"]) == (422, True)
    assert bot.http.post("/v1/reports", content=b"{", headers=headers).status_code == 422
    assert bot.http.post("/v1/reports", content=b" " * (2 << 20), headers=headers).status_code == 413
    assert bot.post(agent, sequence=5).status_code == 202
    assert bot.post(agent, sequence=5).status_code == 202
    assert bot.post(agent, sequence=4).status_code == 409


def test_the_reconciler_alone_is_given_the_newest_report(bot: BotProcess) -> None:
    agent = bot.agent("gpu-124")
    bot.post(agent, reboot_required())
    token = bot.kube.token("clusterwright", "clusterwright-reconciler", (AUDIENCE,))
    headers = {"Authorization": f"Bearer {token}"}
    held = bot.http.get("/v1/nodes/gpu-124/report", headers=headers).json()
    assert held["report"]["findings"][0]["code"] == "154"
    assert 0 <= held["age_seconds"] < 60
    assert bot.http.get("/v1/nodes/gpu-199/report", headers=headers).status_code == 404
    assert bot.http.get("/v1/nodes/gpu-124/report").status_code == 401
    agents = {"Authorization": f"Bearer {agent.token}"}
    assert bot.http.get("/v1/nodes/gpu-124/report", headers=agents).status_code == 403
