"""X2: a tool's name, then alternating `<arg_key>` and `<arg_value>` tags, values as raw text.

    <tool_call>get_weather
    <arg_key>city</arg_key>
    <arg_value>Oslo</arg_value>
    </tool_call>

Defined by the chat templates named in `source` below. Families differ in newlines, tag names and a section around the
calls. `arg_pairs_grammar` reads and writes them; this module holds the data of the families.
"""

from __future__ import annotations

from collections.abc import Sequence

from callwright.dialects.arg_pairs_grammar import ArgPairs, SuffixedPairs
from callwright.dialects.base import THINK_TAGS, Dialect, ReasoningTags

__all__ = ["DIALECTS"]


def _build_tag_pairs(*words: str, suffix: str = "") -> frozenset[str]:
    """Return the opening and the closing tag of each word."""
    return frozenset(f"<{end}{word}{suffix}>" for end in ("", "/") for word in words)


_TAG_NAMES = ("tool_calls", "tool_call", "arg_key", "arg_value", "think")
_GLM_TOKENS = _build_tag_pairs("tool_call", "arg_key", "arg_value", "think") | {"<|observation|>", "<|user|>"}

GLM45 = ArgPairs(
    name="glm45",
    shape="X2",
    models="GLM-4.5 and 4.6, Ling 3",
    source="chat templates of zai-org/GLM-4.6 and inclusionAI/Ling-3.0-flash",
    framing=("<|observation|>", "<|user|>", "<|role_end|>"),
    tokens=_GLM_TOKENS,
    parsers=("glm45", "glm", "ling3"),
    patterns=("*glm-4.[56]*", "*ling-3*"),
)

GLM47 = ArgPairs(
    name="glm47",
    shape="X2",
    models="GLM-4.7 to 5.3, Laguna, Spark 2.5",
    source="chat templates of zai-org/GLM-4.7-Flash, poolside/Laguna-S-2.1 and Spark 2.5",
    inset="",
    call_separator="",
    framing=("<|observation|>", "<|user|>", "<｜end▁of▁sentence｜>"),
    tokens=_GLM_TOKENS,
    result_template="<tool_response>{content}</tool_response>",
    parsers=("glm47", "poolside_v1", "spark25"),
    patterns=("*glm-4.7*", "*glm-5*", "*laguna*", "*spark-2.5*", "*spark2.5*"),
)

IQUEST = ArgPairs(
    name="iquest",
    shape="X2",
    models="IQuest-Q1",
    source="the vLLM plugin and SGLang's detector for IQuest-Q1",
    call_tag="iquest_tool_call",
    inset="",
    call_separator="",
    framing=("<|iquest_end|>",),
    tokens=_build_tag_pairs("iquest_tool_call", "think") | {"<|iquest_end|>"},
    result_template="<tool_response>{content}</tool_response>",
    parsers=("iquest_q1",),
    patterns=("*iquest-q1*",),
)

LONGCAT2 = ArgPairs(
    name="longcat2",
    shape="X2",
    models="LongCat-2.0, LongCat-Flash-Lite and Next",
    source="mlx-lm's longcat parser, and the tokenizer of meituan-longcat/LongCat-Flash-Lite-Sparse",
    call_tag="longcat_tool_call",
    prefix="longcat_",
    reasoning_tags=(ReasoningTags("<longcat_think>", "</longcat_think>"), THINK_TAGS),
    tokens=_build_tag_pairs("longcat_tool_call", "longcat_think"),
    result_template="<longcat_tool_response>\n{content}\n</longcat_tool_response>",
    patterns=("*longcat-2*", "*longcat-flash-lite*", "*longcat-next*"),
)

HY3 = SuffixedPairs(
    name="hy3",
    shape="X2",
    models="Hy3 (Hunyuan 3)",
    source="chat template of tencent/Hy3",
    section_tag="tool_calls",
    suffix=":opensource",
    has_separator=True,
    reasoning_tags=(ReasoningTags("<think:opensource>", "</think:opensource>"), THINK_TAGS),
    framing=("<｜hy_eos:opensource｜>",),
    tokens=_build_tag_pairs(*_TAG_NAMES, suffix=":opensource") | {"<tool_sep:opensource>", "<｜hy_eos:opensource｜>"},
    result_template="<tool_response:opensource>\n{content}\n</tool_response:opensource>",
    parsers=("hy_v3",),
    patterns=("*hy3*", "*hunyuan-3*"),
)

HY4 = SuffixedPairs(
    name="hy4",
    shape="X2",
    models="Hy4 (Hunyuan 4)",
    source="vLLM's hy_v4 parser and its tests, and text that Hy4-preview leaked into clients",
    section_tag="tool_calls",
    suffix=":6124c78e",
    inset="",
    call_separator="",
    reasoning_tags=(ReasoningTags("<think:6124c78e>", "</think:6124c78e>"), THINK_TAGS),
    framing=("<｜hy_eos:6124c78e｜>",),
    tokens=_build_tag_pairs(*_TAG_NAMES, suffix=":6124c78e") | {"<｜hy_eos:6124c78e｜>"},
    result_template="<tool_response:6124c78e>{content}</tool_response:6124c78e>",
    parsers=("hy_v4",),
    patterns=("*hy4*", "*hunyuan-4*"),
)

K2_HORIZON = ArgPairs(
    name="k2_horizon",
    shape="X2",
    models="K2 Horizon",
    source="the k2_horizon parsers of vLLM and SGLang",
    call_tag="ifm|tool_call",
    section_tag="ifm|tool_calls",
    prefix="ifm|",
    reasoning_tags=tuple(
        ReasoningTags(f"<ifm|{word}>", f"</ifm|{word}>") for word in ("think", "think_fast", "think_faster")
    ),
    framing=("<|ifm|im_end|>",),
    tokens=_build_tag_pairs(*(f"ifm|{word}" for word in (*_TAG_NAMES, "think_fast", "think_faster")))
    | {"<|ifm|im_end|>"},
    result_template="{content}",
    parsers=("k2_horizon",),
    patterns=("*k2-horizon*", "*k2horizon*"),
)

DIALECTS: Sequence[Dialect] = (GLM45, GLM47, IQUEST, LONGCAT2, HY3, HY4, K2_HORIZON)
