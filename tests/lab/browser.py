"""The browser of the tests: the system's Chromium, started the same way everywhere."""

import shutil

from playwright.sync_api import Browser, Playwright, expect

from tests.lab.missing import require

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
)  # fmt: skip
"""It runs as root on machines without a display, and asks nobody outside."""
EXPECT_SECONDS = 30.0
"""How long a page may take to show what a test waits for, on a machine with other tests."""


def open_browser(playwright: Playwright) -> Browser:
    """Start Chromium; without one the test is skipped, and fails in CI."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    require(None if found else "no Chromium here; `make test` installs it on Debian, elsewhere it says how")
    expect.set_options(timeout=EXPECT_SECONDS * 1000)
    return playwright.chromium.launch(executable_path=found, args=list(FLAGS))
