"""Dialect: how one model family writes calls, reasoning and results as text, in both directions.

A dialect is a frozen value. `grammar` reads a turn. The grammar here serves every family whose calls begin with a
marker: it copies text, reads reasoning markup, and passes each opening marker to `read_calls`, which a family
implements. The `render_*` methods write what the family's own chat template would. Reading never raises on model
output: what is no call becomes text again.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

from callwright.arguments import ArgumentsWriter
from callwright.model import ToolCall, ToolResult, ToolSpec
from callwright.schema import Toolbox
from callwright.text.boundaries import CallBoundary
from callwright.text.closing_tags import skip_stray_closers
from callwright.text.source import MarkerSet, ParseStep, Source, TextSink, compile_markers
from callwright.turn import Turn

__all__ = [
    "FENCE",
    "THINK_TAGS",
    "Dialect",
    "ReasoningTags",
    "build_tool_schema",
    "end_incomplete_call",
    "format_raw_value",
    "open_call",
    "truncate_call",
]

FENCE = "```"
_TAG_STARTS = "<[]>"
_LINE_FENCE = "\n```"
_PLACEHOLDER = re.compile(r"\{(id|name|content)\}")


@dataclass(frozen=True)
class ReasoningTags:
    """The reasoning markup of one family. One newline inside each tag and two after it are framing."""

    open: str
    close: str


THINK_TAGS = ReasoningTags("<think>", "</think>")


@dataclass(frozen=True, kw_only=True)
class Dialect(ABC):
    """The interface that the registry, the law tests and the gateway use. Families subclass it."""

    raw_values: ClassVar[bool] = False
    """Whether values stand between tags without escaping, so that a few values cannot be distinguished from markup."""

    streams_strings: ClassVar[bool] = True
    """Whether string arguments stream. False only where the notation cannot be read in pieces."""

    late_ids: ClassVar[bool] = False
    """Whether the model's id of a call comes after its arguments, too late to use; recorded as `late_id`."""

    nested_format: ClassVar[Literal["json", "elements"]] = "json"
    """How lists and objects are written. Elements hold bare text: they cannot express null, and where a schema allows
    several types, the text decides."""

    name: str
    shape: str
    """The grammar shape: J1, J2, J3, X1, X2, X3, X4, P, G, B or auto."""
    models: str
    """The models that write it, for people."""
    source: str
    """Where the format is defined: the evidence for it."""
    reasoning_tags: tuple[ReasoningTags, ...] = (THINK_TAGS,)
    word_markers: frozenset[str] = frozenset()
    """Reasoning tags that are ordinary words: they count only before any other output."""
    framing: tuple[str, ...] = ()
    """Markers around text that are not part of it: answer tags, end-of-turn tokens."""
    tokens: frozenset[str] = frozenset()
    """Markers that are single vocabulary tokens: a server must not strip them, and token hints protect them."""
    text_tags: bool = False
    """Whether the tags are plain text that people write about: fenced and back-quoted ones are not calls."""
    quotable: bool = False
    """Whether fenced and back-quoted calls are examples here too; any other unreadable call is reported."""
    result_template: str = "<tool_response>\n{content}\n</tool_response>"
    """How a tool's result is shown to the model; {id}, {name} and {content} are filled in."""
    parsers: tuple[str, ...] = ()
    """The names of the parsers for this dialect in vLLM and SGLang (`--tool-call-parser`)."""
    patterns: tuple[str, ...] = ()
    """Names of models that write it: shell patterns, matched without regard to case."""

    # ── reading ────────────────────────────────────────────────────────────────────────────────

    @property
    @abstractmethod
    def openers(self) -> tuple[str, ...]:
        """The markers that begin calls."""

    @property
    def markers(self) -> tuple[str, ...]:
        """Every structural marker of the dialect: none of them appears in the text of a well-formed turn."""
        return self.openers

    @property
    def closers(self) -> tuple[str, ...]:
        """The markers that end a call with a JSON body, wherever they stand outside of a string."""
        return ()

    @property
    def last_brackets(self) -> int:
        """How many brackets end a call, in a family whose calls have no other end; otherwise 0."""
        return 0

    @property
    def line_openers(self) -> tuple[str, ...]:
        """What begins a call on a new line, besides the openers."""
        return ()

    @property
    def frame_indicators(self) -> tuple[str, ...]:
        """Markers that show that a text is a turn in this family's frame; empty if only calls and reasoning have
        markup.

        A family that frames all its output is also read in requests without tools.
        """
        return ()

    @property
    def reasoning_prefill(self) -> str:
        """The text before reasoning in a family that frames all its output. Servers whose own parser fails return the
        rest of a turn, with its frame, as reasoning."""
        return ""

    def list_openers(self, tools: Toolbox) -> tuple[str, ...]:
        """Return the markers that begin calls of these tools. They differ from `openers` where a tool's name is the
        tag."""
        return self.openers

    def list_markers(self, tools: Toolbox) -> tuple[str, ...]:
        """Return every structural marker of calls of these tools."""
        return self.markers

    @property
    def body_starts(self) -> tuple[str, ...]:
        """What may follow an opener after white space; empty if anything may. `auto` uses it to choose a family."""
        return ()

    def resolve_tool_name(self, name: str, tools: Toolbox) -> str:
        """Return the tool that a name with this family's prefixes or suffixes means; empty if that is none."""
        return ""

    @abstractmethod
    def read_calls(self, source: Source, turn: Turn, opener: str) -> ParseStep[str]:
        """Read the calls after an opener. Return an empty string, or the reason why this is no call.

        In the second case no event may have been written; the caller emits the consumed text as text.
        """

    def grammar(self, source: Source, turn: Turn) -> ParseStep[None]:
        """Read a complete turn."""
        yield from self._read_answer_start(source, turn)
        marks = self._build_marks(turn.tools)
        while (marker := (yield from source.copy_until(marks, turn.add_text))) is not None:
            if marker in self.word_markers and not turn.is_empty:
                turn.add_text(marker)
            elif marker in self._reasoning_closers:
                yield from self._read_reasoning(source, turn, self._reasoning_closers[marker])
                yield from self._read_answer_start(source, turn)
            elif marker in self._silent_markers:
                yield from self._drop_marker(source, turn, marker)
                if marker not in self.framing:
                    yield from self._read_answer_start(source, turn)
            elif marker == _LINE_FENCE:
                yield from self._read_fenced_block(source, turn, marker)
            elif marker[0] == "`":
                yield from self._copy_inline_code(source, marker, turn.add_text)
            else:
                yield from self.try_read_calls(source, turn, marker, turn.add_text)

    def _read_answer_start(self, source: Source, turn: Turn) -> ParseStep[None]:
        """Read the forms that count only where an answer begins: at the start, and after reasoning."""
        if (self.text_tags or self.quotable) and (yield from source.accept(compile_markers(FENCE))):
            yield from self._read_fenced_block(source, turn, FENCE)

    @cached_property
    def _reasoning_closers(self) -> dict[str, str]:
        return {think.open: think.close for think in self.reasoning_tags}

    @cached_property
    def _silent_markers(self) -> frozenset[str]:
        return frozenset((*self.framing, *(think.close for think in self.reasoning_tags)))

    def _build_marks(self, tools: Toolbox) -> MarkerSet:
        markers = (*self._reasoning_closers, *self._silent_markers, *self.list_openers(tools))
        quoted = (_LINE_FENCE, *(f"`{marker}" for marker in markers)) if self.text_tags or self.quotable else ()
        return compile_markers(*markers, *quoted)

    def _drop_marker(self, source: Source, turn: Turn, marker: str) -> ParseStep[None]:
        """Drop a marker that is not text; record a closing reasoning tag without an opening one."""
        if marker not in self.framing:
            turn.add_repair("stray_marker", f"{marker} had no opening tag")
            yield from source.skip_newlines(2)

    def _copy_inline_code(self, source: Source, marker: str, emit: TextSink) -> ParseStep[None]:
        """Copy inline code as text: up to the second back-quote, or to the end of the paragraph if that is missing."""
        emit(marker)
        emit((yield from source.copy_until(compile_markers("`", "\n\n"), emit)) or "")

    def _read_fenced_block(self, source: Source, turn: Turn, fence: str) -> ParseStep[None]:
        """Read a fenced block as text, whatever it contains."""
        turn.add_text(fence)
        if (yield from source.copy_until(compile_markers(_LINE_FENCE), turn.add_text)):
            turn.add_text(_LINE_FENCE)

    def _read_reasoning(self, source: Source, turn: Turn, close: str) -> ParseStep[None]:
        """Read reasoning up to its closing tag. A call inside ends it too; text that only mentions call markup does
        not."""
        yield from source.skip_newlines(1)
        while tag := (yield from source.accept(compile_markers(*(think.open for think in self.reasoning_tags)))):
            turn.add_repair("stray_marker", f"{tag} was already open")
            yield from source.skip_newlines(1)
        ended = yield from self._copy_reasoning(source, turn, (f"\n{close}", close))
        if ended:
            yield from source.skip_newlines(2)
        elif ended is not None:
            turn.add_repair("call_in_reasoning", f"a call began before {close}")

    def _copy_reasoning(self, source: Source, turn: Turn, closers: tuple[str, ...]) -> ParseStep[str | None]:
        """Copy reasoning up to the first closer and return it; an empty string after a call, None at the end."""
        marks = compile_markers(*closers, *self.list_openers(turn.tools))
        while (marker := (yield from source.copy_until(marks, turn.add_reasoning))) is not None:
            if marker in closers:
                return marker
            if (yield from self.try_read_calls(source, turn, marker, turn.add_reasoning)):
                return ""
        return None

    def try_read_calls(self, source: Source, turn: Turn, opener: str, emit: TextSink) -> ParseStep[bool]:
        """Read calls after an opener, or emit the consumed text. Return whether there were calls."""
        source.start_capture()
        source.boundary = self.build_boundary(turn)
        problem = yield from self.read_calls(source, turn, opener)
        source.boundary = None
        if problem:
            self.reject_calls(source, turn, opener, problem, emit)
            return False
        if self.closers:
            for tag in (yield from skip_stray_closers(source, self.closers, self.openers)):
                if tag not in self.framing:
                    turn.add_repair("stray_marker", f"{tag} closed nothing")
        yield from self.drop_partial_marker(source, turn)
        return True

    def build_boundary(self, turn: Turn) -> CallBoundary | None:
        """Return where a call that is not finished must have ended; None if no marker of the family says so."""
        openers = self.list_openers(turn.tools) if len(turn.tools) else ()
        if not (self.closers or openers):
            return None
        # Tags and tokens end a call anywhere; fences and words only on a line of their own.
        closers = tuple(marker for marker in self.closers if marker[0] in _TAG_STARTS)
        starts = tuple(marker for marker in openers if marker[0] in _TAG_STARTS)
        lines = tuple(marker for marker in self.closers if marker not in closers)
        others = (*(marker.lstrip() for marker in openers if marker not in starts), *self.line_openers)
        return CallBoundary(closers, starts, lines, others, turn.tools.__contains__, self.last_brackets)

    def reject_calls(self, source: Source, turn: Turn, opener: str, problem: str, emit: TextSink) -> None:
        """Emit the opener and the captured text as text, or record them as truncated if the output ended inside
        them."""
        raw = opener + source.end_capture()
        rest = source.text[source.position :]
        alone = turn.is_after_call and not (raw + rest)[len(opener) :].strip()
        if source.closed and (alone or self.is_truncated_call(turn, opener, raw + rest)):
            source.position = len(source.text)
            turn.add_truncated(raw + rest)
            return
        emit(raw)
        if self.should_report_malformed(turn, opener, raw):
            turn.add_malformed(raw, problem, shown=True)

    def should_report_malformed(self, turn: Turn, opener: str, raw: str) -> bool:
        """Whether rejected text is reported as malformed. People write about tags; other markers only models write."""
        return not self.text_tags

    def is_truncated_call(self, turn: Turn, opener: str, raw: str) -> bool:
        """Whether a text that the output ended in is the beginning of a call of a known tool, white space aside.

        An opener alone counts, but not where people write about it.
        """
        compact = _remove_whitespace(raw)
        if self.text_tags and compact == _remove_whitespace(opener):
            return False
        samples = (self.render_call(self.build_sample_call(tool.name, tool.sample_arguments)) for tool in turn.tools)
        return any(_remove_whitespace(sample).startswith(compact) for sample in samples)

    def drop_partial_marker(self, source: Source, turn: Turn) -> ParseStep[None]:
        """Drop the beginning of a marker that the end of the output cut off directly after a call."""
        tags = compile_markers(*self.list_markers(turn.tools), *self._reasoning_closers, *self._silent_markers)
        if (yield from source.is_truncated_inside(tags)):
            turn.add_repair("cut_marker", f"the output ended inside a marker: {source.take_rest().strip()}")

    @property
    def call_prefill(self) -> str:
        """What the family's prompt contains before a call that `render_call` rendered; usually nothing."""
        return ""

    def make_call_id(self, name: str, index: int) -> str:
        """Return an id in the form that this family's models write, for the call at `index` of a turn."""
        return f"call_{index + 1}"

    # ── rendering ──────────────────────────────────────────────────────────────────────────────

    @abstractmethod
    def render_call(self, *calls: ToolCall) -> str:
        """Render the calls of one turn as the model would write them."""

    def render_text(self, text: str) -> str:
        """Render text before calls as the model would write it; most families write it unchanged."""
        return text

    def build_sample_call(self, name: str, arguments: dict[str, Any]) -> ToolCall:
        """Build a call with an id in this family's form."""
        return ToolCall(self.make_call_id(name, 0), name, json.dumps(arguments, ensure_ascii=False))

    def render_result(self, result: ToolResult) -> str:
        """Render a tool's result as the model expects to see it."""
        values = {"id": result.call_id, "name": result.name, "content": result.content}
        return _PLACEHOLDER.sub(lambda match: values[match.group(1)], self.result_template)

    def render_tools(self, tools: Sequence[ToolSpec]) -> str:
        """Render the tools and this dialect's call format as text for a system prompt."""
        listed = "\n".join(json.dumps(build_tool_schema(tool), ensure_ascii=False) for tool in tools)
        return f"You can call these tools:\n{listed}\n\n{self.describe_call_format()}"

    def describe_call_format(self) -> str:
        """Render this dialect's call format alone, for prompts that list the tools in another form."""
        example = self.render_call(self.build_sample_call("TOOL_NAME", {"PARAMETER": "value"}))
        return f"To call one, write exactly this form:\n{example}"


