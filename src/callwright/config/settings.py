"""The whole configuration as one value, and the list of its tables, which drives the rest of this package."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from callwright.agent.mcp.settings import McpSettings
from callwright.agent.settings import AgentSettings
from callwright.backends.settings import BackendSettings
from callwright.engine.jobs import JobSettings
from callwright.engine.settings import ModelSettings, ToolRules
from callwright.gateway.settings import KeySettings, ServerSettings
from callwright.prompt.settings import PromptSettings
from callwright.store.settings import StoreSettings

__all__ = ["TABLES", "Config", "TableKind"]


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The configuration: the tables of `callwright.toml`."""

    server: ServerSettings = ServerSettings()
    keys: tuple[KeySettings, ...] = ()
    backends: tuple[BackendSettings, ...] = ()
    models: tuple[ModelSettings, ...] = ()
    tools: ToolRules = ToolRules()
    prompt: PromptSettings = PromptSettings()
    jobs: tuple[JobSettings, ...] = ()
    store: StoreSettings = StoreSettings()
    agent: AgentSettings = AgentSettings()
    mcp: tuple[McpSettings, ...] = ()


class TableKind(NamedTuple):
    """One kind of table: its settings class, and whether it is an array of tables."""

    name: str
    settings: type[msgspec.Struct]
    is_array: bool

    @property
    def header(self) -> str:
        """The header line of the table."""
        return f"[[{self.name}]]" if self.is_array else f"[{self.name}]"


TABLES = {
    kind.name: kind
    for kind in (
        TableKind("server", ServerSettings, is_array=False),
        TableKind("keys", KeySettings, is_array=True),
        TableKind("backends", BackendSettings, is_array=True),
        TableKind("models", ModelSettings, is_array=True),
        TableKind("tools", ToolRules, is_array=False),
        TableKind("prompt", PromptSettings, is_array=False),
        TableKind("jobs", JobSettings, is_array=True),
        TableKind("store", StoreSettings, is_array=False),
        TableKind("agent", AgentSettings, is_array=False),
        TableKind("mcp", McpSettings, is_array=True),
    )
}
