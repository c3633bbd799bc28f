"""One gateway for all contract tests: a process with scripted models, and a model server that breaks off as told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.scripted import OTHERS, script
from tests.contract.weather import DIALECTS
from tests.support.served import Served
from tests.support.upstream import Upstream, closed_port


@pytest.fixture(scope="session")
def page_port() -> int:
    """The port of the web page that may ask the gateway."""
    return closed_port()


@pytest.fixture(scope="session")
def faulty() -> Iterator[Upstream]:
    """The server behind the model `broken`."""
    with Upstream([]) as server:
        yield server


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory, faulty: Upstream, page_port: int) -> Iterator[str]:
    """The gateway's address."""
    folder: Path = tmp_path_factory.mktemp("gateway")
    file = folder / "script.jsonl"
    file.write_text(script(), encoding="utf-8")
    configuration = f"""
[[backends]]
name = "script"
kind = "scripted"
script = "{file.as_posix()}"

[[backends]]
name = "faulty"
kind = "openai"
url = "{faulty.url}/v1"
retries = 0
breaker_failures = 1000

[[models]]
name = "broken"
backend = "faulty"
"""
    for name in (*DIALECTS, *OTHERS):
        configuration += f'[[models]]\nname = "{name}"\nbackend = "script"\n'
    with Served(folder, configuration, f'origins = ["http://127.0.0.1:{page_port}"]') as served:
        yield served.url
