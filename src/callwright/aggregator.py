"""Build complete tool calls from structured deltas, whatever shape the upstream sends.

`call_entries` reads the shapes, `call_builder` joins the arguments, and this module finds the call that an entry
belongs to. It tolerates missing or repeated indices, missing or repeated ids, repeated names, whole objects for
arguments and several calls in one chunk. Argument strings are never reformatted, inputs are never changed, results are
frozen and memory is bounded.

An id, an index and a name say which call is meant. A named entry that has the id of an earlier call, but another index
or another name, is another call and gets a fresh id. A named entry that begins another object after a complete one is
another call too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from callwright.call_builder import NO_ARGUMENTS, CallBuilder, StreamMode
from callwright.call_entries import CallEntry, Payload, iter_bodies, read_entries, read_text, starts_message
from callwright.errors import BackendError
from callwright.text.source import DEFAULT_LIMIT
from callwright.turn import IdFactory

__all__ = ["Aggregator", "TextPattern", "ToolCallDelta", "ToolCallRecord"]

TextPattern = Callable[[str], Sequence[tuple[str, str]]]
"""A function that finds calls in text and returns pairs of name and arguments."""

MAX_CALLS = 1024
_MAX_PATTERN_ERRORS = 16


class ToolCallDelta(msgspec.Struct, frozen=True):
    """The new part of one call. `id` and `name` are final; append `arguments` to those of earlier deltas."""

    choice: int
    index: int
    id: str
    name: str
    arguments: str
    started: bool = False
    """Whether this is the first delta of its call."""


class ToolCallRecord(msgspec.Struct, frozen=True):
    """One call as far as it is known; `arguments` is the text that the upstream sent."""

    id: str
    name: str
    arguments: str
    type: str = "function"
    """`function`, or `custom` for a call of a freeform tool, whose arguments are any text."""


class Aggregator:
    """Collects the calls of a turn, per choice, in the order in which they got their names."""

    def __init__(self, ids: IdFactory, *, patterns: Iterable[TextPattern] = (), limit: int = DEFAULT_LIMIT) -> None:
        self._ids = ids
        self._patterns = list(patterns)
        self._limit = limit
        self._calls: dict[int, list[CallBuilder]] = {}
        self._sizes: dict[int, int] = {}
        """The characters that the calls of each choice store."""
        self._mode = StreamMode()
        self._pattern_errors: list[Exception] = []

    def register_text_pattern(self, pattern: TextPattern) -> None:
        """Search text with this pattern too; see `ingest_message`."""
        self._patterns.append(pattern)

    @property
    def pattern_errors(self) -> tuple[Exception, ...]:
        """What text patterns raised since the last `reset_turn()`: the first few errors."""
        return tuple(self._pattern_errors)

    def ingest_delta(self, delta: Payload, choice: int = 0) -> list[ToolCallDelta]:
        """Read one chunk, delta or event, and return the new parts of its calls."""
        out: list[ToolCallDelta] = []
        for at, body in iter_bodies(delta, choice):
            if starts_message(body):
                self._forget_positions(at)
            claimed: list[CallBuilder] = []
            for position, entry in enumerate(read_entries(body)):
                call = self._find_call(at, entry, claimed, is_first=position == 0)
                out += self._add_entry(at, call, entry, claimed)
        return out

    def ingest_message(
        self, message: Payload, choice: int = 0, *, emit_if_missing: bool = False
    ) -> list[ToolCallDelta]:
        """Read a final message: add calls that no delta contained, and complete calls that were started.

        With `emit_if_missing`, search a message without calls with the text patterns, unless the choice has calls
        that were not found in text.
        """
        out: list[ToolCallDelta] = []
        for at, body in iter_bodies(message, choice):
            claimed: list[CallBuilder] = []
            for entry in read_entries(body, is_message=True):
                whole = msgspec.structs.replace(entry, is_whole=True)
                out += self._add_entry(at, self._find_message_call(at, whole, claimed), whole, claimed)
            if emit_if_missing and not any(not call.is_from_text for call in self._list_started(at)):
                out += self._ingest_text(at, read_text(body))
            for call in claimed:
                call.is_from_message = True
        return out

    def finish_turn(self) -> list[ToolCallDelta]:
        """End the stream and return what was held back until the mode was known."""
        out: list[ToolCallDelta] = []
        for choice, calls in self._calls.items():
            for call in calls:
                if call.name:
                    call.finish()
                    out += self._take_delta(choice, call)
        return out

    def snapshot(self, choice: int = 0) -> tuple[ToolCallRecord, ...]:
        """Return the calls of a choice so far, in the order in which they started."""
        return tuple(
            ToolCallRecord(call.id, call.name, call.arguments, "custom" if call.is_freeform else "function")
            for call in self._list_started(choice)
        )

    def has_calls(self, choice: int | None = None) -> bool:
        """Whether a choice has calls; without an argument, whether any choice has."""
        choices = list(self._calls) if choice is None else [choice]
        return any(self._list_started(one) for one in choices)

    def reset_turn(self, choice: int | None = None) -> None:
        """Forget the calls of one choice, or of all choices, and give back their share of the limit. Text patterns
        are kept."""
        if choice is None:
            self._calls.clear()
            self._sizes.clear()
            self._pattern_errors.clear()
        else:
            self._calls.pop(choice, None)
            self._sizes.pop(choice, None)
        if not self._calls:
            self._mode = StreamMode()

    def _allows_no_arguments(self, name: str) -> bool:
        """Whether null and other forms of no arguments are an empty object for this tool."""
        return False

    # ── finding the call that an entry belongs to ──────────────────────────────────────────────────

    def _find_call(
        self, choice: int, entry: CallEntry, claimed: list[CallBuilder], *, is_first: bool
    ) -> CallBuilder | None:
        """Return the call that an entry of a delta continues, or None if the entry starts a new call."""
        calls = self._calls.get(choice, [])
        same_id = _find_by_ids(calls, entry, claimed if entry.name else ())
        if same_id is not None or (entry.ids and entry.name and not entry.position):
            return None if same_id is None or _is_another_call(same_id, entry) else same_id
        if entry.position:
            call = next((call for call in reversed(calls) if entry.position in call.positions), None)
            return call if call is not None and _continues_position(call, entry) else None
        if (entry.ids and entry.has_exact_ids) or (entry.is_whole and entry.name):
            return None
        last = calls[-1] if calls and is_first else None
        if last is None or not entry.name:
            return last
        return last if entry.name == last.name and not last.is_final and not last.is_complete_object() else None

    def _find_message_call(self, choice: int, entry: CallEntry, claimed: list[CallBuilder]) -> CallBuilder | None:
        """Return the call that an entry of a final message repeats, or None. Some upstreams change the ids."""
        free = [call for call in self._calls.get(choice, ()) if call not in claimed]
        named = [call for call in free if not call.ids.isdisjoint(entry.ids)]
        if named:
            return next((call for call in named if _is_repeated_with_id(call, entry)), None)
        return next((call for call in free if _is_repeated_by(call, entry)), None)

    def _forget_positions(self, choice: int) -> None:
        for call in self._calls.get(choice, ()):
            call.positions.clear()

    def _create_call(self, choice: int, entry: CallEntry) -> CallBuilder:
        calls = self._calls.setdefault(choice, [])
        if len(calls) >= MAX_CALLS:
            message = f"the backend sent more than {MAX_CALLS} tool calls in one turn"
            raise BackendError(message, kind="unusable")
        used = {call.id for call in calls}
        call_id = next((one for one in entry.ids[:1] if one not in used), "") or self._ids()
        while call_id and call_id in used:
            call_id = self._ids()
        calls.append(CallBuilder(call_id, self._mode))
        return calls[-1]

    # ── arguments ──────────────────────────────────────────────────────────────────────────────────

    def _add_entry(
        self, choice: int, found: CallBuilder | None, entry: CallEntry, claimed: list[CallBuilder]
    ) -> list[ToolCallDelta]:
        """Add an entry to its call, or to a new one, and return the new part of the call."""
        call = found or self._create_call(choice, entry)
        claimed.append(call)
        size = call.size
        call.add_entry(entry)
        call.allows_no_arguments = not call.is_freeform and self._allows_no_arguments(call.name)
        if entry.is_whole:
            call.set_arguments(entry.arguments)
        else:
            call.add_fragment(entry.arguments)
        self._track_size(choice, call.size - size)
        return self._take_delta(choice, call)

    def _take_delta(self, choice: int, call: CallBuilder) -> list[ToolCallDelta]:
        if not call.name:
            return []
        is_new = not call.is_started
        if is_new:
            call.index = len(self._list_started(choice))
        new_text = call.take_new_arguments()
        if not new_text and not is_new:
            return []
        return [ToolCallDelta(choice, call.index, call.id, call.name, new_text, is_new)]

    def _list_started(self, choice: int) -> list[CallBuilder]:
        """Return the calls that have a name, in the order in which they got it. A call without one waits for it."""
        started = (call for call in self._calls.get(choice, ()) if call.is_started)
        return sorted(started, key=lambda call: call.index)

    def _track_size(self, choice: int, growth: int) -> None:
        self._sizes[choice] = self._sizes.get(choice, 0) + growth
        if growth > 0 and sum(self._sizes.values()) > self._limit:
            message = f"the backend sent more than {self._limit} characters of tool arguments in one turn"
            raise BackendError(message, kind="unusable")

    # ── text ───────────────────────────────────────────────────────────────────────────────────────

    def _ingest_text(self, choice: int, text: str) -> list[ToolCallDelta]:
        """Add the calls that the first pattern with any finds, except those that an earlier text contained."""
        out: list[ToolCallDelta] = []
        claimed: list[CallBuilder] = []
        found = next(filter(None, (self._search_text(pattern, text) for pattern in self._patterns if text)), [])
        for entry in found:
            out += self._add_entry(choice, self._find_message_call(choice, entry, claimed), entry, claimed)
        for call in claimed:
            call.is_from_text = True
        return out

    def _search_text(self, pattern: TextPattern, text: str) -> list[CallEntry]:
        """Return what a pattern finds. A pattern that raises costs what it did not find, and nothing else."""
        found: list[CallEntry] = []
        try:
            for name, arguments in pattern(text):
                found.append(CallEntry(_require_text(name), arguments=_require_text(arguments), is_whole=True))
        except Exception as error:  # any program may have written the pattern
            if len(self._pattern_errors) < _MAX_PATTERN_ERRORS:
                self._pattern_errors.append(error)
        return found


def _find_by_ids(calls: list[CallBuilder], entry: CallEntry, claimed: Iterable[CallBuilder]) -> CallBuilder | None:
    """Return the latest call that has one of the entry's ids; where several have it, the one at its position."""
    if not entry.ids:
        return None
    taken = list(claimed)
    ids = set(entry.ids)
    same = [call for call in reversed(calls) if not ids.isdisjoint(call.ids) and call not in taken]
    placed = (call for call in same if entry.position in call.positions)
    named = (call for call in same if not _has_other_name(call, entry))
    return next(placed, next(named, same[0])) if same else None


