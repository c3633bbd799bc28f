"""Unit tests start no process and open no connection: see `tests/support/isolation.py`.

The end of a test is left out: the last one of a run also ends what the others shared, such as a database.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.support.isolation import isolated


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, object, object]:
    """Set up what a test of this folder needs."""
    with isolated():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Run it."""
    with isolated():
        return (yield)
