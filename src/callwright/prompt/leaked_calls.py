"""Convert calls in the text of earlier answers to calls, and remove frames around answers.

A server whose parser missed a call returned it as text, and the client sends it back. A model that sees such an answer
leaks again: in a third of the turns after one (claude-code #77061). The caller provides the parser. Only text that
names a known tool or contains a frame marker is parsed, and only text that can be parsed completely counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

import msgspec

from callwright.model import Message, Part, Reasoning, Repair, Text, ToolCall
from callwright.text.repair import parse_json
from callwright.turn import Collected

__all__ = ["LeakSearch", "TurnParser", "extract_leaked_calls"]

TurnParser = Callable[[str], Collected]
"""Parses a model's text as one turn, in its dialect and with the tools of the request."""


class LeakSearch(NamedTuple):
    """How earlier answers are parsed, and the signs that make it worthwhile."""

    parse_turn: TurnParser
    tools: Collection[str]
    frames: Collection[str]


def extract_leaked_calls(
    message: Message, search: LeakSearch, make_id: Callable[[], str], notes: list[Repair]
) -> Message:
    """Return an answer with the calls in its text as calls, after its other text, and its reasoning as reasoning."""
    if message.role != "assistant":
        return message
    parts: list[Part] = []
    leaked: list[ToolCall] = []
    framed = False
    for part in message.parts:
        turn = _parse_part(part, search)
        if turn is None:
            parts.append(part)
            continue
        framed = framed or not turn.tool_calls
        parts += _iter_text_parts(turn)
        leaked += turn.tool_calls
    if framed:
        notes.append(Repair("unframed_answer", "an earlier answer contained the markers of a dialect"))
    elif not leaked:
        return message
    call_keys = {_get_call_key(part) for part in message.parts if isinstance(part, ToolCall)}
    for call in leaked:
        if _get_call_key(call) in call_keys:  # the server sent it in both forms
            notes.append(Repair("dropped_repeat", f"the text also contained a call of {call.name}"))
            continue
        parts.append(msgspec.structs.replace(call, id=make_id()))
        notes.append(Repair("recovered_call", f"the text of an earlier answer contained a call of {call.name}"))
    return Message(message.role, tuple(parts))


def _parse_part(part: Part, search: LeakSearch) -> Collected | None:
    """Parse a text; return None if it contains nothing but text, or nothing valid."""
    if not isinstance(part, Text):
        return None
    framed = any(sign in part.text for sign in search.frames)
    if not framed and not any(name in part.text for name in search.tools):
        return None
    turn = search.parse_turn(part.text)
    has_other_content = turn.tool_calls or (framed and turn.text != part.text)
    sound = has_other_content and not turn.malformed and all(call.complete for call in turn.tool_calls)
    return turn if sound else None


def _iter_text_parts(turn: Collected) -> Iterator[Part]:
    if turn.reasoning:
        yield Reasoning(turn.reasoning)
    if turn.text.strip():
        yield Text(turn.text)


def _get_call_key(call: ToolCall) -> tuple[str, str]:
    """Return a key that is equal for equal calls, whatever their spacing and member order. Arguments are valid here."""
    return call.name, json.dumps(parse_json(call.arguments), sort_keys=True)
