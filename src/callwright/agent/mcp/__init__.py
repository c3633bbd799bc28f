"""MCP servers: tools of other programs. `settings` says which, `servers` keeps them, `connection` speaks to one."""

from __future__ import annotations

from callwright.agent.mcp.servers import Servers
from callwright.agent.mcp.settings import Project, ServerSettings, load_project

__all__ = ["Project", "ServerSettings", "Servers", "load_project"]
