"""How two old clients read calls out of an answer's text, written anew from a description of their source.

Obsidian Copilot up to 3.1: two regular expressions, no entities. Kilo Code up to 5.10: exact tags of known tools and
parameters, one call in a message, values trimmed but for `content`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

__all__ = ["kilo_reads", "obsidian_reads"]

_BLOCK = re.compile(r"<use_tool>([\s\S]*?)(?:</use_tool>|$)")
_ELEMENT = re.compile(r"<([^>]+)>([\s\S]*?)</\1>")


def obsidian_reads(text: str) -> list[tuple[str, dict[str, Any]]]:
    """The calls of a message."""
    calls = []
    for block in _BLOCK.finditer(text):
        members = {name: _obsidian_value(value) for name, value in _ELEMENT.findall(block[1])}
        if name := members.pop("name", ""):
            calls.append((str(name), members))
    return calls


def _obsidian_value(text: str) -> Any:
    if _ELEMENT.search(text):
        inner = _ELEMENT.findall(text)
        if {name for name, _ in inner} == {"item"}:
            return [_obsidian_value(value) for _, value in inner]
        return {name: _obsidian_value(value) for name, value in inner}
    if (text[:1], text[-1:]) in (("[", "]"), ("{", "}")):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def kilo_reads(text: str, tools: dict[str, Collection[str]]) -> tuple[str, dict[str, str]] | None:
    """The one call of a message."""
    starts = {text.find(f"<{name}>"): name for name in tools if f"<{name}>" in text}
    if not starts:
        return None
    at, name = min(starts.items())
    rest, values = text[at + len(name) + 2 :], {}
    while True:
        opens = {rest.find(f"<{key}>"): key for key in tools[name] if f"<{key}>" in rest}
        end = rest.find(f"</{name}>")
        if not opens or -1 < end < min(opens):
            return name, values
        begin, key = min(opens.items())
        rest = rest[begin + len(key) + 2 :]
        close = rest.rfind(f"</{key}>") if key == "content" else rest.find(f"</{key}>")
        value, rest = rest[:close], rest[close + len(key) + 3 :]
        values[key] = value.removeprefix("\n").removesuffix("\n") if key == "content" else value.strip()
