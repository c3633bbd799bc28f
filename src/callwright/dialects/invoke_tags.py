"""X3: the families that call with `<invoke name="NAME">` and `<parameter name="KEY">` inside.

    <function_calls>
    <invoke name="get_weather">
    <parameter name="city">Oslo</parameter>
    <parameter name="days">2</parameter>
    </invoke>
    </function_calls>

Anthropic's prompt format of 2023, adopted by MiniMax, DeepSeek, StepFun and others, each with its own tags.
`invoke_tags_grammar` reads and writes them; this module holds the data of the families.
"""

from __future__ import annotations

from collections.abc import Sequence

from callwright.dialects.base import THINK_TAGS, Dialect, ReasoningTags
from callwright.dialects.invoke_tags_grammar import InvokeTags, TagPair, TagSpelling

__all__ = ["DIALECTS"]


def _build_spellings(*prefixes: str) -> tuple[TagSpelling, ...]:
    """Return the usual tags, with each of these prefixes before their names."""
    return tuple(
        TagSpelling((f"<{prefix}invoke", f"</{prefix}invoke>"), (f"<{prefix}parameter", f"</{prefix}parameter>"))
        for prefix in prefixes
    )


def _build_sections(prefixes: tuple[str, ...], *names: str) -> tuple[TagPair, ...]:
    """Return the tags around all calls: each name after each prefix."""
    return tuple((f"<{prefix}{name}>", f"</{prefix}{name}>") for prefix in prefixes for name in names)


INVOKE = InvokeTags(
    name="invoke",
    models="models that are taught it in the prompt, Claude 2 and Claude Instant, and leaks of Claude's own markup",
    source="Anthropic's tool use documentation of 2023 and 2024; leaked turns in public issue reports",
    reasoning_tags=(THINK_TAGS, ReasoningTags("<thinking>", "</thinking>")),
    text_tags=True,
    spellings=_build_spellings("", "antml:"),
    sections=_build_sections(("", "antml:"), "function_calls", "function_call"),
    result_template="<function_results>\n<result>\n<tool_name>{name}</tool_name>\n<stdout>\n{content}\n</stdout>\n</result>\n"
    "</function_results>",
    patterns=("*claude-2*", "*claude-instant*"),
)

MINIMAX_M2 = InvokeTags(
    name="minimax_m2",
    quotable=True,
    models="MiniMax-M2 to M2.7",
    source="chat template of MiniMaxAI/MiniMax-M2",
    framing=("[e~[",),
    tokens=frozenset({"<minimax:tool_call>", "</minimax:tool_call>"}),
    spellings=_build_spellings(""),
    sections=_build_sections(("minimax:",), "tool_call"),
    result_template="<response>{content}</response>",
    parsers=("minimax_m2", "minimax-m2"),
    patterns=("*minimax-m2*",),
)

_DSML = ("｜DSML｜", "｜DSML｜ ", "|DSML|")
"""The second is V4.1's spelling; the third is what remains where full-width bars were folded into ASCII."""
_END_OF_SENTENCE = "<｜end▁of▁sentence｜>"

DEEPSEEK_V32 = InvokeTags(
    name="deepseek_v32",
    models="DeepSeek-V3.2 and V3.2-Speciale",
    source="chat template of deepseek-ai/DeepSeek-V3.2",
    framing=(_END_OF_SENTENCE,),
    spellings=_build_spellings(*_DSML),
    sections=_build_sections(_DSML, "function_calls", "tool_calls"),
    has_string_attribute=True,
    result_template="<function_results>\n<result>{content}</result>\n</function_results>",
    parsers=("deepseek_v32", "deepseekv32"),
    patterns=("*deepseek-v3.2*",),
)

DEEPSEEK_V4 = InvokeTags(
    name="deepseek_v4",
    models="DeepSeek-V4, V4-Flash, V4.1",
    source="chat templates of deepseek-ai/DeepSeek-V4 and DeepSeek-V4-Flash-0731; misspelled wrappers: vLLM PR 56141",
    framing=(_END_OF_SENTENCE,),
    spellings=_build_spellings(*_DSML),
    sections=_build_sections(_DSML, "tool_calls", "toolcalls", "tool", "calls", "function_calls"),
    empty_body="\n",
    has_string_attribute=True,
    result_template="<tool_result>{content}</tool_result>",
    parsers=("deepseek_v4", "deepseekv4"),
    patterns=("*deepseek-v4*",),
)

GCML = InvokeTags(
    name="gcml",
    models="GigaChat 3.5",
    source="vLLM's and SGLang's gigachat35 parsers",
    framing=("<|message_sep|>",),
    spellings=_build_spellings("｜GCML｜"),
    sections=_build_sections(("｜GCML｜",), "tool_calls", "function_calls"),
    has_string_attribute=True,
    result_template="<tool_result>{content}</tool_result>",
    parsers=("gigachat35",),
    patterns=("*gigachat3.5*", "*gigachat-3.5*"),
)

STEP3 = InvokeTags(
    name="step3",
    models="Step-3",
    source="vLLM's and SGLang's step3 parsers",
    tokens=frozenset(
        {
            "<｜tool_calls_begin｜>",
            "<｜tool_calls_end｜>",
            "<｜tool_call_begin｜>",
            "<｜tool_call_end｜>",
            "<｜tool_sep｜>",
        }
    ),
    spellings=_build_spellings("steptml:"),
    sections=(("<｜tool_calls_begin｜>", "<｜tool_calls_end｜>"),),
    call_wrapper=("<｜tool_call_begin｜>function<｜tool_sep｜>", "<｜tool_call_end｜>"),
    ignored_between=("<｜tool_call_begin｜>", "<｜tool_sep｜>"),
    parsers=("step3",),
    patterns=("*step3", "*step3-*", "*step-3"),
)

DOTS = InvokeTags(
    name="dots",
    quotable=True,
    models="dots.llm of rednote-hilab",
    source="SGLang's dots parser",
    spellings=_build_spellings(""),
    sections=_build_sections(("",), "dots_function_call"),
    parsers=("dots",),
    patterns=("*dots.llm*", "*dots3*"),
)

MINICPM5 = InvokeTags(
    name="minicpm5",
    models="MiniCPM5",
    source="chat template of openbmb/MiniCPM5-1B; damaged tags: vLLM's minicpm5 parser",
    framing=("<|im_end|>",),
    text_tags=True,
    spellings=(TagSpelling(("<function", "</function>"), ("<param", "</param>")),),
    ignored_inside=("<arguments>", "</arguments>", "Ġ", "Ċ"),
    layout="",
    uses_cdata=True,
    parsers=("minicpm5",),
    patterns=("*minicpm5*", "*minicpm-5*"),
)

DIALECTS: Sequence[Dialect] = (INVOKE, MINIMAX_M2, DEEPSEEK_V32, DEEPSEEK_V4, GCML, STEP3, DOTS, MINICPM5)
