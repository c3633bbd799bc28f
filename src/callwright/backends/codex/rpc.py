"""Rpc: JSON messages, one in a line, with a `codex app-server` on its standard input and output.

Replies find whoever asked, notices the thread that they are about. What is not JSON or about nobody is noise: start-up
probes, metadata, other clients' concerns. When the child ends, whoever waits is told.
"""

from __future__ import annotations

import asyncio
import logging
from asyncio.subprocess import Process
from collections.abc import Coroutine
from contextlib import suppress
from itertools import count
from typing import Any, Protocol

import msgspec

from callwright.errors import BackendError
from callwright.wire.framing import JSON_DECODE_ERRORS

__all__ = ["LONGEST_LINE", "TOOL_CALL", "Notice", "Rpc"]

log = logging.getLogger("callwright.backends")

LONGEST_LINE = 64 * 1024 * 1024
TOOL_CALL = "item/tool/call"
"""The one question of the child's that is left to the thread: its turn is ended, and the client answers in the next."""


class _Named(msgspec.Struct, frozen=True):
    id: str = ""


class _About(msgspec.Struct, frozen=True, rename="camel"):
    """What a notice is about."""

    thread_id: str | None = None
    turn_id: str | None = None
    turn: _Named = _Named()


class Notice(msgspec.Struct, frozen=True):
    """As much of a message as says whose it is."""

    method: str = ""
    id: int | str | None = None
    params: _About = _About()
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: dict[str, Any] | None = None

    @property
    def turn(self) -> str:
        """The id of the turn that it is about."""
        return self.params.turn_id or self.params.turn.id


class Follower(Protocol):
    """Whoever follows a thread."""

    def hear(self, notice: Notice, line: bytes) -> None:
        """A notice about the thread."""
        ...

    def lose(self, failure: BackendError) -> None:
        """There will be no more."""
        ...


class Rpc:
    """One child that is there."""

    def __init__(self, process: Process) -> None:
        assert process.stdin and process.stdout  # noqa: S101, PT018 - both are pipes
        self._process = process
        self._in = process.stdin
        self._out = process.stdout
        self._ids = count(1)
        self._asked: dict[int | str | None, asyncio.Future[Any]] = {}
        self._lost = False
        self.followers: dict[str, Follower] = {}
        """By the id of their thread."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._decoder = msgspec.json.Decoder(Notice)
        self.run(self._read())

    def run(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Do something that nobody may wait for."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def close(self) -> None:
        """Have the child end."""
        self._in.close()

    def tell(self, message: dict[str, Any]) -> None:
        """Send a message."""
        self._in.write(msgspec.json.encode(message) + b"\n")

    def post(self, method: str, **params: Any) -> None:
        """Send a request whose result nobody needs."""
        if not self._lost:
            self.tell({"id": next(self._ids), "method": method, "params": params})

    def reply(self, question: int | str | None, result: dict[str, Any]) -> None:
        """Answer a question of the child's."""
        if not self._lost:
            self.tell({"id": question, "result": result})

    async def ask(self, method: str, **params: Any) -> Any:
        """Send a request; its result. Raises `BackendError`."""
        if self._lost:
            raise _loss()
        number = next(self._ids)
        reply = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            self.tell({"id": number, "method": method, "params": params})
            await self._in.drain()
            return await reply
        except ConnectionError:
            raise _loss() from None
        finally:
            self._asked.pop(number, None)

    async def _read(self) -> None:
        try:
            while line := await self._out.readline():
                try:
                    self._hear(self._decoder.decode(line), line)
                except JSON_DECODE_ERRORS:
                    log.debug("codex said what is no message: %r", line[:200])
        except ValueError:
            log.warning("codex said a line of more than %d bytes, and is ended", LONGEST_LINE)
            with suppress(ProcessLookupError):
                self._process.kill()
        finally:
            self._lose()

    def _hear(self, notice: Notice, line: bytes) -> None:
        if not notice.method:
            self._reply(notice)
        elif notice.id is not None and notice.method != TOOL_CALL:
            # Approvals and the like: nothing here may be approved, and nobody is to wait for an answer.
            self.tell({"id": notice.id, "error": {"code": -32601, "message": "nobody is here to answer this"}})
        elif follower := self.followers.get(notice.params.thread_id or ""):
            follower.hear(notice, line)

    def _reply(self, notice: Notice) -> None:
        asked = self._asked.get(notice.id)
        if asked is None or asked.done():
            return
        if notice.error is None:
            asked.set_result(msgspec.json.decode(notice.result))
        else:
            said = f"the backend refused: {notice.error.get('message') or 'no reason was given'}"
            asked.set_exception(BackendError(said, kind="refused", status=400))

    def _lose(self) -> None:
        self._lost = True
        for asked in self._asked.values():
            if not asked.done():
                asked.set_exception(_loss())
        for follower in list(self.followers.values()):
            follower.lose(_loss())


def _loss() -> BackendError:
    message = "the backend lost its process; it is being started again"
    return BackendError(message, kind="overloaded", retryable=True)
