"""The MCP servers of a session: started together, with distinct tool names, and restarted when they exit.

Invariant: a call is sent once. A server that exits meanwhile may have performed it, so the model gets that information
and decides; the next call restarts the server, with growing delays while it keeps failing.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from callwright.agent.mcp.settings import McpSettings
from callwright.agent.tools.base import ToolArguments, ToolContext
from callwright.agent.tools.text_format import to_one_line
from callwright.errors import ToolError
from callwright.model import ToolSpec
from callwright.prompt.tool_aliases import make_alias

if TYPE_CHECKING:
    from callwright.agent.mcp.connection import McpConnection

__all__ = ["McpServers", "McpTool"]

_match_legal_name = re.compile(r"[a-zA-Z0-9_-]{1,64}").fullmatch
_MAX_DESCRIPTION_CHARS = 2000
_MAX_REASON_CHARS = 700
_MAX_RESTART_DELAY_S = 60.0
_PACKAGE_MISSING = "MCP servers need the package mcp: pip install 'callwright[mcp]'"


class McpTool:
    """A tool of a server. The server defines what it does."""

    def __init__(self, server: _McpServer, name: str, description: str, parameters: dict[str, Any]) -> None:
        self._server = server
        self._name = name
        full = f"{server.settings.name}__{name}"
        summary = description[:_MAX_DESCRIPTION_CHARS] or f"{name} of {server.settings.name}"
        self.spec = ToolSpec(full if _match_legal_name(full) else make_alias(full), summary, parameters)

    @property
    def origin(self) -> str:
        """The server that it comes from, for the user."""
        return f"MCP server {self._server.settings.name}"

    def describe_call(self, arguments: ToolArguments) -> str:
        """Describe a call: the server, the tool and its arguments."""
        values = json.dumps(dict(arguments), ensure_ascii=False, default=str)
        line = f"{self._server.settings.name}: {self._name} {values}"
        return line if len(line) <= 120 else f"{line[:119]}…"

    async def call(self, arguments: ToolArguments, context: ToolContext) -> str:
        """Call the tool on the server."""
        return await self._server.call_tool(self._name, dict(arguments), context.report_progress)


class McpServers:
    """All servers of a session. `open`, then `tools`, then `close`."""

    def __init__(
        self, settings: Sequence[McpSettings], root: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._servers = [_McpServer(each, root, clock) for each in settings]
        self.tools: tuple[McpTool, ...] = ()

    async def open(self) -> tuple[str, ...]:
        """Start all servers at once. Returns a warning for each one that failed; the others are usable."""
        if not self._servers:
            return ()
        if find_spec("mcp") is None:
            return (_PACKAGE_MISSING,)
        async with asyncio.TaskGroup() as group:  # if cancelled, wait until each server has ended its child
            opening = [group.create_task(server.open()) for server in self._servers]
        warnings = [sentence for each in opening if (sentence := each.result())]
        tools: dict[str, McpTool] = {}
        for tool in (tool for server in self._servers for tool in server.tools):
            if tool.spec.name in tools:
                warnings.append(f"{tool.origin}: skipped, because another tool is named {tool.spec.name}")
            else:
                tools[tool.spec.name] = tool
        self.tools = tuple(tools.values())
        return tuple(warnings)

    async def close(self) -> None:
        """End the servers."""
        async with asyncio.TaskGroup() as group:
            for server in self._servers:
                group.create_task(server.close())


class _McpServer:
    """One server, running or not."""

    def __init__(self, settings: McpSettings, root: Path, clock: Callable[[], float]) -> None:
        self.settings = settings
        self.tools: list[McpTool] = []
        self._root = root
        self._clock = clock
        self._start_lock = asyncio.Lock()
        self._connection: McpConnection | None = None
        self._closed = False
        self._failures = 0
        self._restart_at = 0.0
        self._last_error = ""

    async def open(self) -> str:
        """Start it. Returns a warning, or an empty string."""
        module = import_module("callwright.agent.mcp.connection")
        connection = module.McpConnection(self.settings, self._root)
        try:
            offered = await connection.open()
        except module.ServerLostError as error:
            self._schedule_restart(to_one_line(str(error), _MAX_REASON_CHARS))
            return f"MCP server {self.settings.name} could not be started: {self._last_error}"
        self._connection = connection
        names = self.settings.tools
        if not self.tools:
            self.tools = [
                McpTool(self, tool.name, tool.description or "", dict(tool.input_schema))
                for tool in offered
                if not names or tool.name in names
            ]
        return ""

    async def call_tool(self, tool: str, arguments: dict[str, Any], on_progress: Callable[[str], None]) -> str:
        connection = await self._get_connection()
        module = import_module("callwright.agent.mcp.connection")
        try:
            answer: str = await connection.call_tool(tool, arguments, on_progress)
        except module.ServerLostError as error:
            if self._connection is connection:
                self._connection = None
                self._schedule_restart(to_one_line(str(error), _MAX_REASON_CHARS))
                await connection.close()
            raise ToolError(
                f"the MCP server {self.settings.name} ended during this call, so its outcome is unknown: "
                f"{self._last_error}. The next call restarts it."
            ) from error
        self._failures = 0
        return answer

    async def _get_connection(self) -> McpConnection:
        async with self._start_lock:
            if self._closed:
                raise ToolError(f"the MCP server {self.settings.name} is closed.")
            if self._connection is None:
                wait = self._restart_at - self._clock()
                if wait > 0:
                    name = self.settings.name
                    raise ToolError(
                        f"the MCP server {name} is down: {self._last_error}. Try again in {wait:.0f} seconds."
                    )
                if problem := await self.open():
                    raise ToolError(f"{problem}.")
            return cast("McpConnection", self._connection)

    def _schedule_restart(self, why: str) -> None:
        """Schedule a restart: at once the first time, then after 1, 2, 4 … seconds."""
        wait = 0.0 if self._failures == 0 else min(2.0 ** min(self._failures - 1, 10), _MAX_RESTART_DELAY_S)
        self._failures += 1
        self._restart_at = self._clock() + wait
        self._last_error = why

    async def close(self) -> None:
        self._closed = True
        async with self._start_lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
