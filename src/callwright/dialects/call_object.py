"""Calls written as JSON objects: `{"name": …, "arguments": {…}}` with every spelling seen in practice.

Objects are read by structure and in any key order. If the name comes first (it nearly always does), the arguments
stream; otherwise they are held back until the tool is known. An object that names no tool of the request is no call.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from callwright.arguments import ArgumentsWriter, read_object
from callwright.dialects.base import FENCE, open_call, truncate_call
from callwright.input_limits import MAX_CALL_OBJECT_DEPTH
from callwright.text.json_stream import RepairSink, copy_json, escape_json, take_json, take_key
from callwright.text.repair import parse_json, repair_json
from callwright.text.source import ParseStep, Source, compile_markers, ignore
from callwright.turn import Turn

__all__ = [
    "DEFAULT_CALL_KEYS",
    "NO_JSON",
    "TRUNCATED",
    "CallKeys",
    "accept_fence",
    "emit_complete_call",
    "read_call_array",
    "read_call_object",
    "read_json_arguments",
    "read_json_calls",
    "report_malformed",
]

NO_JSON = "no JSON follows"
TRUNCATED = "the output ended before the call was named"


@dataclass(frozen=True)
class CallKeys:
    """The keys of a call object and their meanings."""

    name: frozenset[str] = frozenset({"name", "tool", "function", "tool_name"})
    arguments: frozenset[str] = frozenset({"arguments", "args", "params", "parameters"})
    id: frozenset[str] = frozenset({"id", "tool_call_id", "call_id"})
    ignored: frozenset[str] = frozenset({"type", "index"})
    calls: frozenset[str] = frozenset({"tool_calls"})
    no_call_names: frozenset[str] = frozenset()
    """Tools that the family's prompt invents for "nothing to call"."""
    name_is_key: bool = False
    """Whether the object has one member, whose key is the tool's name."""


DEFAULT_CALL_KEYS = CallKeys()
_ITEM_MARKS = compile_markers("{", ",", "]")
_FENCE_MARKS = compile_markers(FENCE)
_FENCE_INFO = re.compile(r"\w*")
_OBJECT_KINDS = ("function", "tool", "tool_call", "tool_use")
"""Values of a member that declares the kind of the object."""


@dataclass
class _CallDraft:
    """What is known of a call while its object is read."""

    name: str = ""
    id: str = ""
    arguments: str | None = None
    members: dict[str, str] = field(default_factory=dict)
    is_emitted: bool = False
    notes: dict[str, str] = field(default_factory=dict)
    depth: int = 0
    """How many call objects are around this one."""

    def drop_members(self, turn: Turn) -> None:
        """Record the other members as dropped: the arguments are in a member of their own, so the others mean
        nothing."""
        for key, raw in self.members.items():
            turn.add_repair("dropped_member", f"{key}: {raw}")
        self.members.clear()

    def add_note(self, kind: str, detail: str) -> None:
        self.notes.setdefault(kind, detail)


def read_json_calls(
    source: Source, turn: Turn, keys: CallKeys = DEFAULT_CALL_KEYS, *, skip_rejected: bool = False
) -> ParseStep[str]:
    """Read a call object or an array of them. Return an empty string, or the reason why this is no call."""
    char = yield from source.skip_space()
    if char == "[":
        source.position += 1
        return (yield from read_call_array(source, turn, keys))
    if char == "{":
        return (yield from read_call_object(source, turn, keys, skip_rejected=skip_rejected))
    return NO_JSON


def report_malformed(source: Source, turn: Turn, problem: str) -> None:
    """Report the consumed text as malformed: it is neither a call nor text."""
    if problem == TRUNCATED:
        turn.add_truncated(source.end_capture())
    else:
        turn.add_malformed(source.end_capture(), problem)


def read_call_array(
    source: Source, turn: Turn, keys: CallKeys = DEFAULT_CALL_KEYS, *, depth: int = 0
) -> ParseStep[str]:
    """Read the calls of an array whose bracket is consumed. Return a reason if none of its objects is a call. `depth`
    counts the call objects around it."""
    problem = "the list is empty"
    before = ""
    while True:
        char = yield from source.peek_marker(_ITEM_MARKS)
        if char in (",", "{"):
            yield from source.skip_space()
        if char == ",":
            source.position += 1
            continue
        if char != "{":
            break
        item_problem = yield from read_call_object(source, turn, keys, skip_rejected=True, depth=depth)
        if not item_problem:
            if before:
                turn.add_malformed(before, problem)
            problem = before = ""
        elif problem:
            # The other objects decide whether this is a list of calls at all.
            problem = problem if before else item_problem
            before += source.end_capture()
        else:
            report_malformed(source, turn, item_problem)
        source.start_capture()
    if char == "]":
        yield from source.skip_space()
        source.position += 1
    elif not problem and not turn.is_truncated:
        turn.add_repair("missing_bracket", "']' was missing after a list of calls")
    if problem:
        source.start_capture(before + source.end_capture())
    else:
        source.drop_capture()
    return problem


