"""Telling: a mended request as one backend gets it, within the window of its model.

What depends on the backend is done here: how the model gets its tools, what the wire has a place for, and how much the
server takes. Each time a request is told the same it gives the same bytes, so that prompt caches hold.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import NamedTuple

import msgspec

from callwright.dialects import Dialect
from callwright.engine.routing import ModelRoute
from callwright.engine.strategy import ToolStrategy
from callwright.engine.tokens import count_prompt_tokens_sync, estimate_max_tokens
from callwright.model import Constraint, Message, Repair, Request
from callwright.prompt.context_window import PromptBudget, fit_to_window
from callwright.prompt.message_roles import drop_reasoning, drop_result_images, merge_roles_strictly, move_result_images
from callwright.prompt.prompt_templates import PromptTemplates
from callwright.prompt.request_prompt import prepare_request

__all__ = ["CallPlan", "build_backend_request", "fit_backend_request"]

_RESULT_IMAGE_WIRES = frozenset({"anthropic", "codex", "openai_responses"})
"""Wires whose tool results may hold pictures."""


class CallPlan(NamedTuple):
    """How a backend is asked."""

    wire: str
    strategy: ToolStrategy
    strategy_reason: str
    """The reason for the strategy."""
    answer_dialect: Dialect
    """The dialect of the answer."""
    prompt_dialect: Dialect
    """The dialect of what is told in words."""
    constraint: Constraint | None
    """The form that the answer is held to."""
    templates: PromptTemplates
    is_first_turn: bool
    """Nothing of the conversation was answered yet."""


def build_backend_request(request: Request, route: ModelRoute, plan: CallPlan, notes: list[Repair]) -> Request:
    """The request as it goes over the wire. What was changed is added to the notes."""
    messages = request.messages
    if route.history.reasoning == "drop":
        messages = drop_reasoning(messages)
    if route.vision is False:
        messages = drop_result_images(messages, notes)
    seen = msgspec.structs.replace(request, messages=messages)
    said, warnings = prepare_request(
        seen,
        route.prompt,
        plan.prompt_dialect,
        plan.templates,
        is_first_turn=plan.is_first_turn,
        strategy=plan.strategy,
    )
    notes += warnings
    ordered = _arrange_messages(said.messages, route, plan.wire, notes)
    return msgspec.structs.replace(said, messages=ordered, constraint=plan.constraint)


def _arrange_messages(
    messages: tuple[Message, ...], route: ModelRoute, wire: str, notes: list[Repair]
) -> tuple[Message, ...]:
    """Last, because it is about what the server sees: pictures where the wire has a place, roles as templates want."""
    pictures = route.history.result_images
    if pictures == "move" or (pictures == "auto" and wire not in _RESULT_IMAGE_WIRES):
        messages = move_result_images(messages, notes)
    return merge_roles_strictly(messages, notes) if route.history.roles == "strict" else messages


async def fit_backend_request(
    window: int, request: Request, route: ModelRoute, plan: CallPlan
) -> tuple[Request, list[Repair]]:
    """The same, and the notes. `RequestError` when it does not fit the window and may not be condensed; 0 fits all."""
    limits, notes = route.tool_limits, list[Repair]()
    whole = build_backend_request(request, route, plan, notes)
    reserve = min(limits.reserve, request.options.get("max_tokens") or limits.reserve)
    room = PromptBudget(window, reserve)
    if not window or limits.overflow == "send" or estimate_max_tokens(whole) <= room.max_prompt_tokens:
        return whole, notes

    def size(shorter: Request) -> int:
        return count_prompt_tokens_sync(build_backend_request(shorter, route, plan, []))

    fit = partial(fit_to_window, request, room, size, condense=limits.overflow == "condense")
    shorter, repairs = await asyncio.to_thread(fit)
    return build_backend_request(shorter, route, plan, []), [*notes, *repairs]
