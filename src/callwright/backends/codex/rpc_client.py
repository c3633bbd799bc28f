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

__all__ = ["MAX_LINE_BYTES", "TOOL_CALL", "RpcClient", "RpcMessage"]

log = logging.getLogger("callwright.backends")

MAX_LINE_BYTES = 64 * 1024 * 1024
TOOL_CALL = "item/tool/call"
"""The one question of the child's that is left to the thread: its turn is ended, and the client answers in the next."""


class _TurnReference(msgspec.Struct, frozen=True):
    id: str = ""


class _MessageParams(msgspec.Struct, frozen=True, rename="camel"):
    """What a notice is about."""

    thread_id: str | None = None
    turn_id: str | None = None
    turn: _TurnReference = _TurnReference()


class RpcMessage(msgspec.Struct, frozen=True):
    """As much of a message as says whose it is."""

    method: str = ""
    id: int | str | None = None
    params: _MessageParams = _MessageParams()
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: dict[str, Any] | None = None

    @property
    def turn_id(self) -> str:
        """The id of the turn that it is about."""
        return self.params.turn_id or self.params.turn.id


class ThreadSubscriber(Protocol):
    """Whoever follows a thread."""

    def handle_message(self, message: RpcMessage, line: bytes) -> None:
        """A notice about the thread."""
        ...

    def handle_disconnect(self, failure: BackendError) -> None:
        """There will be no more."""
        ...


class RpcClient:
    """One child that is there."""

    def __init__(self, process: Process) -> None:
        assert process.stdin and process.stdout  # noqa: S101, PT018 - both are pipes
        self._process = process
        self._in = process.stdin
        self._out = process.stdout
        self._ids = count(1)
        self._pending: dict[int | str | None, asyncio.Future[Any]] = {}
        self._is_disconnected = False
        self.subscribers: dict[str, ThreadSubscriber] = {}
        """By the id of their thread."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._decoder = msgspec.json.Decoder(RpcMessage)
        self.start_task(self._read_messages())

    def start_task(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Do something that nobody may wait for."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def close(self) -> None:
        """Have the child end."""
        self._in.close()

    def send_message(self, message: dict[str, Any]) -> None:
        """Send a message."""
        self._in.write(msgspec.json.encode(message) + b"\n")

    def post_request(self, method: str, **params: Any) -> None:
        """Send a request whose result nobody needs."""
        if not self._is_disconnected:
            self.send_message({"id": next(self._ids), "method": method, "params": params})

    def send_reply(self, request_id: int | str | None, result: dict[str, Any]) -> None:
        """Answer a question of the child's."""
        if not self._is_disconnected:
            self.send_message({"id": request_id, "result": result})

    async def send_request(self, method: str, **params: Any) -> Any:
        """Send a request; its result. Raises `BackendError`."""
        if self._is_disconnected:
            raise _build_process_error()
        number = next(self._ids)
        reply = self._pending[number] = asyncio.get_running_loop().create_future()
        try:
            self.send_message({"id": number, "method": method, "params": params})
            await self._in.drain()
            return await reply
        except ConnectionError:
            raise _build_process_error() from None
        finally:
            self._pending.pop(number, None)

    async def _read_messages(self) -> None:
        try:
            while line := await self._out.readline():
                try:
                    self._dispatch_message(self._decoder.decode(line), line)
                except JSON_DECODE_ERRORS:
                    log.debug("codex said what is no message: %r", line[:200])
        except ValueError:
            log.warning("codex said a line of more than %d bytes, and is ended", MAX_LINE_BYTES)
            with suppress(ProcessLookupError):
                self._process.kill()
        finally:
            self._fail_pending()

    def _dispatch_message(self, message: RpcMessage, line: bytes) -> None:
        if not message.method:
            self._resolve_request(message)
        elif message.id is not None and message.method != TOOL_CALL:
            # Approvals and the like: nothing here may be approved, and nobody is to wait for an answer.
            self.send_message({"id": message.id, "error": {"code": -32601, "message": "nobody is here to answer this"}})
        elif follower := self.subscribers.get(message.params.thread_id or ""):
            follower.handle_message(message, line)

    def _resolve_request(self, message: RpcMessage) -> None:
        asked = self._pending.get(message.id)
        if asked is None or asked.done():
            return
        if message.error is None:
            asked.set_result(msgspec.json.decode(message.result))
        else:
            said = f"the backend refused: {message.error.get('message') or 'no reason was given'}"
            asked.set_exception(BackendError(said, kind="refused", status=400))

    def _fail_pending(self) -> None:
        self._is_disconnected = True
        for asked in self._pending.values():
            if not asked.done():
                asked.set_exception(_build_process_error())
        for follower in list(self.subscribers.values()):
            follower.handle_disconnect(_build_process_error())


def _build_process_error() -> BackendError:
    message = "the backend lost its process; it is being started again"
    return BackendError(message, kind="overloaded", retryable=True)
