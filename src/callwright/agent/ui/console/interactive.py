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

from callwright.agent.session_api import SessionCatalog
from callwright.agent.session_events import TaskStopped
from callwright.agent.ui.console.approval_prompt import build_newline_keys, prompt_for_approval
from callwright.agent.ui.console.formatting import format_count, format_line_counts, sanitize_text, sum_line_counts
from callwright.agent.ui.console.plain_text import run_plain_text
from callwright.agent.ui.console.session_screen import SessionScreen, handle_keys
from callwright.agent.ui.console.session_transcript import SessionTranscript
from callwright.agent.ui.console.slash_commands import CommandContext, SlashCompleter, run_slash_command
from callwright.agent.ui.event_feed import follow_events
from callwright.agent.ui.unattended import EXIT_CODES
from callwright.errors import CallwrightError, MisuseError

__all__ = ["run_terminal_ui"]

_REFRESH_SECONDS = 0.1
"""How often the spinner and the seconds move."""
_MIN_REDRAW_SECONDS = 1 / 30
"""Drawing more often is not seen."""


_PROMPT_STYLE = Style.from_dict({"bottom-toolbar": "noreverse ansibrightblack"})


async def run_terminal_ui(
    sessions: SessionCatalog,
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
        return await run_plain_text(session, task, out=sys.stdout, err=sys.stderr, resume=bool(resume))
    try:
        transcript = SessionTranscript(home=str(Path.home()), hints=True)
        face = _InteractiveSession(
            SessionScreen(console, session, transcript), sessions, FileHistory(str(history)) if history else None
        )
        code = await face.start(task, resume=bool(resume))
        return code if once or face.has_quit else await face.run_prompt_loop()
    finally:
        await session.close()


class _InteractiveSession:
    """One session at one terminal."""

    def __init__(self, screen: SessionScreen, sessions: SessionCatalog, history: History | None) -> None:
        self.has_quit = False
        self._screen = screen
        self._session = screen.session
        self._transcript = screen.transcript
        self._context = CommandContext(screen, sessions, str(Path.home()))
        keys = build_newline_keys()
        keys.add("c-t")(lambda _: self._toggle_thinking())
        self._prompt: PromptSession[str] = PromptSession(
            FormattedText([("bold ansicyan", "\n› ")]),
            history=history or InMemoryHistory(),
            completer=SlashCompleter(self._transcript),
            key_bindings=keys,
            multiline=True,
            prompt_continuation="  ",
            bottom_toolbar=self._build_toolbar,
            erase_when_done=True,  # the task stands in the transcript
            reserve_space_for_menu=6,
            style=_PROMPT_STYLE,
        )

    async def start(self, task: str, *, resume: bool) -> int:
        """Show what there is, go on with what was left, and do the first task."""
        self._screen.print_new_events()
        code = await self._run_work(self._session.resume()) if resume else 0
        return await self._run_work(self._session.run(task)) if task and not self.has_quit else code

    async def run_prompt_loop(self) -> int:
        """Do what the person says, until he leaves."""
        while not self.has_quit and (line := await self._read_input()) is not None:
            try:
                if not line.startswith("/"):
                    await self._run_work(self._session.run(line))
                    continue
                self._screen.print(Text(f"\n› {sanitize_text(line)}", style="dim"))
                if await run_slash_command(self._context, line):
                    break
            except CallwrightError as problem:
                self._screen.print(Text(str(problem), style="red"))
            self._screen.print_new_events()
        goodbye = f"callwright agent --resume {self._session.id} opens this session again."
        self._screen.print(Text(goodbye, style="dim"))
        return EXIT_CODES["person"] if self.has_quit else 0

    async def _read_input(self) -> str | None:
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

    async def _run_work(self, doing: Coroutine[Any, Any, TaskStopped | None]) -> int:
        work = asyncio.ensure_future(doing)
        keys = {"c-c": lambda: self._handle_interrupt(work), "c-t": self._toggle_thinking}
        self._screen.key_hint = "Ctrl-C stops"
        try:
            async with aclosing(
                follow_events(self._session, work, self._screen.printed_count, refresh_seconds=_REFRESH_SECONDS)
            ) as following:
                is_over = False
                while not is_over:
                    with handle_keys(keys), self._screen.show_live_region() as draw:
                        is_over = True
                        async for _ in following:
                            self._screen.print_new_events()
                            draw()
                            if self._transcript.pending_approval:
                                is_over = False
                                break
                            await asyncio.sleep(_MIN_REDRAW_SECONDS)
                    await self._answer_approvals()
            stopped = await work
        except asyncio.CancelledError:
            if not self.has_quit:
                raise
            return EXIT_CODES["person"]
        except CallwrightError as problem:
            self._screen.print(Text(str(problem), style="red"))
            return EXIT_CODES["failed"]
        finally:
            work.cancel()
        return EXIT_CODES[stopped.reason] if stopped else 0

    async def _answer_approvals(self) -> None:
        """Ask until the question that is open is answered."""
        while asked := self._transcript.pending_approval:
            if not (problem := self._session.answer_approval(asked.approval, await prompt_for_approval(asked))):
                self._transcript.pending_approval = None
            else:
                self._screen.print(Text(problem, style="yellow"))
                self._screen.print_new_events()

    def _handle_interrupt(self, work: asyncio.Future[TaskStopped | None]) -> None:
        if self._session.is_busy and not self._screen.key_hint.startswith("stopping"):
            self._screen.key_hint = "stopping; Ctrl-C again leaves"
            self._session.stop()
        else:
            self.has_quit = True
            work.cancel()

    def _toggle_thinking(self) -> None:
        self._transcript.thinking = not self._transcript.thinking

    def _build_toolbar(self) -> str:
        files = self._transcript.files
        thinking = "  ·  thinking is shown" if self._transcript.thinking else ""
        if not files:
            return f" /help{thinking}"
        changed = f"{format_count(len(files), 'file')} changed {format_line_counts(*sum_line_counts(files))}"
        return f" {changed}  ·  /diff  /undo  /keep  /help{thinking}"
