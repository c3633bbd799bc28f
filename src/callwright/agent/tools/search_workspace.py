"""`search_workspace`: finds every line in all files that contains a text or matches a pattern.

All files are searched, however many match: the total is exact, and only the displayed part is limited. Protected files
are skipped unless the call names one, which needs approval.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated

import msgspec

from callwright.agent.tools.base import ToolArguments, ToolContext
from callwright.agent.tools.file_text import decode_file, is_binary, split_text_lines
from callwright.agent.tools.path_match import compile_glob, suggest_paths
from callwright.agent.tools.safe_regex import compile_pattern, escape_literal
from callwright.agent.tools.signature import ToolSignature
from callwright.agent.tools.text_format import format_count
from callwright.errors import ToolError

__all__ = ["tool"]

_MAX_SHOWN_MATCHES = 100
_MAX_CHARACTERS = 32 * 1024
_MAX_LINE_WIDTH = 240
_MAX_FILE_BYTES = 4 * 1024 * 1024
_TIMEOUT_S = 30.0


class _SearchArguments(msgspec.Struct, frozen=True, kw_only=True):
    """Search all files of the workspace for a text or a regular expression. Returns path:line: text."""

    query: Annotated[
        str, msgspec.Meta(description="What to search for; plain text unless regex is true.", examples=["def main"])
    ]
    regex: Annotated[bool, msgspec.Meta(description="The query is a regular expression.")] = False
    path: Annotated[str, msgspec.Meta(description="Search only in this folder or file.")] = "."
    glob: Annotated[str, msgspec.Meta(description="Search only files that match, such as *.py.")] = ""
    match_case: Annotated[bool, msgspec.Meta(description="Match upper and lower case exactly.")] = False
    context: Annotated[int, msgspec.Meta(description="How many lines to show around each match.", ge=0, le=10)] = 0


class _SearchResults:
    """The results of a search, of which some are displayed."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.matches = self.files = self.searched = self.large = self.protected = 0
        self.shown_matches = 0
        self.is_timed_out = False
        self._characters_left = _MAX_CHARACTERS

    def add_lines(self, lines: Iterable[tuple[str, bool]]) -> None:
        """Add lines to the displayed part while the limits allow. The flag of each tells whether it is a match."""
        for line, is_match in lines:
            self._characters_left -= len(line) + 1
            if self.shown_matches == _MAX_SHOWN_MATCHES or self._characters_left < 0:
                return
            self.lines.append(line)
            self.shown_matches += is_match


class _SearchWorkspace:
    signature = ToolSignature("search_workspace", _SearchArguments)
    spec = signature.spec

    def describe_call(self, arguments: ToolArguments) -> str:
        return self.signature.describe_call(arguments, _describe_call)

    def list_paths(self, arguments: ToolArguments) -> tuple[str, ...]:
        parsed = self.signature.try_parse(arguments)
        return () if parsed is None else (parsed.path or ".",)

    async def read(self, arguments: ToolArguments, context: ToolContext) -> str:
        parsed = self.signature.parse(arguments)
        if not parsed.query:
            raise ToolError("search_workspace needs a `query` that is not empty.")
        if "\n" in parsed.query.rstrip("\n") and not parsed.regex:
            raise ToolError("search_workspace matches single lines: search for one line of the text.")
        return await asyncio.to_thread(_search_files, parsed, context)


def _describe_call(parsed: _SearchArguments) -> str:
    scope = "" if parsed.path in {"", "."} else f" in {parsed.path}"
    return f"Search for {parsed.query!r}{scope}{f' in {parsed.glob}' if parsed.glob else ''}"


def _search_files(parsed: _SearchArguments, context: ToolContext) -> str:
    pattern = parsed.query if parsed.regex else escape_literal(parsed.query.rstrip("\r\n"))
    matches = compile_pattern(pattern, match_case=parsed.match_case)
    tally = _SearchResults()
    until = time.monotonic() + _TIMEOUT_S
    for path in _iter_files(parsed, context, tally):
        if time.monotonic() > until:
            tally.is_timed_out = True
            break
        _search_file(path, context, matches, parsed.context, tally)
    return _format_results(parsed, tally)


