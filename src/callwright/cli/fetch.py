"""HTTP requests of the command line, to a running gateway or to a server that may be a backend.

Its import costs a quarter of a second (aiohttp), so commands import it when they run.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, NamedTuple

import aiohttp
import msgspec

from callwright.errors import BackendError
from callwright.wire.framing import UNREADABLE

__all__ = ["Peer", "Reply", "json_or_none"]


class Reply(NamedTuple):
    """An answer, read to its end."""

    status: int
    content_type: str
    body: bytes


class Peer:
    """One server; an async context."""

    def __init__(self, url: str, *, key: str = "", seconds: float) -> None:
        self.url = url.rstrip("/")
        headers = {"anthropic-version": "2023-06-01"}
        if key:
            headers |= {"authorization": f"Bearer {key}", "x-api-key": key}
        # `trust_env` is off: a proxy of the environment has no business between this machine and itself.
        self._session = aiohttp.ClientSession(headers=headers, timeout=aiohttp.ClientTimeout(total=seconds))
        self._seconds = seconds

    async def __aenter__(self) -> Peer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def get(self, path: str) -> Reply:
        """Fetch a page."""
        return await self._reply("GET", path, None, {})

    async def post(self, path: str, body: Any, headers: dict[str, str] | None = None) -> Reply:
        """Send JSON. A stream is read to its end."""
        return await self._reply("POST", path, msgspec.json.encode(body), headers or {})

    async def _reply(self, method: str, path: str, data: bytes | None, headers: dict[str, str]) -> Reply:
        headers = {**headers, "content-type": "application/json"} if data else headers
        try:
            async with self._session.request(method, self.url + path, data=data, headers=headers) as response:
                return Reply(response.status, response.content_type, await response.read())
        except TimeoutError:
            message = f"{self.url}{path} did not come to an end within {self._seconds:g} s"
            raise BackendError(message, kind="timeout") from None
        except aiohttp.InvalidURL:
            raise BackendError(f"{self.url} is not an address; it should look like http://127.0.0.1:8787") from None
        except aiohttp.ClientConnectorError:
            raise BackendError(f"nothing answers at {self.url}", kind="unavailable") from None
        except aiohttp.ClientError as problem:
            raise BackendError(f"{self.url}{path} broke its answer off: {problem}", kind="protocol") from None


def json_or_none(reply: Reply) -> Any:
    """The decoded body of a good answer."""
    if reply.status != 200:
        return None
    try:
        return msgspec.json.decode(reply.body)
    except UNREADABLE:
        return None
