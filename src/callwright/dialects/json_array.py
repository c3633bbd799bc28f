"""J2: one marker, then a JSON array of calls.

    [TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}, "id": "a1B2c3D4e"}]

This module holds the data of the families; `json_array_grammar` implements their differences.
"""

from __future__ import annotations

from collections.abc import Sequence

from callwright.dialects.base import FENCE, THINK_TAGS, Dialect, ReasoningTags
from callwright.dialects.call_object import CallKeys
from callwright.dialects.json_array_grammar import (
    CITATION_TAGS,
    RESPONSE_SENTENCES,
    SPEAKER_PREFIX,
    Apertus,
    Cohere,
    CohereR,
    Granite3,
    Hunyuan,
    JsonArray,
    MistralOld,
    Xlam,
)

__all__ = ["DIALECTS"]

_MULTILINE_FRAME = ("[\n    ", ",\n    ", "\n]")

MISTRAL_OLD = MistralOld(
    name="mistral_old",
    models="Mistral 7B v0.3, Nemo, Mixtral, Large 2407, Codestral 22B",
    source="chat template of mistralai/Mistral-Nemo-Instruct-2407",
    opens=("[TOOL_CALLS]",),
    item_template='{"name": "NAME", "arguments": ARGUMENTS, "id": "ID"}',
    # Fine-tunes close the list; Mistral does not.
    optional_closes=("[/TOOL_CALLS]",),
    framing=("</s>",),
    quotable=True,
    tokens=frozenset({"[TOOL_CALLS]"}),
    result_template='[TOOL_RESULTS]{"content": {content}, "call_id": "{id}"}[/TOOL_RESULTS]',
    patterns=(
        "*mistral-7b*",
        "*mistral-nemo*",
        "*mixtral*",
        "*mistral-large*2407*",
        "*codestral-22b*",
    ),
)

GRANITE3 = Granite3(
    name="granite3",
    models="Granite 3.0 to 3.3",
    source="chat template of ibm-granite/granite-3.3-2b-instruct; vLLM granite tool and reasoning parsers",
    opens=("<|tool_call|>", "<tool_call>"),
    reasoning_tags=(
        THINK_TAGS,
        ReasoningTags("Here is my thought process:", RESPONSE_SENTENCES[0]),
        ReasoningTags("Here's my thought process:", RESPONSE_SENTENCES[1]),
    ),
    word_markers=frozenset({"Here is my thought process:", "Here's my thought process:", *RESPONSE_SENTENCES}),
    optional_closes=("</tool_call>", "<|/tool_call|>"),
    framing=("<response>", "</response>", "<|end_of_text|>"),
    quotable=True,
    tokens=frozenset({"<|tool_call|>", "<|end_of_text|>"}),
    result_template="<|start_of_role|>tool_response<|end_of_role|>{content}<|end_of_text|>\n",
    parsers=("granite",),
    patterns=("*granite-3*", "*granite3*"),
)

JAMBA = JsonArray(
    name="jamba",
    models="Jamba 1.5, 1.6, 1.7",
    source="vLLM jamba_tool_parser and its tests; chat template of ai21labs/AI21-Jamba-1.5-Mini",
    opens=("<tool_calls>",),
    closes=("</tool_calls>",),
    array_frame=_MULTILINE_FRAME,
    framing=("<|eom|>",),
    quotable=True,
    tokens=frozenset({"<tool_calls>", "</tool_calls>", "<|eom|>"}),
    result_template="<|bom|><|tool|> {content}<|eom|>",
    parsers=("jamba",),
    patterns=("*jamba*",),
)

HUNYUAN = Hunyuan(
    name="hunyuan",
    models="Hunyuan-A13B and the dense Hunyuan models",
    source="vLLM tool_chat_template_hunyuan_a13b.jinja",
    opens=("<tool_calls>",),
    closes=("</tool_calls>",),
    framing=(
        *(f"<answer>{inset}{speaker}" for inset in ("\n", "") for speaker in (SPEAKER_PREFIX, "")),
        "\n</answer>",
        "</answer>",
        "<|eos|>",
    ),
    text_tags=True,
    result_template="<tool_response>{content}</tool_response>",
    parsers=("hunyuan_a13b",),
    patterns=("*hunyuan*",),
)

APRIEL = JsonArray(
    name="apriel",
    models="Apriel 1.5 and 1.6 Thinker",
    source="chat templates of unsloth/Apriel-1.5-15b-Thinker and ServiceNow-AI/Apriel-1.6-15b-Thinker",
    # The template of 1.5 names one tag in its text and shows the other in its example.
    opens=("<tool_calls>", "<tool_call>"),
    closes=("</tool_calls>", "</tool_call>"),
    reasoning_tags=(
        ReasoningTags("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"),
        ReasoningTags("<thinking>", "</thinking>"),
        THINK_TAGS,
    ),
    word_markers=frozenset({"Here are my reasoning steps:"}),
    framing=("\n[END FINAL RESPONSE]", "[END FINAL RESPONSE]", "\n<|end|>", "<|end|>"),
    text_tags=True,
    result_template="<|begin_tool_result|>\n{content}\n",
    parsers=("apriel",),
    patterns=("*apriel*",),
)

