"""What all tests share: the API servers, one of each back end per worker."""

import pytest

pytest.register_assert_rewrite("tests.loop.driving")

pytest_plugins = ["tests.lab.kube.fixture"]
