"""Builds the retry of an unusable answer, one step further each time. Pure.

First the model gets a message about the problem. Then, if the problem is a call, `tool_choice` requires a call, of the
same tool if that is known. Then the sampling changes, since the same sampling would give the same answer again.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from callwright.errors import BackendError
from callwright.model import Message, Request, Text

__all__ = ["RetryReason", "build_retry_request", "build_unusable_error"]

RetryReason = Literal["unusable_call", "missing_call", "empty", "error", "other_backend"]
"""Why an answer is retried: its call is unusable, a required call is missing, it is empty, it is an error without a
call, or the backend failed and there is another."""

_RETRY_MESSAGE = "Your last answer cannot be used: {problem}. Answer again."
_CONTINUE_MESSAGE = (
    "The user has read this. What came after it cannot be used: {problem}. Go on from there and repeat nothing."
)
_LOW_TEMPERATURE, _HIGH_TEMPERATURE = 0.2, 0.8
_GREEDY_TEMPERATURE = 0.3
"""Up to this temperature a model gives the same answer again."""


def build_retry_request(
    request: Request, problem: str, attempts: int, *, tool: str | None = None, visible_text: str = ""
) -> tuple[Request, str]:
    """Build the next request to the model, with a description of what changed.

    `attempts`: number of requests so far. `tool`: the tool that the answer tried to call, empty when unknown, None when
    the problem is not about a call. `visible_text`: the part of the last answer that the client already has.
    """
    visible = (Message("assistant", (Text(visible_text),)),) if visible_text.strip() else ()
    message = Message("user", (Text((_CONTINUE_MESSAGE if visible else _RETRY_MESSAGE).format(problem=problem)),))
    retry = msgspec.structs.replace(request, messages=(*request.messages, *visible, message))
    steps = ["with a message about the problem"]
    pins_tool = tool is not None and request.tool_choice != "none"
    if pins_tool and attempts >= 2:
        retry = msgspec.structs.replace(retry, tool_choice=_pin_tool_choice(request, tool or ""))
        steps.append(f"tool_choice {retry.tool_choice}")
    if attempts >= (3 if pins_tool else 2):
        retry = msgspec.structs.replace(retry, options=_change_sampling(request.options, attempts))
        steps.append(f"temperature {retry.options['temperature']}")
    return retry, ", ".join(steps)


def build_unusable_error(reason: RetryReason, problem: str, attempts: int) -> BackendError:
    """Build the error when all retries are used: what is wrong with the last answer, and what to check."""
    tries = "one attempt" if attempts == 1 else f"{attempts} attempts"
    hint = (
        ". Often the prompt does not fit the context window, or the chat template is wrong" if reason == "empty" else ""
    )
    return BackendError(f"the model gave no usable answer in {tries}: {problem}{hint}", kind="unusable")


def _pin_tool_choice(request: Request, tool: str) -> str:
    """Choose the value of `tool_choice`: a certain tool, or `required`."""
    names = [each.name for each in request.tools]
    if request.tool_choice in names:
        return request.tool_choice
    return tool if tool in names else names[0] if len(names) == 1 else "required"


def _change_sampling(options: dict[str, Any], attempts: int) -> dict[str, Any]:
    temperature = options.get("temperature")
    is_greedy = isinstance(temperature, int | float) and temperature <= _GREEDY_TEMPERATURE
    changed = {**options, "temperature": _HIGH_TEMPERATURE if is_greedy else _LOW_TEMPERATURE}
    return changed | {"seed": options["seed"] + attempts} if isinstance(options.get("seed"), int) else changed
