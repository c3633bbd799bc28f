"""J3: Mistral's calls since tokenizer v11: a name and JSON after each marker.

    [TOOL_CALLS]get_weather[ARGS]{"city": "Oslo", "days": 2}[TOOL_CALLS]ping[ARGS]{}

Mistral Small 3.2 puts `[CALL_ID]` and nine characters before `[ARGS]`. Defined by the chat templates
of Mistral-Small-3.2-24B-Instruct-2506, Devstral-Small-2507 and Ministral-3-14B-Reasoning-2512.
"""

from __future__ import annotations

from collections.abc import Sequence

from callwright.dialects.base import THINK_TAGS, Dialect, ReasoningTags
from callwright.dialects.call_object import read_json_calls
from callwright.dialects.header_json import HeaderJson
from callwright.text.source import ParseStep, Source, compile_markers
from callwright.turn import Turn

__all__ = ["DIALECTS", "Mistral"]


class Mistral(HeaderJson):
    """Also reads the JSON array that Mistral's models wrote after the same marker before v11."""

    def read_calls(self, source: Source, turn: Turn, opener: str) -> ParseStep[str]:
        in_json = (yield from source.skip_space()) in ("[", "{")
        problem = yield from (read_json_calls(source, turn) if in_json else super().read_calls(source, turn, opener))
        if problem:
            return problem
        if in_json:
            turn.add_repair("array_form", "the calls were a JSON array, as Mistral's models wrote them before v11")
        yield from source.accept_next(compile_markers("[/TOOL_CALLS]"))
        return ""


MISTRAL = Mistral(
    name="mistral",
    shape="J3",
    models="Mistral Small 3.2, Devstral, Magistral, Ministral 3, Mistral Large 3",
    source="chat templates of mistralai/Mistral-Small-3.2-24B-Instruct-2506 and Ministral-3-14B-Reasoning-2512",
    call_marker="[TOOL_CALLS]",
    separators=(("[CALL_ID]", "id"), ("[ARGS]", "arguments")),
    call_template="[TOOL_CALLS]{name}[ARGS]{arguments}",
    id_template="call{index:05d}",
    reasoning_tags=(ReasoningTags("[THINK]", "[/THINK]"), THINK_TAGS),
    framing=("</s>",),
    tokens=frozenset({"[TOOL_CALLS]", "[CALL_ID]", "[ARGS]", "[THINK]", "[/THINK]", "</s>"}),
    result_template="[TOOL_RESULTS]{content}[/TOOL_RESULTS]",
    parsers=("mistral",),
    patterns=(
        "*mistral-small-3.2*",
        "*mistral-small-*-2506*",
        "*mistral-large-3*",
        "*mistral-medium-3*",
        "*ministral-3-*",
        "*devstral*",
        "*magistral*",
    ),
)

DIALECTS: Sequence[Dialect] = (MISTRAL,)
