"""hermes: JSON in tags, the most common call format.

    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}
    </tool_call>

Defined by the prompts of Nous Research's Hermes 2 Pro and adopted by Qwen's chat templates.
"""

from __future__ import annotations

from collections.abc import Sequence

from callwright.dialects.bare_json import FENCED
from callwright.dialects.base import FENCE, THINK_TAGS, Dialect, ReasoningTags
from callwright.dialects.fences import read_fenced_calls
from callwright.dialects.line_calls import has_call_key_first
from callwright.dialects.tagged_json import TaggedJson
from callwright.text.source import ParseStep, Source, compile_markers
from callwright.turn import Turn

__all__ = ["DIALECTS", "Hermes"]


class Hermes(TaggedJson):
    """JSON in tags. Qwen2.5-Coder often omits the tags: an answer of nothing but fenced JSON calls counts too."""

    def _read_fenced_block(self, source: Source, turn: Turn, fence: str) -> ParseStep[None]:
        info = ""
        if fence == FENCE or turn.is_after_call:
            info = yield from source.accept(compile_markers("json"))
            if (yield from has_call_key_first(source)):
                if block := (yield from read_fenced_calls(source, turn, info, FENCED)):
                    turn.add_text(fence.removesuffix(FENCE) + block)
                return
        yield from super()._read_fenced_block(source, turn, fence + info)


HERMES = Hermes(
    name="hermes",
    shape="J1",
    models="Hermes 2 Pro to 4, Qwen2.5, QwQ, Qwen3, Granite 4.0 and 4.1, SmolLM3, Bielik 3, Reka Edge, Trinity",
    source="chat templates of Qwen/Qwen3-0.6B, NousResearch/Hermes-3-Llama-3.1-8B and RekaAI/reka-edge",
    opens=("<tool_call>",),
    closes=("</tool_call>",),
    # Hermes 3 was trained to plan in a scratch pad (Hermes Function Calling, prompt templates).
    reasoning_tags=(THINK_TAGS, ReasoningTags("<scratch_pad>", "</scratch_pad>")),
    framing=("<|im_end|>", "<|end_of_text|>"),
    quotable=True,
    tokens=frozenset({"<tool_call>", "</tool_call>"}),
    parsers=("hermes", "qwen", "qwen25", "granite4", "trinity"),
    patterns=(
        "*hermes*",
        "*hermes*llama-3*",
        "*groq*tool-use*",
        "*qwen2.5*",
        "*qwq*",
        "*qwen3*",
        "*smollm3*",
        "*granite-4.[01]*",
        "*bielik*",
        "*mimo-vl*",
        "*reka-edge*",
        "*trinity*",
    ),
)

DIALECTS: Sequence[Dialect] = (HERMES,)
