"""`run_terminal_command`: a command for the session's terminal. The policy decides whether it may run."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

import msgspec

from callwright.agent.tools.base import TerminalCommand, ToolArguments
from callwright.agent.tools.signature import ToolSignature

__all__ = ["tool"]

_SHELLS = frozenset({"bash", "sh", "/bin/bash", "/bin/sh"})
_SCRIPT_FLAGS = frozenset({"-c", "-lc"})


class _RunArguments(msgspec.Struct, frozen=True, kw_only=True):
    """Run a shell command in the workspace and get its output. It cannot read input."""

    command: Annotated[str, msgspec.Meta(description="The command line.", examples=["pytest -q"], min_length=1)]
    folder: Annotated[
        str,
        msgspec.Meta(
            description="Where to run it, from the workspace's root. The default is where the last one ended."
        ),
    ] = ""
    seconds: Annotated[
        float, msgspec.Meta(description="Stop it after this many seconds. 0 is the usual limit.", ge=0, le=3600)
    ] = 0


class _RunTerminalCommand:
    signature = ToolSignature("run_terminal_command", _RunArguments)
    spec = signature.spec

    def describe_call(self, arguments: ToolArguments) -> str:
        return self.signature.describe_call(_join_command_words(arguments), lambda parsed: f"Run {parsed.command}")

    def build_command(self, arguments: ToolArguments) -> TerminalCommand:
        parsed = self.signature.parse(_join_command_words(arguments))
        return TerminalCommand(text=parsed.command, folder=parsed.folder, seconds=parsed.seconds or None)

    def replace_command(self, arguments: ToolArguments, text: str) -> dict[str, Any]:
        return self.signature.replace_arguments(_join_command_words(arguments), command=text)


def _join_command_words(arguments: ToolArguments) -> ToolArguments:
    """Return the call with a command line in place of a list of words, which is the form of Codex's own tool."""
    return {name: _build_command_line(value) if _is_word_list(value) else value for name, value in arguments.items()}


def _is_word_list(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(word, str) for word in value)


def _build_command_line(words: list[str]) -> str:
    if len(words) == 3 and words[0] in _SHELLS and words[1] in _SCRIPT_FLAGS:
        return words[2]
    return shlex.join(words)


tool = _RunTerminalCommand()
