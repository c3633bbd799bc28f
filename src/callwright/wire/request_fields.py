"""Fields: a client's JSON read with care, every complaint naming the field that is wrong.

What is raised is a `RequestError` with a path such as `messages[2].content`; only nesting beyond the interpreter's
limit is left to the caller, because it may show later too. A field that is null counts as left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from callwright.errors import RequestError

__all__ = ["RequestFields", "describe_type", "parse_body"]

T = TypeVar("T")
_TYPE_NAMES = {
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    list: "a list",
    dict: "an object",
}


def parse_body(body: bytes) -> RequestFields:
    """The object that a request's body is. `RecursionError` if it is nested too deeply, as from any work with it."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        value = _decode_replacing_surrogates(body, problem)
    return RequestFields(value, "")


def _decode_replacing_surrogates(body: bytes, problem: Exception) -> Any:
    """A body with half of an escaped surrogate pair, as JavaScript writes a text that was cut inside an emoji."""
    try:
        text = json.dumps(json.loads(body), ensure_ascii=False)
        return msgspec.json.decode(text.encode("utf-8", "replace"))
    except ValueError:
        raise RequestError(f"the body is no valid JSON: {problem}") from problem


def describe_type(value: object) -> str:
    """What a JSON value is, in words."""
    return _TYPE_NAMES.get(type(value), "null")


class RequestFields:
    """One object of a request, and the path that leads to it."""

    __slots__ = ("path", "values")

    def __init__(self, value: object, path: str) -> None:
        if not isinstance(value, dict):
            raise RequestError(f"{path or 'the body'} must be an object, not {describe_type(value)}", param=path)
        self.values: Mapping[str, Any] = value
        self.path = path

    def format_path(self, key: str) -> str:
        """The path of a field."""
        return f"{self.path}.{key}" if self.path else key

    def build_error(self, key: str, wanted: str) -> RequestError:
        """The complaint about a field that is not what it should be."""
        path = self.format_path(key)
        if self.values.get(key) is None:
            return RequestError(f"{path} is missing: it must be {wanted}", param=path)
        return RequestError(f"{path} must be {wanted}, not {describe_type(self.values[key])}", param=path)

    def get(self, key: str, *kinds: type[T]) -> T | None:
        """A field of one of these kinds, or None. An integer is a number too; a boolean is neither."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool)):
            return value
        raise self.build_error(key, " or ".join(_TYPE_NAMES[each] for each in kinds))

    def get_text(self, *keys: str) -> str:
        """The first of these fields that is there, a string; else the empty one."""
        return next((found for key in keys if (found := self.get(key, str))), "")

    def require_text(self, key: str) -> str:
        """A string that must be there."""
        found = self.get(key, str)
        if not found:
            raise self.build_error(key, "a string that is not empty" if found == "" else "a string")
        return found

    def get_object(self, key: str) -> RequestFields | None:
        """A field that is an object, or None."""
        value = self.values.get(key)
        return None if value is None else RequestFields(value, self.format_path(key))

    def iter_items(self, key: str) -> Iterator[tuple[Any, str]]:
        """The items of a list, each with its path."""
        for position, value in enumerate(self.get(key, list) or ()):
            yield value, f"{self.format_path(key)}[{position}]"

    def iter_objects(self, key: str) -> Iterator[RequestFields]:
        """The items of a list of objects."""
        for value, path in self.iter_items(key):
            yield RequestFields(value, path)
