"""`run_terminal_command`: a command for the session's one terminal. What may run is decided by the policy, not here."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

import msgspec

from callwright.agent.tools.base import Arguments, Command
from callwright.agent.tools.form import Form

__all__ = ["tool"]

_SHELLS = frozenset({"bash", "sh", "/bin/bash", "/bin/sh"})
_SCRIPT_FLAGS = frozenset({"-c", "-lc"})


class _Run(msgspec.Struct, frozen=True, kw_only=True):
    """Run a shell command in the workspace and get its output. It cannot ask for input."""

    command: Annotated[str, msgspec.Meta(description="The command line.", examples=["pytest -q"], min_length=1)]
    folder: Annotated[
        str,
        msgspec.Meta(
            description="Where to run it, from the workspace's root. The default is where the last one ended."
        ),
    ] = ""
    seconds: Annotated[
        float, msgspec.Meta(description="Stop it after so many seconds. 0 is the usual limit.", ge=0, le=3600)
    ] = 0


class _RunTerminalCommand:
    form = Form("run_terminal_command", _Run)
    spec = form.spec

    def view(self, arguments: Arguments) -> str:
        return self.form.view(_joined(arguments), lambda wanted: f"Run {wanted.command}")

    def command(self, arguments: Arguments) -> Command:
        wanted = self.form.read(_joined(arguments))
        return Command(text=wanted.command, folder=wanted.folder, seconds=wanted.seconds or None)

    def edited(self, arguments: Arguments, text: str) -> dict[str, Any]:
        return self.form.changed(_joined(arguments), command=text)


def _joined(arguments: Arguments) -> Arguments:
    """The call with a command line where it has a list of words, as Codex's own tool takes it."""
    return {name: _command_line(value) if _is_words(value) else value for name, value in arguments.items()}


def _is_words(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(word, str) for word in value)


def _command_line(words: list[str]) -> str:
    if len(words) == 3 and words[0] in _SHELLS and words[1] in _SCRIPT_FLAGS:
        return words[2]
    return shlex.join(words)


tool = _RunTerminalCommand()
