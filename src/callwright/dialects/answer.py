"""answer: an answer that a server constrains to a JSON schema, so that it is one object and nothing else.

    {"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}
    {"answer": "It is sunny in Oslo."}

The second form is text: the string streams while it is generated. This dialect is not in the registry: no model writes
it unless it is constrained, and without the constraint such an object is the answer itself. Output of a server that
ignores the schema is read as bare JSON.
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
    """One object: a call or an answer."""

    def grammar(self, source: Source, turn: Turn) -> ParseStep[None]:
        while not source.closed and _UNDECIDED_START(source.text, source.position):
            yield
        if match := _ANSWER_START(source.text, source.position):
            source.position = match.end()
            words = _JsonUnescaper(turn.add_text)
            yield from copy_string(source, words.write, ignore)
            words.finish()
            # The end of the object. Whatever follows is not part of an answer.
            if (yield from source.skip_space()) == "}":
                source.position += 1
        yield from super().grammar(source, turn)

    def render_text(self, text: str) -> str:
        return json.dumps({ANSWER_KEY: text}, ensure_ascii=False)

    def render_tools(self, tools: Sequence[ToolSpec]) -> str:
        lesson = super().render_tools(tools)
        return f"{lesson}\n\nTo answer without calling a tool, write exactly this form:\n{self.render_text('...')}"


class _JsonUnescaper:
    """Decodes the pieces of a JSON string. Half of a surrogate pair waits for the other half."""

    def __init__(self, emit: TextSink) -> None:
        self._emit = emit
        self._half = ""

    def write(self, piece: str) -> None:
        escaped, self._half = self._half + piece, ""
        text = json.loads(f'"{escaped}"')
        if "\ud800" <= text[-1:] <= "\udbff":
            self._half = escaped
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
