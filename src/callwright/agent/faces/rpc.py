"""JSON-RPC 2.0 over lines: requests, answers and notifications in both directions at once.

A line that is no message is answered with an error and nothing else happens. A request that fails is an error for the
other side, never the end of the connection.
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

_PARSE, _INTERNAL = -32700, -32603


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
        """Send one."""
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
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            for waiting in self._waiting.values():
                waiting.cancel()

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
        except msgspec.DecodeError as problem:
            await self._send({"id": None, "error": {"code": _PARSE, "message": f"not a JSON object: {problem}"}})
            return
        method = message.get("method")
        if isinstance(method, str):
            task = asyncio.ensure_future(self._serve(method, message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif (waiting := self._waiting.get(message.get("id", -1))) and not waiting.done():
            self._settle(waiting, message)

    def _settle(self, waiting: asyncio.Future[Any], message: dict[str, Any]) -> None:
        error = message.get("error")
        if isinstance(error, dict):
            waiting.set_exception(RpcError(int(error.get("code", _INTERNAL)), str(error.get("message", "an error"))))
        else:
            waiting.set_result(message.get("result"))

    async def _serve(self, method: str, message: dict[str, Any]) -> None:
        params = message.get("params")
        try:
            # Some send a list, or nothing, where there are none.
            given = params if isinstance(params, dict) else {}
            answer: dict[str, Any] = {"result": await self._handler(method, given)}
        except RpcError as problem:
            answer = {"error": {"code": problem.code, "message": str(problem)}}
        except CallwrightError as problem:
            answer = {"error": {"code": _INTERNAL, "message": str(problem)}}
        if "id" in message:
            await self._send({"id": message["id"], **answer})
