"""A Slack emulator a test, and a real Bolt app in its own thread that talks to it."""

from collections.abc import Iterator

import pytest

from tests.lab.slack.emulator import Slack
from tests.lab.tests.slack.boltapp import BoltApp

CHANNEL = "C0GPU0001"
APPROVER = "U0APPROVE"


@pytest.fixture
def slack() -> Iterator[Slack]:
    emulator = Slack(seed=1)
    emulator.add_channel(CHANNEL, "gpu-incidents")
    emulator.add_user(APPROVER, "Example Approver", "approver@example.com")
    with emulator:
        yield emulator


@pytest.fixture
def bolt(slack: Slack) -> Iterator[BoltApp]:
    with BoltApp(slack) as app:
        slack.wait_for(lambda: slack.connections == 1)
        yield app


@pytest.fixture
def http_bolt(slack: Slack) -> Iterator[BoltApp]:
    with BoltApp(slack, over_http=True) as app:
        yield app