def _remove_whitespace(text: str) -> str:
    return "".join(text.split())


def format_raw_value(value: Any) -> str:
    """Format a value as tag dialects write it: strings unchanged, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def build_tool_schema(tool: ToolSpec) -> dict[str, object]:
    """Return a tool as the JSON object that chat templates print."""
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def open_call(source: Source, turn: Turn, name: str, call_id: str = "") -> ArgumentsWriter:
    """Open a call and discard the captured text, which is now known to be a call."""
    source.drop_capture()
    return ArgumentsWriter(turn.start_call(name, call_id))


def truncate_call(source: Source, turn: Turn, arguments: ArgumentsWriter) -> ParseStep[str]:
    """End a call that is truncated or broken. Record the text captured since `start_capture`, or report it as
    malformed."""
    raw = source.end_capture()
    ended = not (yield from source.peek())
    if ended or source.may_be_cut:
        arguments.call.end_truncated(raw if ended else "")
    else:
        arguments.call.end_broken()
    if raw and not ended:
        turn.add_malformed(raw, "the arguments are broken")
    return ""


def end_incomplete_call(source: Source, turn: Turn, arguments: ArgumentsWriter) -> ParseStep[None]:
    """End a call that is incomplete. If text follows, only this call is broken, and the captured text is reported."""
    if not (yield from source.peek()):
        yield from truncate_call(source, turn, arguments)
        return
    raw = source.end_capture()
    arguments.call.end_broken()
    if raw.strip():
        turn.add_malformed(raw.strip(), "the arguments are broken")
