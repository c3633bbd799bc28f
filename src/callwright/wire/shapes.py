"""Shapes that several APIs share: arguments in them are objects or text, where we keep JSON text."""

from __future__ import annotations

import json

import msgspec

from callwright.errors import RequestError
from callwright.text.repair import parse_json, repair_json
from callwright.wire.fields import Fields, kind

__all__ = ["arguments_of", "as_object", "is_object", "object_text", "on_one_line", "texts_of"]

# Line breaks between JSON's tokens are space; the other three stand in strings only, and are line ends to whoever
# cuts decoded text with `str.splitlines`, as httpx's `iter_lines` (and so ollama-py) does.
_ONE_LINE = str.maketrans({"\n": " ", "\r": " ", "\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def arguments_of(owner: Fields, key: str) -> str:
    """A call's arguments in a client's history as JSON text. A string is what the client could not parse, and stays as
    it is; what is neither that nor an object is mended later, because a history never makes a request fail."""
    value = owner.values.get(key)
    return value if isinstance(value, str) else msgspec.json.encode({} if value is None else value).decode()


def texts_of(owner: Fields, key: str) -> list[str]:
    """A list of strings."""
    found = []
    for value, path in owner.entries(key):
        if not isinstance(value, str):
            raise RequestError(f"{path} must be a string, not {kind(value)}", param=path)
        found.append(value)
    return found


def is_object(text: str) -> bool:
    """Whether a text is one whole JSON object."""
    try:
        return isinstance(parse_json(text), dict)
    except ValueError:
        return False


def on_one_line(arguments: str) -> msgspec.Raw:
    """The JSON text of whole arguments, digit for digit, in a form that may stand in a line."""
    return msgspec.Raw(arguments.translate(_ONE_LINE).encode("utf-8", "replace"))


def object_text(arguments: str) -> str:
    """Arguments from a client's history as one JSON object, though they may be broken: Codex 0.166 sends back what it
    could not parse. They are mended where that gives an object, and else shown to the model as they were.
    """
    if is_object(arguments):
        return arguments
    mended = repair_json(arguments or "{}")
    return mended.text if mended and is_object(mended.text) else json.dumps({"arguments": arguments})


def as_object(arguments: str) -> msgspec.Raw:
    """The same, for bodies in which arguments are objects."""
    return on_one_line(object_text(arguments))
