"""How old clients find calls in the text: the rules of their own parsers, with all that they get wrong.

From the sources of Obsidian Copilot 3.1 (before 1e3e0786) and of Kilo Code 5.10 (kilocode-legacy 56b73d3b).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any, NamedTuple

__all__ = ["Found", "kilo", "obsidian"]


class Found(NamedTuple):
    """A call as a client has it in hand."""

    name: str
    arguments: dict[str, Any]


# ── Obsidian Copilot ─────────────────────────────────────────────────────────────────────────────

_BLOCK = re.compile(r"<use_tool>([\s\S]*?)(?:</use_tool>|$)")
_NAME = re.compile(r"<name>([\s\S]*?)</name>")
_PARAMETER = re.compile(r"<([^>]+)>([\s\S]*?)</\1>")
_TAG = re.compile(r"<[^>]+>")
_ITEM = re.compile(r"<item>([\s\S]*?)</item>")
_LISTS = ("chatHistory", "salientTerms")
"""Parameters that are lists when they are empty."""


def obsidian(text: str) -> list[Found]:
    """Several blocks, each to its first closing tag; the first name is the tool's, and without one it is ignored."""
    found = []
    for block in _BLOCK.findall(text):
        named = _NAME.search(block)
        if named and named[1].strip():
            parameters = _PARAMETER.findall(_NAME.sub("", block, count=1))
            found.append(Found(named[1].strip(), {key: _value(value.strip(), key) for key, value in parameters}))
    return found


def _value(text: str, key: str = "") -> Any:
    """JSON between brackets if no tags are in it, a list of items, an object of elements, or a string as it stands."""
    if not text and key in _LISTS:
        return []
    if not _TAG.search(text):
        try:
            return json.loads(text) if text[:1] + text[-1:] in ("[]", "{}") else text
        except ValueError:
            return text
    if items := _ITEM.findall(text):
        return [_value(item.replace("<item>", "").strip()) for item in items]
    return {key: _value(value.strip()) for key, value in _PARAMETER.findall(text)} or text


# ── Kilo Code ────────────────────────────────────────────────────────────────────────────────────


def kilo(text: str, tools: Collection[str], parameters: Collection[str]) -> list[Found]:
    """Letter by letter: a tool opens on its exact tag, a parameter on one of a closed list, and neither knows escapes.

    One tool is run in a message; all are listed here.
    """
    found: list[Found] = []
    tool = key = ""
    begun = 0
    seen = ""
    for letter in text:
        seen += letter
        if tool and key:
            if seen.endswith(f"</{key}>"):
                found[-1].arguments[key] = _kept(key, seen[begun : -len(f"</{key}>")])
                key = ""
        elif tool:
            if seen.endswith(f"</{tool}>"):
                tool = ""
                continue
            key = next((each for each in parameters if seen.endswith(f"<{each}>")), "")
            if key:
                begun = len(seen)
            elif tool == "write_to_file" and seen.endswith("</content>"):
                opened = seen.rindex("<write_to_file>")
                content = seen[seen.index("<content>", opened) + len("<content>") : -len("</content>")]
                found[-1].arguments["content"] = _kept("content", content)
        else:
            tool = next((each for each in tools if seen.endswith(f"<{each}>")), "")
            if tool:
                found.append(Found(tool, {}))
    return found


def _kept(key: str, value: str) -> str:
    return re.sub(r"\n\Z", "", re.sub(r"\A\n", "", value)) if key == "content" else value.strip()
