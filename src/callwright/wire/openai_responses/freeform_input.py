"""Decode the free text in arguments such as `{"input": "*** Begin Patch\\n…"}` while they arrive.

A `custom` tool's input is sent to the client as plain text, each character as soon as it is certain. Arguments of
another shape are held back to their end: then their `input` is used if they have one, otherwise all of them.
"""

from __future__ import annotations

import json
import re

from callwright.text.json_stream import copy_string, take_key
from callwright.text.source import ParseStep, Source, ignore

__all__ = ["FreeformInputReader"]

_find_surrogate = re.compile("[\ud800-\udfff]").search


class FreeformInputReader:
    """Reads one call's arguments. `feed` and `close` return text to append to the input."""

    def __init__(self) -> None:
        self._arguments: list[str] = []
        self._has_input = False
        self._new_text: list[str] = []
        self._source = Source()
        self._grammar = self._parse_arguments()

    def feed(self, fragment: str) -> str:
        """Read more of the arguments and return the new text."""
        if not self._has_input:
            self._arguments.append(fragment)
        self._source.feed(fragment)
        next(self._grammar)
        return self._take_text()

    def close(self) -> str:
        """End the arguments and return the rest of the text."""
        self._source.close()
        next(self._grammar)
        return self._take_text(last=True) if self._has_input else _extract_input("".join(self._arguments))

    def _parse_arguments(self) -> ParseStep[None]:
        source = self._source
        if (yield from source.skip_space()) == "{":
            source.position += 1
            yield from source.skip_space()
            if (yield from take_key(source, ignore)) == "input" and (yield from source.peek()) == '"':
                source.position += 1
                self._has_input = True
                yield from copy_string(source, self._append_text, ignore)
        while True:
            source.take_rest()
            yield

    def _append_text(self, piece: str) -> None:
        """Append a run of plain characters, or one escape."""
        self._new_text.append(json.loads(f'"{piece}"') if piece.startswith("\\") else piece)

    def _take_text(self, *, last: bool = False) -> str:
        """Return the new text; half of a surrogate pair waits for the other half."""
        text = "".join(self._new_text)
        self._new_text.clear()
        if not last and text and "\ud800" <= text[-1] < "\udc00":
            self._new_text.append(text[-1])
            text = text[:-1]
        return _join_surrogates(text)


def _join_surrogates(text: str) -> str:
    """Join the surrogate pairs of a text; single halves cannot be encoded as UTF-8 and are replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if _find_surrogate(text) else text


def _extract_input(arguments: str) -> str:
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    text = value.get("input") if isinstance(value, dict) else None
    return _join_surrogates(text) if isinstance(text, str) else arguments
