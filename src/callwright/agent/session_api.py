"""The session as user interfaces see it: what they can read, answer, keep and undo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

import msgspec

from callwright.agent.changes.diff import Hunk
from callwright.agent.session_events import ChangesKept, ChangesUndone, EventCallback, StampedEvent, TaskStopped

__all__ = ["UNATTENDED_REPLY", "ApprovalReply", "FileReview", "SessionCatalog", "SessionHandle", "SessionRow"]


class ApprovalReply(msgspec.Struct, frozen=True, kw_only=True):
    """The user's answer to an approval."""

    verdict: Literal["once", "always", "deny", "stop"]
    command: str = ""
    """The command as the user changed it; empty if unchanged. A changed command is judged again."""
    words: str = ""
    """A note for the model, if any."""
    is_unattended: bool = False
    """No user was available to answer."""


UNATTENDED_REPLY = ApprovalReply(
    verdict="deny",
    words="This runs unattended, so nobody can approve it. Continue without it, or say at the end what is needed.",
    is_unattended=True,
)
"""The answer to every approval when no user is available."""


class FileReview(msgspec.Struct, frozen=True, kw_only=True):
    """A changed file for review, hunk by hunk."""

    path: str
    added: int
    removed: int
    diff: str
    hunks: tuple[Hunk, ...]
    changed_by_user: bool = False
    """Whether the user changed it since."""


class SessionHandle(Protocol):
    """An open session."""

    id: str

    @property
    def events(self) -> Sequence[StampedEvent]:
        """All events so far."""
        ...

    @property
    def is_busy(self) -> bool:
        """Whether a task is running."""
        ...

    def subscribe(self, callback: EventCallback) -> Callable[[], None]:
        """Show all later events to `callback`; call the result to unsubscribe."""
        ...

    async def run(self, task: str) -> TaskStopped:
        """Run a task to its end. Raises `MisuseError` while another one is running."""
        ...

    async def resume(self) -> TaskStopped | None:
        """Continue the task that another process left unfinished; None if there is none."""
        ...

    def stop(self) -> None:
        """Stop the task; `run` then ends with the reason `person`."""
        ...

    def answer_approval(self, approval: str, reply: ApprovalReply) -> str:
        """Answer an approval. Returns what is wrong with the answer, or an empty string."""
        ...

    async def review_changes(self, task: int = 0) -> tuple[FileReview, ...]:
        """Return the changes that are neither kept nor undone, of one task or of all."""
        ...

    async def keep_changes(self, path: str = "", hunk: str = "", *, task: int = 0) -> ChangesKept:
        """Keep changes: all, those of a task or a file, or one hunk."""
        ...

    async def undo_changes(
        self, path: str = "", hunk: str = "", *, task: int = 0, force: bool = False
    ) -> ChangesUndone:
        """Undo changes. Lines that the user changed since are left alone unless forced."""
        ...

    async def close(self) -> None:
        """Stop the task and release all resources."""
        ...


class SessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A session in a list."""

    id: str
    title: str
    workspace: str
    model: str
    began: float
    updated: float
    state: Literal["idle", "working", "interrupted"]
    """`interrupted`: a task was started, and the process that ran it has ended."""
    added: int = 0
    removed: int = 0
    events: int = 0


class SessionCatalog(Protocol):
    """Lists, opens and deletes sessions."""

    async def list_sessions(self, query: str = "", limit: int = 50, offset: int = 0) -> list[SessionRow]:
        """Return sessions, newest first; with a query, those whose text matches."""
        ...

    async def load_events(self, session: str) -> list[StampedEvent]:
        """Return all events of a session. Raises `StoreError` if it does not exist."""
        ...

    async def open(self, session: str = "") -> SessionHandle:
        """Open a new session, or an existing one. Raises `StoreError` if it is open elsewhere."""
        ...

    async def delete(self, session: str) -> None:
        """Delete a session from the store. Files of the workspace are unchanged."""
        ...
