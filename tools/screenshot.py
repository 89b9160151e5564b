"""Takes docs/images/incident-thread.png: an incident in the lab's Slack page that waits for a decision.

Needs Chromium, as `make test` does. Run `python -m tools.screenshot` when the message has changed.
"""

import tempfile
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

from tests.lab.browser import open_browser
from tests.lab.cluster import Cluster
from tests.lab.pods import run_job

IMAGE = Path(__file__).resolve().parents[1] / "docs" / "images" / "incident-thread.png"
NODE = "gpu-02"
SIZE = {"width": 1040, "height": 620}


def main() -> None:
    """Break a GPU of a node that runs a job, and take the picture once people can approve."""
    with tempfile.TemporaryDirectory() as folder, Cluster(Path(folder), nodes=2) as cluster:
        run_job(cluster.kube, NODE, "train-02", gpus=8)
        cluster.break_gpu(NODE)
        with sync_playwright() as playwright:
            browser = open_browser(playwright)
            page = browser.new_page(viewport=SIZE)
            page.goto(cluster.slack.page_url, wait_until="commit")
            expect(page.locator('[data-action-id="approve"]').first).to_be_visible()
            expect(page.get_by_text("train-02", exact=False).first).to_be_visible()
            page.screenshot(path=IMAGE)
            browser.close()


if __name__ == "__main__":
    main()
