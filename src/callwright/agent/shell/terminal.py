"""The terminal of a session: runs commands one after the other, in a folder that stays inside the workspace.

Invariants: a command ends, with everything that it started, when it exits, times out, is stopped by the user, or the
task that runs it is cancelled; it cannot read from a keyboard; its output is held in bounded memory. The folder in
which a command ends is where the next one starts, if it is in the workspace. Variables, functions and aliases of a
command end with it.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Annotated, Literal

import msgspec

from callwright.agent.shell.environment import build_environment
from callwright.agent.shell.output_excerpt import OutputExcerpt
from callwright.agent.shell.process_cleanup import end_process_group, start_process_group
from callwright.agent.shell.pseudoterminal import PseudoTerminal
from callwright.agent.shell.sandbox import Sandbox
from callwright.agent.shell.terminal_emulator import TerminalEmulator
from callwright.agent.workspace.workspace import Workspace
from callwright.errors import ConfigError, ToolError

__all__ = ["CommandResult", "Terminal", "TerminalSettings"]

# The command is an argument, with no text around it. When it exits, the shell reports its folder.
_SHELL_SCRIPT = """\
__folder=$1 __command=$2
trap 'builtin pwd -P 2>/dev/null >&"$__folder"' EXIT
set --
eval "$__command"
"""
_TIMEOUT_NOTE = (
    "The command was stopped after {:g} seconds: it needs more time, which a call can set, or waits for input."
)
_ROWS = 40
_GRACE_S = 2.0
_MAX_FOLDER_BYTES = 8192
_PROGRESS_INTERVAL_S = 0.1
_MAX_PROGRESS_LINES = 40

_ExitReason = Literal["done", "timed out", "stopped"]


class TerminalSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How commands are run."""

    timeout_s: Annotated[float, msgspec.Meta(gt=0)] = 120.0
    """Timeout of a command if the model sets none."""
    max_timeout_s: Annotated[float, msgspec.Meta(gt=0)] = 1800.0
    """Longest timeout that a model can set."""
    head_lines: Annotated[int, msgspec.Meta(ge=1)] = 15
    """How many lines of the beginning of an output are kept."""
    tail_lines: Annotated[int, msgspec.Meta(ge=1)] = 85
    """How many lines of its end are kept."""
    columns: Annotated[int, msgspec.Meta(ge=20, le=1000)] = 120
    """The width of the terminal."""
    max_line_characters: Annotated[int, msgspec.Meta(ge=100)] = 2000
    """How many characters of one line are kept."""
    shell: str = "bash"
    """The bash to run commands with, by name or by path."""
    environment: dict[str, str] = {}
    """Variables for commands, added to the agent's own environment."""
    credential_variables: tuple[str, ...] = ()
    """Variables that are passed on although they are named like credentials."""


class CommandResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a command."""

    exit_code: int | None
    """As a shell reports it, 128 and more for a signal; None if the command was stopped."""
    output: str
    omitted_lines: int
    """How many lines in the middle of the output were omitted."""
    timed_out: bool = False
    stopped: bool = False
    folder: str
    """The current folder of the terminal, relative to the workspace's root."""
    seconds: float
    note: str = ""
    """Sentences for the model about anything else that happened."""


