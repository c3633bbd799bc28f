"""The forms in which calls are written into the text for old clients, one for each client's own parser.

Neither client supports escapes, so a value is written unchanged wherever the client then reads it back. In a string
that the client would read as markup, `<` is written as `&lt;`: no form would preserve it, and breaking the call would
be worse. The native call next to the text always has the exact value. Nulls are omitted, since an element can only
contain text.
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
    """Format a call as `<use_tool>` for Obsidian Copilot 3.1.

    It ends a block at the first `</use_tool>` and a parameter at its first closing tag, reads elements inside a value
    as an object or a list, and reads a value between brackets as JSON if it contains no tags
    (logancyang/obsidian-copilot, removed in 1e3e0786).
    """
    return f"<use_tool>\n<name>{call.name}</name>\n{_format_elements(call, _escape_obsidian_value)}</use_tool>"


def format_kilo_call(call: ToolCall) -> str:
    """Format a call as the tool's own element for Kilo Code 5.

    It trims a value, except for one newline at each end of `content`, and ends it at its first closing tag; but the
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
    # Inside JSON, `<` can be escaped.
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
