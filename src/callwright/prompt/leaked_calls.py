"""Leaks: calls that stand in the text of earlier answers, turned into calls, and frames around answers taken off.

A server whose parser missed a call gave it to the client as text, and the client sends it back. A model that sees such
an answer leaks again: in a third of the turns after one (claude-code #77061). Who reads the text is handed in; only a
text that names an offered tool or shows a frame is read at all, and only what can be read as a whole counts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

import msgspec

from callwright.model import Message, Part, Reasoning, Repair, Text, ToolCall
from callwright.text.repair import parse_json
from callwright.turn import Collected

__all__ = ["LeakSearch", "TurnParser", "extract_leaked_calls"]

TurnParser = Callable[[str], Collected]
"""Reads a model's text as one turn, in its dialect and with the offered tools."""


class LeakSearch(NamedTuple):
    """How earlier answers are read, and what shows that one is worth it."""

    parse_turn: TurnParser
    tools: Collection[str]
    frames: Collection[str]


def extract_leaked_calls(
    message: Message, search: LeakSearch, fresh: Callable[[], str], notes: list[Repair]
) -> Message:
    """An answer with the calls in its text as calls, behind what else it says, and its thoughts as thoughts."""
    if message.role != "assistant":
        return message
    said: list[Part] = []
    leaked: list[ToolCall] = []
    framed = False
    for part in message.parts:
        turn = _parse_part(part, search)
        if turn is None:
            said.append(part)
            continue
        framed = framed or not turn.tool_calls
        said += _iter_text_parts(turn)
        leaked += turn.tool_calls
    if framed:
        notes.append(Repair("unframed_answer", "the markers of a dialect stood in an earlier answer"))
    elif not leaked:
        return message
    made = [_get_call_key(part) for part in message.parts if isinstance(part, ToolCall)]
    for call in leaked:
        if _get_call_key(call) in made:  # the server sent it both ways
            notes.append(Repair("dropped_repeat", f"a call of {call.name} stood in the text too"))
            continue
        said.append(msgspec.structs.replace(call, id=fresh()))
        notes.append(Repair("recovered_call", f"a call of {call.name} stood in the text of an earlier answer"))
    return Message(message.role, tuple(said))


def _parse_part(part: Part, search: LeakSearch) -> Collected | None:
    """What a text holds beside words; None where that is nothing, or nothing sound."""
    if not isinstance(part, Text):
        return None
    framed = any(sign in part.text for sign in search.frames)
    if not framed and not any(name in part.text for name in search.tools):
        return None
    turn = search.parse_turn(part.text)
    found = turn.tool_calls or (framed and turn.text != part.text)
    sound = found and not turn.malformed and all(call.complete for call in turn.tool_calls)
    return turn if sound else None


def _iter_text_parts(turn: Collected) -> Iterator[Part]:
    if turn.reasoning:
        yield Reasoning(turn.reasoning)
    if turn.text.strip():
        yield Text(turn.text)


def _get_call_key(call: ToolCall) -> tuple[str, object]:
    """What makes two calls the same: spaces and the order of members do not. Arguments are sound by now."""
    return call.name, parse_json(call.arguments)
