"""Lists, opens and deletes sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from callwright.agent.changes.checkpoints import Checkpoints
from callwright.agent.event_log import EventLog, read_events
from callwright.agent.session.agent_session import AgentSession
from callwright.agent.session.change_review import ChangeReview
from callwright.agent.session.context import AgentContext, SessionLocks, new_session_id
from callwright.agent.session.system_prompt import build_system_prompt
from callwright.agent.session_api import SessionRow
from callwright.agent.session_events import SessionOpened, SessionResumed, StampedEvent
from callwright.agent.workspace.workspace import Workspace
from callwright.errors import StoreError
from callwright.store.session_store import SessionEventStore, SessionRecord
from callwright.store.snapshots import SnapshotStore

__all__ = ["SessionArchive", "SessionManager"]


class SessionArchive:
    """The sessions of all workspaces, to read and delete."""

    def __init__(self, sessions: SessionEventStore, snapshots: SnapshotStore, locks: SessionLocks) -> None:
        self._store = sessions
        self._snapshots = snapshots
        self._locks = locks

    async def list_sessions(self, query: str = "", limit: int = 50, offset: int = 0) -> list[SessionRow]:
        """Return sessions, newest first; with a query, those whose text matches."""
        return [self._build_row(head) for head in await self._store.list_sessions(query, limit, offset)]

    def _build_row(self, head: SessionRecord) -> SessionRow:
        locked = self._locks.is_locked(head.id)
        return SessionRow(
            id=head.id,
            title=head.title,
            workspace=head.workspace,
            model=head.model,
            began=head.began,
            updated=head.updated,
            state="idle" if not head.working else "working" if locked else "interrupted",
            added=head.added,
            removed=head.removed,
            events=head.events,
        )

    async def load_events(self, session: str) -> list[StampedEvent]:
        """Return all events of a session."""
        head = await self._store.find_session(session)
        return read_events(await self._store.list_events(head.id))

    @asynccontextmanager
    async def open_review(self, session: str) -> AsyncIterator[ChangeReview]:
        """Open the changes of a session that no process uses, to keep or undo them."""
        head = await self._store.find_session(session)
        self._locks.acquire(head.id)
        try:
            checkpoints = Checkpoints(self._snapshots, head.id, Workspace(Path(head.workspace)))
            await checkpoints.recover_writes()
            yield ChangeReview(
                checkpoints, EventLog(self._store, head.id, read_events(await self._store.list_events(head.id)))
            )
        finally:
            self._locks.release(head.id)

    async def delete(self, session: str) -> None:
        """Delete a session from the store. Files of the workspace are unchanged."""
        head = await self._store.find_session(session)
        if self._locks.is_locked(head.id):
            raise StoreError(f"session {head.id} is open; close it first")
        await self._snapshots.delete_session(head.id)
        await self._store.delete_session(head.id)


class SessionManager(SessionArchive):
    """A session archive that can also open the sessions of one workspace."""

    def __init__(self, context: AgentContext) -> None:
        super().__init__(context.sessions, context.snapshots, context.locks)
        self._context = context

    @property
    def workspace(self) -> str:
        """The folder in which new sessions work."""
        return str(self._context.workspace.root)

    async def open(self, session: str = "") -> AgentSession:
        """Open a new session, or an existing one."""
        return await (self._reopen_session(session) if session else self._create_session())

    async def _create_session(self) -> AgentSession:
        context = self._context
        session = new_session_id()
        context.locks.acquire(session)
        began = context.clock()
        root = str(context.workspace.root)
        await self._store.create_session(SessionRecord(session, began, began, "", root, context.model, False, 0, 0, 0))
        log = EventLog(self._store, session, clock=context.clock)
        system = build_system_prompt(context.workspace, context.settings.instructions, context.sandbox.note)
        await log.add(
            SessionOpened(
                session=session, workspace=root, model=context.model, system=system, sandbox=context.sandbox.note
            )
        )
        return AgentSession(session, context, log, self._open_checkpoints(session))

    async def _reopen_session(self, session: str) -> AgentSession:
        context = self._context
        head = await self._store.find_session(session)
        if head.workspace != str(context.workspace.root):
            raise StoreError(f"session {head.id} belongs to {head.workspace}: open it in that folder")
        context.locks.acquire(head.id)
        events = read_events(await self._store.list_events(head.id))
        log = EventLog(self._store, head.id, events, clock=context.clock)
        if not events:
            system = build_system_prompt(context.workspace, context.settings.instructions, context.sandbox.note)
            await log.add(SessionOpened(session=head.id, workspace=head.workspace, model=context.model, system=system))
        await log.add(SessionResumed(model=context.model))
        return AgentSession(head.id, context, log, self._open_checkpoints(head.id))

    def _open_checkpoints(self, session: str) -> Checkpoints:
        return Checkpoints(self._context.snapshots, session, self._context.workspace)
