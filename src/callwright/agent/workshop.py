"""The workshop: what all sessions of one process work with, and the list of those that there are."""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from callwright.agent.answering import Ask
from callwright.agent.guests import Trusted
from callwright.agent.mcp.settings import McpSettings
from callwright.agent.policy import Policy
from callwright.agent.sandbox import Sandbox
from callwright.agent.settings import AgentSettings
from callwright.agent.terminal import TerminalSettings
from callwright.agent.tools.base import Tool
from callwright.agent.workspace import Workspace
from callwright.errors import StoreError
from callwright.store.session_store import SessionEventStore
from callwright.store.snapshots import SnapshotStore

__all__ = ["Locks", "Workshop", "new_id"]


def new_id() -> str:
    """A session's id: short enough to be typed."""
    return f"{time.strftime('%m%d')}-{secrets.token_hex(3)}"


class Locks:
    """A session is worked on by one process at a time; the system lets go when that process ends, however it ends."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, IO[str]] = {}

    def take(self, session: str) -> None:
        """Take it for this process. `StoreError` when another has it."""
        if session in self._held:
            raise StoreError(f"session {session} is open already")
        file = self._opened(session)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise StoreError(f"session {session} is open in another process") from None
        self._held[session] = file

    def release(self, session: str) -> None:
        """Let others have it."""
        if file := self._held.pop(session, None):
            file.close()

    def is_held(self, session: str) -> bool:
        """Somebody works on it at the moment."""
        if session in self._held:
            return True
        if not (self._folder / session).exists():
            return False
        with self._opened(session) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return True
        return False

    def _opened(self, session: str) -> IO[str]:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        return os.fdopen(os.open(self._folder / session, flags, 0o600), "w")


@dataclass(frozen=True, kw_only=True)
class Workshop:
    """Shared by the sessions of one process."""

    ask: Ask
    model: str
    window: int
    workspace: Workspace
    policy: Policy
    tools: Mapping[str, Tool]
    settings: AgentSettings
    terminal: TerminalSettings
    sandbox: Sandbox
    sessions: SessionEventStore
    snapshots: SnapshotStore
    locks: Locks
    servers: Sequence[McpSettings]
    """The MCP servers of the person's own settings."""
    trusted: Trusted
    environment: Mapping[str, str] = field(repr=False)
    options: dict[str, Any] = field(default_factory=dict)
    """Of every request to the model."""
    clock: Callable[[], float] = time.time
