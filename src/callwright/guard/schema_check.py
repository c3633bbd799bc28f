"""Hold back calls that do not match their tool's schema, so that the model can be asked again.

A call is passed on if it is complete, names a known tool and its arguments match the tool's schema after all repairs.
Otherwise it becomes `Malformed`, with a reason that the model can understand. No part of it was sent then; the price is
that arguments do not stream.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import jsonschema_rs
import msgspec

from callwright.events import CallDelta, CallEnd, CallStart, Event, Malformed
from callwright.guard.unusable_calls import describe_unknown_tool
from callwright.model import ToolSpec

__all__ = ["SchemaCheckedCalls"]

_CACHE_SIZE = 1024
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
        validator = _build_validator(self._schemas[name])
        error = next(iter(validator.iter_errors(json.loads(arguments))), None) if validator else None
        if error is None:
            return ""
        where = ".".join(map(str, error.instance_path))
        return f"the arguments of {name} do not fit: {where + ': ' if where else ''}{error.message}"[
            :_MAX_MESSAGE_CHARACTERS
        ]


@lru_cache(_CACHE_SIZE)
def _build_validator(schema: bytes) -> jsonschema_rs.Validator | None:
    """Return a validator, or None if the schema is invalid or refers to the network: then any object matches."""
    body: Any = msgspec.json.decode(schema)
    try:
        return jsonschema_rs.validator_for(body, offline=True)
    except (ValueError, TypeError):
        return None
