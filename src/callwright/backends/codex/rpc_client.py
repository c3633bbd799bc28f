"""The connection to a `codex app-server`: JSON-RPC over its standard input and output, without the version field.

Each notification goes to the subscriber of its thread. Lines that are no message, or belong to no thread, are ignored:
start-up probes, metadata, other clients' concerns. When the process ends, open requests and subscribers fail.
"""

from __future__ import annotations

import asyncio
import logging
from asyncio.subprocess import Process
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from callwright.errors import BackendError
from callwright.jsonrpc import METHOD_NOT_FOUND, JsonRpcError, JsonRpcMessage, JsonRpcProtocol

__all__ = ["MAX_LINE_BYTES", "TOOL_CALL", "RpcClient", "RpcMessage"]

log = logging.getLogger("callwright.backends")

MAX_LINE_BYTES = 64 * 1024 * 1024
TOOL_CALL = "item/tool/call"
"""The only request of the process that is left to the thread. The turn is ended, and the client's next request has the
result."""


class _TurnReference(msgspec.Struct, frozen=True):
    id: str = ""


class _MessageParams(msgspec.Struct, frozen=True, rename="camel"):
    """The thread and the turn that a message belongs to."""

    thread_id: str | None = None
    turn_id: str | None = None
    turn: _TurnReference = _TurnReference()


class RpcMessage(JsonRpcMessage, frozen=True):
    """A message, with as much of its parameters as says which thread it belongs to."""

    params: _MessageParams = _MessageParams()

    @property
    def turn_id(self) -> str:
        """The id of the turn that it belongs to."""
        return self.params.turn_id or self.params.turn.id


class ThreadSubscriber(Protocol):
    """Receives the notifications of a thread."""

    def handle_message(self, message: RpcMessage, line: bytes) -> None:
        """Handle a notification of the thread."""
        ...

    def handle_disconnect(self, failure: BackendError) -> None:
        """Handle the end of the process: no more notifications follow."""
        ...


class RpcClient:
    """The connection to one running process."""

    def __init__(self, process: Process) -> None:
        assert process.stdin and process.stdout  # noqa: S101, PT018 - both are pipes
        self._process = process
        self._in = process.stdin
        self._out = process.stdout
        self._protocol = JsonRpcProtocol(msgspec.json.Decoder(RpcMessage).decode, has_version=False)
        self._is_disconnected = False
        self.subscribers: dict[str, ThreadSubscriber] = {}
        """Subscribers by the id of their thread."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self.start_task(self._read_messages())

    def start_task(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run a coroutine in the background."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def close(self) -> None:
        """Close the standard input, which ends the process."""
        self._in.close()

    def notify(self, method: str) -> None:
        """Send a notification without parameters."""
        self._write_line(self._protocol.encode_notification(method))

    def post_request(self, method: str, **params: Any) -> None:
        """Send a request and ignore its result."""
        if not self._is_disconnected:
            request = self._protocol.start_request(method, params)
            self._protocol.drop_request(request.id)
            self._write_line(request.line)

    def send_reply(self, request_id: int | str | None, result: dict[str, Any]) -> None:
        """Answer a request of the process."""
        if not self._is_disconnected:
            self._write_line(self._protocol.encode_result(request_id, result))

    async def send_request(self, method: str, **params: Any) -> Any:
        """Send a request and return its result. Raises `BackendError`."""
        if self._is_disconnected:
            raise _build_process_error()
        request = self._protocol.start_request(method, params)
        try:
            self._write_line(request.line)
            await self._in.drain()
            return await request.answer
        except ConnectionError:
            raise _build_process_error() from None
        except JsonRpcError as problem:
            raise BackendError(f"the backend refused: {problem}", kind="refused", status=400) from None
        finally:
            self._protocol.drop_request(request.id)

    def _write_line(self, line: bytes) -> None:
        self._in.write(line)

    async def _read_messages(self) -> None:
        try:
            while line := await self._out.readline():
                try:
                    message = self._protocol.read_line(line)
                except JsonRpcError:
                    log.debug("codex wrote a line that is not a message: %r", line[:200])
                else:
                    if message is not None:
                        self._dispatch_message(message, line)
        except ValueError:
            log.warning("codex wrote a line of more than %d bytes and is stopped", MAX_LINE_BYTES)
            with suppress(ProcessLookupError):
                self._process.kill()
        finally:
            self._fail_pending()

    def _dispatch_message(self, message: RpcMessage, line: bytes) -> None:
        if message.has_id and message.method != TOOL_CALL:
            # Approvals and the like: nothing may be approved here, and Codex must not wait for an answer.
            refusal = JsonRpcError(METHOD_NOT_FOUND, "this client does not answer requests")
            self._write_line(self._protocol.encode_error(message.id, refusal))
        elif subscriber := self.subscribers.get(message.params.thread_id or ""):
            subscriber.handle_message(message, line)

    def _fail_pending(self) -> None:
        self._is_disconnected = True
        self._protocol.fail_requests(_build_process_error)
        for subscriber in list(self.subscribers.values()):
            subscriber.handle_disconnect(_build_process_error())


def _build_process_error() -> BackendError:
    message = "the backend lost its process; the process is being restarted"
    return BackendError(message, kind="overloaded", retryable=True)
