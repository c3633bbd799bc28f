"""The sessions that there are: listing, opening and forgetting them."""

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
    """The sessions of all workspaces, to be read and forgotten."""

    def __init__(self, sessions: SessionEventStore, snapshots: SnapshotStore, locks: SessionLocks) -> None:
        self._store = sessions
        self._snapshots = snapshots
        self._locks = locks

    async def list_sessions(self, query: str = "", limit: int = 50, offset: int = 0) -> list[SessionRow]:
        """The newest first; with a query those whose words match."""
        return [self._build_row(head) for head in await self._store.list_sessions(query, limit, offset)]

    def _build_row(self, head: SessionRecord) -> SessionRow:
        held = self._locks.is_locked(head.id)
        return SessionRow(
            id=head.id,
            title=head.title,
            workspace=head.workspace,
            model=head.model,
            began=head.began,
            updated=head.updated,
            state="idle" if not head.working else "working" if held else "interrupted",
            added=head.added,
            removed=head.removed,
            events=head.events,
        )

    async def load_events(self, session: str) -> list[StampedEvent]:
        """All events of one."""
        head = await self._store.find_session(session)
        return read_events(await self._store.list_events(head.id))

    @asynccontextmanager
    async def open_review(self, session: str) -> AsyncIterator[ChangeReview]:
        """The changes of a session that nobody has open, to be kept or taken back."""
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
        """Forget it. Files are left as they are."""
        head = await self._store.find_session(session)
        if self._locks.is_locked(head.id):
            raise StoreError(f"session {head.id} is open; close it first")
        await self._snapshots.delete_session(head.id)
        await self._store.delete_session(head.id)


class SessionManager(SessionArchive):
    """The same, and the sessions of one workshop opened."""

    def __init__(self, workshop: AgentContext) -> None:
        super().__init__(workshop.sessions, workshop.snapshots, workshop.locks)
        self._context = workshop

    @property
    def workspace(self) -> str:
        """The folder that new sessions work in."""
        return str(self._context.workspace.root)

    async def open(self, session: str = "") -> AgentSession:
        """A new session, or that one again."""
        return await (self._reopen_session(session) if session else self._create_session())

    async def _create_session(self) -> AgentSession:
        shop = self._context
        session = new_session_id()
        shop.locks.acquire(session)
        began = shop.clock()
        root = str(shop.workspace.root)
        await self._store.create_session(SessionRecord(session, began, began, "", root, shop.model, False, 0, 0, 0))
        log = EventLog(self._store, session, clock=shop.clock)
        system = build_system_prompt(shop.workspace, shop.settings.instructions, shop.sandbox.note)
        await log.add(
            SessionOpened(session=session, workspace=root, model=shop.model, system=system, sandbox=shop.sandbox.note)
        )
        return AgentSession(session, shop, log, self._open_checkpoints(session))

    async def _reopen_session(self, session: str) -> AgentSession:
        shop = self._context
        head = await self._store.find_session(session)
        if head.workspace != str(shop.workspace.root):
            raise StoreError(f"session {head.id} belongs to {head.workspace}: open it from there")
        shop.locks.acquire(head.id)
        past = read_events(await self._store.list_events(head.id))
        log = EventLog(self._store, head.id, past, clock=shop.clock)
        if not past:
            system = build_system_prompt(shop.workspace, shop.settings.instructions, shop.sandbox.note)
            await log.add(SessionOpened(session=head.id, workspace=head.workspace, model=shop.model, system=system))
        await log.add(SessionResumed(model=shop.model))
        return AgentSession(head.id, shop, log, self._open_checkpoints(head.id))

    def _open_checkpoints(self, session: str) -> Checkpoints:
        return Checkpoints(self._context.snapshots, session, self._context.workspace)
