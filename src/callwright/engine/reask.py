"""Again: what a model is told when its answer will not do, one step further each time. Pure.

First what was wrong, in words. Then, where it is about a call, that a call must come, of the very tool if that is
known. Then other sampling: what came out twice would come out again.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from callwright.errors import BackendError
from callwright.model import Message, Request, Text

__all__ = ["RetryReason", "build_retry_request", "build_unusable_error"]

RetryReason = Literal["unusable_call", "missing_call", "empty", "error", "other_backend"]
"""Why a model is asked again: its call cannot be used, there is none though one must be, the answer is empty, it is in
an error and no call either, or the backend failed and there is another."""

_RETRY_MESSAGE = "Your last answer cannot be used: {problem}. Answer again."
_CONTINUE_MESSAGE = (
    "The user has read this. What came after it cannot be used: {problem}. Go on from there and repeat nothing."
)
_LOW_TEMPERATURE, _HIGH_TEMPERATURE = 0.2, 0.8
_GREEDY_TEMPERATURE = 0.3
"""Up to this temperature a model says the same again."""


def build_retry_request(
    request: Request, problem: str, attempts: int, *, tool: str | None = None, visible_text: str = ""
) -> tuple[Request, str]:
    """The client's request as the model gets it the next time, and what is different about it.

    `times`: how often it was asked already. `tool`: the one that it tried to call, empty where that is not known, None
    where the problem is not about a call. `said`: the words of the last answer that the client has already.
    """
    before = (Message("assistant", (Text(visible_text),)),) if visible_text.strip() else ()
    word = Message("user", (Text((_CONTINUE_MESSAGE if before else _RETRY_MESSAGE).format(problem=problem)),))
    told = msgspec.structs.replace(request, messages=(*request.messages, *before, word))
    steps = ["told what was wrong"]
    pin = tool is not None and request.tool_choice != "none"
    if pin and attempts >= 2:
        told = msgspec.structs.replace(told, tool_choice=_pin_tool_choice(request, tool or ""))
        steps.append(f"tool_choice {told.tool_choice}")
    if attempts >= (3 if pin else 2):
        told = msgspec.structs.replace(told, options=_change_sampling(request.options, attempts))
        steps.append(f"temperature {told.options['temperature']}")
    return told, ", ".join(steps)


def build_unusable_error(reason: RetryReason, problem: str, attempts: int) -> BackendError:
    """The budget is spent: what is wrong with the last answer, and what a person can look at."""
    tries = "one try" if attempts == 1 else f"{attempts} tries"
    often = "; often the prompt does not fit its window, or its chat template is wrong" if reason == "empty" else ""
    return BackendError(f"the model gave no usable answer in {tries}: {problem}{often}", kind="unusable")


def _pin_tool_choice(request: Request, tool: str) -> str:
    """The tool that must be called, or that one must be."""
    names = [each.name for each in request.tools]
    if request.tool_choice in names:
        return request.tool_choice
    return tool if tool in names else names[0] if len(names) == 1 else "required"


def _change_sampling(options: dict[str, Any], attempts: int) -> dict[str, Any]:
    warm = options.get("temperature")
    greedy = isinstance(warm, int | float) and warm <= _GREEDY_TEMPERATURE
    changed = {**options, "temperature": _HIGH_TEMPERATURE if greedy else _LOW_TEMPERATURE}
    return changed | {"seed": options["seed"] + attempts} if isinstance(options.get("seed"), int) else changed
