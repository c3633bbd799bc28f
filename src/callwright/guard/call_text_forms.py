"""The forms in which calls are written into the text for old clients, each made for its client's own way of reading.

Neither client knows escapes, so a value is written as it is wherever the client then reads it back. A string that the
client would take for markup keeps its words, with `&lt;` for `<`: no form exists that would give it back, and what it
does to the call would be worse. The native call beside the text always has the value itself. Nulls are left out, since
an element can only hold text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from callwright.model import ToolCall

__all__ = ["CALL_TEXT_FORMS", "format_kilo_call", "format_obsidian_call"]

_ELEMENT_PATTERN = re.compile(r"<([^>]+)>[\s\S]*?</\1>")
_OPENING_TAG = re.compile(r"<\w+>")


def format_obsidian_call(call: ToolCall) -> str:
    """`<use_tool>` as Obsidian Copilot 3.1 reads it.

    It ends a block at the first `</use_tool>` and a parameter at its first closing tag, takes elements inside a value
    for an object or a list, and reads a value between brackets as JSON if there are no tags in it
    (logancyang/obsidian-copilot, removed in 1e3e0786).
    """
    return f"<use_tool>\n<name>{call.name}</name>\n{_format_elements(call, _escape_obsidian_value)}</use_tool>"


def format_kilo_call(call: ToolCall) -> str:
    """The tool's own element as Kilo Code 5 reads it.

    It trims a value, but for one newline at each end of `content`, and ends it at its first closing tag; but the
    content of `write_to_file` reaches from the first `<content>` to the last `</content>` in the tool's element
    (Kilo-Org/kilocode-legacy, AssistantMessageParser).
    """
    return f"<{call.name}>\n{_format_elements(call, _escape_kilo_value)}</{call.name}>"


CALL_TEXT_FORMS: Mapping[str, Callable[[ToolCall], str]] = MappingProxyType(
    {"obsidian-xml": format_obsidian_call, "kilo-xml": format_kilo_call}
)


def _format_elements(call: ToolCall, text: Callable[[str, str, str], str]) -> str:
    members = [(key, value) for key, value in json.loads(call.arguments).items() if value is not None]
    return "".join(f"<{key}>{_format_value(call.name, key, value, text)}</{key}>\n" for key, value in members)


def _format_value(tool: str, key: str, value: Any, text: Callable[[str, str, str], str]) -> str:
    if isinstance(value, str):
        return text(tool, key, value)
    # Inside JSON a `<` can be written so that it is none.
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")


def _escape_obsidian_value(tool: str, key: str, value: str) -> str:
    ends = "</use_tool>" in value or f"</{key}>" in value
    return _escape_markup(value) if ends or _ELEMENT_PATTERN.search(value) else value


def _escape_kilo_value(tool: str, key: str, value: str) -> str:
    _, close, rest = value.partition(f"</{key}>")
    if key != "content":
        return _escape_markup(value) if close or "<content>" in value else value
    runs_on = tool == "write_to_file" and f"</{tool}>" not in rest and not _OPENING_TAG.search(rest)
    return f"\n{value if not close or runs_on else _escape_markup(value)}\n"


def _escape_markup(value: str) -> str:
    return value.replace("<", "&lt;")
