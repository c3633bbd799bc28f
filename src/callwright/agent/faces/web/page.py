"""One page: what its connection is told, and what is done for it.

Nothing is queued for a page. It is told the events from where it is, as fast as it takes them, out of the list that
the session keeps anyway; one that takes none for a while is dropped, and goes on from where it was when it comes back.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from enum import IntEnum

from starlette.websockets import WebSocket, WebSocketDisconnect

from callwright.agent.faces.web import messages
from callwright.agent.faces.web.desk import Shown
from callwright.agent.faces.web.messages import Command, Done, Events, State, ToPage, Trouble
from callwright.errors import CallwrightError, WireError

__all__ = ["Code", "Page"]

BATCH = 1000
"""Events in a message."""
SLOW_SECONDS = 20.0
"""How long a page may take no message."""


class Code(IntEnum):
    """Why we close a connection. A page comes back by itself unless the code is 4400 or more."""

    SLOW = 4308
    NOT_UNDERSTOOD = 4400
    NO_SUCH_SESSION = 4404


class Page:
    """A connection that was let in, to one session."""

    def __init__(self, socket: WebSocket, shown: Shown, after: int) -> None:
        self._socket = socket
        self._shown = shown
        self._sent = after
        self._news = asyncio.Event()
        self._done: list[Done] = []

    async def serve(self) -> None:
        """Until the page leaves, or has to."""
        self._shown.join(self._news.set)
        tasks = [asyncio.create_task(self._write()), asyncio.create_task(self._read())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._shown.leave(self._news.set)
        for task in tasks:
            if not task.cancelled() and not isinstance(task.exception(), WebSocketDisconnect):
                await self._close(task.result())

    async def _write(self) -> Code:
        told: State | None = None
        trouble = ""
        self._news.set()
        try:
            while await self._news.wait():
                self._news.clear()
                state = State(session=self._shown.id, open=self._shown.face is not None, busy=self._shown.busy)
                if state != told:
                    await self._send(state)
                    told = state
                await self._catch_up()
                if self._shown.trouble != trouble:
                    trouble = self._shown.trouble
                    await self._send(Trouble(text=trouble))
                while self._done:
                    await self._send(self._done.pop(0))
        except TimeoutError:
            pass
        return Code.SLOW

    async def _catch_up(self) -> None:
        while batch := self._shown.events[self._sent : self._sent + BATCH]:
            self._sent += len(batch)
            await self._send(Events(events=batch, more=self._sent < len(self._shown.events)))

    async def _send(self, message: ToPage) -> None:
        async with asyncio.timeout(SLOW_SECONDS):
            await self._socket.send_text(messages.encode(message))

    async def _read(self) -> Code:
        while True:
            try:
                command = messages.decode(await self._socket.receive_text())
            except (WireError, KeyError):  # KeyError: bytes
                return Code.NOT_UNDERSTOOD
            try:
                done = await self._do(command)
            except CallwrightError as error:
                done = Done(id=command.id, problem=str(error))
            self._done.append(done)
            self._news.set()

    async def _do(self, command: Command) -> Done:
        shown = self._shown
        match command:
            case messages.Task(id=number, text=text):
                if not text.strip():
                    return Done(id=number, problem="Say what is to be done.")
                shown.start((await shown.open()).run(text))
                return Done(id=number)
            case messages.Resume(id=number):
                shown.start((await shown.open()).resume())
                return Done(id=number)
            case messages.Answer(id=number, approval=approval, reply=reply):
                if not shown.face or not shown.busy:
                    return Done(id=number, problem="Nothing works on this task here. Go on with it first.")
                return Done(id=number, problem=shown.face.answer(approval, reply))
            case messages.Stop(id=number):
                if shown.face:
                    shown.face.stop()
                return Done(id=number)
            case messages.Keep(id=number, path=path, hunk=hunk, task=task):
                await (await shown.open()).keep(path, hunk, task=task)
                return Done(id=number)
            case messages.Undo(id=number, path=path, hunk=hunk, task=task, force=force):
                undone = await (await shown.open()).undo(path, hunk, task=task, force=force)
                return Done(id=number, conflicts=undone.conflicts)
            case messages.Review(id=number):
                return Done(id=number, files=await (await shown.open()).review())

    async def _close(self, code: Code) -> None:
        with suppress(TimeoutError, WebSocketDisconnect, RuntimeError):  # it is gone already
            async with asyncio.timeout(1):
                await self._socket.close(code)
