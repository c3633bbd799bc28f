"""X3 in XTML: Kimi-K3 spells every tag in three special tokens, and closes each one by name.

    <|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|><|open|>argument key="city"
    type="string"<|sep|>Oslo<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>

(one line). Text stands in a `response` of its own. Attributes are escaped, values are not; instead of
arguments a call may hold one `json`. Defined by the chat template of moonshotai/Kimi-K3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from callwright.dialects.base import Dialect, Think
from callwright.dialects.invoke_grammar import InvokeTags, Pair, Spelling
from callwright.dialects.tag_parts import Header
from callwright.model import ToolCall
from callwright.text.source import ParseStep, Source

__all__ = ["DIALECTS", "Xtml"]

_KINDS = {str: "string", bool: "boolean", int: "number", float: "number", dict: "object", list: "array"}


def _pair(name: str) -> Pair:
    return f"<|open|>{name}<|sep|>", f"<|close|>{name}<|sep|>"


@dataclass(frozen=True, kw_only=True)
class Xtml(InvokeTags):
    """Invoke tags in XTML clothes."""

    name_attribute: ClassVar[str] = "tool"
    key_attribute: ClassVar[str] = "key"
    tag_end: ClassVar[str] = "<|sep|>"

    def _read_header(self, source: Source) -> ParseStep[Header | None]:
        header = yield from super()._read_header(source)
        if header is None:
            return None
        plain = {key: value.replace("&quot;", '"').replace("&amp;", "&") for key, value in header.attributes.items()}
        return Header(plain, header.worn)

    def render_text(self, text: str) -> str:
        opening, closing = _pair("response")
        return f"{opening}{text}{closing}"

    def _call_tag(self, call: ToolCall, index: int) -> str:
        return f'<|open|>call tool="{_escaped(call.name)}" index="{index + 1}"<|sep|>'

    def _value_tag(self, key: str, value: Any) -> str:
        return f'<|open|>argument key="{_escaped(key)}" type="{_KINDS.get(type(value), "null")}"<|sep|>'


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;")


_MESSAGE = '<|open|>message role="assistant"<|sep|>'
_CALL = ("<|open|>call", "<|close|>call<|sep|>")
_ARGUMENT = ("<|open|>argument", "<|close|>argument<|sep|>")
_TAGS = (*_pair("think"), *_pair("response"), *_pair("tools"), *_CALL, *_ARGUMENT, "<|close|>message<|sep|>")

KIMI_K3 = Xtml(
    name="kimi_k3",
    models="Kimi-K3",
    source="chat template of moonshotai/Kimi-K3",
    thinks=(Think(*_pair("think")),),
    framing=(*_pair("response"), _MESSAGE, "<|close|>message<|sep|>", "<|end_of_msg|>"),
    # The vocabulary has the four tokens; the tags are known by the one that they begin with.
    tokens=frozenset({"<|open|>", "<|sep|>", "<|close|>", "<|end_of_msg|>", *_TAGS}),
    spellings=(Spelling(_CALL, _ARGUMENT),),
    sections=(_pair("tools"),),
    inside=('<|open|>json type="object"<|sep|>', "<|close|>json<|sep|>"),
    layout="",
    result='<|open|>message role="tool" tool="{name}" index="1"<|sep|>{content}<|close|>message<|sep|><|end_of_msg|>',
    parsers=("kimi_k3",),
    patterns=("*kimi-k3*",),
)

DIALECTS: Sequence[Dialect] = (KIMI_K3,)
