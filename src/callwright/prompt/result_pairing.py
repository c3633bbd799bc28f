"""Pair every call with one result directly after it, and every result with its call.

Servers refuse a history in which that does not hold, and refuse it again with every later request of the session: pi
#4189, opencode PR #22001, positron #15719. A call without a result gets one that says so. A result from before the
first call, which a compaction leaves behind, becomes a user message; a later result with an unknown id is stale and is
dropped. Results are matched by id, not by order, and follow in the order of their calls, because some templates match
them by order. A history in which all of this holds is not changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import msgspec

from callwright.model import Message, Part, Repair, Text, ToolCall, ToolResult

__all__ = ["LOST_RESULT", "CallIdGenerator", "pair_results"]

LOST_RESULT = "Error: no result was received for this call."
_MAX_SEARCHED_RESULTS = 8
"""How many results of one call are searched for the text of a further one. Two or three were seen."""


class CallIdGenerator:
    """Makes ids that no call of a history has. The same history gives the same ids, so that prompt caches stay valid.

    Ids have nine letters and digits, because Mistral's API and its templates accept no others.
    """

    def __init__(self, messages: Iterable[Message]) -> None:
        self._used_ids = {part.id for message in messages for part in message.parts if isinstance(part, ToolCall)}
        self._count = 0

    def __call__(self) -> str:
        while True:
            self._count += 1
            if (call_id := f"mend{self._count:05d}") not in self._used_ids:
                return call_id


@dataclass
class _CallRound:
    """An answer with calls, and their results by the calls' new ids."""

    answer: Message
    calls: dict[str, ToolCall] = field(default_factory=dict)
    results: dict[str, list[ToolResult]] = field(default_factory=dict)


@dataclass
class _KnownId:
    """An id of the client: the latest round that has it, and the new ids for it in that round."""

    round: _CallRound
    new_ids: list[str] = field(default_factory=list)
    answered: int = 0
    """How many of the new ids have a result."""


def pair_results(messages: Sequence[Message], make_id: CallIdGenerator, notes: list[Repair]) -> list[Message]:
    """Return the messages with their calls and results in pairs. Repairs are added to the notes."""
    pairing = _ResultPairer(make_id, notes)
    for message in messages:
        pairing.add_message(message)
    return [message for entry in pairing.entries for message in _iter_messages(entry, notes)]


class _ResultPairer:
    def __init__(self, make_id: CallIdGenerator, notes: list[Repair]) -> None:
        self.entries: list[Message | _CallRound] = []
        self._fresh = make_id
        self._notes = notes
        self._known_ids: dict[str, _KnownId] = {}

    def add_message(self, message: Message) -> None:
        """Add the next message."""
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        for result in results:
            self._add_result(result)
        if message.role == "assistant" and any(isinstance(part, ToolCall) for part in message.parts):
            self._add_answer(message)
        elif not results:
            self.entries.append(message)
        elif rest := tuple(part for part in message.parts if not isinstance(part, ToolResult)):
            self.entries.append(Message("user" if message.role == "tool" else message.role, rest))

    def _add_answer(self, message: Message) -> None:
        entry = _CallRound(message)
        parts: list[Part] = []
        for part in message.parts:
            if not isinstance(part, ToolCall | ToolResult):
                parts.append(part)
            elif isinstance(part, ToolCall) and part != entry.calls.get(part.id):
                parts.append(self._register_call(part, entry))
            elif isinstance(part, ToolCall):
                self._record_repair("dropped_repeat", f"the call {part.id} of {part.name} occurred twice")
        entry.answer = Message("assistant", tuple(parts))
        self.entries.append(entry)

    def _register_call(self, call: ToolCall, entry: _CallRound) -> ToolCall:
        """Return the call under a unique id. Servers that number the calls of each turn from the start repeat ids."""
        known = self._known_ids.get(call.id)
        renamed = call
        if known is not None or not call.id:
            renamed = msgspec.structs.replace(call, id=self._fresh())
            self._record_repair("renamed_id", f"a second call had the id {call.id!r}; it is now {renamed.id}")
        if known is None or known.round is not entry:
            known = self._known_ids[call.id] = _KnownId(entry)
        known.new_ids.append(renamed.id)
        entry.calls[renamed.id] = renamed
        return renamed

    def _add_result(self, result: ToolResult) -> None:
        known = self._known_ids.get(result.call_id)
        if known is None:
            self._add_orphan(result)
            return
        entry = known.round
        call_id = known.new_ids[min(known.answered, len(known.new_ids) - 1)]
        known.answered += 1
        if call_id in entry.results:
            entry.results[call_id].append(result)
            self._record_repair("joined_results", f"the call {call_id} had more than one result")
            return
        name = result.name or entry.calls[call_id].name
        entry.results[call_id] = [msgspec.structs.replace(result, call_id=call_id, name=name)]
        if self.entries[-1] is not entry:
            self._record_repair("moved_result", f"the result of {call_id} was not directly after its call")

    def _add_orphan(self, result: ToolResult) -> None:
        if self._known_ids:
            self._record_repair("extra_result", f"no call has the id {result.call_id!r}; its result was dropped")
            return
        tool = f" of {result.name}" if result.name else ""
        text = Text(f"A result{tool}, whose call is not in this conversation:\n{result.content}")
        self.entries.append(Message("user", (text, *result.images)))
        self._record_repair("orphan_result", f"no message before the result made the call {result.call_id!r}")

    def _record_repair(self, kind: str, detail: str) -> None:
        self._notes.append(Repair(kind, detail))


def _join_results(results: list[ToolResult]) -> ToolResult:
    """Join the results of one call: append to the first what the others add."""
    first, *others = results
    contents = {first.content: None}
    for result in others:
        # Searching all earlier results would take the square of their number.
        if not any(result.content in content for content in islice(contents, _MAX_SEARCHED_RESULTS)):
            contents[result.content] = None
    images = tuple(dict.fromkeys(image for result in results for image in result.images))
    return msgspec.structs.replace(first, content="\n".join(contents), images=images)


def _iter_messages(entry: Message | _CallRound, notes: list[Repair]) -> Iterator[Message]:
    if isinstance(entry, Message):
        yield entry
        return
    yield entry.answer
    for call_id, call in entry.calls.items():
        results = entry.results.get(call_id)
        result = _join_results(results) if results else None
        if result is None:
            notes.append(Repair("missing_result", f"the call {call_id} of {call.name} has no result"))
            result = ToolResult(call_id, LOST_RESULT, call.name, is_error=True)
        yield Message("tool", (result,))
