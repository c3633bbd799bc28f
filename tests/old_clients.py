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
_PARAMETER = re.compile(r"<([^>]+)>([\s\S]*?)</\1>")


def obsidian(text: str) -> list[Found]:
    """Several blocks, each to its first closing tag; a block without a name is ignored."""
    found = []
    for block in _BLOCK.findall(text):
        members = dict(_PARAMETER.findall(block))
        name = members.pop("name", "").strip()
        if name:
            found.append(Found(name, {key: _value(value.strip()) for key, value in members.items()}))
    return found


def _value(text: str) -> Any:
    """JSON between brackets if no tags are in it, a list of items, an object of elements, or a string as it stands."""
    tags = _PARAMETER.findall(text)
    if not tags and text[:1] + text[-1:] in ("[]", "{}"):
        try:
            return json.loads(text)
        except ValueError:
            return text
    if not tags:
        return text
    if all(key == "item" for key, _ in tags):
        return [_value(value.strip()) for _, value in tags]
    return {key: _value(value.strip()) for key, value in tags}


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
