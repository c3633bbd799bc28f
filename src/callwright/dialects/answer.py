"""answer: an answer that a server holds to a JSON schema, so that it is one object and nothing else.

    {"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}
    {"answer": "It is sunny in Oslo."}

The second is words: what stands in the string is text, and streams while it is written. Not in the table of dialects:
no model writes this by itself, and where nobody asked for it such an object is the answer. A server that does not keep
to the schema is read as if it had been asked for bare JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from callwright.dialects.bare_json import BareJson
from callwright.model import ToolSpec
from callwright.text.json_stream import copy_string
from callwright.text.source import ParseStep, Source, TextSink, ignore
from callwright.turn import Turn

__all__ = ["ANSWER", "ANSWER_KEY", "AnswerJson"]

ANSWER_KEY = "answer"
_ANSWER_START = re.compile(rf'\s*\{{\s*"{ANSWER_KEY}"\s*:\s*"').match
_UNDECIDED_START = re.compile(
    r"\s*(?:\{\s*(?:" + "|".join([f'"{ANSWER_KEY[:length]}' for length in range(len(ANSWER_KEY) + 1)])
    + rf'|"{ANSWER_KEY}"\s*(?::\s*)?)?)?\Z'
).match  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class AnswerJson(BareJson):
    """One object: a call, or words."""

    def grammar(self, source: Source, turn: Turn) -> ParseStep[None]:
        while not source.closed and _UNDECIDED_START(source.text, source.position):
            yield
        if found := _ANSWER_START(source.text, source.position):
            source.position = found.end()
            words = _JsonUnescaper(turn.add_text)
            yield from copy_string(source, words.write, ignore)
            words.finish()
            # The object's end; whatever else follows is not among the forms of an answer.
            if (yield from source.skip_space()) == "}":
                source.position += 1
        yield from super().grammar(source, turn)

    def render_text(self, text: str) -> str:
        return json.dumps({ANSWER_KEY: text}, ensure_ascii=False)

    def render_tools(self, tools: Sequence[ToolSpec]) -> str:
        lesson = super().render_tools(tools)
        return f"{lesson}\n\nTo answer without calling a tool, write exactly this form:\n{self.render_text('...')}"


class _JsonUnescaper:
    """Pieces of a JSON string, decoded. Half of a surrogate pair waits for the other."""

    def __init__(self, emit: TextSink) -> None:
        self._emit = emit
        self._half = ""

    def write(self, piece: str) -> None:
        whole, self._half = self._half + piece, ""
        text = json.loads(f'"{whole}"')
        if "\ud800" <= text[-1:] <= "\udbff":
            self._half = whole
        else:
            self._emit(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))

    def finish(self) -> None:
        if self._half:
            self._emit("\ufffd")


ANSWER = AnswerJson(
    name="answer",
    shape="B",
    models="any model whose server holds answers to a JSON schema",
    source="callwright.grammar.constraint_builder",
    opens=(),
    text_tags=True,
    result_template="{content}",
)
