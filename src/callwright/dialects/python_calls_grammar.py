"""The grammar of Python call lists, with or without markers around them.

    <|tool_call_start|>[get_weather(city='Oslo', days=2), ping()]<|tool_call_end|>

`python_calls` has the data of the families.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from callwright.dialects.base import Dialect, end_incomplete_call, open_call
from callwright.dialects.call_object import read_json_calls as read_json_calls
from callwright.dialects.python_arguments import format_python_value, read_python_arguments, skip_python_arguments
from callwright.model import ToolCall
from callwright.text.boundaries import CallBoundary
from callwright.text.json_stream import escape_json
from callwright.text.lookahead import Lookahead
from callwright.text.python_stream import CallHead, PythonBoundary, build_argument_end_rule, peek_call
from callwright.text.source import MarkerSet, ParseStep, Source, compile_markers
from callwright.turn import Turn

__all__ = ["PythonCalls"]

_NAMESPACES = frozenset({"default_api", "functions"})
"""Modules in which models imagine their tools: Gemini's tool_code calls `default_api.NAME`."""


@dataclass(frozen=True, kw_only=True)
class PythonCalls(Dialect):
    """A family that writes Python calls between markers."""

    marker_pairs: tuple[tuple[str, str], ...]
    """Opening markers, each with its closing marker, or an empty string if the calls just end. The first is written."""
    list_frame: tuple[str, str, str] = ("[", ", ", "]")
    """The text before, between and after the calls."""
    literals: Literal["python", "json", "single"] = "python"
    """How values are written: as Python's literals, as JSON, or like LFM2 (single quotes; JSON for objects)."""
    name_suffix: str = ""
    """A suffix of the name that is not part of it."""

    @property
    def openers(self) -> tuple[str, ...]:
        return tuple(opener for opener, _ in self.marker_pairs)

    @property
    def markers(self) -> tuple[str, ...]:
        return (*self.openers, *dict.fromkeys(close for _, close in self.marker_pairs if close))

    # ── reading ────────────────────────────────────────────────────────────────────────────────

    def read_calls(self, source: Source, turn: Turn, opener: str) -> ParseStep[str]:
        close = dict(self.marker_pairs)[opener]
        bracketed = opener.endswith("[")
        char = yield from source.skip_space()
        if not bracketed and (char == "{" or (char == "[" and (yield from Lookahead(source, 1).skip_space()) == "{")):
            problem = yield from _read_json_list(source, turn)
            if close and not problem:
                yield from _read_closing_marker(source, turn, close, "missing_close")
        else:
            if not bracketed and char == "[":
                source.position += 1
                bracketed = True
            problem = yield from self._read_call_lists(source, turn, bracketed=bracketed, close=close)
        return problem

    def _read_call_lists(self, source: Source, turn: Turn, *, bracketed: bool, close: str) -> ParseStep[str]:
        """Read a list of calls, and further lists that follow it before the closing marker."""
        while True:
            problem, broken = yield from self._read_call_list(source, turn, bracketed=bracketed, close=close)
            if problem:
                return problem
            if bracketed:
                yield from _read_closing_marker(source, turn, "]", "" if broken else "missing_bracket")
            start = (yield from self._accept_list_start(source, turn, after_broken=broken)) if close or broken else ""
            if not start:
                break
            if not broken:
                turn.add_repair("extra_bracket", "unexpected ']' between calls")
            bracketed = start == "["
        if close and not (broken and (yield from source.peek_marker(self._line_openers))):
            yield from _read_closing_marker(source, turn, close, "" if broken else "missing_close")
        return ""

    def _accept_list_start(self, source: Source, turn: Turn, *, after_broken: bool) -> ParseStep[str]:
        """Consume and return what begins another list, if a call of a tool follows it: a bracket, or after a broken
        call an opener whose newline was consumed."""
        ahead = Lookahead(source)
        yield from ahead.skip_space()
        start = yield from ahead.accept(self._line_openers if after_broken else compile_markers("["))
        yield from ahead.skip_space()
        head = (yield from peek_call(source, ahead.offset)) if start else None
        if not head or not self._find_tool(turn, head.name):
            return ""
        source.position += ahead.offset
        return start

    @cached_property
    def _line_openers(self) -> MarkerSet:
        return compile_markers("[", *(marker.lstrip() for marker in self.openers if marker[0] != "<"))

    def _read_call_list(
        self, source: Source, turn: Turn, *, bracketed: bool, close: str
    ) -> ParseStep[tuple[str, bool]]:
        """Read consecutive calls. Return why there are none, or an empty string, and whether the last one is broken.

        Calls of unknown tools are reported as malformed if another tool is known.
        """
        enclosed = bracketed or bool(close)
        openers = (opener for opener in self.openers if opener.startswith("<"))
        after = (",", ";", "]" if bracketed else "\n", *self.framing, *openers, *([close] if close else []))
        problem, has_calls, more, broken = "", False, True, False
        if enclosed:
            yield from source.skip_space()
        while more and (head := (yield from peek_call(source))):
            if name := self._find_tool(turn, head.name):
                _report_malformed(source, turn, problem)
                problem, has_calls = "", True
                broken = not (yield from self._read_call(source, turn, name, head, after))
                if broken and not (yield from source.peek()):
                    return "", True
            elif broken:
                break
            else:
                problem = problem or f"unknown tool {head.name!r}"
                source.position += head.length
                yield from skip_python_arguments(source, *after)
            more = (yield from _skip_separator(source, enclosed=enclosed)) or enclosed
        if has_calls:
            _report_malformed(source, turn, problem)
            source.drop_capture()
            _drop_partial_name(source, turn)
        return "" if has_calls else problem or "no call of a tool follows", broken

    def _read_call(
        self, source: Source, turn: Turn, name: str, head: CallHead, after: tuple[str, ...]
    ) -> ParseStep[bool]:
        """Read the call that begins here. Return False if it is incomplete."""
        source.position += head.length
        arguments = open_call(source, turn, name)
        ends = build_argument_end_rule(*after, ")") if head.wrapper else build_argument_end_rule(*after)
        # LFM2's template puts strings between single quotes without escaping.
        unescaped = self.literals == "single"
        complete = yield from read_python_arguments(source, arguments, ends, unescaped_lines=unescaped)
        if complete:
            if head.wrapper:
                yield from source.accept(compile_markers(")"))
        else:
            yield from end_incomplete_call(source, turn, arguments)
            yield from source.accept(compile_markers(")"))
        source.start_capture()
        return complete

    def build_boundary(self, turn: Turn) -> CallBoundary:
        closers = tuple(marker for marker in self.markers if marker not in self.openers)
        tags = tuple(marker for marker in closers if marker[0] == "<")
        starts = tuple(marker for marker in self.openers if marker[0] == "<")
        return PythonBoundary(
            (*tags, *self.framing),
            starts,
            tuple(marker for marker in closers if marker not in tags),
            tuple(marker.lstrip() for marker in self.openers if marker not in starts),
            lambda name: bool(self._find_tool(turn, name)),
            # Without a marker after the calls, only their last bracket and the end of its line show their end.
            line_ends=() if all(close for _, close in self.marker_pairs) else (")]", ")"),
            line_calls=tuple(f"{name}{self.name_suffix}(" for name in turn.tools.names),
        )

    def _find_tool(self, turn: Turn, name: str) -> str:
        """Return the tool that a name means; empty if it is none."""
        namespace, _, last = name.rpartition(".")
        meant = [name.removesuffix(self.name_suffix), name, *([last] if namespace in _NAMESPACES else [])]
        return next((name for name in meant if turn.can_call(name)), "")

    # ── rendering ──────────────────────────────────────────────────────────────────────────────

    def render_call(self, *calls: ToolCall) -> str:
        before, between, after = self.list_frame
        body = between.join(self._render_one_call(call) for call in calls)
        opener, close = self.marker_pairs[0]
        return f"{opener}{before}{body}{after}{close}"

    def _render_one_call(self, call: ToolCall) -> str:
        members = ", ".join(f"{key}={self._format_value(value)}" for key, value in json.loads(call.arguments).items())
        return f"{call.name}{self.name_suffix}({members})"

    def _format_value(self, value: Any) -> str:
        if self.literals == "json" or (self.literals == "single" and isinstance(value, dict)):
            return json.dumps(value, ensure_ascii=False)
        if self.literals == "single" and isinstance(value, str):
            return "'" + escape_json(value).replace("'", "\\'") + "'"
        return format_python_value(value)