def _iter_files(parsed: _SearchArguments, context: ToolContext, tally: _SearchResults) -> Iterator[str]:
    """Yield the files to search, by name."""
    path = parsed.path or "."
    match context.workspace.get_kind(path):
        case "file":
            yield context.workspace.resolve_path(path)
            return
        case "folder":
            folder = context.workspace.resolve_path(path)
        case _:
            raise ToolError(
                f"there is no folder or file {path!r}.{suggest_paths(path, context.workspace.iter_files())}"
            )
    fits = compile_glob(parsed.glob)
    inside = "" if folder == "." else f"{folder}/"
    for name in context.workspace.iter_files(folder):
        if not (fits(name) or fits(name.removeprefix(inside))):
            continue
        if context.is_protected(name):
            tally.protected += 1
        else:
            yield name


def _search_file(
    path: str, tool_context: ToolContext, matches: Callable[[str], bool], context: int, tally: _SearchResults
) -> None:
    try:
        data = tool_context.workspace.read_file(path, _MAX_FILE_BYTES)
    except ToolError:  # too large, or deleted since it was listed
        tally.large += 1
        return
    if is_binary(data):
        return
    tally.searched += 1
    lines = split_text_lines(decode_file(data)[0])
    found = [at for at, line in enumerate(lines) if matches(line)]
    if not found:
        return
    tally.files += 1
    tally.matches += len(found)
    tally.add_lines(_iter_excerpts(path, lines, found[:_MAX_SHOWN_MATCHES], context, matches))


def _iter_excerpts(
    path: str, lines: list[str], found: list[int], context: int, matches: Callable[[str], bool]
) -> Iterator[tuple[str, bool]]:
    """Yield matches as `path:line: text`, context as `path-line- text`, and `--` where lines are omitted."""
    hits = set(found)
    last = -1
    for at in sorted({near for hit in found for near in range(hit - context, hit + context + 1)}):
        if not 0 <= at < len(lines):
            continue
        if context and last >= 0 and at > last + 1:
            yield "--", False
        last = at
        sign = ":" if at in hits else "-"
        yield f"{path}{sign}{at + 1}{sign} {_shorten_line(lines[at], matches)}", at in hits


def _shorten_line(line: str, matches: Callable[[str], bool]) -> str:
    """Shorten a line around its match, whose end is found by the shortest prefix that matches."""
    if len(line) <= _MAX_LINE_WIDTH:
        return line
    end = bisect_left(range(len(line)), True, key=lambda length: matches(line[:length]))
    start = max(min(end + _MAX_LINE_WIDTH // 4, len(line)) - _MAX_LINE_WIDTH, 0)
    stop = start + _MAX_LINE_WIDTH
    return f"{'…' if start else ''}{line[start:stop]}{'…' if stop < len(line) else ''}"


def _format_results(parsed: _SearchArguments, tally: _SearchResults) -> str:
    left = [
        *([f"{format_count(tally.protected, 'protected file')} left out"] if tally.protected else []),
        *([f"{format_count(tally.large, 'file')} too large or unreadable"] if tally.large else []),
        *([f"the search was stopped after {_TIMEOUT_S:.0f} seconds"] if tally.is_timed_out else []),
    ]
    notes = "".join(f"; {note}" for note in left)
    searched = format_count(tally.searched, "file")
    if not tally.matches:
        kind = "matches the pattern" if parsed.regex else "has the text"
        hint = "" if parsed.regex else " For a regular expression set regex to true."
        return f"No line {kind} {parsed.query!r}; {searched} searched{notes}.{hint}"
    head = f"{format_count(tally.matches, 'matching line')} in {tally.files} of {searched}{notes}"
    if tally.shown_matches < tally.matches:
        head += f". The first {tally.shown_matches} are shown; narrow the search with path or glob"
    return "\n".join([f"{head}:", *tally.lines])


tool = _SearchWorkspace()
