"""Hold back calls that do not match their tool's schema, so that the model can be asked again.

A call is passed on if it is complete, names a known tool and its arguments match the tool's schema after all repairs.
Otherwise it becomes `Malformed`, with a reason that the model can understand. No part of it was sent then; the price is
that arguments do not stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import jsonschema_rs
import msgspec

from callwright.events import CallDelta, CallEnd, CallStart, Event, Malformed
from callwright.guard.check_count import needs_too_many_checks
from callwright.guard.unusable_calls import describe_unknown_tool
from callwright.input_limits import MAX_BODY_DEPTH
from callwright.model import ToolSpec
from callwright.text.repair import parse_json

__all__ = ["SchemaCheckedCalls"]

_CACHE_SIZE = 1024
_MULTIPLYING_KEYWORDS = (b'"anyOf"', b'"oneOf"', b'"allOf"', b'"$ref"', b'"if"', b'"not"', b'"dependent', b'"patternP')
_MAX_MESSAGE_CHARACTERS = 300
"""The maximum length of a message, which may quote the value."""


class SchemaCheckedCalls:
    """Passes on complete calls that match their schema."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        self._schemas = {tool.name: msgspec.json.encode(tool.parameters) for tool in tools}
        self._pending: list[CallStart | CallDelta] = []
        self.rejected_tool = ""
        """The known tool that was last called with arguments that do not match."""

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """Return the events that are passed on."""
        out: list[Event] = []
        for event in events:
            match event:
                case CallStart() | CallDelta():
                    self._pending.append(event)
                case CallEnd():
                    out += self._check_call(event)
                case _:
                    out.append(event)
        return out

    def _check_call(self, end: CallEnd) -> list[Event]:
        events, self._pending = self._pending, []
        name = "".join(event.name for event in events if isinstance(event, CallStart))
        arguments = "".join(event.text for event in events if isinstance(event, CallDelta))
        problem = self._find_problem(name, arguments) if end.complete else ""
        if not problem:
            return [*events, end]
        self.rejected_tool = name if name in self._schemas else ""
        return [Malformed(f"{name} {arguments}", problem)]

    def _find_problem(self, name: str, arguments: str) -> str:
        if name not in self._schemas:
            return describe_unknown_tool(name, self._schemas)
        checker = _build_checker(self._schemas[name])
        error = checker.find_error(parse_json(arguments, MAX_BODY_DEPTH)) if checker else None
        if error is None:
            return ""
        where = ".".join(map(str, error.instance_path))
        return f"the arguments of {name} do not fit: {where + ': ' if where else ''}{error.message}"[
            :_MAX_MESSAGE_CHARACTERS
        ]


class _Checker:
    """Checks values against one schema."""

    def __init__(self, validator: jsonschema_rs.Validator, body: Any, *, multiplies: bool) -> None:
        self._validator = validator
        self._body = body
        self._multiplies = multiplies
        """Whether several of its schemas may apply to one value."""

    def find_error(self, value: Any) -> jsonschema_rs.ValidationError | None:
        """Return the first error. A value that would need too many checks has none."""
        if self._multiplies and needs_too_many_checks(self._body, value):
            return None
        return next(iter(self._validator.iter_errors(value)), None)


@lru_cache(_CACHE_SIZE)
def _build_checker(schema: bytes) -> _Checker | None:
    """Return a checker, or None if the schema is invalid or refers to the network: then any object matches."""
    body: Any = msgspec.json.decode(schema)
    try:
        validator = jsonschema_rs.validator_for(body, offline=True)
    except (ValueError, TypeError):
        return None
    return _Checker(validator, body, multiplies=any(word in schema for word in _MULTIPLYING_KEYWORDS))
