"""Dialect: how one model family writes calls, reasoning and results as text, in both directions.

A dialect is a frozen value. `grammar` reads a turn; the one here serves every family whose calls
begin with a marker: it copies text, follows reasoning markup, and hands each opening marker to
`read_calls`, the part that a family writes itself. `render_*` write what the family's own chat
template would. Reading never raises on model output: what is no call goes back to being text.
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
from callwright.text.source import MarkerSet, ParseStep, Source, TextSink, compile_markers
from callwright.turn import Turn

__all__ = [
    "FENCE",
    "THINK_TAGS",
    "Dialect",
    "ReasoningTags",
    "build_tool_schema",
    "format_raw_value",
    "open_call",
    "truncate_call",
]

FENCE = "```"
_LINE_FENCE = "\n```"
_PLACEHOLDER = re.compile(r"\{(id|name|content)\}")


@dataclass(frozen=True)
class ReasoningTags:
    """One family's reasoning markup. One newline inside each tag and two after it are framing."""

    open: str
    close: str


THINK_TAGS = ReasoningTags("<think>", "</think>")


@dataclass(frozen=True, kw_only=True)
class Dialect(ABC):
    """What the registry, the laws and the gateway know of a dialect. Families subclass it."""

    raw_values: ClassVar[bool] = False
    """Values stand between tags without escaping, so that a few values cannot be told from markup."""

    streams_strings: ClassVar[bool] = True
    """String arguments go out while they are written. False only where the notation cannot be read in pieces."""

    late_ids: ClassVar[bool] = False
    """The model's id of a call comes after its arguments, too late to keep: each is noted as `late_id`."""

    nested_format: ClassVar[Literal["json", "elements"]] = "json"
    """How lists and objects are written. As elements, whose leaves are bare text, null cannot be written, and where
    a schema allows several types it is the text that decides."""

    name: str
    shape: str
    """The grammar shape: J1, J2, J3, X1, X2, X3, X4, P, G, B or auto."""
    models: str
    """Who writes it, for people."""
    source: str
    """Where the format is defined: the claim's evidence."""
    reasoning_tags: tuple[ReasoningTags, ...] = (THINK_TAGS,)
    word_markers: frozenset[str] = frozenset()
    """Reasoning tags that are ordinary words: they count only before anything else was said."""
    framing: tuple[str, ...] = ()
    """Markers that wrap text and are not part of it: answer tags, end-of-turn tokens."""
    tokens: frozenset[str] = frozenset()
    """Markers that are single vocabulary tokens: a server must not strip them, and hints protect them."""
    text_tags: bool = False
    """The tags are plain text that people write about: fenced and back-quoted ones are no calls."""
    quotable: bool = False
    """Fenced and back-quoted calls are examples here too; any other that cannot be read is worth a report."""
    result_template: str = "<tool_response>\n{content}\n</tool_response>"
    """How a tool's result is shown to the model; {id}, {name} and {content} are filled in."""
    parsers: tuple[str, ...] = ()
    """Names that vLLM and SGLang give to their parser of this dialect (`--tool-call-parser`)."""
    patterns: tuple[str, ...] = ()
    """Model names written in it: shell patterns, matched case-blind."""

    # ── reading ────────────────────────────────────────────────────────────────────────────────

    @property
    @abstractmethod
    def openers(self) -> tuple[str, ...]:
        """The markers that begin calls."""

    @property
    def markers(self) -> tuple[str, ...]:
        """Every marker of the dialect's structure: none of them shows in the text of a well-formed turn."""
        return self.openers

    @property
    def frame_indicators(self) -> tuple[str, ...]:
        """What shows that a text is a turn in this family's frame; empty where only calls and thoughts are marked up.

        A family that frames all that is said is read also where no tools are offered.
        """
        return ()

    @property
    def reasoning_prefill(self) -> str:
        """What stands before reasoning in a family that frames all that is said: servers whose own reader fails give
        the rest of a turn as reasoning, frame and all."""
        return ""

    def list_openers(self, tools: Toolbox) -> tuple[str, ...]:
        """The markers that begin calls of these tools: others than `openers` where a tool's name is the tag."""
        return self.openers

    def list_markers(self, tools: Toolbox) -> tuple[str, ...]:
        """Every marker of the structure of calls of these tools."""
        return self.markers

    @property
    def body_starts(self) -> tuple[str, ...]:
        """What may follow an opener after white space; empty when anything may. Lets `auto` choose."""
        return ()

    def resolve_tool_name(self, name: str, tools: Toolbox) -> str:
        """The offered tool that a name means with what this family leaves on it; empty where that shows none."""
        return ""

    @abstractmethod
    def read_calls(self, source: Source, turn: Turn, opener: str) -> ParseStep[str]:
        """Read the calls after an opener. Returns the empty string, or why this is no call.

        In the second case nothing may have been said; the caller shows what was consumed as text.
        """

    def grammar(self, source: Source, turn: Turn) -> ParseStep[None]:
        """Read a whole turn."""
        yield from self._read_answer_start(source, turn)
        listen = self._build_marks(turn.tools)
        while (marker := (yield from source.copy_until(listen, turn.add_text))) is not None:
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
        """Read what counts only where an answer begins: at the start, and after reasoning."""
        if (self.text_tags or self.quotable) and (yield from source.accept(compile_markers(FENCE))):
            yield from self._read_fenced_block(source, turn, FENCE)

    @cached_property
    def _reasoning_closers(self) -> dict[str, str]:
        return {think.open: think.close for think in self.reasoning_tags}

    @cached_property
    def _silent_markers(self) -> frozenset[str]:
        return frozenset((*self.framing, *(think.close for think in self.reasoning_tags)))

    def _build_marks(self, tools: Toolbox) -> MarkerSet:
        listen = (*self._reasoning_closers, *self._silent_markers, *self.list_openers(tools))
        quoted = (_LINE_FENCE, *(f"`{marker}" for marker in listen)) if self.text_tags or self.quotable else ()
        return compile_markers(*listen, *quoted)

    def _drop_marker(self, source: Source, turn: Turn, marker: str) -> ParseStep[None]:
        """A marker that is not text; a closing reasoning tag that nothing opened is worth a note."""
        if marker not in self.framing:
            turn.add_repair("stray_marker", f"{marker} closed nothing")
            yield from source.skip_newlines(2)

    def _copy_inline_code(self, source: Source, marker: str, emit: TextSink) -> ParseStep[None]:
        """What stands between back-quotes is text, up to the end of the paragraph if the second one is missing."""
        emit(marker)
        emit((yield from source.copy_until(compile_markers("`", "\n\n"), emit)) or "")

    def _read_fenced_block(self, source: Source, turn: Turn, fence: str) -> ParseStep[None]:
        """A fenced block is text, whatever stands in it."""
        turn.add_text(fence)
        if (yield from source.copy_until(compile_markers(_LINE_FENCE), turn.add_text)):
            turn.add_text(_LINE_FENCE)

    def _read_reasoning(self, source: Source, turn: Turn, close: str) -> ParseStep[None]:
        """Reasoning up to its closer. A call inside ends it too; a mention of a call's markup does not."""
        yield from source.skip_newlines(1)
        while again := (yield from source.accept(compile_markers(*(think.open for think in self.reasoning_tags)))):
            turn.add_repair("stray_marker", f"{again} was open already")
            yield from source.skip_newlines(1)
        ended = yield from self._copy_reasoning(source, turn, (f"\n{close}", close))
        if ended:
            yield from source.skip_newlines(2)
        elif ended is not None:
            turn.add_repair("call_in_reasoning", f"a call began before {close}")

    def _copy_reasoning(self, source: Source, turn: Turn, closers: tuple[str, ...]) -> ParseStep[str | None]:
        """Copy reasoning to the first closer and return it; the empty string after a call, None at the end."""
        listen = compile_markers(*closers, *self.list_openers(turn.tools))
        while (marker := (yield from source.copy_until(listen, turn.add_reasoning))) is not None:
            if marker in closers:
                return marker
            if (yield from self.try_read_calls(source, turn, marker, turn.add_reasoning)):
                return ""
        return None

    def try_read_calls(self, source: Source, turn: Turn, opener: str, emit: TextSink) -> ParseStep[bool]:
        """Read calls after an opener, or show what was consumed as what it stood in."""
        source.start_capture()
        problem = yield from self.read_calls(source, turn, opener)
        if problem:
            self.reject_calls(source, turn, opener, problem, emit)
            return False
        yield from self.drop_partial_marker(source, turn)
        return True

    def reject_calls(self, source: Source, turn: Turn, opener: str, problem: str, emit: TextSink) -> None:
        """Show what is no call, the opener and what was kept, as text; set it aside if the output ended inside it."""
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
        """Whether a text that is no call is worth telling of. People write tags; other markers are a model's."""
        return not self.text_tags

    def is_truncated_call(self, turn: Turn, opener: str, raw: str) -> bool:
        """Whether a text that the output ended in is the beginning of a call of an offered tool, white space aside.

        An opener alone is, but not where people write about it.
        """
        begun = _remove_whitespace(raw)
        if self.text_tags and begun == _remove_whitespace(opener):
            return False
        samples = (self.render_call(self.build_sample_call(tool.name, tool.sample_arguments)) for tool in turn.tools)
        return any(_remove_whitespace(sample).startswith(begun) for sample in samples)

    def drop_partial_marker(self, source: Source, turn: Turn) -> ParseStep[None]:
        """Directly after a call, the beginning of a marker that the end of the output cut off is no text."""
        tags = compile_markers(*self.list_markers(turn.tools), *self._reasoning_closers, *self._silent_markers)
        if (yield from source.is_truncated_inside(tags)):
            turn.add_repair("cut_marker", f"the output ended inside a marker: {source.take_rest().strip()}")

    @property
    def call_prefill(self) -> str:
        """What the family's prompt has written before a call that `render_call` rendered; mostly nothing."""
        return ""

    def make_call_id(self, name: str, index: int) -> str:
        """An id of the form that this family's models write, for the call at `index` of a turn."""
        return f"call_{index + 1}"

    # ── rendering ──────────────────────────────────────────────────────────────────────────────

    @abstractmethod
    def render_call(self, *calls: ToolCall) -> str:
        """One turn's calls as the model would write them."""

    def render_text(self, text: str) -> str:
        """Text before calls as the model would write it; most families write it as it is."""
        return text

    def build_sample_call(self, name: str, arguments: dict[str, Any]) -> ToolCall:
        """A call with an id of this family's form."""
        return ToolCall(self.make_call_id(name, 0), name, json.dumps(arguments, ensure_ascii=False))

    def render_result(self, result: ToolResult) -> str:
        """A tool's result as the model expects to see it."""
        values = {"id": result.call_id, "name": result.name, "content": result.content}
        return _PLACEHOLDER.sub(lambda hit: values[hit.group(1)], self.result_template)

    def render_tools(self, tools: Sequence[ToolSpec]) -> str:
        """The tools and this dialect's way of calling them, as text for a system prompt."""
        listed = "\n".join(json.dumps(build_tool_schema(tool), ensure_ascii=False) for tool in tools)
        return f"You can call these tools:\n{listed}\n\n{self.describe_call_format()}"

    def describe_call_format(self) -> str:
        """This dialect's way of calling alone, for prompts that list the tools in another form."""
        example = self.render_call(self.build_sample_call("TOOL_NAME", {"PARAMETER": "value"}))
        return f"To call one, write exactly this form:\n{example}"


def _remove_whitespace(text: str) -> str:
    return "".join(text.split())


def format_raw_value(value: Any) -> str:
    """A value as tag dialects write it: strings as they are, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def build_tool_schema(tool: ToolSpec) -> dict[str, object]:
    """A tool as the JSON object that chat templates print."""
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def open_call(source: Source, turn: Turn, name: str, call_id: str = "") -> ArgumentsWriter:
    """It is a call: open it, and stop keeping its text."""
    source.drop_capture()
    return ArgumentsWriter(turn.start_call(name, call_id))


def truncate_call(source: Source, turn: Turn, arguments: ArgumentsWriter) -> ParseStep[str]:
    """The call ends or breaks here: it is cut. What was consumed in vain since `keep` is noted or set aside."""
    raw = source.end_capture()
    ended = not (yield from source.peek())
    arguments.call.end_truncated(raw if ended else "")
    if raw and not ended:
        turn.add_malformed(raw, "the arguments are broken")
    return ""
