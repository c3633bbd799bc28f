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

__all__ = ["Handler", "Lines", "Peer", "RpcError"]

Handler = Callable[[str, dict[str, Any]], Awaitable[Any]]
"""Method and parameters in, the result out. `RpcError` for what the other side should be told."""

_PARSE, _NO_MESSAGE, _INTERNAL = -32700, -32600, -32603


class RpcError(CallwrightError):
    """An answer that is an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Lines(Protocol):
    """What the messages go through."""

    async def read(self) -> bytes:
        """The next line; empty at the end."""
        ...

    async def write(self, line: bytes) -> None:
        """Send one; nothing happens when the other side is gone."""
        ...

    def close(self) -> None:
        """The other side is gone: nothing waits for it any more."""
        ...


class Peer:
    """One connection. `run` serves it until the other side is gone."""

    def __init__(self, lines: Lines, handler: Handler) -> None:
        self._lines = lines
        self._handler = handler
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._number = 0

    async def run(self) -> None:
        """Serve requests, many at a time."""
        try:
            while line := await self._lines.read():
                if line.strip():
                    await self._take(line)
        finally:
            self._lines.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(RpcError(_INTERNAL, "the other side is gone"))

    async def request(self, method: str, params: dict[str, Any]) -> Any:
        """Ask the other side; its result. `RpcError` when that is an error."""
        self._number += 1
        number = self._number
        self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            await self._send({"id": number, "method": method, "params": params})
            return await self._waiting[number]
        finally:
            del self._waiting[number]

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        """Tell the other side something."""
        await self._send({"method": method, "params": params})

    async def _send(self, message: dict[str, Any]) -> None:
        await self._lines.write(msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n")

    async def _take(self, line: bytes) -> None:
        try:
            message = msgspec.json.decode(line, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeError, RecursionError) as problem:
            await self._refuse(_PARSE, f"not a JSON object: {problem}")
            return
        method, number = message.get("method"), message.get("id")
        if isinstance(method, str):
            task = asyncio.ensure_future(self._serve(method, message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif method is not None or not message.keys() & {"result", "error"}:
            await self._refuse(_NO_MESSAGE, "neither a request nor an answer")
        elif type(number) is int and (waiting := self._waiting.get(number)) and not waiting.done():
            _settle(waiting, message)

    async def _refuse(self, code: int, why: str) -> None:
        await self._send({"id": None, **_error(code, why)})

    async def _serve(self, method: str, message: dict[str, Any]) -> None:
        params = message.get("params")
        # Holds for a mistake of ours, which asyncio then writes to standard error.
        answer: dict[str, Any] = _error(_INTERNAL, "something went wrong here; standard error has more")
        try:
            # Some send a list, or nothing, where there are none.
            answer = {"result": await self._handler(method, params if isinstance(params, dict) else {})}
        except RpcError as problem:
            answer = _error(problem.code, str(problem))
        except CallwrightError as problem:
            answer = _error(_INTERNAL, str(problem))
        finally:
            if "id" in message:
                await self._send({"id": message["id"], **answer})


def _error(code: int, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message}}


def _settle(waiting: asyncio.Future[Any], message: dict[str, Any]) -> None:
    error = message.get("error")
    if error is None:
        waiting.set_result(message.get("result"))
        return
    told = error if isinstance(error, dict) else {"message": error}
    code = told.get("code")
    waiting.set_exception(RpcError(code if isinstance(code, int) else _INTERNAL, str(told.get("message", "an error"))))
