"""JSON-RPC over lines: requests, answers and notifications in both directions at once.

`JsonRpcProtocol` is the protocol without I/O: it encodes messages as lines, reads lines, and gives each answer to the
request that it belongs to. `JsonRpcPeer` serves a connection with it. It answers a line that is not a message with an
error, and a failing request with an error for the other side; neither ends the connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from callwright.errors import CallwrightError

__all__ = [
    "METHOD_NOT_FOUND",
    "JsonRpcError",
    "JsonRpcMessage",
    "JsonRpcPeer",
    "JsonRpcProtocol",
    "LineTransport",
    "RequestHandler",
]

RequestHandler = Callable[[str, dict[str, Any]], Awaitable[Any]]
"""Takes a method and its parameters, returns the result. Raises `JsonRpcError` for the other side."""

METHOD_NOT_FOUND = -32601
_PARSE_ERROR, _INVALID_REQUEST, _INTERNAL_ERROR = -32700, -32600, -32603


class JsonRpcError(CallwrightError):
    """An error response."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class JsonRpcMessage(msgspec.Struct, frozen=True):
    """A request, a notification or an answer. The other side may send anything in any field."""

    method: Any = None
    id: Any = msgspec.UNSET
    params: Any = None
    result: Any = msgspec.UNSET
    error: Any = msgspec.UNSET

    @property
    def has_id(self) -> bool:
        """Whether it has an id: a request or an answer, not a notification."""
        return self.id is not msgspec.UNSET


M = TypeVar("M", bound=JsonRpcMessage)


class _SentRequest(NamedTuple):
    line: bytes
    id: int
    answer: asyncio.Future[Any]


class JsonRpcProtocol(Generic[M]):
    """One connection's messages, without I/O. Needs the running loop.

    `decode` reads a line; subclasses of `JsonRpcMessage` can give the parameters a type. `has_version`: messages
    contain `"jsonrpc": "2.0"`.
    """

    def __init__(self, decode: Callable[[bytes], M], *, has_version: bool = True) -> None:
        self._decode = decode
        self._version = {"jsonrpc": "2.0"} if has_version else {}
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._last_id = 0

    def start_request(self, method: str, params: dict[str, Any]) -> _SentRequest:
        """Encode a request, and create the future of its answer. Call `drop_request` when it is no longer needed."""
        self._last_id += 1
        answer = self._waiting[self._last_id] = asyncio.get_running_loop().create_future()
        return _SentRequest(self._encode(id=self._last_id, method=method, params=params), self._last_id, answer)

    def drop_request(self, request_id: int) -> None:
        """Stop waiting for its answer."""
        self._waiting.pop(request_id, None)

    def encode_notification(self, method: str, params: dict[str, Any] | None = None) -> bytes:
        """Encode a notification."""
        return self._encode(method=method, **({} if params is None else {"params": params}))

    def encode_result(self, request_id: Any, result: Any) -> bytes:
        """Encode the result of a request."""
        return self._encode(id=request_id, result=result)

    def encode_error(self, request_id: Any, error: JsonRpcError) -> bytes:
        """Encode the error of a request."""
        return self._encode(id=request_id, error={"code": error.code, "message": str(error)})

    def read_line(self, line: bytes) -> M | None:
        """Read a line. Returns a request or a notification; an answer resolves its request.

        Raises `JsonRpcError` for a line that is not a message.
        """
        try:
            message = self._decode(line)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as problem:
            raise JsonRpcError(_PARSE_ERROR, f"not a JSON object: {problem}") from None
        if isinstance(message.method, str):
            return message
        is_answer = message.result is not msgspec.UNSET or message.error is not msgspec.UNSET
        if message.method is not None or not is_answer:
            raise JsonRpcError(_INVALID_REQUEST, "neither a request nor an answer")
        answer = self._waiting.get(message.id) if type(message.id) is int else None
        if answer is not None and not answer.done():
            _set_answer(answer, message)
        return None

    def fail_requests(self, build_error: Callable[[], Exception]) -> None:
        """Fail all open requests, because the other side is gone."""
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(build_error())

    def _encode(self, **fields: Any) -> bytes:
        return msgspec.json.encode({**self._version, **fields}) + b"\n"


class LineTransport(Protocol):
    """Carries the lines of a connection."""

    async def read_line(self) -> bytes:
        """Return the next line; empty at the end."""
        ...

    async def write_line(self, line: bytes) -> None:
        """Send a line. Nothing happens when the other side is gone."""
        ...

    def close(self) -> None:
        """Close the connection, because the other side is gone."""
        ...


class JsonRpcPeer:
    """One connection. `run` serves it until the other side is gone."""

    def __init__(self, transport: LineTransport, handler: RequestHandler) -> None:
        self._transport = transport
        self._handler = handler
        self._protocol = JsonRpcProtocol(_decode_message)
        self._tasks: set[asyncio.Task[None]] = set()

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
            self._protocol.fail_requests(lambda: JsonRpcError(_INTERNAL_ERROR, "the other side is gone"))

    async def request(self, method: str, params: dict[str, Any]) -> Any:
        """Send a request and return its result. Raises `JsonRpcError` for an error response."""
        request = self._protocol.start_request(method, params)
        try:
            await self._transport.write_line(request.line)
            return await request.answer
        finally:
            self._protocol.drop_request(request.id)

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification."""
        await self._transport.write_line(self._protocol.encode_notification(method, params))

    async def _handle_line(self, line: bytes) -> None:
        try:
            message = self._protocol.read_line(line)
        except JsonRpcError as problem:
            await self._transport.write_line(self._protocol.encode_error(None, problem))
            return
        if message is not None:
            task = asyncio.ensure_future(self._serve_request(message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve_request(self, message: JsonRpcMessage) -> None:
        # Some clients send a list, or nothing, for empty parameters.
        params = message.params if isinstance(message.params, dict) else {}
        # Sent when the handler has a bug, which asyncio writes to standard error.
        failure: JsonRpcError | None = JsonRpcError(_INTERNAL_ERROR, "internal error; see standard error for details")
        result: Any = None
        try:
            result = await self._handler(message.method, params)
            failure = None
        except JsonRpcError as problem:
            failure = problem
        except CallwrightError as problem:
            failure = JsonRpcError(_INTERNAL_ERROR, str(problem))
        finally:
            if message.has_id:
                line = (
                    self._protocol.encode_error(message.id, failure)
                    if failure
                    else self._protocol.encode_result(message.id, result)
                )
                await self._transport.write_line(line)


def _decode_message(line: bytes) -> JsonRpcMessage:
    # Decoded as a dict first, so that unknown fields are checked too.
    return msgspec.convert(msgspec.json.decode(line, type=dict[str, Any]), JsonRpcMessage)


def _set_answer(answer: asyncio.Future[Any], message: JsonRpcMessage) -> None:
    error = message.error
    if error is msgspec.UNSET or error is None:
        answer.set_result(None if message.result is msgspec.UNSET else message.result)
        return
    details = error if isinstance(error, dict) else {"message": error}
    code, text = details.get("code"), details.get("message") or "no reason was given"
    answer.set_exception(JsonRpcError(code if isinstance(code, int) else _INTERNAL_ERROR, str(text)))
