"""What a person sets about MCP servers, and what a project asks for.

Invariant: a project's file is data until a person approved its exact bytes. One byte more or less, and it is asked for
again; what is started comes from the very bytes whose sum was approved.
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
    """What its tools are called by: `name__tool`."""
    command: tuple[str, ...] = ()
    """The program to start, and its arguments; it is spoken to on its standard input and output."""
    env: dict[str, str] = {}
    """What the program is told besides the path and the home folder."""
    url: str = ""
    """The address of a server that runs already (streamable HTTP)."""
    headers: dict[str, str] = {}
    """What is sent along to that address, such as a key."""
    tools: tuple[str, ...] = ()
    """The tools that may be used, by the server's own names; empty for all."""
    call_seconds: Annotated[float, msgspec.Meta(gt=0)] = 120
    """How long a call may take."""
    start_seconds: Annotated[float, msgspec.Meta(gt=0)] = 30
    """How long the server may take to start."""

    @property
    def problem(self) -> str:
        """What is wrong with it that a type cannot say; empty when nothing is."""
        if bool(self.command) == bool(self.url):
            return "needs either a command or a url"
        if self.url and not self.url.startswith(("http://", "https://")):
            return "needs a url that begins with http:// or https://"
        return ""


class ProjectServers(msgspec.Struct, frozen=True, kw_only=True):
    """What a project's file asks for."""

    path: str
    digest: str
    """SHA-256 of the file's bytes."""
    servers: tuple[McpSettings, ...]

    def is_approved(self, approved: Mapping[str, str]) -> bool:
        """Whether a person approved these very bytes, in this place. `approved` has the sum for each path."""
        return approved.get(self.path) == self.digest

    @property
    def approval_text(self) -> str:
        """What a person is asked: everything that would be started, and where."""
        lines = [f"{self.path} wants to start {len(self.servers)} MCP servers:"]
        return "\n".join([*lines, *(f"  {each.name}: {_describe_server(each)}" for each in self.servers)])


class _ServerEntry(msgspec.Struct):
    """A server in the form that Claude Code, Cursor and others share."""

    type: str = ""
    command: str = ""
    args: list[str] = []
    env: dict[str, str] = {}
    url: str = ""
    headers: dict[str, str] = {}


class _ProjectFile(msgspec.Struct):
    mcp_servers: dict[str, _ServerEntry] = msgspec.field(name="mcpServers", default_factory=dict)


def load_project_servers(path: Path) -> ProjectServers | None:
    """A project's `.mcp.json`; None where there is none, or none with servers. Nothing of it is run here."""
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
        raise ValueError(f"the MCP server {name!r} wants the old transport sse, which is not spoken here; use http")
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
    """Exactly what is started; a person must not be shown less than what they approve."""
    words = [_quote_word(word) for word in server.command or (server.url,)]
    given = {**server.env, **server.headers}
    return " ".join([*words, *(f"({name}: {_quote_word(value)})" for name, value in given.items())])


def _quote_word(word: str) -> str:
    return word if word.isprintable() and word and not any(c in " \t'\"\\" for c in word) else repr(word)
