"""Shapes that several APIs share: arguments in them are objects or text, where we keep JSON text."""

from __future__ import annotations

import json

import msgspec

from callwright.errors import RequestError
from callwright.text.repair import parse_json, repair_json
from callwright.wire.request_fields import RequestFields, describe_type

__all__ = ["is_json_object", "read_arguments", "read_strings", "repair_arguments", "to_raw_object", "to_single_line"]

# Line breaks between JSON's tokens are space; the other three stand in strings only, and are line ends to whoever
# cuts decoded text with `str.splitlines`, as httpx's `iter_lines` (and so ollama-py) does.
_LINE_END_ESCAPES = str.maketrans({"\n": " ", "\r": " ", "\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def read_arguments(owner: RequestFields, key: str) -> str:
    """A call's arguments in a client's history as JSON text. A string is what the client could not parse, and stays as
    it is; what is neither that nor an object is mended later, because a history never makes a request fail."""
    value = owner.values.get(key)
    return value if isinstance(value, str) else msgspec.json.encode({} if value is None else value).decode()


def read_strings(owner: RequestFields, key: str) -> list[str]:
    """A list of strings."""
    found = []
    for value, path in owner.iter_items(key):
        if not isinstance(value, str):
            raise RequestError(f"{path} must be a string, not {describe_type(value)}", param=path)
        found.append(value)
    return found


def is_json_object(text: str) -> bool:
    """Whether a text is one whole JSON object."""
    try:
        return isinstance(parse_json(text), dict)
    except ValueError:
        return False


def to_single_line(arguments: str) -> msgspec.Raw:
    """The JSON text of whole arguments, digit for digit, in a form that may stand in a line."""
    return msgspec.Raw(arguments.translate(_LINE_END_ESCAPES).encode("utf-8", "replace"))


def repair_arguments(arguments: str) -> str:
    """Arguments from a client's history as one JSON object, though they may be broken: Codex 0.166 sends back what it
    could not parse. They are mended where that gives an object, and else shown to the model as they were.
    """
    if is_json_object(arguments):
        return arguments
    mended = repair_json(arguments or "{}")
    return mended.text if mended and is_json_object(mended.text) else json.dumps({"arguments": arguments})


def to_raw_object(arguments: str) -> msgspec.Raw:
    """The same, for bodies in which arguments are objects."""
    return to_single_line(repair_arguments(arguments))
