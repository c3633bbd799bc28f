"""Talking to the agent: a prompt, a task, what comes of it, and the prompt again."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from contextlib import aclosing
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.styles import Style
from rich.console import Console
from rich.text import Text

from callwright.agent.faces.base import SessionList
from callwright.agent.faces.following import follow
from callwright.agent.faces.terminal.asking import answer_to, newline_keys
from callwright.agent.faces.terminal.commands import Desk, SlashCompleter, obey
from callwright.agent.faces.terminal.plain import plain
from callwright.agent.faces.terminal.screen import Screen, hearing
from callwright.agent.faces.terminal.transcript import Transcript
from callwright.agent.faces.terminal.wording import clean, counts, plural, total
from callwright.agent.faces.unattended import EXIT_CODES
from callwright.agent.session_events import TaskStopped
from callwright.errors import CallwrightError, MisuseError

__all__ = ["talk"]

_EVERY = 0.1
"""How often the spinner and the seconds move."""
_AT_MOST_EVERY = 1 / 30
"""Drawing more often is not seen."""


_STYLE = Style.from_dict({"bottom-toolbar": "noreverse ansibrightblack"})


async def talk(
    sessions: SessionList,
    *,
    task: str = "",
    resume: str = "",
    once: bool = False,
    console: Console | None = None,
    interactive: bool | None = None,
    history: Path | None = None,
) -> int:
    """Work on the task, then on what the person says next; returns the exit code.

    `resume` names the session to open again. With `once`, or where nobody is at a terminal, it ends with the task; in
    the latter case nobody can be asked, so approvals are denied. `history` is a file for what the person types.
    """
    console = console or Console(highlight=False)
    if interactive is None:
        interactive = sys.stdin.isatty() and console.is_terminal
    if not interactive and not task and not resume:
        raise MisuseError("say what to do: nobody is at a terminal who could be asked")
    session = await sessions.open(resume)
    if not interactive:
        return await plain(session, task, out=sys.stdout, err=sys.stderr, resume=bool(resume))
    try:
        transcript = Transcript(home=str(Path.home()), hints=True)
        face = _Talk(Screen(console, session, transcript), sessions, FileHistory(str(history)) if history else None)
        code = await face.begin(task, resume=bool(resume))
        return code if once or face.left else await face.go_on()
    finally:
        await session.close()


class _Talk:
    """One session at one terminal."""

    def __init__(self, screen: Screen, sessions: SessionList, history: History | None) -> None:
        self.left = False
        self._screen = screen
        self._session = screen.session
        self._transcript = screen.transcript
        self._desk = Desk(screen, sessions, str(Path.home()))
        keys = newline_keys()
        keys.add("c-t")(lambda _: self._toggle_thinking())
        self._prompt: PromptSession[str] = PromptSession(
            FormattedText([("bold ansicyan", "\n› ")]),
            history=history or InMemoryHistory(),
            completer=SlashCompleter(self._transcript),
            key_bindings=keys,
            multiline=True,
            prompt_continuation="  ",
            bottom_toolbar=self._toolbar,
            erase_when_done=True,  # the task stands in the transcript
            reserve_space_for_menu=6,
            style=_STYLE,
        )

    async def begin(self, task: str, *, resume: bool) -> int:
        """Show what there is, go on with what was left, and do the first task."""
        self._screen.catch_up()
        code = await self._work(self._session.resume()) if resume else 0
        return await self._work(self._session.run(task)) if task and not self.left else code

    async def go_on(self) -> int:
        """Do what the person says, until he leaves."""
        while not self.left and (line := await self._read()) is not None:
            try:
                if not line.startswith("/"):
                    await self._work(self._session.run(line))
                    continue
                self._screen.print(Text(f"\n› {clean(line)}", style="dim"))
                if await obey(self._desk, line):
                    break
            except CallwrightError as problem:
                self._screen.print(Text(str(problem), style="red"))
            self._screen.catch_up()
        goodbye = f"callwright agent --resume {self._session.id} opens this session again."
        self._screen.print(Text(goodbye, style="dim"))
        return EXIT_CODES["person"] if self.left else 0

    async def _read(self) -> str | None:
        """What the person says; None to leave."""
        warned = False
        while True:
            try:
                if line := (await self._prompt.prompt_async()).strip():
                    return line
                warned = False
            except EOFError:
                return None
            except KeyboardInterrupt:
                if warned:
                    return None
                warned = True
                self._screen.print(Text("Ctrl-C again leaves.", style="dim"))

    async def _work(self, doing: Coroutine[Any, Any, TaskStopped | None]) -> int:
        work = asyncio.ensure_future(doing)
        keys = {"c-c": lambda: self._interrupt(work), "c-t": self._toggle_thinking}
        self._screen.hint = "Ctrl-C stops"
        try:
            async with aclosing(follow(self._session, work, self._screen.seen, every=_EVERY)) as following:
                is_over = False
                while not is_over:
                    with hearing(keys), self._screen.moving() as draw:
                        is_over = True
                        async for _ in following:
                            self._screen.catch_up()
                            draw()
                            if self._transcript.asked:
                                is_over = False
                                break
                            await asyncio.sleep(_AT_MOST_EVERY)
                    await self._answer()
            stopped = await work
        except asyncio.CancelledError:
            if not self.left:
                raise
            return EXIT_CODES["person"]
        except CallwrightError as problem:
            self._screen.print(Text(str(problem), style="red"))
            return EXIT_CODES["failed"]
        finally:
            work.cancel()
        return EXIT_CODES[stopped.reason] if stopped else 0

    async def _answer(self) -> None:
        """Ask until the question that is open is answered."""
        while asked := self._transcript.asked:
            if not (problem := self._session.answer(asked.approval, await answer_to(asked))):
                self._transcript.asked = None
            else:
                self._screen.print(Text(problem, style="yellow"))
                self._screen.catch_up()

    def _interrupt(self, work: asyncio.Future[TaskStopped | None]) -> None:
        if self._session.busy and not self._screen.hint.startswith("stopping"):
            self._screen.hint = "stopping; Ctrl-C again leaves"
            self._session.stop()
        else:
            self.left = True
            work.cancel()

    def _toggle_thinking(self) -> None:
        self._transcript.thinking = not self._transcript.thinking

    def _toolbar(self) -> str:
        files = self._transcript.files
        thinking = "  ·  thinking is shown" if self._transcript.thinking else ""
        if not files:
            return f" /help{thinking}"
        return f" {plural(len(files), 'file')} changed {counts(*total(files))}  ·  /diff  /undo  /keep  /help{thinking}"
