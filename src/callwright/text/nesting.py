"""How deep JSON is nested, measured without recursion, so that any depth can be measured."""

from __future__ import annotations

import re
from typing import Any

from callwright.input_limits import MAX_JSON_DEPTH

__all__ = ["count_parts", "describe_unreadable", "is_deeper_than", "is_text_deeper_than"]

_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[{(]|[\]})]', re.DOTALL)


def is_deeper_than(value: Any, max_depth: int) -> bool:
    """Whether a parsed value has more nested lists and objects than this."""
    level = [value] if isinstance(value, dict | list) else []
    depth = 0
    while level and depth < max_depth:
        depth += 1
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list)
        ]
    return bool(level)


def count_parts(value: Any) -> int:
    """Return the number of values in a parsed value, itself included."""
    count, waiting = 1, [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict | list):
            count += len(node)
            waiting.extend(node.values() if isinstance(node, dict) else node)
    return count


def is_text_deeper_than(text: str, max_depth: int) -> bool:
    """Whether a text, valid JSON or not, opens more brackets inside each other than this."""
    depth = 0
    for token in _TOKENS.finditer(text):
        char = text[token.start()]
        if char != '"':
            depth += 1 if char in "[{(" else -1
            if depth > max_depth:
                return True
    return False


def describe_unreadable(text: str) -> str:
    """Return why an argument cannot be read as JSON, for a message after `the value is`."""
    return "nested too deeply" if is_text_deeper_than(text, MAX_JSON_DEPTH - 1) else "not JSON"
