"""Mend: a client's request made sound, and on the diet of its model. Pure.

This is what holds for every backend of the model and however often it is asked; `telling` does the rest.
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
    """A request that can be told."""

    request: Request
    client_tool_names: Mapping[str, str]
    """The client's name of each tool that is told under another."""
    repairs: tuple[Repair, ...]


def normalize_request(request: Request, route: ModelRoute) -> NormalizedRequest:
    """The request under the backend's name of the model, with the options of its settings."""
    repairs: tuple[Repair, ...] = ()
    if route.history.repair:
        answered = any(message.role == "assistant" for message in request.messages)
        looks = route.history.leaks and answered
        read = _build_history_reader(route.answer_dialect.name, msgspec.json.encode(request.tools)) if looks else None
        tools = {tool.name for tool in request.tools}
        messages, repairs = repair_history(request.messages, read, tools, route.answer_dialect.frame_indicators)
        request = msgspec.structs.replace(request, messages=messages)
    request, names, left_out = limit_tools(request, route.tool_limits)
    # After the diet: the tool is ours, and no list of the client's tools has it.
    request = add_final_answer_tool(request, route.prompt)
    options = {**route.settings.options, **request.options}
    addressed = msgspec.structs.replace(request, model=route.upstream, options=options)
    return NormalizedRequest(addressed, names, (*repairs, *left_out))


@lru_cache(32)
def _build_history_reader(name: str, tools: bytes) -> TurnParser:
    """Reads an earlier answer as the next one will be read. Clients send all of them with every request: what was read
    once is remembered."""
    specs = msgspec.json.decode(tools, type=tuple[ToolSpec, ...])

    @lru_cache(256)
    def read(text: str) -> Collected:
        parser = Parser(get_dialect(name), specs)
        if not specs:
            parser.turn.accepts_unknown_tools = False
        try:
            return collect([*parser.feed(text), *parser.close()])
        except BackendError:  # more than a parser holds undecided: whatever it is, it is no call
            return Collected(text, "", (), "stop")

    return read
