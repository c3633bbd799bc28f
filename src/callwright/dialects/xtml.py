"""X3 in XTML: Kimi-K3 writes every tag with three special tokens, and closes each one by name.

    <|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|><|open|>argument key="city"
    type="string"<|sep|>Oslo<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>

(one line). Text is in a `response` of its own. Attributes are escaped, values are not; instead of arguments a call may
contain one `json`. Defined by the chat template of moonshotai/Kimi-K3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from callwright.dialects.base import Dialect, ReasoningTags
from callwright.dialects.invoke_tags_grammar import InvokeTags, TagPair, TagSpelling
from callwright.dialects.tag_parts import TagHeader
from callwright.model import ToolCall
from callwright.text.source import ParseStep, Source

__all__ = ["DIALECTS", "Xtml"]

_TYPE_NAMES = {str: "string", bool: "boolean", int: "number", float: "number", dict: "object", list: "array"}


def _build_tag_pair(name: str) -> TagPair:
    return f"<|open|>{name}<|sep|>", f"<|close|>{name}<|sep|>"


@dataclass(frozen=True, kw_only=True)
class Xtml(InvokeTags):
    """Invoke tags in the XTML notation."""

    name_attribute: ClassVar[str] = "tool"
    key_attribute: ClassVar[str] = "key"
    tag_end: ClassVar[str] = "<|sep|>"

    def _read_header(self, source: Source) -> ParseStep[TagHeader | None]:
        header = yield from super()._read_header(source)
        if header is None:
            return None
        plain = {key: value.replace("&quot;", '"').replace("&amp;", "&") for key, value in header.attributes.items()}
        return TagHeader(plain, header.is_damaged)

    def render_text(self, text: str) -> str:
        opening, closing = _build_tag_pair("response")
        return f"{opening}{text}{closing}"

    def _format_call_tag(self, call: ToolCall, index: int) -> str:
        return f'<|open|>call tool="{_escape_attribute(call.name)}" index="{index + 1}"<|sep|>'

    def _format_value_tag(self, key: str, value: Any) -> str:
        return f'<|open|>argument key="{_escape_attribute(key)}" type="{_TYPE_NAMES.get(type(value), "null")}"<|sep|>'


def _escape_attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;")


_MESSAGE = '<|open|>message role="assistant"<|sep|>'
_CALL = ("<|open|>call", "<|close|>call<|sep|>")
_ARGUMENT = ("<|open|>argument", "<|close|>argument<|sep|>")
_TAGS = (
    *_build_tag_pair("think"),
    *_build_tag_pair("response"),
    *_build_tag_pair("tools"),
    *_CALL,
    *_ARGUMENT,
    "<|close|>message<|sep|>",
)

KIMI_K3 = Xtml(
    name="kimi_k3",
    models="Kimi-K3",
    source="chat template of moonshotai/Kimi-K3",
    reasoning_tags=(ReasoningTags(*_build_tag_pair("think")),),
    framing=(*_build_tag_pair("response"), _MESSAGE, "<|close|>message<|sep|>", "<|end_of_msg|>"),
    # The vocabulary has the four tokens; tags are identified by the token that they begin with.
    tokens=frozenset({"<|open|>", "<|sep|>", "<|close|>", "<|end_of_msg|>", *_TAGS}),
    spellings=(TagSpelling(_CALL, _ARGUMENT),),
    sections=(_build_tag_pair("tools"),),
    ignored_inside=('<|open|>json type="object"<|sep|>', "<|close|>json<|sep|>"),
    layout="",
    result_template=(
        '<|open|>message role="tool" tool="{name}" index="1"<|sep|>{content}<|close|>message<|sep|><|end_of_msg|>'
    ),
    parsers=("kimi_k3",),
    patterns=("*kimi-k3*",),
)

DIALECTS: Sequence[Dialect] = (KIMI_K3,)
