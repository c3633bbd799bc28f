"""The HTTP client of the command line, for running gateways and for model servers."""

from __future__ import annotations

import asyncio
from contextlib import closing
from types import TracebackType
from typing import Any, NamedTuple

import msgspec

from callwright.backends.connection_pool import ConnectionPool, ConnectTimeoutError, RequestAddress, encode_headers
from callwright.backends.http_response import IncompleteResponseError, NoResponseError, NotHttpError
from callwright.errors import BackendError
from callwright.wire.framing import JSON_DECODE_ERRORS

__all__ = ["HttpClient", "HttpReply", "decode_json_or_none"]

_MAX_CONNECTIONS = 100


class HttpReply(NamedTuple):
    """A complete response."""

    status: int
    content_type: str
    body: bytes


class HttpClient:
    """Sends requests to one server. An async context manager."""

    def __init__(self, url: str, *, key: str = "", seconds: float) -> None:
        self.url = url.rstrip("/")
        self._headers = {"anthropic-version": "2023-06-01", "user-agent": "callwright", "accept-encoding": "identity"}
        if key:
            self._headers |= {"authorization": f"Bearer {key}", "x-api-key": key}
        self._connections = ConnectionPool(_MAX_CONNECTIONS, seconds)
        self._seconds = seconds

    async def __aenter__(self) -> HttpClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._connections.close()

    async def get(self, path: str) -> HttpReply:
        """Send a GET request."""
        return await self._send_request(b"GET", path, b"", {})

    async def post(self, path: str, body: Any, headers: dict[str, str] | None = None) -> HttpReply:
        """Send a POST request with a JSON body. A streamed response is read to its end."""
        return await self._send_request(b"POST", path, msgspec.json.encode(body), headers or {})

    async def _send_request(self, method: bytes, path: str, data: bytes, headers: dict[str, str]) -> HttpReply:
        headers = {**self._headers, **headers, **({"content-type": "application/json"} if data else {})}
        try:
            address = RequestAddress.from_url(self.url + path)
            head = encode_headers({**address.headers, **headers})
        except ValueError:
            raise BackendError(f"{self.url} is not a URL; it must look like http://127.0.0.1:8787") from None
        body = bytearray()
        try:
            async with asyncio.timeout(self._seconds):
                with closing(await self._connections.send_request(method, address, head, data)) as answer:
                    while part := await answer.read():
                        body += part
        except (IncompleteResponseError, NoResponseError, NotHttpError) as problem:
            raise BackendError(f"{self.url}{path} sent an incomplete response: {problem}", kind="protocol") from None
        except ConnectTimeoutError:
            raise BackendError(f"cannot connect to {self.url}", kind="unavailable") from None
        except TimeoutError:
            message = f"{self.url}{path} did not finish within {self._seconds:g} s"
            raise BackendError(message, kind="timeout") from None
        except OSError:
            raise BackendError(f"cannot connect to {self.url}", kind="unavailable") from None
        return HttpReply(
            answer.status, answer.get_header("content-type").partition(";")[0].strip().lower(), bytes(body)
        )


def decode_json_or_none(reply: HttpReply) -> Any:
    """Decode the body of a successful response; None if it failed or is not JSON."""
    if reply.status != 200:
        return None
    try:
        return msgspec.json.decode(reply.body)
    except JSON_DECODE_ERRORS:
        return None
