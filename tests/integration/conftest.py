"""Patience for the tests with real sockets and processes: what waits for them waits long enough for a busy machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from callwright import engine
from callwright.backends import child_process, http

MINUTE = 60.0


@pytest.fixture(scope="session", autouse=True)
def patience() -> Iterator[None]:
    """Limits of the code under test that a busy machine may exceed though nothing is wrong."""
    with pytest.MonkeyPatch.context() as patched:
        # Users get an answer in time instead; a test means to see what is the case.
        patched.setattr(engine, "_PROBE_SECONDS", MINUTE)
        # A server may take its time between the last event and the end.
        patched.setattr(http, "DRAIN_SECONDS", 1.0)
        # A child that ends in good order is not to be killed because it is slow.
        patched.setattr(child_process, "STOP_SECONDS", MINUTE)
        yield
