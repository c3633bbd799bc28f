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

__all__ = ["Fields", "kind", "parse"]

T = TypeVar("T")
_KINDS = {str: "a string", bool: "a boolean", int: "an integer", float: "a number", list: "a list", dict: "an object"}


def parse(body: bytes) -> Fields:
    """The object that a request's body is. `RecursionError` if it is nested too deeply, as from any work with it."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        value = _without_lone_surrogates(body, problem)
    return Fields(value, "")


def _without_lone_surrogates(body: bytes, problem: Exception) -> Any:
    """A body with half of an escaped surrogate pair, as JavaScript writes a text that was cut inside an emoji."""
    try:
        text = json.dumps(json.loads(body), ensure_ascii=False)
        return msgspec.json.decode(text.encode("utf-8", "replace"))
    except ValueError:
        raise RequestError(f"the body is no valid JSON: {problem}") from problem


def kind(value: object) -> str:
    """What a JSON value is, in words."""
    return _KINDS.get(type(value), "null")


class Fields:
    """One object of a request, and the path that leads to it."""

    __slots__ = ("path", "values")

    def __init__(self, value: object, path: str) -> None:
        if not isinstance(value, dict):
            raise RequestError(f"{path or 'the body'} must be an object, not {kind(value)}", param=path)
        self.values: Mapping[str, Any] = value
        self.path = path

    def at(self, key: str) -> str:
        """The path of a field."""
        return f"{self.path}.{key}" if self.path else key

    def wrong(self, key: str, wanted: str) -> RequestError:
        """The complaint about a field that is not what it should be."""
        path = self.at(key)
        if self.values.get(key) is None:
            return RequestError(f"{path} is missing: it must be {wanted}", param=path)
        return RequestError(f"{path} must be {wanted}, not {kind(self.values[key])}", param=path)

    def get(self, key: str, *kinds: type[T]) -> T | None:
        """A field of one of these kinds, or None. An integer is a number too; a boolean is neither."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool)):
            return value
        raise self.wrong(key, " or ".join(_KINDS[each] for each in kinds))

    def text(self, *keys: str) -> str:
        """The first of these fields that is there, a string; else the empty one."""
        return next((found for key in keys if (found := self.get(key, str))), "")

    def need(self, key: str) -> str:
        """A string that must be there."""
        found = self.get(key, str)
        if not found:
            raise self.wrong(key, "a string that is not empty" if found == "" else "a string")
        return found

    def nested(self, key: str) -> Fields | None:
        """A field that is an object, or None."""
        value = self.values.get(key)
        return None if value is None else Fields(value, self.at(key))

    def entries(self, key: str) -> Iterator[tuple[Any, str]]:
        """The items of a list, each with its path."""
        for position, value in enumerate(self.get(key, list) or ()):
            yield value, f"{self.at(key)}[{position}]"

    def objects(self, key: str) -> Iterator[Fields]:
        """The items of a list of objects."""
        for value, path in self.entries(key):
            yield Fields(value, path)
