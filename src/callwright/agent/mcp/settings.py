"""The settings of MCP servers, and the project's file.

Invariant: a project's file is data until the user approved its exact bytes. After any change it needs approval again;
servers are started from the very bytes whose hash was approved.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec

from callwright.errors import ConfigError

__all__ = ["McpSettings", "ProjectServers", "load_project_servers"]

_ServerName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$")]
_MAX_FILE_BYTES = 256 * 1024


class McpSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An `[[mcp]]` table: an MCP server whose tools the agent may call. One of `command` and `url` is set."""

    name: _ServerName
    """Name of the server; its tools are called `name__tool`."""
    command: tuple[str, ...] = ()
    """The program to start, and its arguments; the agent talks to it over standard input and output."""
    env: dict[str, str] = {}
    """Environment variables of the program, in addition to PATH, HOME and a few others."""
    url: str = ""
    """URL of a running server (streamable HTTP)."""
    headers: dict[str, str] = {}
    """Headers of every request to that URL, such as an API key."""
    tools: tuple[str, ...] = ()
    """The tools that may be used, by the server's own names; empty = all."""
    call_seconds: Annotated[float, msgspec.Meta(gt=0)] = 120
    """Timeout of a call."""
    start_seconds: Annotated[float, msgspec.Meta(gt=0)] = 30
    """Timeout for starting the server."""

    @property
    def problem(self) -> str:
        """What is wrong with it beyond types; an empty string if nothing is."""
        if bool(self.command) == bool(self.url):
            return "needs either a command or a url"
        if self.url and not self.url.startswith(("http://", "https://")):
            return "needs a url that begins with http:// or https://"
        return ""


class ProjectServers(msgspec.Struct, frozen=True, kw_only=True):
    """The servers of a project's file."""

    path: str
    digest: str
    """SHA-256 of the file's bytes."""
    servers: tuple[McpSettings, ...]

    def is_approved(self, approved: Mapping[str, str]) -> bool:
        """Return whether the user approved these exact bytes at this path. `approved` has the hash for each path."""
        return approved.get(self.path) == self.digest

    @property
    def approval_text(self) -> str:
        """The text of the approval: everything that would be started, and where."""
        lines = [f"{self.path} starts {len(self.servers)} MCP servers:"]
        return "\n".join([*lines, *(f"  {each.name}: {_describe_server(each)}" for each in self.servers)])


class _ServerEntry(msgspec.Struct):
    """A server in the format that Claude Code, Cursor and others share."""

    type: str = ""
    command: str = ""
    args: list[str] = []
    env: dict[str, str] = {}
    url: str = ""
    headers: dict[str, str] = {}


class _ProjectFile(msgspec.Struct):
    mcp_servers: dict[str, _ServerEntry] = msgspec.field(name="mcpServers", default_factory=dict)


def load_project_servers(path: Path) -> ProjectServers | None:
    """Load a project's `.mcp.json`; None if it does not exist or has no servers. Nothing is started."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            data = file.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError([f"{path}: {error.strerror or error}"]) from error
    if len(data) > _MAX_FILE_BYTES:
        raise ConfigError([f"{path} is too large: {_MAX_FILE_BYTES:,} bytes at most"])
    try:
        entries = msgspec.json.decode(data, type=_ProjectFile).mcp_servers
        servers = tuple(_build_settings(name, entry) for name, entry in entries.items())
    except (msgspec.DecodeError, ValueError) as error:
        raise ConfigError([f"{path}: {error}"]) from error
    digest = hashlib.sha256(data).hexdigest()
    return ProjectServers(path=str(path.resolve()), digest=digest, servers=servers) if servers else None


def _build_settings(name: str, entry: _ServerEntry) -> McpSettings:
    if entry.type == "sse":
        raise ValueError(f"the MCP server {name!r} uses the SSE transport, which is not supported; use http")
    fields = {
        "name": name,
        "command": (entry.command, *entry.args) if entry.command else (),
        "env": entry.env,
        "url": entry.url,
        "headers": entry.headers,
    }
    settings = msgspec.convert(fields, McpSettings)
    if settings.problem:
        raise ValueError(f"the MCP server {name!r} {settings.problem}")
    return settings


def _describe_server(server: McpSettings) -> str:
    """Describe exactly what is started; the user must never see less than what they approve."""
    words = [_quote_word(word) for word in server.command or (server.url,)]
    values = {**server.env, **server.headers}
    return " ".join([*words, *(f"({name}: {_quote_word(value)})" for name, value in values.items())])


def _quote_word(word: str) -> str:
    return word if word.isprintable() and word and not any(c in " \t'\"\\" for c in word) else repr(word)
