"""The interactive terminal: a prompt, a task, its events, and the prompt again."""

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
"""How often the spinner and the seconds are updated."""
_MIN_REDRAW_SECONDS = 1 / 30
"""The minimum time between two redraws."""


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
    """Run the task, then what the user types next; returns the exit code.

    `resume` names the session to reopen. With `once`, or without a terminal, it ends after the task; without a terminal
    approvals are denied. `history` is a file for the user's input.
    """
    console = console or Console(highlight=False)
    if interactive is None:
        interactive = sys.stdin.isatty() and console.is_terminal
    if not interactive and not task and not resume:
        raise MisuseError("pass a task: without a terminal there is no prompt")
    session = await sessions.open(resume)
    if not interactive:
        return await run_plain_text(session, task, out=sys.stdout, err=sys.stderr, resume=bool(resume))
    try:
        transcript = SessionTranscript(home=str(Path.home()), hints=True)
        ui = _InteractiveSession(
            SessionScreen(console, session, transcript), sessions, FileHistory(str(history)) if history else None
        )
        code = await ui.start(task, resume=bool(resume))
        return code if once or ui.has_quit else await ui.run_prompt_loop()
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
            erase_when_done=True,  # the transcript shows the task
            reserve_space_for_menu=6,
            style=_PROMPT_STYLE,
        )

    async def start(self, task: str, *, resume: bool) -> int:
        """Show the session, continue the unfinished task, and run the first task."""
        self._screen.print_new_events()
        code = await self._run_work(self._session.resume()) if resume else 0
        return await self._run_work(self._session.run(task)) if task and not self.has_quit else code

    async def run_prompt_loop(self) -> int:
        """Run what the user types, until they quit."""
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
        goodbye = f"callwright agent --resume {self._session.id} resumes this session."
        self._screen.print(Text(goodbye, style="dim"))
        return EXIT_CODES["person"] if self.has_quit else 0

    async def _read_input(self) -> str | None:
        """Read a line of input; None to quit."""
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
                self._screen.print(Text("Press Ctrl-C again to quit.", style="dim"))

    async def _run_work(self, steps: Coroutine[Any, Any, TaskStopped | None]) -> int:
        work = asyncio.ensure_future(steps)
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
        """Prompt until the pending approval is answered."""
        while request := self._transcript.pending_approval:
            if not (problem := self._session.answer_approval(request.approval, await prompt_for_approval(request))):
                self._transcript.pending_approval = None
            else:
                self._screen.print(Text(problem, style="yellow"))
                self._screen.print_new_events()

    def _handle_interrupt(self, work: asyncio.Future[TaskStopped | None]) -> None:
        if self._session.is_busy and not self._screen.key_hint.startswith("stopping"):
            self._screen.key_hint = "stopping; Ctrl-C again quits"
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
