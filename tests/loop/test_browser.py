"""A person approves in a real browser and sees the incident close."""

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.lab.cluster import Cluster
from tests.loop.driving import assert_repaired_once, closed, open_thread

ARTIFACTS = Path(__file__).resolve().parents[2] / "artifacts"
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
)  # fmt: skip


@pytest.fixture
def chromium() -> str:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.fail("no Chromium; `make test` installs it on Debian, elsewhere it says how")
    return found


def test_a_click_in_the_browser_repairs_the_node(tmp_path: Path, chromium: str) -> None:
    ARTIFACTS.mkdir(exist_ok=True)
    with Cluster(tmp_path, nodes=2) as cluster, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(cluster.slack.page_url, wait_until="commit")
        open_thread(cluster, "gpu-01")
        page.locator('[data-action-id="approve"]').first.click(timeout=15_000)
        page.screenshot(path=ARTIFACTS / "approve.png")
        page.get_by_test_id("confirm-ok").click()
        expect(page.get_by_text("In repair", exact=False).first).to_be_visible(timeout=20_000)
        page.screenshot(path=ARTIFACTS / "in-repair.png")
        closed(cluster, "gpu-01")
        expect(page.get_by_text("Repaired", exact=False).first).to_be_visible(timeout=20_000)
        page.screenshot(path=ARTIFACTS / "closed.png")
        browser.close()
        assert_repaired_once(cluster, "gpu-01")
