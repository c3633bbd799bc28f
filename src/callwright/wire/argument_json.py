"""Arguments as JSON text, for APIs in which they are objects or text."""

from __future__ import annotations

import json

import msgspec

from callwright.errors import RequestError
from callwright.text.repair import parse_json, repair_json
from callwright.wire.request_fields import RequestFields, describe_type

__all__ = ["is_json_object", "read_arguments", "read_strings", "repair_arguments", "to_raw_object", "to_single_line"]

# Line breaks between JSON tokens are white space; the other three occur in strings only, and end a line for code that
# splits decoded text with `str.splitlines`, like httpx's `iter_lines` (and so ollama-py).
_LINE_END_ESCAPES = str.maketrans({"\n": " ", "\r": " ", "\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def read_arguments(owner: RequestFields, key: str) -> str:
    """Read a call's arguments in a client's history as JSON text. A string is kept: the client could not parse it.
    Other values are repaired later, because a history never makes a request fail."""
    value = owner.values.get(key)
    return value if isinstance(value, str) else msgspec.json.encode({} if value is None else value).decode()


def read_strings(owner: RequestFields, key: str) -> list[str]:
    """Read a list of strings."""
    strings = []
    for value, path in owner.iter_items(key):
        if not isinstance(value, str):
            raise RequestError(f"{path} must be a string, not {describe_type(value)}", param=path)
        strings.append(value)
    return strings


def is_json_object(text: str) -> bool:
    """Whether a text is one complete JSON object."""
    try:
        return isinstance(parse_json(text), dict)
    except ValueError:
        return False


def to_single_line(arguments: str) -> msgspec.Raw:
    """Return the JSON text of complete arguments, unchanged, but without line ends."""
    return msgspec.Raw(arguments.translate(_LINE_END_ESCAPES).encode("utf-8", "replace"))


def repair_arguments(arguments: str) -> str:
    """Return arguments from a client's history as one JSON object, even if they are broken: Codex 0.166 sends back what
    it could not parse. They are repaired if that gives an object, and otherwise shown to the model unchanged.
    """
    if is_json_object(arguments):
        return arguments
    repaired = repair_json(arguments or "{}")
    return repaired.text if repaired and is_json_object(repaired.text) else json.dumps({"arguments": arguments})


def to_raw_object(arguments: str) -> msgspec.Raw:
    """Return the same as raw JSON, for bodies in which arguments are objects."""
    return to_single_line(repair_arguments(arguments))
