"""`read_file`: a file, or some of its lines, with line numbers."""

from __future__ import annotations

import asyncio
import shlex
from typing import Annotated

import msgspec

from callwright.agent.tools.base import ToolArguments, ToolContext
from callwright.agent.tools.file_text import decode_file, split_text_lines
from callwright.agent.tools.path_match import suggest_paths
from callwright.agent.tools.signature import ToolSignature
from callwright.agent.tools.text_format import format_count, format_size, truncate_line
from callwright.agent.workspace.workspace import Workspace
from callwright.errors import ToolError

__all__ = ["tool"]

_MAX_LINES = 400
_MAX_CHARACTERS = 64 * 1024
_MAX_LINE_LENGTH = 2000
_MAX_FILE_BYTES = 16 * 1024 * 1024


class _ReadArguments(msgspec.Struct, frozen=True, kw_only=True):
    """Read a text file of the workspace. Lines come with their numbers, at most 400 at once."""

    path: Annotated[
        str, msgspec.Meta(description="The file, from the workspace's root.", examples=["src/app.py"], min_length=1)
    ]
    start_line: Annotated[int, msgspec.Meta(description="The first line to read, counted from 1.")] = 1
    end_line: Annotated[int, msgspec.Meta(description="The last line to read. Omit it to read on.")] = 0
    limit: Annotated[int, msgspec.Meta(description="How many lines to read, instead of end_line.")] = 0


class _ReadFile:
    signature = ToolSignature("read_file", _ReadArguments)
    spec = signature.spec

    def describe_call(self, arguments: ToolArguments) -> str:
        return self.signature.describe_call(arguments, _describe_call)

    def list_paths(self, arguments: ToolArguments) -> tuple[str, ...]:
        parsed = self.signature.try_parse(arguments)
        return () if parsed is None else (parsed.path,)

    async def read(self, arguments: ToolArguments, context: ToolContext) -> str:
        return await asyncio.to_thread(_read_lines, self.signature.parse(arguments), context.workspace)


def _describe_call(parsed: _ReadArguments) -> str:
    first, last = _compute_range(parsed)
    if first == 1 and not last:
        return f"Read {parsed.path}"
    return f"Read {parsed.path}, {_format_span(first, last)}" if last else f"Read {parsed.path}, from line {first}"


def _compute_range(parsed: _ReadArguments) -> tuple[int, int]:
    """Return the first and the last line, 0 if there is none. Models also count from 0, and write -1 for the end."""
    first = max(parsed.start_line, 1)
    return first, max(parsed.end_line, 0) or (first + parsed.limit - 1 if parsed.limit > 0 else 0)


def _format_span(first: int, last: int) -> str:
    return f"line {first}" if first == last else f"lines {first} to {last}"


def _read_lines(parsed: _ReadArguments, workspace: Workspace) -> str:
    path = _require_file(parsed.path, workspace)
    try:
        data = workspace.read_file(path, _MAX_FILE_BYTES)
    except ToolError as error:
        raise ToolError(
            f"{error}. A command shows part of a large file: sed -n '1,100p' {shlex.quote(path)}"
        ) from error
    try:
        text, note = decode_file(data)
    except ToolError as error:
        raise ToolError(f"{path} cannot be read as text: {error} of {format_size(len(data))}.") from error
    lines = split_text_lines(text)
    first, last = _compute_range(parsed)
    if not lines:
        return f"{path} is empty."
    if first > len(lines):
        raise ToolError(f"{path} has only {format_count(len(lines), 'line')}; start_line {first} is past the end.")
    if last and last < first:
        raise ToolError(f"end_line {last} is before start_line {first}.")
    taken = _select_lines(lines, first, min(last or len(lines), len(lines)))
    notes = [note] if note else []
    notes += ["Windows line endings"] if "\r\n" in text else []
    return _format_page(path, lines, first, taken, notes)


def _require_file(path: str, workspace: Workspace) -> str:
    match workspace.get_kind(path):
        case "missing":
            suggestion = suggest_paths(path, workspace.iter_files())
            raise ToolError(f"there is no file {path!r}.{suggestion} list_files lists the existing files.")
        case "folder":
            raise ToolError(f"{path!r} is a folder; list_files lists its files.")
        case _:
            return workspace.resolve_path(path)


def _select_lines(lines: list[str], first: int, last: int) -> list[str]:
    """Return as many of the lines as one result can hold."""
    selected: list[str] = []
    characters_left = _MAX_CHARACTERS
    for line in lines[first - 1 : min(last, first - 1 + _MAX_LINES)]:
        shortened = truncate_line(line, _MAX_LINE_LENGTH)
        characters_left -= len(shortened) + 1
        if characters_left < 0:
            break
        selected.append(shortened)
    return selected


def _format_page(path: str, lines: list[str], first: int, shown_lines: list[str], notes: list[str]) -> str:
    last = first + len(shown_lines) - 1
    width = len(str(last))
    about = "".join(f"; {note}" for note in notes)
    head = f"{path}, {_format_span(first, last)} of {len(lines)}{about}:"
    body = [f"{number:>{width}}\t{line}" for number, line in enumerate(shown_lines, first)]
    rest = (
        [f"({format_count(len(lines) - last, 'more line')}; continue with start_line {last + 1})"]
        if last < len(lines)
        else []
    )
    return "\n".join([head, *body, *rest])


tool = _ReadFile()
