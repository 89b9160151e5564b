"""A person approves in a real browser and sees the incident close."""

from pathlib import Path

from playwright.sync_api import expect, sync_playwright

from tests.lab.browser import open_browser
from tests.lab.cluster import Cluster
from tests.loop.driving import assert_repaired_once, closed, open_thread

ARTIFACTS = Path(__file__).resolve().parents[2] / "artifacts"


def test_a_click_in_the_browser_repairs_the_node(tmp_path: Path) -> None:
    ARTIFACTS.mkdir(exist_ok=True)
    with Cluster(tmp_path, nodes=2) as cluster, sync_playwright() as playwright:
        browser = open_browser(playwright)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(cluster.slack.page_url, wait_until="commit")
        open_thread(cluster, "gpu-01")
        page.locator('[data-action-id="approve"]').first.click()
        page.screenshot(path=ARTIFACTS / "approve.png")
        page.get_by_test_id("confirm-ok").click()
        expect(page.get_by_text("In repair", exact=False).first).to_be_visible()
        page.screenshot(path=ARTIFACTS / "in-repair.png")
        closed(cluster, "gpu-01")
        expect(page.get_by_text("Repaired", exact=False).first).to_be_visible()
        page.screenshot(path=ARTIFACTS / "closed.png")
        browser.close()
        assert_repaired_once(cluster, "gpu-01")
