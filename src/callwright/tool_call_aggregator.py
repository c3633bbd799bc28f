"""The aggregator for programs: random ids, and any dialect as a pattern for calls in text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from callwright.aggregator import Aggregator, TextPattern
from callwright.dialects import Dialect
from callwright.ids import make_call_id
from callwright.model import ToolSpec
from callwright.parser import Parser
from callwright.schema import Toolbox, parse_tool_spec
from callwright.text.source import DEFAULT_LIMIT
from callwright.turn import IdFactory, collect

__all__ = ["ToolCallAggregator", "text_pattern"]


class ToolCallAggregator(Aggregator):
    """Collects the tool calls of a turn from structured deltas. Calls without an id get one like OpenAI's.

    A call that is over and whose arguments are empty, null or an empty list has the arguments `{}`, unless `tools` says
    that its tool has required parameters.

    >>> calls = ToolCallAggregator()
    >>> _ = calls.ingest_delta({"tool_calls": [{"index": 0, "function": {"name": "ping", "arguments": "{"}}]})
    >>> _ = calls.ingest_delta({"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]})
    >>> [(call.name, call.arguments) for call in calls.snapshot()]
    [('ping', '{}')]
    """

    def __init__(
        self,
        ids: IdFactory = make_call_id,
        *,
        tools: Iterable[ToolSpec | Mapping[str, Any]] = (),
        patterns: Iterable[TextPattern] = (),
        limit: int = DEFAULT_LIMIT,
    ) -> None:
        super().__init__(ids, patterns=patterns, limit=limit)
        self._tools = Toolbox(map(parse_tool_spec, tools))

    def _allows_no_arguments(self, name: str) -> bool:
        tool = self._tools.get(name)
        return tool is None or not tool.schema.required


def text_pattern(dialect: Dialect, tools: Iterable[ToolSpec | Mapping[str, Any]] = ()) -> TextPattern:
    """Return a pattern that finds the calls that a dialect reads in a text; only complete calls count."""
    offered = tuple(tools)

    def find(text: str) -> list[tuple[str, str]]:
        parser = Parser(dialect, offered)
        turn = collect([*parser.feed(text), *parser.close()])
        return [(call.name, call.arguments) for call in turn.tool_calls if call.complete]

    return find
