"""What a unit test cannot do, and what it can."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import socket
import subprocess
import sys
import threading

import pytest


def test_it_starts_no_process() -> None:
    for start in (
        lambda: subprocess.run([sys.executable, "-c", ""], check=False),
        lambda: asyncio.run(asyncio.create_subprocess_exec(sys.executable, "-c", "")),
        lambda: os.system("true"),
        lambda: os.fork(),
        lambda: multiprocessing.get_context("spawn").Process().start(),
    ):
        with pytest.raises(
            AssertionError, match="starts no process: a test that needs one stands in tests/integration"
        ):
            start()


def test_it_opens_no_connection() -> None:
    nobody = ("127.0.0.1", 9)

    async def connected(outward: socket.socket) -> None:
        outward.setblocking(False)
        await asyncio.get_running_loop().sock_connect(outward, nobody)

    for connect in (
        lambda outward: outward.connect(nobody),
        lambda outward: outward.connect_ex(nobody),
        lambda outward: outward.listen(),
        lambda outward: asyncio.run(connected(outward)),
    ):
        with socket.socket() as outward, pytest.raises(AssertionError, match="opens no connection"):
            connect(outward)


def test_it_may_have_a_thread_and_two_sockets_that_know_each_other() -> None:
    one, other = socket.socketpair()
    with one, other:
        thread = threading.Thread(target=one.sendall, args=(b"here",))
        thread.start()
        assert other.recv(4) == b"here"
        thread.join()
