"""One connection to an MCP server, through the official package; the only module that imports it.

A connection has its own task: the package's cancel scopes must be exited by the task that entered them. A child process
gets the PATH, the home folder and the variables of the settings, and has ended with all its children once `close` has
returned.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TextIO

import anyio
import httpx2
import msgspec
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import (
    CONNECTION_CLOSED,
    REQUEST_TIMEOUT,
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    Implementation,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
)
from pydantic import ValidationError

from callwright.agent.mcp.settings import McpSettings
from callwright.errors import ToolError

__all__ = ["McpConnection", "ServerLostError"]

_MAX_PAGES = 20
_MAX_RESULT_CHARS = 64 * 1024
_STDERR_TAIL_BYTES = 500


class ServerLostError(Exception):
    """The connection to the server is lost. The outcome of the last request is unknown."""


class McpConnection:
    """An open connection. `open` first, `close` last."""

    def __init__(self, settings: McpSettings, root: Path) -> None:
        self._settings = settings
        self._root = root
        self._stderr = _StderrTail()
        self._scope = anyio.CancelScope()
        self._task: asyncio.Task[None] | None = None
        self._client: Client | None = None

    async def open(self) -> list[Tool]:
        """Start or connect to the server, and list its tools. Raises `ServerLostError` with the reason if that
        fails.
        """
        opened: asyncio.Future[list[Tool]] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run_connection(opened))
        either: list[asyncio.Future[Any]] = [opened, self._task]
        try:
            async with asyncio.timeout(self._settings.start_seconds):
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            await self.close()
            raise ServerLostError(
                self._describe_failure(f"it did not answer within {self._settings.start_seconds:g} seconds")
            ) from None
        except asyncio.CancelledError:
            await self.close()
            raise
        if opened.done():
            return opened.result()
        raise ServerLostError(self._describe_failure(_describe_error(self._task.exception())))

    async def call_tool(self, tool: str, arguments: dict[str, Any], on_progress: Callable[[str], None]) -> str:
        """Call a tool. Raises `ToolError` for a result that is an error, `ServerLostError` if the connection is
        lost.
        """
        if self._client is None:
            raise ServerLostError("it is not connected")

        async def report_progress(progress: float, total: float | None, message: str | None) -> None:
            on_progress(f"{message or (f'{progress:g} of {total:g}' if total else f'{progress:g}')}\n")

        seconds = self._settings.call_seconds
        try:
            result = await self._client.call_tool(tool, arguments, seconds, report_progress)
        except MCPError as error:
            if error.code == CONNECTION_CLOSED:
                raise ServerLostError(self._describe_failure("the connection was closed")) from error
            if error.code == REQUEST_TIMEOUT:
                raise ToolError(f"{tool} took longer than {seconds:g} seconds and was cancelled.") from error
            raise ToolError(f"{tool} failed: {error.message}") from error
        except (anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            raise ServerLostError(self._describe_failure("the connection was closed")) from error
        except (ValidationError, RuntimeError) as error:
            raise ToolError(f"{tool} returned an invalid result: {error}"[:_MAX_RESULT_CHARS]) from error
        text = _render_result(result)
        if result.is_error:
            raise ToolError(text)
        return text

    async def close(self) -> None:
        """Disconnect; a server that was started is ended."""
        # Not the task's own `cancel`: that would pass through the shield under which the package ends its child.
        self._scope.cancel()
        self._client = None
        if self._task is not None:
            await asyncio.wait({self._task})
            if not self._task.cancelled():
                self._task.exception()  # already reported, or no longer relevant

    async def _run_connection(self, opened: asyncio.Future[list[Tool]]) -> None:
        with self._scope:
            async with AsyncExitStack() as stack:
                transport = await self._open_transport(stack)
                us = Implementation(name="callwright", version="1")
                self._client = await stack.enter_async_context(Client(transport, client_info=us, cache=None))
                opened.set_result(await _list_tools(self._client))
                await anyio.sleep_forever()

    async def _open_transport(self, stack: AsyncExitStack) -> AbstractAsyncContextManager[Any]:
        if self._settings.url:
            timeout = httpx2.Timeout(self._settings.start_seconds, read=self._settings.call_seconds)
            http = httpx2.AsyncClient(headers=self._settings.headers, timeout=timeout)
            await stack.enter_async_context(http)
            return streamable_http_client(self._settings.url, http_client=http)
        program, *words = self._settings.command
        errors = await stack.enter_async_context(self._stderr.open_file())
        headers = StdioServerParameters(command=program, args=words, env=self._settings.env, cwd=self._root)
        return stdio_client(headers, errlog=errors)

    def _describe_failure(self, reason: str) -> str:
        return f"{reason}. Its last output on standard error: {self._stderr.text}" if self._stderr.text else reason


class _StderrTail:
    """The end of what a server writes to its standard error."""

    def __init__(self) -> None:
        self._tail = b""

    @property
    def text(self) -> str:
        return self._tail.decode("utf-8", "replace").strip()

    @asynccontextmanager
    async def open_file(self) -> AsyncIterator[TextIO]:
        """Open a file to write to."""
        reading, writing = os.pipe()
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading, "rb")
        )
        collecting = asyncio.create_task(self._read_stderr(reader))
        try:
            with os.fdopen(writing, "w") as file:
                yield file
        finally:
            await asyncio.wait({collecting}, timeout=0.1)
            transport.close()
            collecting.cancel()

    async def _read_stderr(self, reader: asyncio.StreamReader) -> None:
        while more := await reader.read(65536):
            self._tail = (self._tail + more)[-_STDERR_TAIL_BYTES:]


async def _list_tools(client: Client) -> list[Tool]:
    tools: list[Tool] = []
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if not cursor:
            break
    return tools


def _describe_error(error: BaseException | None) -> str:
    """Describe the error inside the exception groups of task groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return (str(error) or type(error).__name__).rstrip(".") if error else "the connection was closed in the meantime"


def _render_result(result: CallToolResult) -> str:
    parts = [_render_block(block) for block in result.content]
    if not parts and result.structured_content is not None:
        parts = [msgspec.json.encode(result.structured_content).decode()]
    text = "\n".join(parts) or "(no output)"
    left = len(text) - _MAX_RESULT_CHARS
    return f"{text[:_MAX_RESULT_CHARS]}\n({left} more characters omitted)" if left > 0 else text


def _render_block(block: ContentBlock) -> str:
    match block:
        case TextContent():
            return block.text
        case ImageContent() | AudioContent():
            return f"({block.mime_type}, {len(block.data) * 3 // 4} bytes, not shown)"
        case ResourceLink():
            return f"{block.title or block.name}: {block.uri}"
        case EmbeddedResource(resource=BlobResourceContents() as blob):
            return f"{blob.uri}: ({blob.mime_type or 'binary'}, {len(blob.blob) * 3 // 4} bytes, not shown)"
        case EmbeddedResource(resource=TextResourceContents() as text):
            return f"{text.uri}:\n{text.text}"
        case _:
            return ""
