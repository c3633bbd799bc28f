"""Calls as XML, as clients wrote their own parsers for before they took native calls.

Both read with tags alone and unescape nothing (obsidian-copilot before its commit 1e3e0786, kilocode-legacy 5.10.4,
from their source). So a value is written as it is; only one that would be misread has its `<` written as `&lt;`, since
a call with a strange value is better than another call. JSON has an escape of its own, which loses nothing.
"""

from __future__ import annotations

import json
import re
from typing import Any

from callwright.model import ToolCall

__all__ = ["kilo_xml", "obsidian_xml"]

_ELEMENT = re.compile(r"<([^>]+)>.*?</\1>", re.DOTALL)
"""What Obsidian Copilot takes for a member of an object."""


def obsidian_xml(call: ToolCall) -> str:
    """`<use_tool>` with the name and each parameter in an element; the first `</use_tool>` ends it."""
    members = [("name", call.name), *json.loads(call.arguments).items()]
    lines = (f"<{key}>{_kept(value, '</use_tool>', f'</{key}>', elements=True)}</{key}>" for key, value in members)
    return "\n".join(["<use_tool>", *lines, "</use_tool>"])


def kilo_xml(call: ToolCall) -> str:
    """An element called like the tool. `content` goes to its last closing tag, and loses a newline at each end."""
    lines = [f"<{key}>{_member(key, value)}</{key}>" for key, value in json.loads(call.arguments).items()]
    return "\n".join([f"<{call.name}>", *lines, f"</{call.name}>"])


def _member(key: str, value: Any) -> str:
    return f"\n{_text(value)}\n" if key == "content" else _kept(value, f"</{key}>", "</content>")


def _kept(value: Any, *ends: str, elements: bool = False) -> str:
    text = _text(value)
    misread = any(end in text for end in ends) or (elements and _ELEMENT.search(text))
    return text.replace("<", "&lt;") if misread else text


def _text(value: Any) -> str:
    """A string as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")
