"""The MCP servers of a session: those of the user's settings and those of the project's file.

The project's file is used only after the user approved its exact content; a permanent approval is stored as a hash of
its bytes, so a changed file needs approval again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec

from callwright.agent.event_log import EventLog
from callwright.agent.mcp.servers import McpServers
from callwright.agent.mcp.settings import McpSettings, ProjectServers, load_project_servers
from callwright.agent.session_api import ApprovalReply
from callwright.agent.session_events import WarningIssued
from callwright.agent.tools.base import Tool
from callwright.errors import ConfigError

__all__ = ["ConsentRequest", "SessionServers", "TrustedProjects"]

ConsentRequest = Callable[[str, str, str], Awaitable[ApprovalReply]]
"""Asks the user for consent: a title, the reason, and what "always" would mean."""

PROJECT_FILE = ".mcp.json"


class TrustedProjects:
    """The permanent approvals: a file with a hash for each project's file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def load(self) -> dict[str, str]:
        """Load all approvals; an unreadable file approves nothing."""
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=dict[str, str])
        except (OSError, msgspec.DecodeError):
            return {}

    def add(self, project: ProjectServers) -> None:
        """Store the approval of this exact content."""
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file.write_bytes(msgspec.json.encode(self.load() | {project.path: project.digest}))


class SessionServers:
    """The servers of one session. Call `start` before each task, until a task is not stopped at the approval."""

    def __init__(self, configured: Sequence[McpSettings], root: Path, trusted: TrustedProjects, log: EventLog) -> None:
        self._configured = tuple(configured)
        self._root = root
        self._trusted = trusted
        self._log = log
        self._servers: McpServers | None = None
        self._is_started = False

    async def start(self, request_consent: ConsentRequest) -> dict[str, Tool]:
        """Start the approved servers once and return their tools. A server that cannot be started causes a warning."""
        if self._is_started:
            return {}
        project_servers = await self._approve_project_servers(request_consent)
        self._is_started = project_servers is not None
        settings = [*self._configured, *(project_servers or ())]
        if not settings or project_servers is None:
            return {}
        servers = self._servers = McpServers(settings, self._root)
        for problem in await servers.open():
            await self._log.add(WarningIssued(problem))
        return {tool.spec.name: tool for tool in servers.tools}

    async def _approve_project_servers(self, request_consent: ConsentRequest) -> Sequence[McpSettings] | None:
        """Return the project's approved servers; None if the task was stopped before the answer."""
        try:
            project = load_project_servers(self._root / PROJECT_FILE)
        except ConfigError as problem:
            await self._log.add(WarningIssued(str(problem)))
            return ()
        if project is None or project.is_approved(self._trusted.load()):
            return project.servers if project else ()
        why = f"{PROJECT_FILE} starts programs on your computer, and its current content is not approved yet"
        reply = await request_consent(
            project.approval_text, why, f"exactly this content of {project.path}, from now on"
        )
        if reply.verdict == "always":
            self._trusted.add(project)
        if reply.verdict in ("once", "always"):
            return project.servers
        if reply.verdict == "stop":
            return None
        await self._log.add(
            WarningIssued(f"the MCP servers of {PROJECT_FILE} were not started because they were not approved")
        )
        return ()

    async def close(self) -> None:
        """End the servers."""
        if self._servers is not None:
            await self._servers.close()
