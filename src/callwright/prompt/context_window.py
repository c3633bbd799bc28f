"""Check that a prompt fits the context window, and condense it if that is allowed.

Servers that get too much cut it silently: Ollama drops the oldest part, including the tools or the user's own message
(opencode #1034, ollama #18107). Here the request is refused with the numbers, or, by setting, condensed: first the
bodies of the oldest results, then the oldest rounds. Instructions, the user's last message and the current round are
kept complete, and a marker says what was left out. The caller provides the token counter.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from callwright.errors import RequestError
from callwright.model import Message, Part, Repair, Request, Text, ToolResult

__all__ = ["CONTEXT_LENGTH_EXCEEDED", "FittedRequest", "PromptBudget", "fit_to_window"]

CONTEXT_LENGTH_EXCEEDED = "context_length_exceeded"
"""OpenAI's error code, which tells agents to condense the conversation."""

TokenCounter = Callable[[Request], int]

_MIN_RESULT_CHARACTERS = 200
"""A result shorter than this is not replaced by a marker."""


class PromptBudget(msgspec.Struct, frozen=True):
    """The tokens that a model has for a prompt."""

    window: int
    reserve: int
    """Tokens of the window that are reserved for the answer."""

    @property
    def max_prompt_tokens(self) -> int:
        """How many tokens a prompt may have: at least half of the window, however large the reserve is."""
        return self.window - min(self.reserve, self.window // 2)


class FittedRequest(NamedTuple):
    """A request that fits."""

    request: Request
    repairs: tuple[Repair, ...] = ()


def fit_to_window(
    request: Request, budget: PromptBudget, count: TokenCounter, *, condense: bool = False
) -> FittedRequest:
    """Return the request if it fits, or condensed. Raise `RequestError` if it is too long and cannot be condensed."""
    size = count(request)
    if size <= budget.max_prompt_tokens:
        return FittedRequest(request)
    if not condense:
        raise _build_too_long_error(size, budget)
    messages = request.messages
    dropped_results = _find_smallest(
        len(_list_long_results(messages)),
        lambda limit: _is_within_budget(request, _drop_result_bodies(messages, limit), budget, count),
    )
    messages = _drop_result_bodies(messages, dropped_results)
    dropped_rounds = _find_smallest(
        len(_list_rounds(messages)),
        lambda limit: _is_within_budget(request, _drop_rounds(messages, limit), budget, count),
    )
    messages = _drop_rounds(messages, dropped_rounds)
    shorter = msgspec.structs.replace(request, messages=messages)
    if (new_size := count(shorter)) > budget.max_prompt_tokens:
        raise _build_too_long_error(new_size, budget, "even condensed ")
    detail = (
        f"{dropped_results} results and {dropped_rounds} rounds were left out; "
        f"the prompt had {size} tokens and now has {new_size}"
    )
    return FittedRequest(shorter, (Repair("condensed", detail),))


def _find_smallest(maximum: int, enough: Callable[[int], bool]) -> int:
    """Return the smallest number from 0 to `maximum` that is enough; `maximum` if none is."""
    # Test 0 separately: a marker may be longer than the first round.
    return 0 if not maximum or enough(0) else 1 + bisect_left(range(1, maximum), True, key=enough)


def _is_within_budget(
    request: Request, messages: tuple[Message, ...], budget: PromptBudget, count: TokenCounter
) -> bool:
    return count(msgspec.structs.replace(request, messages=messages)) <= budget.max_prompt_tokens


def _build_too_long_error(size: int, budget: PromptBudget, prefix: str = "") -> RequestError:
    # Agents recognize that they must condense by these words: pi's and opencode's overflow patterns look for "prompt is
    # too long" (Anthropic's) and "maximum context length is N tokens" (OpenAI's).
    return RequestError(
        f"{prefix}the prompt is too long: it has about {size} tokens, and the model's maximum context length is "
        f"{budget.window} tokens, of which {budget.window - budget.max_prompt_tokens} are kept for the answer. "
        "Shorten the conversation, offer fewer tools, give the server a larger window, or set overflow in the "
        "model's tool_limits",
        param="messages",
        code=CONTEXT_LENGTH_EXCEEDED,
    )


# ── bodies of results ────────────────────────────────────────────────────────────────────────────


def _find_last(messages: Sequence[Message], role: str) -> int:
    """Return the index of the last message of a role; -1 if there is none."""
    return max((at for at, message in enumerate(messages) if message.role == role), default=-1)


def _list_long_results(messages: Sequence[Message]) -> list[int]:
    """Return the indices of messages with long results, oldest first, except those that the model has not seen yet."""
    return [
        at
        for at, message in enumerate(messages[: max(_find_last(messages, "assistant"), 0)])
        if _has_long_result(message)
    ]


def _has_long_result(message: Message) -> bool:
    return any(
        isinstance(part, ToolResult) and (len(part.content) > _MIN_RESULT_CHARACTERS or part.images)
        for part in message.parts
    )


def _drop_result_bodies(messages: tuple[Message, ...], max_results: int) -> tuple[Message, ...]:
    """Return the messages with markers in place of the bodies of the oldest results."""
    dropped = set(_list_long_results(messages)[:max_results])
    return tuple(
        Message(message.role, tuple(map(_drop_body, message.parts))) if at in dropped else message
        for at, message in enumerate(messages)
    )


def _drop_body(part: Part) -> Part:
    if not isinstance(part, ToolResult) or not (len(part.content) > _MIN_RESULT_CHARACTERS or part.images):
        return part
    marker = (
        f"[{len(part.content)} characters of this result were left out: the conversation is too long for the model]"
    )
    return msgspec.structs.replace(part, content=marker, images=())


# ── rounds ───────────────────────────────────────────────────────────────────────────────────────


def _list_rounds(messages: Sequence[Message]) -> list[tuple[int, int]]:
    """Return the removable rounds as ranges, oldest first: a user message, or an answer with its results."""
    last_user = _find_last(messages, "user")
    answered = _find_last(messages, "assistant")
    starts = [at for at, message in enumerate(messages) if message.role != "tool"]
    spans = zip(starts, [*starts[1:], len(messages)], strict=True)
    return [
        (start, end)
        for start, end in spans
        if messages[start].role in ("user", "assistant") and start != last_user and not start == answered > last_user
    ]


def _drop_rounds(messages: tuple[Message, ...], max_rounds: int) -> tuple[Message, ...]:
    """Return the messages without the oldest rounds, and a user message about it in their place."""
    rounds = _list_rounds(messages)[:max_rounds]
    if not rounds:
        return messages
    left_out = {at for start, end in rounds for at in range(start, end)}
    marker = f"[{len(left_out)} earlier messages were left out: the conversation is too long for the model]"
    kept = [(at, message) for at, message in enumerate(messages) if at not in left_out]
    before = tuple(message for at, message in kept if at < rounds[0][0])
    after = tuple(message for at, message in kept if at > rounds[0][0])
    return (*before, Message("user", (Text(marker),)), *after)
