"""Tool results: each stands behind the message that made its call, found by id and not by order.

What comes out holds, whatever came in: after every assistant message with calls there is one `tool` message for each
call, in the order of the calls; a call that nothing answered has a placeholder, unless the conversation ends on it.
What was changed for that is noted.
"""

from __future__ import annotations

from collections.abc import Sequence

from callwright.errors import RequestError
from callwright.model import Message, Repair, Role, ToolCall, ToolResult

__all__ = ["MISSING", "failed", "matched", "shown"]

MISSING = "Error: no result was received for this call."
_ARGUMENTS_SHOWN = 300
"""Characters of a call's arguments that are repeated with its result: the call itself is told in full before."""


class _Slot:
    """One call, and the result that was found for it."""

    def __init__(self, call: ToolCall) -> None:
        self.call = call
        self.result: ToolResult | None = None

    def message(self) -> Message:
        result = self.result or ToolResult(self.call.id, MISSING, self.call.name, is_error=True)
        name = result.name or self.call.name
        return Message("tool", (ToolResult(result.call_id, result.content, name, result.is_error, result.images),))


def matched(messages: Sequence[Message]) -> tuple[tuple[Message, ...], tuple[Repair, ...]]:
    """The conversation with its results in their places, and what was mended.

    Raises `RequestError` for a result that comes before any call: no model could make sense of it.
    """
    rounds: dict[int, list[_Slot]] = {}
    rest: dict[int, Message] = {}
    newest: dict[str, list[_Slot]] = {}
    notes: list[Repair] = []
    for position, message in enumerate(messages):
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        for result in results:
            _place(result, newest, position, notes)
        others = tuple(part for part in message.parts if not isinstance(part, ToolResult))
        if others or not results:
            rest[position] = Message(_speaker(message), others) if results else message
        slots = rounds[position] = [_Slot(part) for part in others if isinstance(part, ToolCall)]
        newest |= {slot.call.id: [each for each in slots if each.call.id == slot.call.id] for slot in slots}
    out: list[Message] = []
    for position in range(len(messages)):
        out += [rest[position]] if position in rest else []
        out += _answers(rounds[position], notes, last=position == len(messages) - 1)
    return tuple(out), tuple(notes)


def _speaker(message: Message) -> Role:
    """Words that a client put into a message of results are the user's."""
    return "user" if message.role == "tool" else message.role


def _place(result: ToolResult, newest: dict[str, list[_Slot]], position: int, notes: list[Repair]) -> None:
    """Give a result to the newest call of its id; a second one takes the place of the first.

    The newest, because models that number the calls of each turn from 0 use the same ids again and again.
    """
    if not newest:
        raise RequestError(
            f"messages[{position}] is the result of a tool call {result.call_id!r}, and no message before it made a "
            "call; send the assistant message with its tool_calls too",
            param=f"messages[{position}]",
        )
    slots = newest.get(result.call_id)
    if slots is None:
        notes.append(Repair("extra_result", f"no call has the id {result.call_id!r}; its result was left out"))
        return
    slot = next((each for each in slots if each.result is None), slots[-1])
    if slot.result is not None:
        notes.append(Repair("repeated_result", f"call {result.call_id!r} has two results; the later one counts"))
    slot.result = result


def _answers(slots: Sequence[_Slot], notes: list[Repair], *, last: bool) -> list[Message]:
    if last and all(slot.result is None for slot in slots):
        return []
    for slot in slots:
        if slot.result is None:
            notes.append(Repair("missing_result", f"{slot.call.name} ({slot.call.id}) has no result"))
    return [slot.message() for slot in slots]


def failed(result: ToolResult) -> bool:
    """Whether a call failed. Chat completions cannot say so, and clients begin the text with it (seed S0, 6.8.2)."""
    return result.is_error or result.content.lstrip()[:6].lower() == "error:"


def shown(result: ToolResult, call: ToolCall | None) -> str:
    """A result with its call, the arguments and the status."""
    arguments = call.arguments if call else ""
    if len(arguments) > _ARGUMENTS_SHOWN:
        arguments = f"{arguments[:_ARGUMENTS_SHOWN]}…"
    name = result.name or (call.name if call else "")
    return f"Call: {name}({arguments})\nResult [{'error' if failed(result) else 'success'}]: {result.content}"
