"""Refuses processes and connections: what the unit tests run in.

Threads stay allowed, for SQLite and for what must not block a loop, and so are the two connected sockets with which an
event loop wakes itself.
"""

from __future__ import annotations

import multiprocessing.process
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import pytest

PLACE = "a test that needs one stands in tests/integration"


def refuse_process(*_: Any, **__: Any) -> NoReturn:
    raise AssertionError(f"A unit test starts no process: {PLACE}.")


def refuse_connection(*_: Any, **__: Any) -> NoReturn:
    raise AssertionError(f"A unit test opens no connection: {PLACE}.")


@contextmanager
def isolated() -> Iterator[None]:
    """Within it, neither is possible."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(subprocess, "Popen", _RefusedPopen)
        patched.setattr(multiprocessing.process.BaseProcess, "start", refuse_process)
        for name in ("fork", "forkpty", "posix_spawn", "posix_spawnp", "system"):
            patched.setattr(os, name, refuse_process)
        for name in ("connect", "connect_ex", "listen"):
            patched.setattr(socket.socket, name, refuse_connection)
        yield


class _RefusedPopen(subprocess.Popen[Any]):
    def __init__(self, *_: Any, **__: Any) -> None:
        refuse_process()

    def __del__(self, *_: Any) -> None:
        """There is nothing to end."""
