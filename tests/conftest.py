"""What all tests share: the API servers, one of each back end per worker."""

import pytest

pytest.register_assert_rewrite("tests.loop.driving")

pytest_plugins = ["tests.lab.kube.fixture"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests of the whole loop: they wait most of the time, and others fill it."""
    items.sort(key=lambda item: item.path.parent.name != "loop")
