"""Prepare: a client's request as one model is told it. Pure.

`prepared` does what holds for every backend of the model: the history mended, the tools on their diet. `told` does what
depends on the backend that is asked, and on how the model gets its tools; its result goes over the wire.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import msgspec

from callwright.dialects import dialect
from callwright.engine.routing import Route
from callwright.errors import BackendError
from callwright.model import Repair, Request, ToolSpec
from callwright.parser import Parser
from callwright.prompt.diet import dieted
from callwright.prompt.history import repaired
from callwright.prompt.leaks import Read
from callwright.prompt.roles import images_moved, strict, without_reasoning, without_result_images
from callwright.prompt.teach import taught
from callwright.turn import Collected, collect

__all__ = ["Prepared", "prepared", "told"]

_RESULT_IMAGES = frozenset({"anthropic", "openai_responses"})
"""Wires whose tool results may hold pictures."""


class Prepared(NamedTuple):
    """A request that can be told."""

    request: Request
    names: Mapping[str, str]
    """The client's name of each tool that is told under another."""
    repairs: tuple[Repair, ...]


def prepared(request: Request, route: Route) -> Prepared:
    """The request under the backend's name of the model, with the options of its settings."""
    mended: tuple[Repair, ...] = ()
    if route.history.repair:
        read = _reader(route.reads.name, msgspec.json.encode(request.tools)) if route.history.leaks else None
        messages, mended = repaired(request.messages, read, {tool.name for tool in request.tools})
        request = msgspec.structs.replace(request, messages=messages)
    request, names, left_out = dieted(request, route.diet)
    options = {**route.settings.options, **request.options}
    return Prepared(
        msgspec.structs.replace(request, model=route.upstream, options=options), names, (*mended, *left_out)
    )


@lru_cache(32)
def _reader(name: str, tools: bytes) -> Read:
    """Reads an earlier answer as the next one will be read. Clients send all of them with every request: what was read
    once is remembered."""
    specs = msgspec.json.decode(tools, type=tuple[ToolSpec, ...])

    @lru_cache(256)
    def read(text: str) -> Collected:
        parser = Parser(dialect(name), specs)
        try:
            return collect([*parser.feed(text), *parser.close()])
        except BackendError:  # more than a parser holds undecided: whatever it is, it is no call
            return Collected(text, "", (), "stop")

    return read


def told(request: Request, route: Route, wire: str, strategy: str, notes: list[Repair]) -> Request:
    """The request as a backend on this wire gets it. What was changed is added to the notes."""
    settings, messages = route.history, request.messages
    if settings.reasoning == "drop":
        messages = without_reasoning(messages)
    if route.vision is False:
        messages = without_result_images(messages, notes)
    elif settings.result_images == "move" or (settings.result_images == "auto" and wire not in _RESULT_IMAGES):
        messages = images_moved(messages, notes)
    request = msgspec.structs.replace(request, messages=messages)
    if strategy == "taught":
        request = taught(request, route.teaches)
    if settings.roles == "strict":
        request = msgspec.structs.replace(request, messages=strict(request.messages, notes))
    return request
