"""The browser of the tests: the system's Chromium, started the same way everywhere."""

import shutil

from playwright.sync_api import Browser, Playwright

from tests.lab.missing import require

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
)  # fmt: skip
"""It runs as root on machines without a display, and asks nobody outside."""


def open_browser(playwright: Playwright) -> Browser:
    """Start Chromium; without one the test is skipped, and fails in CI."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    require(None if found else "no Chromium here; `make test` installs it on Debian, elsewhere it says how")
    return playwright.chromium.launch(executable_path=found, args=list(FLAGS))