def read_call_object(
    source: Source,
    turn: Turn,
    keys: CallKeys = DEFAULT_CALL_KEYS,
    *,
    name: str = "",
    call_id: str = "",
    skip_rejected: bool = False,
    depth: int = 0,
) -> ParseStep[str]:
    """Read the call object that begins here. Return an empty string, or the reason why this is no call.

    `name` and `call_id` are the tool and the id if the text before the object contains them. With `skip_rejected`, an
    object that is no call is consumed to its end, so that the next one can be read; otherwise only as far as needed.
    `depth` counts the call objects around it.
    """
    draft = _CallDraft(name, call_id, depth=depth)
    source.position += 1
    while True:
        source.start_hold()
        char = yield from source.skip_space()
        if char in ("}", ","):
            source.end_hold()
            source.position += 1
            if char == ",":
                continue
            return (yield from _finish_object(source, turn, draft))
        if draft.is_emitted:
            source.start_capture()
        key = yield from take_key(source, draft.add_note)
        if key is None and source.boundary and source.has_pending_newline and not source.may_be_cut:
            # The JSON ends here: what follows is text, or another call.
            source.rewind(is_long=False)
        else:
            source.end_hold()
        if key is None:
            problem: str | None = yield from _end_unfinished_object(source, turn, draft)
        else:
            problem = yield from _read_member(source, turn, draft, key, keys)
        if problem is not None:
            if problem and skip_rejected:
                yield from copy_json(source, ignore, ignore, depth=1)
            return problem


def _end_unfinished_object(source: Source, turn: Turn, draft: _CallDraft) -> ParseStep[str]:
    """End an incomplete object. After its arguments only a brace is missing; before them it is no call, or a call that
    the end of the output truncated."""
    if draft.is_emitted:
        draft.drop_members(turn)
        stray = source.end_capture()
        if stray.strip():
            turn.add_malformed(stray, "not a member of a call")
        turn.add_repair("missing_brace", "'}' was missing after a call")
        return ""
    if (yield from source.peek()):
        return "the JSON is incomplete"
    if not draft.name:
        return TRUNCATED
    raw = source.end_capture()
    open_call(source, turn, draft.name, draft.id).call.end_truncated(raw)
    return ""


def _read_member(source: Source, turn: Turn, draft: _CallDraft, key: str, keys: CallKeys) -> ParseStep[str | None]:
    """Read one member's value into the draft. Return None to continue; otherwise the object ended, well or not."""
    char = yield from source.peek()
    if draft.depth >= MAX_CALL_OBJECT_DEPTH and char and char in "[{" and key in keys.calls | keys.name:
        return "calls are nested too deeply"
    if keys.name_is_key and (turn.can_call(key) or not (draft.is_emitted or draft.name or key in keys.name)):
        draft.name = key
        return (
            (yield from _read_arguments_member(source, turn, draft)) if turn.can_call(key) else f"unknown tool {key!r}"
        )
    if key in keys.calls and char == "[":
        draft.is_emitted = True
        source.position += 1
        return (yield from read_call_array(source, turn, keys, depth=draft.depth + 1)) or None
    if key in keys.name and char == "{":
        problem = yield from read_call_object(
            source, turn, keys, call_id=draft.id, skip_rejected=True, depth=draft.depth + 1
        )
        draft.is_emitted = True
        return problem or None
    if key in keys.arguments and draft.name and not draft.is_emitted:
        if key == "parameters" and "description" in draft.members:
            return "the object is the definition of a tool"
        return (yield from _read_arguments_member(source, turn, draft))
    raw = yield from take_json(source, draft.add_note)
    if raw is None:
        return (yield from _end_unfinished_object(source, turn, draft))
    if key in keys.name and char in "\"'" and draft.name in ("", _parse_string(raw)):
        draft.name = _parse_string(raw)
        if draft.name in keys.no_call_names and draft.name not in turn.tools:
            yield from copy_json(source, ignore, ignore, depth=1)
            turn.add_repair("no_call", f"the model wrote {source.end_capture()}")
            return ""
        return None if turn.can_call(draft.name) else f"unknown tool {draft.name!r}"
    if key in keys.id:
        if draft.is_emitted:
            turn.add_repair("late_id", f"the model's own id {raw} came after the arguments")
        draft.id = _parse_string(raw)
    elif key in keys.arguments:
        draft.arguments = raw
    elif key not in keys.ignored or (_parse_string(raw) not in _OBJECT_KINDS and not raw.isdecimal()):
        draft.members[key] = raw
    return None