class Terminal:
    """One terminal, opened with its first command.

    `folder` is its current folder, relative to the workspace's root; its commands run in `environment` and `sandbox`.
    """

    def __init__(
        self, workspace: Workspace, settings: TerminalSettings, sandbox: Sandbox, *, environment: Mapping[str, str]
    ) -> None:
        self.folder = "."
        self._workspace = workspace
        self._settings = settings
        self.sandbox = sandbox
        self.environment = build_environment(
            environment, allowed_names=settings.credential_variables, overrides=settings.environment
        )
        shell = shutil.which(settings.shell, path=self.environment.get("PATH", os.defpath))
        if shell is None:
            raise ConfigError([f"the shell {settings.shell!r} is not installed: commands need bash"])
        self._shell = shell
        self._pty: PseudoTerminal | None = None
        self._lock = asyncio.Lock()
        self._stop_requested = asyncio.Event()
        self._cleanup_tasks: set[asyncio.Task[None]] = set()

    async def run(
        self, command: str, *, folder: str = "", timeout_s: float | None = None, on_output: Callable[[str], None]
    ) -> CommandResult:
        """Run a command to its end and return its result. `on_output` receives its lines while it runs.

        Raises `ToolError` when the folder is invalid or outside the workspace, or when the command cannot be started.
        """
        if "\0" in command:
            raise ToolError("a command cannot contain a NUL character")
        async with self._lock:
            self._stop_requested.clear()
            limit_s = min(timeout_s or self._settings.timeout_s, self._settings.max_timeout_s)
            return await self._run_command(command, self._resolve_folder(folder), limit_s, on_output)

    def stop(self) -> None:
        """Stop the running command, if there is one: its `CommandResult` has the status `stopped` and the output so
        far.
        """
        self._stop_requested.set()

    async def close(self) -> None:
        """Stop the running command and close the terminal."""
        self.stop()
        async with self._lock:
            if self._pty is not None:
                self._pty.close()
                self._pty = None

    def _resolve_folder(self, folder: str) -> str:
        """Return where a command starts: in the requested folder, else where the last one ended, else at the root."""
        if not folder:
            return self.folder if self._is_folder(self.folder) else "."
        start = self._workspace.resolve_path(folder)
        if not self._is_folder(start):
            raise ToolError(f"there is no folder {start!r} to run the command in")
        return start

    def _is_folder(self, path: str) -> bool:
        try:
            return self._workspace.get_kind(path) == "folder"
        except ToolError:
            return False

    async def _run_command(
        self, command: str, start: str, limit_s: float, on_output: Callable[[str], None]
    ) -> CommandResult:
        excerpt = OutputExcerpt(head=self._settings.head_lines, tail=self._settings.tail_lines)
        batcher = _ProgressBatcher(on_output)
        screen = TerminalEmulator(
            excerpt.add, on_preview=batcher.add, rows=_ROWS, line_limit=self._settings.max_line_characters
        )
        began = time.monotonic()
        self._pty = self._pty or PseudoTerminal(columns=self._settings.columns, rows=_ROWS)
        mark = secrets.token_hex(16)
        read_end, write_end = os.pipe()
        try:
            with self._pty.forward_output(screen.feed):
                try:
                    process = await self._start_process(
                        self._pty.writer_fd, command, start, folder_pipe=write_end, mark=mark
                    )
                finally:
                    os.close(write_end)
                try:
                    how = await self._wait_for_exit(process, limit_s)
                finally:
                    await self._end_process(process, mark)
            self.folder, moved = self._read_final_folder(read_end, start)
        finally:
            os.close(read_end)
        for each in (screen, excerpt, batcher):
            each.close()
        notes = [_TIMEOUT_NOTE.format(limit_s), moved] if how == "timed out" else [moved]
        return CommandResult(
            exit_code=_to_shell_exit_code(process.returncode) if how == "done" else None,
            output=excerpt.text,
            omitted_lines=excerpt.omitted_lines,
            timed_out=how == "timed out",
            stopped=how == "stopped",
            folder=self.folder,
            seconds=time.monotonic() - began,
            note=" ".join(filter(None, notes)),
        )

    async def _start_process(
        self, writer: int, command: str, start: str, *, folder_pipe: int, mark: str
    ) -> asyncio.subprocess.Process:
        folder = self._workspace.root / start
        words = [self._shell, "-c", _SHELL_SCRIPT, "bash", str(folder_pipe), command]
        try:
            return await start_process_group(
                self.sandbox.wrap_command(words, folder),
                mark,
                env=self.environment,
                cwd=folder,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=writer,
                stderr=writer,
                pass_fds=(folder_pipe,),
            )
        except OSError as error:
            raise ToolError(f"the command could not be started: {error.strerror}") from error

    async def _wait_for_exit(self, process: asyncio.subprocess.Process, limit_s: float) -> _ExitReason:
        over = asyncio.ensure_future(process.wait())
        stopped = asyncio.ensure_future(self._stop_requested.wait())
        try:
            await asyncio.wait({over, stopped}, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
            return "done" if over.done() else "stopped" if stopped.done() else "timed out"
        finally:
            over.cancel()
            stopped.cancel()

    async def _end_process(self, process: asyncio.subprocess.Process, mark: str) -> None:
        """End the command even if this task is cancelled, once or twice."""
        ending = asyncio.ensure_future(end_process_group(process, mark, grace_s=_GRACE_S))
        self._cleanup_tasks.add(ending)
        ending.add_done_callback(self._cleanup_tasks.discard)
        await asyncio.shield(ending)

    def _read_final_folder(self, folder_pipe: int, start: str) -> tuple[str, str]:
        """Return the terminal's folder after a command, and a note if it is not the folder in which the command
        ended.
        """
        os.set_blocking(folder_pipe, False)
        try:
            ended = os.fsdecode(os.read(folder_pipe, _MAX_FOLDER_BYTES).removesuffix(b"\n"))
        except BlockingIOError:
            ended = ""  # a process of the command still holds the pipe, and the shell reported no folder
        if not ended:
            return start, ""
        try:
            folder = self._workspace.resolve_path(ended)
        except ToolError:
            folder_name = "the workspace's root" if start == "." else repr(start)
            return start, f"The command ended outside the workspace: the terminal is back in {folder_name}."
        if not self._is_folder(folder):
            return (
                ".",
                "The folder in which the command ended no longer exists: the terminal is back in the workspace's root.",
            )
        return folder, ""


class _ProgressBatcher:
    """Sends lines to the UI in batches: at most ten per second, and only the last lines of a flood."""

    def __init__(self, on_output: Callable[[str], None]) -> None:
        self._on_output = on_output
        self._lines: deque[str] = deque(maxlen=_MAX_PROGRESS_LINES)
        self._timer: asyncio.TimerHandle | None = None

    def add(self, line: str) -> None:
        self._lines.append(line)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_PROGRESS_INTERVAL_S, self.close)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._on_output("\n".join(self._lines))
            self._lines.clear()


def _to_shell_exit_code(code: int | None) -> int | None:
    return code if code is None or code >= 0 else 128 - code
