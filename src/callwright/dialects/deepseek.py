"""J3: DeepSeek V3 and R1 with a type and a fence, V3.1 with neither.

    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>
    {"city": "Oslo", "days": 2}<｜tool▁call▁end｜><｜tool▁calls▁end｜>

V3 writes `function<｜tool▁sep｜>get_weather`, a newline, and the arguments in a json fence. Defined by the
chat templates of deepseek-ai/DeepSeek-R1-0528 and DeepSeek-V3.1. Later versions write tags (DSML).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from callwright.dialects.base import Dialect
from callwright.dialects.header_json import HeaderJson

__all__ = ["DIALECTS"]

_SEPARATOR = "<｜tool▁sep｜>"

DEEPSEEK_V31 = HeaderJson(
    name="deepseek_v31",
    shape="J3",
    models="DeepSeek-V3.1, Cogito v2",
    source="chat template of deepseek-ai/DeepSeek-V3.1",
    sections=("<｜tool▁calls▁begin｜>",),
    call_marker="<｜tool▁call▁begin｜>",
    # V3 puts the type before the name and a fence around the arguments; each version is read in both forms.
    separators=((f"function{_SEPARATOR}", "name"), (_SEPARATOR, "arguments")),
    fences=("```json", "```"),
    closes=("<｜tool▁call▁end｜>",),
    section_ends=("<｜tool▁calls▁end｜>",),
    call_template="<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{arguments}<｜tool▁call▁end｜>",
    framing=("<｜end▁of▁sentence｜>",),
    tokens=frozenset(
        {
            "<｜tool▁calls▁begin｜>",
            "<｜tool▁call▁begin｜>",
            "<｜tool▁sep｜>",
            "<｜tool▁call▁end｜>",
            "<｜tool▁calls▁end｜>",
            "<｜end▁of▁sentence｜>",
        }
    ),
    result_template="<｜tool▁output▁begin｜>{content}<｜tool▁output▁end｜>",
    parsers=("deepseek_v31", "deepseekv31"),
    patterns=("*deepseek-v3.1*", "*cogito-v2*"),
)

DEEPSEEK_V3 = replace(
    DEEPSEEK_V31,
    name="deepseek_v3",
    models="DeepSeek-V3, DeepSeek-R1 and its distilled models",
    source="chat template of deepseek-ai/DeepSeek-R1-0528",
    call_template="<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{arguments}\n```<｜tool▁call▁end｜>",
    call_separator="\n",
    result_template="<｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>{content}<｜tool▁output▁end｜><｜tool▁outputs▁end｜>",
    parsers=("deepseek_v3", "deepseekv3"),
    patterns=("*deepseek-v3*", "*deepseek-r1*"),
)

DIALECTS: Sequence[Dialect] = (DEEPSEEK_V3, DEEPSEEK_V31)
