"""The two databases that the store is tested on: a file, and a PostgreSQL of our own that lives as long as the tests.

The server is a private cluster in a temporary folder, on a free port of this machine. Where PostgreSQL is not installed
its half of the tests is skipped; in continuous integration (CI is set) that is a failure.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

MISSING = "PostgreSQL is not installed (apt-get install postgresql)"
_USER = "callwright"


def _commands() -> Path | None:
    """The folder of the server's commands; Debian keeps them out of the search path."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    there = str(found[-1]) if found else shutil.which("initdb")
    return Path(there).parent if there else None


def _run(*command: str | Path) -> None:
    # PostgreSQL refuses to run as root.
    owner: dict[str, Any] = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, cwd="/", **owner, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def cluster() -> Iterator[str]:
    """A running server; the address of its only database."""
    commands = _commands()
    if commands is None:
        if os.environ.get("CI"):
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    with tempfile.TemporaryDirectory(prefix="callwright-pg-", ignore_cleanup_errors=True) as folder:
        data, port = Path(folder) / "data", _free_port()
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres", "postgres")
        _run(commands / "initdb", "--pgdata", data, "--auth", "trust", "--username", _USER, "--no-sync", "-E", "UTF8")
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
        control = (commands / "pg_ctl", "--pgdata", data, "--wait", "--timeout", "30", "--silent")
        _run(*control, "--log", Path(folder) / "log", "--options", options, "start")
        try:
            yield f"postgresql://{_USER}@127.0.0.1:{port}/postgres"
        finally:
            _run(*control, "--mode", "immediate", "stop")


def emptied(server: str) -> str:
    """The address of a database without tables, for one test after the other."""

    async def empty() -> None:
        engine = create_async_engine(server.replace("postgresql:", "postgresql+asyncpg:"))
        async with engine.begin() as connection:
            await connection.execute(text("drop schema public cascade"))
            await connection.execute(text("create schema public"))
        await engine.dispose()

    asyncio.run(empty())
    return server
