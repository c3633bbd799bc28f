"""The session as user interfaces see it: what they can read, answer, keep and undo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

import msgspec

from callwright.agent.changes.diff import Hunk
from callwright.agent.session_events import ChangesKept, ChangesUndone, EventCallback, StampedEvent, TaskStopped

__all__ = ["UNATTENDED_REPLY", "ApprovalReply", "FileReview", "SessionCatalog", "SessionHandle", "SessionRow"]


class ApprovalReply(msgspec.Struct, frozen=True, kw_only=True):
    """A person's answer to an approval."""

    verdict: Literal["once", "always", "deny", "stop"]
    command: str = ""
    """The command as the person changed it; empty for as it was. A changed command is judged again."""
    words: str = ""
    """What the model is told, if anything."""
    is_unattended: bool = False
    """Nobody was there to ask."""


UNATTENDED_REPLY = ApprovalReply(
    verdict="deny",
    words="Nobody is there to ask: this runs by itself. Go on without it, or say at the end what is needed.",
    is_unattended=True,
)
"""The answer to every approval where nobody can be asked."""


class FileReview(msgspec.Struct, frozen=True, kw_only=True):
    """A file that the session changed, as it is reviewed: hunk by hunk."""

    path: str
    added: int
    removed: int
    diff: str
    hunks: tuple[Hunk, ...]
    changed_by_user: bool = False
    """The person changed it since."""


class SessionHandle(Protocol):
    """An open session."""

    id: str

    @property
    def events(self) -> Sequence[StampedEvent]:
        """Everything so far."""
        ...

    @property
    def is_busy(self) -> bool:
        """A task is being worked on."""
        ...

    def subscribe(self, callback: EventCallback) -> Callable[[], None]:
        """Be shown all events from now on; call what is returned to be shown no more."""
        ...

    async def run(self, task: str) -> TaskStopped:
        """Work on a task to its end; `MisuseError` while another is worked on."""
        ...

    async def resume(self) -> TaskStopped | None:
        """Go on with the task that another process left; None when there is none."""
        ...

    def stop(self) -> None:
        """Stop the work; `run` ends with the reason `person`."""
        ...

    def answer_approval(self, approval: str, reply: ApprovalReply) -> str:
        """Answer an approval. Returns what is wrong with the answer, in a sentence, or nothing."""
        ...

    async def review_changes(self, task: int = 0) -> tuple[FileReview, ...]:
        """The changes that are neither kept nor undone; of one task, or of all."""
        ...

    async def keep_changes(self, path: str = "", hunk: str = "", *, task: int = 0) -> ChangesKept:
        """Keep changes: of everything, of a task, of a file, or a hunk of it."""
        ...

    async def undo_changes(
        self, path: str = "", hunk: str = "", *, task: int = 0, force: bool = False
    ) -> ChangesUndone:
        """Take changes back. What the person changed meanwhile is left alone unless forced."""
        ...

    async def close(self) -> None:
        """Stop, and give everything back."""
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
    """`interrupted`: a task was begun, and the process that worked on it is gone."""
    added: int = 0
    removed: int = 0
    events: int = 0


class SessionCatalog(Protocol):
    """The sessions that there are, and how one is opened."""

    async def list_sessions(self, query: str = "", limit: int = 50, offset: int = 0) -> list[SessionRow]:
        """The newest first; with a query those whose words match."""
        ...

    async def load_events(self, session: str) -> list[StampedEvent]:
        """All events of one. `StoreError` when there is no such session."""
        ...

    async def open(self, session: str = "") -> SessionHandle:
        """A new session, or that one again. `StoreError` when it is open elsewhere."""
        ...

    async def delete(self, session: str) -> None:
        """Forget it. Files are left as they are."""
        ...
