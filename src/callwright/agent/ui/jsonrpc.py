"""JSON-RPC 2.0 over lines: requests, answers and notifications in both directions at once.

A line that is no message is answered with an error and nothing else happens. A request has one answer; one that fails
is an error for the other side, never the end of the connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import msgspec

from callwright.errors import CallwrightError

__all__ = ["JsonRpcError", "JsonRpcPeer", "LineTransport", "RequestHandler"]

RequestHandler = Callable[[str, dict[str, Any]], Awaitable[Any]]
"""Method and parameters in, the result out. `RpcError` for what the other side should be told."""

_PARSE, _NO_MESSAGE, _INTERNAL = -32700, -32600, -32603


class JsonRpcError(CallwrightError):
    """An answer that is an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class LineTransport(Protocol):
    """What the messages go through."""

    async def read_line(self) -> bytes:
        """The next line; empty at the end."""
        ...

    async def write_line(self, line: bytes) -> None:
        """Send one; nothing happens when the other side is gone."""
        ...

    def close(self) -> None:
        """The other side is gone: nothing waits for it any more."""
        ...


class JsonRpcPeer:
    """One connection. `run` serves it until the other side is gone."""

    def __init__(self, lines: LineTransport, handler: RequestHandler) -> None:
        self._transport = lines
        self._handler = handler
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._last_id = 0

    async def run(self) -> None:
        """Serve requests, many at a time."""
        try:
            while line := await self._transport.read_line():
                if line.strip():
                    await self._handle_line(line)
        finally:
            self._transport.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            for waiting in self._pending.values():
                if not waiting.done():
                    waiting.set_exception(JsonRpcError(_INTERNAL, "the other side is gone"))

    async def request(self, method: str, params: dict[str, Any]) -> Any:
        """Ask the other side; its result. `RpcError` when that is an error."""
        self._last_id += 1
        number = self._last_id
        self._pending[number] = asyncio.get_running_loop().create_future()
        try:
            await self._send_message({"id": number, "method": method, "params": params})
            return await self._pending[number]
        finally:
            del self._pending[number]

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        """Tell the other side something."""
        await self._send_message({"method": method, "params": params})

    async def _send_message(self, message: dict[str, Any]) -> None:
        await self._transport.write_line(msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n")

    async def _handle_line(self, line: bytes) -> None:
        try:
            message = msgspec.json.decode(line, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeError, RecursionError) as problem:
            await self._send_error(_PARSE, f"not a JSON object: {problem}")
            return
        method, number = message.get("method"), message.get("id")
        if isinstance(method, str):
            task = asyncio.ensure_future(self._serve_request(method, message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif method is not None or not message.keys() & {"result", "error"}:
            await self._send_error(_NO_MESSAGE, "neither a request nor an answer")
        elif type(number) is int and (waiting := self._pending.get(number)) and not waiting.done():
            _resolve_response(waiting, message)

    async def _send_error(self, code: int, why: str) -> None:
        await self._send_message({"id": None, **_build_error(code, why)})

    async def _serve_request(self, method: str, message: dict[str, Any]) -> None:
        params = message.get("params")
        # Holds for a mistake of ours, which asyncio then writes to standard error.
        answer: dict[str, Any] = _build_error(_INTERNAL, "something went wrong here; standard error has more")
        try:
            # Some send a list, or nothing, where there are none.
            answer = {"result": await self._handler(method, params if isinstance(params, dict) else {})}
        except JsonRpcError as problem:
            answer = _build_error(problem.code, str(problem))
        except CallwrightError as problem:
            answer = _build_error(_INTERNAL, str(problem))
        finally:
            if "id" in message:
                await self._send_message({"id": message["id"], **answer})


def _build_error(code: int, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message}}


def _resolve_response(waiting: asyncio.Future[Any], message: dict[str, Any]) -> None:
    error = message.get("error")
    if error is None:
        waiting.set_result(message.get("result"))
        return
    told = error if isinstance(error, dict) else {"message": error}
    code = told.get("code")
    waiting.set_exception(
        JsonRpcError(code if isinstance(code, int) else _INTERNAL, str(told.get("message", "an error")))
    )