def _has_other_name(call: CallBuilder, entry: CallEntry) -> bool:
    return bool(entry.name and call.name and entry.name != call.name)


def _has_other_position(call: CallBuilder, entry: CallEntry) -> bool:
    """Whether both have a position of one kind, and these differ."""
    kind = entry.position.partition(":")[0]
    known = [position for position in call.positions if position.partition(":")[0] == kind]
    return bool(entry.position and known and entry.position not in known)


def _is_another_call(call: CallBuilder, entry: CallEntry) -> bool:
    """Whether an entry with the id of a call is another call. Without a name, it is the same call."""
    if not entry.name or _has_other_name(call, entry):
        return bool(entry.name)
    if entry.has_exact_ids and entry.is_whole:
        return _has_other_position(call, entry) and not _is_repeated_by(call, entry)
    return _has_other_position(call, entry) or _begins_another_object(call, entry)


def _continues_position(call: CallBuilder, entry: CallEntry) -> bool:
    """Whether an entry at the position of a call continues it. Upstreams that do not count reuse the position for the
    next call, which then has a name, and another id or another name."""
    if not entry.name or not call.name:
        return True
    if entry.has_exact_ids and entry.is_whole:
        return _is_repeated_by(call, entry)
    has_other_id = bool(entry.ids and call.ids)
    return entry.name == call.name and not has_other_id and not _begins_another_object(call, entry)


