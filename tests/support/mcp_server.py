"""An MCP server for tests, by the official package: `python mcp_server.py` on stdio, `… PORT` over HTTP."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ResourceLink

server = MCPServer("test server")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def fail(why: str) -> str:
    """Fail."""
    raise ToolError(why)


@server.tool()
def die() -> str:
    """End the server in the middle of a call."""
    print("I am dying", file=sys.stderr, flush=True)
    os._exit(3)


@server.tool()
async def wait(seconds: float) -> str:
    """Wait."""
    await anyio.sleep(seconds)
    return "waited"


@server.tool()
async def count(to: int, context: Context) -> str:
    """Count, and say how far it is."""
    for number in range(to):
        await context.report_progress(number + 1, to, f"at {number + 1}")
    return "counted"


@server.tool()
def picture() -> list[Image | ResourceLink | str]:
    """Several kinds of content."""
    link = ResourceLink(type="resource_link", name="notes", uri="file:///notes.txt")
    return ["look:", Image(data=b"\x89PNG" + bytes(96), format="png"), link]


@server.tool()
def much() -> str:
    """More than anybody wants to read."""
    return "x" * 200_000


@server.tool()
def environment() -> list[str]:
    """The names of what the server was told, and where it is."""
    return [*sorted(os.environ), str(Path.cwd())]


@server.tool(name="a" * 70)
def long_name() -> str:
    """A tool with a long name."""
    return "long"


if __name__ == "__main__":
    match sys.argv[1:]:
        case [port]:
            server.run("streamable-http", port=int(port))
        case _:
            server.run()
