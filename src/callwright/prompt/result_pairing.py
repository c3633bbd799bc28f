"""Pairs: every call with its one result right behind it, and every result with its call.

Servers refuse a history in which that does not hold, and refuse it again with every later request of the session: pi
#4189, opencode PR #22001, positron #15719. A call that has lost its result is told so. A result from before the first
call, which a compaction leaves behind, becomes words of the user; a later one whose id no call has is stale, and left
out. Results are found by id, not by order, and stand in the order of their calls, because some templates match them by
order. A history in which all of this holds is not changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from callwright.model import Message, Part, Repair, Text, ToolCall, ToolResult

__all__ = ["LOST_RESULT", "CallIdGenerator", "pair_results"]

LOST_RESULT = "Error: no result was received for this call."


class CallIdGenerator:
    """Ids that no call of a history has: always the same ones for the same history, so that prompt caches hold.

    Nine letters and digits, because Mistral's API and its templates take no others.
    """

    def __init__(self, messages: Iterable[Message]) -> None:
        self._used_ids = {part.id for message in messages for part in message.parts if isinstance(part, ToolCall)}
        self._count = 0

    def __call__(self) -> str:
        while True:
            self._count += 1
            if (fresh := f"mend{self._count:05d}") not in self._used_ids:
                return fresh


@dataclass
class _CallRound:
    """An answer with calls, and the results that came for them, by the calls' new ids."""

    answer: Message
    calls: dict[str, ToolCall] = field(default_factory=dict)
    results: dict[str, ToolResult] = field(default_factory=dict)


def pair_results(messages: Sequence[Message], fresh: CallIdGenerator, notes: list[Repair]) -> list[Message]:
    """The messages with their calls and results in pairs. What was mended is added to the notes."""
    pairing = _ResultPairer(fresh, notes)
    for message in messages:
        pairing.add_message(message)
    return [written for entry in pairing.entries for written in _iter_messages(entry, notes)]


class _ResultPairer:
    def __init__(self, fresh: CallIdGenerator, notes: list[Repair]) -> None:
        self.entries: list[Message | _CallRound] = []
        self._fresh = fresh
        self._notes = notes
        self._known_calls: dict[str, tuple[_CallRound, list[str]]] = {}
        """By the id that the client knows: the latest round that has it, and the ids it stands for there."""

    def add_message(self, message: Message) -> None:
        """The next message."""
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
            elif isinstance(part, ToolCall) and part not in entry.calls.values():
                parts.append(self._register_call(part, entry))
            elif isinstance(part, ToolCall):
                self._record_repair("dropped_repeat", f"the call {part.id} of {part.name} stood there twice")
        entry.answer = Message("assistant", tuple(parts))
        self.entries.append(entry)

    def _register_call(self, call: ToolCall, entry: _CallRound) -> ToolCall:
        """The call under an id that no other has. Servers that number the calls of each turn anew repeat theirs."""
        known_round, new_ids = self._known_calls.get(call.id, (None, []))
        named = call
        if known_round is not None or not call.id:
            named = msgspec.structs.replace(call, id=self._fresh())
            self._record_repair("renamed_id", f"a second call has the id {call.id!r}; it is {named.id} now")
        self._known_calls[call.id] = (entry, [*new_ids, named.id] if known_round is entry else [named.id])
        entry.calls[named.id] = named
        return named

    def _add_result(self, result: ToolResult) -> None:
        entry, ids = self._known_calls.get(result.call_id, (None, []))
        if entry is None:
            self._add_orphan(result)
            return
        call_id = next((each for each in ids if each not in entry.results), ids[-1])
        first, name = entry.results.get(call_id), result.name or entry.calls[call_id].name
        if first is None:
            entry.results[call_id] = msgspec.structs.replace(result, call_id=call_id, name=name)
            if self.entries[-1] is not entry:
                self._record_repair("moved_result", f"the result of {call_id} did not stand behind its call")
        else:
            entry.results[call_id] = _join_results(first, result)
            self._record_repair("joined_results", f"the call {call_id} had more than one result")

    def _add_orphan(self, result: ToolResult) -> None:
        if self._known_calls:
            self._record_repair("extra_result", f"no call has the id {result.call_id!r}; its result was left out")
            return
        what = f" of {result.name}" if result.name else ""
        words = Text(f"A result{what}, whose call is not in this conversation:\n{result.content}")
        self.entries.append(Message("user", (words, *result.images)))
        self._record_repair("orphan_result", f"no message before it made the call {result.call_id!r}")

    def _record_repair(self, kind: str, detail: str) -> None:
        self._notes.append(Repair(kind, detail))


def _join_results(first: ToolResult, second: ToolResult) -> ToolResult:
    """Two results of one call: what the second says that the first does not is put behind it."""
    content = first.content if second.content in first.content else f"{first.content}\n{second.content}"
    images = tuple(dict.fromkeys((*first.images, *second.images)))
    return msgspec.structs.replace(first, content=content, images=images)


def _iter_messages(entry: Message | _CallRound, notes: list[Repair]) -> Iterator[Message]:
    if isinstance(entry, Message):
        yield entry
        return
    yield entry.answer
    for call_id, call in entry.calls.items():
        result = entry.results.get(call_id)
        if result is None:
            notes.append(Repair("missing_result", f"the call {call_id} of {call.name} has no result"))
            result = ToolResult(call_id, LOST_RESULT, call.name, is_error=True)
        yield Message("tool", (result,))
