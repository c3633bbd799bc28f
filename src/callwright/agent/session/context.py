"""What all sessions of one process share, and the locks that keep a session in one process."""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from callwright.agent.mcp.session_servers import TrustedProjects
from callwright.agent.mcp.settings import McpSettings
from callwright.agent.policy import Policy
from callwright.agent.session.model_calls import RunTurn
from callwright.agent.settings import AgentSettings
from callwright.agent.shell.sandbox import Sandbox
from callwright.agent.shell.terminal import TerminalSettings
from callwright.agent.tools.base import Tool
from callwright.agent.workspace.workspace import Workspace
from callwright.errors import StoreError
from callwright.store.session_store import SessionEventStore
from callwright.store.snapshots import SnapshotStore

__all__ = ["AgentContext", "SessionLocks", "new_session_id"]


def new_session_id() -> str:
    """Return a new session id, short enough to type."""
    return f"{time.strftime('%m%d')}-{secrets.token_hex(3)}"


class SessionLocks:
    """Lock files: one process at a time uses a session; the system releases the lock when that process ends."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, IO[str]] = {}

    def acquire(self, session: str) -> None:
        """Lock a session for this process. Raises `StoreError` if another process has it."""
        if session in self._files:
            raise StoreError(f"session {session} is already open")
        file = self._open_lock_file(session)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise StoreError(f"session {session} is open in another process") from None
        self._files[session] = file

    def release(self, session: str) -> None:
        """Release the lock."""
        if file := self._files.pop(session, None):
            file.close()

    def is_locked(self, session: str) -> bool:
        """Return whether a process uses the session at the moment."""
        if session in self._files:
            return True
        if not (self._folder / session).exists():
            return False
        with self._open_lock_file(session) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return True
        return False

    def _open_lock_file(self, session: str) -> IO[str]:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        return os.fdopen(os.open(self._folder / session, flags, 0o600), "w")


@dataclass(frozen=True, kw_only=True)
class AgentContext:
    """What the sessions of one process share."""

    run_turn: RunTurn
    model: str
    window: int
    workspace: Workspace
    policy: Policy
    tools: Mapping[str, Tool]
    settings: AgentSettings
    terminal_settings: TerminalSettings
    sandbox: Sandbox
    sessions: SessionEventStore
    snapshots: SnapshotStore
    locks: SessionLocks
    mcp_servers: Sequence[McpSettings]
    """The MCP servers of the user's settings."""
    trusted_projects: TrustedProjects
    environment: Mapping[str, str] = field(repr=False)
    request_options: dict[str, Any] = field(default_factory=dict)
    """Options of every request to the model."""
    clock: Callable[[], float] = time.time
