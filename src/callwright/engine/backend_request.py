"""Builds the request for one backend from a normalized request, within the context window of its model.

Everything that depends on the backend happens here: how the model gets its tools, what the wire supports, and how much
fits. The same request always gives the same bytes, so that prompt caches work.
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
"""Wires whose tool results may contain images."""


class CallPlan(NamedTuple):
    """How to call a backend."""

    wire: str
    strategy: ToolStrategy
    strategy_reason: str
    """The reason for the strategy."""
    answer_dialect: Dialect
    """The dialect of the answer."""
    prompt_dialect: Dialect
    """The dialect that the prompt teaches."""
    constraint: Constraint | None
    """The grammar or schema that constrains the answer."""
    templates: PromptTemplates
    is_first_turn: bool
    """The conversation has no answer yet."""


def build_backend_request(request: Request, route: ModelRoute, plan: CallPlan, notes: list[Repair]) -> Request:
    """Build the request as it is sent. Changes are appended to `notes`."""
    messages = request.messages
    if route.history.reasoning == "drop":
        messages = drop_reasoning(messages)
    if route.vision is False:
        messages = drop_result_images(messages, notes)
    visible = msgspec.structs.replace(request, messages=messages)
    prepared, warnings = prepare_request(
        visible,
        route.prompt,
        plan.prompt_dialect,
        plan.templates,
        is_first_turn=plan.is_first_turn,
        strategy=plan.strategy,
    )
    notes += warnings
    ordered = _arrange_messages(prepared.messages, route, plan.wire, notes)
    return msgspec.structs.replace(prepared, messages=ordered, constraint=plan.constraint)


def _arrange_messages(
    messages: tuple[Message, ...], route: ModelRoute, wire: str, notes: list[Repair]
) -> tuple[Message, ...]:
    """Arrange messages for the server: move images to where the wire supports them, and merge roles if required."""
    image_mode = route.history.result_images
    if image_mode == "move" or (image_mode == "auto" and wire not in _RESULT_IMAGE_WIRES):
        messages = move_result_images(messages, notes)
    return merge_roles_strictly(messages, notes) if route.history.roles == "strict" else messages


async def fit_backend_request(
    window: int, request: Request, route: ModelRoute, plan: CallPlan
) -> tuple[Request, list[Repair]]:
    """Build the request so that it fits the window, and return it with the notes. A window of 0 means unknown.

    Raises `RequestError` when it does not fit and may not be condensed.
    """
    limits, notes = route.tool_limits, list[Repair]()
    backend_request = build_backend_request(request, route, plan, notes)
    reserve = min(limits.reserve, request.options.get("max_tokens") or limits.reserve)
    budget = PromptBudget(window, reserve)
    if not window or limits.overflow == "send" or estimate_max_tokens(backend_request) <= budget.max_prompt_tokens:
        return backend_request, notes

    def count_size(shorter: Request) -> int:
        return count_prompt_tokens_sync(build_backend_request(shorter, route, plan, []))

    fit = partial(fit_to_window, request, budget, count_size, condense=limits.overflow == "condense")
    shorter, repairs = await asyncio.to_thread(fit)
    return build_backend_request(shorter, route, plan, []), [*notes, *repairs]
