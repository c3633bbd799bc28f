"""Settings for every test: how many examples a law gets, what hypothesis prints when one fails, and a model server."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.databases import cluster, emptied
from tests.support.npm import LIBRARIES, MISSING
from tests.support.sampling import FULL
from tests.support.upstream import Upstream

# `make laws` asks for 200 and more, new ones each time; the others make do with fewer, and always the same.
LAW_EXAMPLES = int(os.environ.get("CALLWRIGHT_LAW_EXAMPLES", "50" if FULL else "5"))

settings.register_profile(
    "callwright",
    max_examples=LAW_EXAMPLES,
    deadline=None,
    derandomize="CALLWRIGHT_LAW_EXAMPLES" not in os.environ,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("callwright")


def pytest_configure() -> None:
    """Do not look for garbage while the tests are collected: there is none, and it takes a fifth of the time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Look for garbage again from now on, but never among the 14,000 tests themselves."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave what is marked `full` to `make test-all`, which begins with it: those tests take longest."""
    marked = [item for item in items if item.get_closest_marker("full")]
    others = [item for item in items if not item.get_closest_marker("full")]
    items[:] = [*marked, *others] if FULL else others
    if marked and not FULL:
        config.hook.pytest_deselected(items=marked)


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    """A model server that plays scripts; see `tests/support/upstream.py`."""
    with Upstream() as server:
        yield server


@pytest.fixture(scope="session")
def libraries() -> None:
    """The JavaScript libraries, and the browser among them, which `make test` installs."""
    if not (LIBRARIES / "node_modules" / ".stamp").is_file():
        problem = f"{MISSING}; with npm, `make test` installs what these tests need"
        pytest.fail(problem) if os.environ.get("CI") else pytest.skip(problem)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """A PostgreSQL server; see `tests/support/databases.py`."""
    with cluster() as address:
        yield address


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database for the store, of each kind in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.db'}"
    return emptied(request.getfixturevalue("postgres"))
