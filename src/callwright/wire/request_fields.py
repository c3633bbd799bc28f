"""Read a client's JSON with type checks; every error names the field that is wrong.

Errors are `RequestError` with a path such as `messages[2].content`. A body that is nested too deeply is refused, so
that all that walks through it later may recurse. A field that is null counts as missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from callwright.errors import RequestError
from callwright.input_limits import MAX_BODY_DEPTH
from callwright.text.nesting import is_deeper_than

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
    """Parse the object in a request's body."""
    try:
        value = _decode_body(body)
    except RecursionError as problem:
        raise _build_depth_error() from problem
    # Counting brackets is cheap, and small bodies have too few for any depth.
    if body.count(b"[") + body.count(b"{") > MAX_BODY_DEPTH and is_deeper_than(value, MAX_BODY_DEPTH):
        raise _build_depth_error()
    return RequestFields(value, "")


def _build_depth_error() -> RequestError:
    return RequestError(
        f"the body is nested too deeply: lists and objects may be inside each other at most {MAX_BODY_DEPTH} times"
    )


def _decode_body(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        return _decode_replacing_surrogates(body, problem)


def _decode_replacing_surrogates(body: bytes, problem: Exception) -> Any:
    """Decode a body with half of an escaped surrogate pair, as JavaScript writes a text that was cut inside an
    emoji."""
    try:
        text = json.dumps(json.loads(body), ensure_ascii=False)
        return msgspec.json.decode(text.encode("utf-8", "replace"))
    except ValueError:
        raise RequestError(f"the body is not valid JSON: {problem}") from problem


def describe_type(value: object) -> str:
    """Return the type of a JSON value, for a message."""
    return _TYPE_NAMES.get(type(value), "null")


class RequestFields:
    """One object of a request, and its path."""

    __slots__ = ("path", "values")

    def __init__(self, value: object, path: str) -> None:
        if not isinstance(value, dict):
            raise RequestError(f"{path or 'the body'} must be an object, not {describe_type(value)}", param=path)
        self.values: Mapping[str, Any] = value
        self.path = path

    def format_path(self, key: str) -> str:
        """Return the path of a field."""
        return f"{self.path}.{key}" if self.path else key

    def build_error(self, key: str, expected: str) -> RequestError:
        """Return the error for a field that is not of the expected type."""
        path = self.format_path(key)
        if self.values.get(key) is None:
            return RequestError(f"{path} is missing: it must be {expected}", param=path)
        return RequestError(f"{path} must be {expected}, not {describe_type(self.values[key])}", param=path)

    def get(self, key: str, *kinds: type[T]) -> T | None:
        """Return a field of one of these types, or None. An integer is a number too; a boolean is neither."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool)):
            return value
        raise self.build_error(key, " or ".join(_TYPE_NAMES[each] for each in kinds))

    def get_text(self, *keys: str) -> str:
        """Return the first of these fields that is present, as a string; otherwise an empty string."""
        return next((text for key in keys if (text := self.get(key, str))), "")

    def require_text(self, key: str) -> str:
        """Return a string that must be present."""
        text = self.get(key, str)
        if not text:
            raise self.build_error(key, "a non-empty string" if text == "" else "a string")
        return text

    def get_object(self, key: str) -> RequestFields | None:
        """Return a field that is an object, or None."""
        value = self.values.get(key)
        return None if value is None else RequestFields(value, self.format_path(key))

    def iter_items(self, key: str) -> Iterator[tuple[Any, str]]:
        """Yield the items of a list, each with its path."""
        for position, value in enumerate(self.get(key, list) or ()):
            yield value, f"{self.format_path(key)}[{position}]"

    def iter_objects(self, key: str) -> Iterator[RequestFields]:
        """Yield the items of a list of objects."""
        for value, path in self.iter_items(key):
            yield RequestFields(value, path)
