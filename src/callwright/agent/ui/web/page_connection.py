"""The connection of one page: sends it events, and runs its commands.

Nothing is queued for a page. It is sent events from its position on, as fast as it reads them, out of the session's own
list; a page that reads nothing for a while is disconnected, and continues at its position when it reconnects.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from enum import IntEnum

from starlette.websockets import WebSocket, WebSocketDisconnect

from callwright.agent.ui.web import page_messages
from callwright.agent.ui.web.page_messages import (
    EventsMessage,
    PageCommand,
    PageCommandResult,
    ProblemMessage,
    ServerMessage,
    StateMessage,
)
from callwright.agent.ui.web.session_hub import HubSession
from callwright.errors import CallwrightError, WireError

__all__ = ["CloseCode", "PageConnection"]

MAX_BATCH_EVENTS = 1000
"""The maximum number of events in a message."""
SEND_TIMEOUT_SECONDS = 20.0
"""How long a page may take to accept a message."""


class CloseCode(IntEnum):
    """Why the server closes a connection. A page reconnects by itself unless the code is 4400 or more."""

    SLOW = 4308
    NOT_UNDERSTOOD = 4400
    NO_SUCH_SESSION = 4404


class PageConnection:
    """An accepted connection to one session."""

    def __init__(self, socket: WebSocket, session: HubSession, after: int) -> None:
        self._socket = socket
        self._session = session
        self._next_event = after
        self._wake_event = asyncio.Event()
        self._results: list[PageCommandResult] = []

    async def serve(self) -> None:
        """Serve the page until it disconnects or is disconnected."""
        self._session.add_page(self._wake_event.set)
        tasks = [asyncio.create_task(self._write_messages()), asyncio.create_task(self._read_commands())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._session.remove_page(self._wake_event.set)
        for task in tasks:
            if not task.cancelled() and not isinstance(task.exception(), WebSocketDisconnect):
                await self._close_socket(task.result())

    async def _write_messages(self) -> CloseCode:
        sent_state: StateMessage | None = None
        sent_problem = ""
        self._wake_event.set()
        try:
            while await self._wake_event.wait():
                self._wake_event.clear()
                state = StateMessage(
                    session=self._session.id, open=self._session.handle is not None, busy=self._session.is_busy
                )
                if state != sent_state:
                    await self._send_message(state)
                    sent_state = state
                await self._send_new_events()
                if self._session.problem != sent_problem:
                    sent_problem = self._session.problem
                    await self._send_message(ProblemMessage(text=sent_problem))
                while self._results:
                    await self._send_message(self._results.pop(0))
        except TimeoutError:
            pass
        return CloseCode.SLOW

    async def _send_new_events(self) -> None:
        while batch := self._session.events[self._next_event : self._next_event + MAX_BATCH_EVENTS]:
            self._next_event += len(batch)
            await self._send_message(EventsMessage(events=batch, more=self._next_event < len(self._session.events)))

    async def _send_message(self, message: ServerMessage) -> None:
        async with asyncio.timeout(SEND_TIMEOUT_SECONDS):
            await self._socket.send_text(page_messages.encode_message(message))

    async def _read_commands(self) -> CloseCode:
        while True:
            try:
                command = page_messages.decode_command(await self._socket.receive_text())
            except (WireError, KeyError):  # KeyError: bytes
                return CloseCode.NOT_UNDERSTOOD
            try:
                result = await self._run_command(command)
            except CallwrightError as error:
                result = PageCommandResult(id=command.id, problem=str(error))
            self._results.append(result)
            self._wake_event.set()

    async def _run_command(self, command: PageCommand) -> PageCommandResult:
        session = self._session
        match command:
            case page_messages.TaskCommand(id=number, text=text):
                if not text.strip():
                    return PageCommandResult(id=number, problem="The task is empty: describe what to do.")
                session.start_work((await session.open()).run(text))
                return PageCommandResult(id=number)
            case page_messages.ResumeCommand(id=number):
                session.start_work((await session.open()).resume())
                return PageCommandResult(id=number)
            case page_messages.AnswerCommand(id=number, approval=approval, reply=reply):
                if not session.handle or not session.is_busy:
                    return PageCommandResult(id=number, problem="This task is not running here. Resume it first.")
                return PageCommandResult(id=number, problem=session.handle.answer_approval(approval, reply))
            case page_messages.StopCommand(id=number):
                if session.handle:
                    session.handle.stop()
                return PageCommandResult(id=number)
            case page_messages.KeepCommand(id=number, path=path, hunk=hunk, task=task):
                await (await session.open()).keep_changes(path, hunk, task=task)
                return PageCommandResult(id=number)
            case page_messages.UndoCommand(id=number, path=path, hunk=hunk, task=task, force=force):
                undone = await (await session.open()).undo_changes(path, hunk, task=task, force=force)
                return PageCommandResult(id=number, conflicts=undone.conflicts)
            case page_messages.ReviewCommand(id=number):
                return PageCommandResult(id=number, files=await (await session.open()).review_changes())

    async def _close_socket(self, code: CloseCode) -> None:
        with suppress(TimeoutError, WebSocketDisconnect, RuntimeError):  # already closed
            async with asyncio.timeout(1):
                await self._socket.close(code)