def _read_arguments_member(source: Source, turn: Turn, draft: _CallDraft) -> ParseStep[str | None]:
    """Read the arguments value at the position, for the tool that is already known."""
    fenced = yield from accept_fence(source, draft.add_note)
    if (yield from source.peek()) != "{":
        raw = yield from take_json(source, draft.add_note)
        if raw is None:
            return (yield from _end_unfinished_object(source, turn, draft))
        draft.arguments = raw
        return None
    arguments = open_call(source, turn, draft.name, draft.id)
    for kind, detail in draft.notes.items():
        arguments.call.add_repair(kind, detail)
    draft.is_emitted = True
    draft.drop_members(turn)
    intact = yield from read_json_arguments(source, turn, arguments, depth=2)
    if intact and fenced:
        yield from source.accept_next(_FENCE_MARKS)
    return None if intact else ""


def accept_fence(source: Source, note: RepairSink) -> ParseStep[bool]:
    """Consume the opening of a Markdown fence around arguments, if there is one."""
    if not (yield from source.accept(_FENCE_MARKS)):
        return False
    yield from source.take_while(_FENCE_INFO, 16)
    yield from source.skip_space()
    note("fenced_arguments", "the arguments were in a Markdown fence")
    return True


def read_json_arguments(source: Source, turn: Turn, arguments: ArgumentsWriter, *, depth: int = 1) -> ParseStep[bool]:
    """Read the JSON object that begins here as a call's arguments, to its end. Return False if the text ended inside it
    or it is broken: the call is then truncated, and the rest of the `depth` enclosing brackets is reported."""
    source.ended_at_boundary = False
    if (yield from read_object(source, arguments)):
        return True
    if not source.ended_at_boundary:
        if not source.is_capturing:
            source.start_capture()
        yield from copy_json(source, ignore, ignore, depth=depth)
    yield from truncate_call(source, turn, arguments)
    return False


def _finish_object(source: Source, turn: Turn, draft: _CallDraft) -> ParseStep[str]:
    """Close the object: write the call if its arguments had to wait for the end."""
    if draft.is_emitted:
        draft.drop_members(turn)
        source.drop_capture()
        return ""
    if not draft.name:
        return "the JSON names no tool"
    if draft.arguments is None:
        raw = "{" + ", ".join(f'"{escape_json(name)}": {value}' for name, value in draft.members.items()) + "}"
    else:
        raw = draft.arguments
        draft.drop_members(turn)
    return (yield from emit_complete_call(source, turn, draft.name, raw, draft.id, draft.notes))


def emit_complete_call(
    source: Source, turn: Turn, name: str, raw: str, call_id: str = "", notes: dict[str, str] | None = None
) -> ParseStep[str]:
    """Write a call whose arguments are complete: an object, JSON text in a string, or nothing."""
    repaired = repair_json(raw)
    value = parse_json(repaired.text) if repaired else raw
    if isinstance(value, str) and value.strip():
        repaired = repair_json(value)
        value = parse_json(repaired.text) if repaired else value
    mends = {repair.kind: repair.detail for repair in repaired.repairs} if repaired else {}
    text = repaired.text if repaired and value else "{}"
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        text = json.dumps(value[0], ensure_ascii=False)
        mends["unwrapped_list"] = "the arguments were a list of one object"
    elif value and not isinstance(value, dict):
        return "the arguments are not an object"
    arguments = open_call(source, turn, name, call_id)
    for kind, detail in {**mends, **(notes or {})}.items():
        arguments.call.add_repair(kind, detail)
    if not value:
        arguments.close_empty()
    else:
        yield from read_object(Source.from_text(text), arguments)
    return ""


def _parse_string(raw: str) -> str:
    repaired = repair_json(raw)
    return str(parse_json(repaired.text)) if repaired else raw
