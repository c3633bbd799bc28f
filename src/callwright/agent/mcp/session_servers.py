"""Guests: the MCP servers of a session, those of the person's own settings and those that the project asks for.

The project's file is started only after the person approved its exact content; what was approved for good is
remembered by the sum of its bytes, so a file that changes is asked about again.
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
"""Ask the person: a title, the reason, and what "always" would mean."""

PROJECT_FILE = ".mcp.json"


class TrustedProjects:
    """What was approved for good: a file with the sum for each project's file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def load(self) -> dict[str, str]:
        """All that was approved; a file that cannot be read approves nothing."""
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=dict[str, str])
        except (OSError, msgspec.DecodeError):
            return {}

    def add(self, project: ProjectServers) -> None:
        """Remember that this very content was approved."""
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file.write_bytes(msgspec.json.encode(self.load() | {project.path: project.digest}))


class SessionServers:
    """Of one session. Call `start` before each task: they come with the first that is not stopped at the question."""

    def __init__(self, own: Sequence[McpSettings], root: Path, trusted: TrustedProjects, log: EventLog) -> None:
        self._configured = tuple(own)
        self._root = root
        self._trusted = trusted
        self._log = log
        self._servers: McpServers | None = None
        self._is_started = False

    async def start(self, request_consent: ConsentRequest) -> dict[str, Tool]:
        """Start what may be started and is not yet; the tools that came of it. What cannot be started is a warning."""
        if self._is_started:
            return {}
        theirs = await self._approve_project_servers(request_consent)
        self._is_started = theirs is not None
        wanted = [*self._configured, *(theirs or ())]
        if not wanted or theirs is None:
            return {}
        servers = self._servers = McpServers(wanted, self._root)
        for problem in await servers.open():
            await self._log.add(WarningIssued(problem))
        return {tool.spec.name: tool for tool in servers.tools}

    async def _approve_project_servers(self, request_consent: ConsentRequest) -> Sequence[McpSettings] | None:
        """The servers of the project that may be started; None when the task was stopped before that was answered."""
        try:
            project = load_project_servers(self._root / PROJECT_FILE)
        except ConfigError as problem:
            await self._log.add(WarningIssued(str(problem)))
            return ()
        if project is None or project.is_approved(self._trusted.load()):
            return project.servers if project else ()
        why = f"{PROJECT_FILE} starts programs on your computer, and this form of it was not approved before"
        reply = await request_consent(
            project.approval_text, why, f"exactly this content of {project.path}, from now on"
        )
        if reply.verdict == "always":
            self._trusted.add(project)
        if reply.verdict in ("once", "always"):
            return project.servers
        if reply.verdict == "stop":
            return None
        await self._log.add(WarningIssued(f"the MCP servers of {PROJECT_FILE} were not started"))
        return ()

    async def close(self) -> None:
        """End them."""
        if self._servers is not None:
            await self._servers.close()