NEMOTRON = JsonArray(
    name="nemotron",
    models="Nemotron Nano v2, Llama-Nemotron Nano, Super and Ultra",
    source="chat template of nvidia/NVIDIA-Nemotron-Nano-9B-v2",
    opens=("<TOOLCALL>",),
    closes=("</TOOLCALL>",),
    framing=("\n<SPECIAL_12>", "<SPECIAL_12>"),
    text_tags=True,
    result_template="<TOOL_RESPONSE>[{content}]</TOOL_RESPONSE>",
    parsers=("nemotron_json",),
    patterns=("*nemotron-nano-*v2*", "*llama-3*nemotron*"),
)

FUNCTOOLS = JsonArray(
    name="functools",
    models="Phi-4-mini, FireFunction v2",
    source="chat template of fireworks-ai/llama-3-firefunction-v2; vLLM tool_chat_template_phi4_mini.jinja; "
    "Ollama's template of phi4-mini for the token form",
    opens=("functools", "<|tool_call|>"),
    optional_closes=("<|/tool_call|>",),
    framing=("<|eot_id|>", "<|end|>"),
    tokens=frozenset({"<|tool_call|>", "<|/tool_call|>", "<|eot_id|>", "<|end|>"}),
    text_tags=True,
    result_template="<|start_header_id|>tool<|end_header_id|>\n\n{content}<|eot_id|>",
    parsers=("phi4_mini_json",),
    patterns=("*phi-4-mini*", "*phi4-mini*", "*firefunction*"),
)

_TURN = ("<|START_OF_TURN_TOKEN|>", "<|CHATBOT_TOKEN|>", "<|END_OF_TURN_TOKEN|>")

COHERE = Cohere(
    name="cohere",
    models="Command R7B, Command A, A Reasoning, A Vision, A+",
    source="chat templates of CohereForAI/c4ai-command-r7b-12-2024 (tool_use) and of Cohere2 MoE",
    opens=("<|START_ACTION|>",),
    closes=("<|END_ACTION|>",),
    item_template='{"tool_call_id": "ID", "tool_name": "NAME", "parameters": ARGUMENTS}',
    array_frame=_MULTILINE_FRAME,
    reasoning_tags=(ReasoningTags("<|START_THINKING|>", "<|END_THINKING|>"),),
    framing=(
        "<|START_RESPONSE|>",
        "<|END_RESPONSE|>",
        "<|START_TEXT|>",
        "<|END_TEXT|>",
        *_TURN,
        *CITATION_TAGS,
    ),
    tokens=frozenset(
        {
            *_TURN,
            *(f"<|{end}_{kind}|>" for kind in ("ACTION", "THINKING", "RESPONSE", "TEXT") for end in ("START", "END")),
        }
    ),
    result_template='<|START_TOOL_RESULT|>[\n    {\n        "tool_call_id": "{id}",\n        "results": {\n'
    '            "0": {content}\n        },\n        "is_error": null\n    }\n]<|END_TOOL_RESULT|>',
    parsers=("cohere_command3", "cohere_command4"),
    patterns=("*command-r7b*", "*command-a*"),
)

COHERE_R = CohereR(
    name="cohere_r",
    models="Command R and R+",
    source="chat template of CohereForAI/c4ai-command-r-plus (tool_use)",
    opens=("Action:",),
    closes=(FENCE,),
    keys=CallKeys(no_call_names=frozenset({"directly-answer", "directly_answer"})),
    item_template='    {\n        "tool_name": "NAME",\n        "parameters": ARGUMENTS\n    }',
    array_frame=(f"\n{FENCE}json\n[\n", ",\n", "\n]"),
    framing=(*_TURN, *CITATION_TAGS),
    tokens=frozenset(_TURN),
    text_tags=True,
    result_template="<results>\n{content}</results>",
    patterns=("*command-r*",),
)

APERTUS = Apertus(
    name="apertus",
    models="Apertus 8B and 70B",
    source="chat template of swiss-ai/Apertus-8B-Instruct-2509",
    opens=("<|tools_prefix|>",),
    closes=("<|tools_suffix|>",),
    keys=CallKeys(name_is_key=True),
    item_template='{"NAME": ARGUMENTS}',
    reasoning_tags=(ReasoningTags("<|inner_prefix|>", "<|inner_suffix|>"),),
    framing=("<|assistant_end|>",),
    quotable=True,
    tokens=frozenset(
        {"<|tools_prefix|>", "<|tools_suffix|>", "<|inner_prefix|>", "<|inner_suffix|>", "<|assistant_end|>"}
    ),
    result_template="[{content}]",
    parsers=("apertus", "apertus2509"),
    patterns=("*apertus*",),
)

XLAM = Xlam(
    name="xlam",
    models="xLAM 2, Llama-xLAM 2",
    source="vLLM tool_chat_template_xlam_qwen.jinja and the tests of its xlam_tool_parser",
    opens=("[TOOL_CALLS]",),
    closes=(FENCE,),
    framing=("<|im_end|>", "<|eot_id|>"),
    text_tags=True,
    result_template="<|im_start|>tool\n{content}<|im_end|>\n",
    parsers=("xlam",),
    patterns=("*xlam*",),
)

DIALECTS: Sequence[Dialect] = (
    MISTRAL_OLD,
    GRANITE3,
    JAMBA,
    HUNYUAN,
    APRIEL,
    NEMOTRON,
    FUNCTOOLS,
    COHERE,
    COHERE_R,
    APERTUS,
    XLAM,
)
