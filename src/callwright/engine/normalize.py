"""Normalizes a client's request: repairs its history and applies the tool limits of its model. Pure.

The result is valid for every backend of the model and every attempt; `backend_request` does the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import msgspec

from callwright.dialects import get_dialect
from callwright.engine.routing import ModelRoute
from callwright.errors import BackendError
from callwright.model import Repair, Request, ToolSpec
from callwright.parser import Parser
from callwright.prompt.final_answer_tool import add_final_answer_tool
from callwright.prompt.history_repair import repair_history
from callwright.prompt.leaked_calls import TurnParser
from callwright.prompt.tool_limits import limit_tools
from callwright.turn import Collected, collect

__all__ = ["NormalizedRequest", "normalize_request"]


class NormalizedRequest(NamedTuple):
    """A request that can be sent to any backend of the model."""

    request: Request
    client_tool_names: Mapping[str, str]
    """The client's name of each tool that is sent under another name."""
    repairs: tuple[Repair, ...]


def normalize_request(request: Request, route: ModelRoute) -> NormalizedRequest:
    """Normalize a request. It gets the backend's name of the model, and the options of its settings."""
    repairs: tuple[Repair, ...] = ()
    if route.history.repair:
        has_answers = any(message.role == "assistant" for message in request.messages)
        reads_calls = route.history.leaks and has_answers
        read = (
            _build_history_reader(route.answer_dialect.name, msgspec.json.encode(request.tools))
            if reads_calls
            else None
        )
        tools = {tool.name for tool in request.tools}
        messages, repairs = repair_history(request.messages, read, tools, route.answer_dialect.frame_indicators)
        request = msgspec.structs.replace(request, messages=messages)
    request, names, limit_repairs = limit_tools(request, route.tool_limits)
    # After the tool limits: this tool is ours, and no list of the client's tools contains it.
    request = add_final_answer_tool(request, route.prompt)
    options = {**route.settings.options, **request.options}
    addressed = msgspec.structs.replace(request, model=route.upstream, options=options)
    return NormalizedRequest(addressed, names, (*repairs, *limit_repairs))


@lru_cache(32)
def _build_history_reader(name: str, tools: bytes) -> TurnParser:
    """Build a parser for earlier answers, equal to the one for the next answer. Clients send all answers with every
    request, so results are cached."""
    specs = msgspec.json.decode(tools, type=tuple[ToolSpec, ...])

    @lru_cache(256)
    def read(text: str) -> Collected:
        parser = Parser(get_dialect(name), specs)
        if not specs:
            parser.turn.accepts_unknown_tools = False
        try:
            return collect([*parser.feed(text), *parser.close()])
        except BackendError:  # more text than a parser buffers: it cannot be a call
            return Collected(text, "", (), "stop")

    return read