def _begins_another_object(call: CallBuilder, entry: CallEntry) -> bool:
    """Whether the arguments of a named entry cannot belong to the call, because its arguments are already complete."""
    if call.is_freeform:
        return call.is_final and not _is_same_text(call.arguments, entry.arguments)
    is_over = call.is_final or (entry.arguments.lstrip()[:1] == "{" and call.is_complete_object())
    return is_over and not _is_same_text(call.arguments, entry.arguments)


def _is_repeated_with_id(call: CallBuilder, entry: CallEntry) -> bool:
    """Whether an entry of a final message that has the id of a call is that call. A streamed call is not changed by
    a message that contradicts it; after a message, other arguments are another call."""
    if _has_other_name(call, entry) or _has_other_position(call, entry):
        return False
    return not call.is_from_message or _is_same_text(call.arguments, entry.arguments)


def _is_repeated_by(call: CallBuilder, entry: CallEntry) -> bool:
    """Whether a complete entry is a call that was read before: with its name, and arguments that begin like its own."""
    if _has_other_name(call, entry):
        return False
    arguments = call.arguments
    if not entry.arguments.strip() and not (entry.ids and call.ids):
        return True
    if call.is_from_message or call.is_from_text:
        return _is_same_text(arguments, entry.arguments)
    return _squeeze(entry.arguments).startswith(_squeeze(arguments)) or _is_same_text(arguments, entry.arguments)


def _is_same_text(known: str, given: str) -> bool:
    """Whether two arguments are equal, as text or as JSON. All forms of no arguments are equal."""
    if known == given:
        return True
    try:
        return bool(_parse_arguments(known) == _parse_arguments(given))
    except (ValueError, RecursionError):
        return False


def _parse_arguments(text: str) -> Any:
    return {} if text.strip() in NO_ARGUMENTS else json.loads(text)


def _squeeze(text: str) -> str:
    return "".join(text.split())


def _require_text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a text pattern must return pairs of strings, not {type(value).__name__}")
    return value
