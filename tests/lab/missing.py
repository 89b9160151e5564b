"""A real part that this machine lacks: its tests are skipped with the reason, and fail in CI."""

import os

import pytest


def require(problem: str | None) -> None:
    """End the running test when there is a problem; `problem` says what is missing and how to install it."""
    if problem and os.environ.get("CI"):
        pytest.fail(problem, pytrace=False)
    if problem:
        pytest.skip(problem)