def _drop_partial_name(source: Source, turn: Turn) -> None:
    """Drop the name of a next call that the output ends in: it is not text."""
    rest = source.text[source.position :]
    if source.closed and rest and any(name.startswith(rest) for name in turn.tools.names):
        source.position = len(source.text)
        turn.add_malformed(rest, "cut")


def _report_malformed(source: Source, turn: Turn, problem: str) -> None:
    """Report the text between calls as malformed, if there is any."""
    if problem:
        turn.add_malformed(source.end_capture().strip(" ,;\n"), problem)


def _read_json_list(source: Source, turn: Turn) -> ParseStep[str]:
    """Read calls as JSON objects, in a list or one after the other."""
    problem = yield from read_json_calls(source, turn)
    while not problem and (sign := (yield from source.peek_marker(compile_markers(";", "{")))):
        yield from source.skip_space()
        if sign == ";":
            source.position += 1
            continue
        source.start_capture()
        _report_malformed(source, turn, (yield from read_json_calls(source, turn, skip_rejected=True)))
    return problem


def _skip_separator(source: Source, *, enclosed: bool) -> ParseStep[bool]:
    """Skip to where the next call may begin. Return whether there was a comma or a semicolon."""
    sign = yield from source.peek_marker(compile_markers(",", ";"))
    if sign or enclosed:
        yield from source.skip_space()
    if sign:
        source.position += 1
        yield from source.skip_space()
    return bool(sign)


def _read_closing_marker(source: Source, turn: Turn, close: str, missing: str) -> ParseStep[None]:
    """Consume the marker that closes the calls. If it is missing, record a repair of the kind `missing`, if any."""
    if not (yield from source.accept_next(compile_markers(close))) and missing and not turn.is_truncated:
        turn.add_repair(missing, f"{close!r} was missing after a call")
