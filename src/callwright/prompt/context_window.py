"""Window: whether a prompt fits, and what is left out of one that must.

Servers that get too much cut it without a word: Ollama drops the oldest part, the tools or the user's own turn with it
(opencode #1034, ollama #18107). Here it is refused with the numbers, or, by setting, condensed: the bodies of the
oldest results first, then the oldest rounds. Instructions, the user's last message and the round that the model is in
stay whole, and a marker says what is gone. How tokens are counted is handed in.
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
"""OpenAI's code for it, by which agents know that they must condense the conversation."""

TokenCounter = Callable[[Request], int]

_MIN_RESULT_CHARACTERS = 200
"""A result shorter than this is not worth a marker."""


class PromptBudget(msgspec.Struct, frozen=True):
    """What a model has for a prompt, in tokens."""

    window: int
    reserve: int
    """Of the window, kept for the answer."""

    @property
    def max_prompt_tokens(self) -> int:
        """What a prompt may take. However much is kept for the answer, half of the window is the prompt's."""
        return self.window - min(self.reserve, self.window // 2)


class FittedRequest(NamedTuple):
    """A request that fits."""

    request: Request
    repairs: tuple[Repair, ...] = ()


def fit_to_window(
    request: Request, budget: PromptBudget, count: TokenCounter, *, condense: bool = False
) -> FittedRequest:
    """The request if it fits, or what is left of it. `RequestError` when it does not fit, and may not or cannot."""
    size = count(request)
    if size <= budget.max_prompt_tokens:
        return FittedRequest(request)
    if not condense:
        raise _build_too_long_error(size, budget)
    messages = request.messages
    spared = _find_smallest(
        len(_list_long_results(messages)),
        lambda most: _is_within_budget(request, _drop_result_bodies(messages, most), budget, count),
    )
    messages = _drop_result_bodies(messages, spared)
    dropped = _find_smallest(
        len(_list_rounds(messages)),
        lambda most: _is_within_budget(request, _drop_rounds(messages, most), budget, count),
    )
    messages = _drop_rounds(messages, dropped)
    shorter = msgspec.structs.replace(request, messages=messages)
    if (left := count(shorter)) > budget.max_prompt_tokens:
        raise _build_too_long_error(left, budget, "even condensed ")
    said = f"{spared} results and {dropped} rounds were left out; the prompt had {size} tokens and has {left} now"
    return FittedRequest(shorter, (Repair("condensed", said),))


def _find_smallest(most: int, enough: Callable[[int], bool]) -> int:
    """The smallest number from 0 to `most` that is enough; `most` when none is."""
    # 0 is asked for by itself: a marker may be longer than the first round.
    return 0 if not most or enough(0) else 1 + bisect_left(range(1, most), True, key=enough)


def _is_within_budget(
    request: Request, messages: tuple[Message, ...], budget: PromptBudget, count: TokenCounter
) -> bool:
    return count(msgspec.structs.replace(request, messages=messages)) <= budget.max_prompt_tokens


def _build_too_long_error(size: int, budget: PromptBudget, how: str = "") -> RequestError:
    # The words by which agents know that they must condense: "prompt is too long" (Anthropic's) and "maximum context
    # length is N tokens" (OpenAI's) are what pi's and opencode's overflow patterns look for.
    return RequestError(
        f"{how}the prompt is too long: it has about {size} tokens, and the model's maximum context length is "
        f"{budget.window} tokens, of which {budget.window - budget.max_prompt_tokens} are kept for the answer. "
        "Shorten the conversation, offer fewer tools, give the server a larger window, or set overflow in the "
        "model's tool_limits",
        param="messages",
        code=CONTEXT_LENGTH_EXCEEDED,
    )


# ── bodies of results ────────────────────────────────────────────────────────────────────────────


def _find_last(messages: Sequence[Message], role: str) -> int:
    """Where the last message of a role is; -1 if there is none."""
    return max((at for at, message in enumerate(messages) if message.role == role), default=-1)


def _list_long_results(messages: Sequence[Message]) -> list[int]:
    """The messages with long results, oldest first; those that the model has not seen yet are not among them."""
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


def _drop_result_bodies(messages: tuple[Message, ...], most: int) -> tuple[Message, ...]:
    """The messages with markers for what the oldest so many results said."""
    spared = set(_list_long_results(messages)[:most])
    return tuple(
        Message(message.role, tuple(map(_drop_body, message.parts))) if at in spared else message
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
    """What may go, oldest first: a user's message, or an answer with its results, from where to where."""
    kept = _find_last(messages, "user")
    answered = _find_last(messages, "assistant")
    starts = [at for at, message in enumerate(messages) if message.role != "tool"]
    spans = zip(starts, [*starts[1:], len(messages)], strict=True)
    return [
        (start, end)
        for start, end in spans
        if messages[start].role in ("user", "assistant") and start != kept and not start == answered > kept
    ]


def _drop_rounds(messages: tuple[Message, ...], most: int) -> tuple[Message, ...]:
    """The messages without the oldest so many rounds; where the first of them was, the user says so."""
    gone = _list_rounds(messages)[:most]
    if not gone:
        return messages
    left_out = {at for start, end in gone for at in range(start, end)}
    marker = f"[{len(left_out)} earlier messages were left out: the conversation is too long for the model]"
    kept = [(at, message) for at, message in enumerate(messages) if at not in left_out]
    before = tuple(message for at, message in kept if at < gone[0][0])
    after = tuple(message for at, message in kept if at > gone[0][0])
    return (*before, Message("user", (Text(marker),)), *after)
