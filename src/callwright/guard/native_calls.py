"""Native calls under the same guard as those read from text.

A backend's own tool calls are JSON too, and as wrong: strings for numbers, objects sent as text, a
parameter under a near name. Their arguments go through the reader that dialects use, so they come
out typed by the tool's schema, mended and named, and still stream. Calls that a backend interleaves
are said one after the other, as the event grammar wants.
"""

from __future__ import annotations

from callwright.arguments import ArgumentsWriter, read_object
from callwright.text.json_stream import copy_json
from callwright.text.repair import is_json, parse_json, repair_json
from callwright.text.source import ParseStep, Source
from callwright.turn import Turn

__all__ = ["NativeCallWriter"]


class _NativeCall:
    """One call of the backend: its text, and the reader of it once it is this call's turn."""

    def __init__(self, turn: Turn, name: str, call_id: str) -> None:
        self.source = Source()
        self._turn = turn
        self._name = name
        self._id = call_id
        self.is_cut = False
        self._grammar: ParseStep[None] | None = None

    def advance_reading(self) -> bool:
        """Say what can be said now; true when the call is over."""
        if self._grammar is None:
            self._grammar = self._read_arguments()
        for _ in self._grammar:
            return False
        return True

    def _read_arguments(self) -> ParseStep[None]:
        arguments = ArgumentsWriter(self._turn.start_call(self._name, self._id))
        first = yield from self.source.skip_space()
        if first == '"':
            yield from self._read_quoted_arguments(arguments)
        elif not first and self.is_cut:
            arguments.call.end_truncated()
        elif not first:
            arguments.close()
        elif first != "{" or not (yield from read_object(self.source, arguments)):
            self._cut_call(arguments, self.source.text[self.source.position :])

    def _read_quoted_arguments(self, arguments: ArgumentsWriter) -> ParseStep[None]:
        """An object that was written as JSON twice: Qwen2.5 (sglang PR #7863) and Granite 4 (vLLM PR #54964) do it."""
        read: list[str] = []
        whole = yield from copy_json(self.source, read.append, arguments.call.add_repair)
        raw = "".join(read)
        mended = repair_json(str(parse_json(raw))) if whole and is_json(raw) else None
        if mended is None or not isinstance(parse_json(mended.text), dict):
            self._cut_call(arguments, raw)
            return
        arguments.call.add_repair("unwrapped_arguments", "they were JSON inside a string")
        yield from read_object(Source.from_text(mended.text), arguments)

    def _cut_call(self, arguments: ArgumentsWriter, broken: str) -> None:
        arguments.call.end_truncated()
        if broken:
            self._turn.add_malformed(broken, "the backend's arguments are no JSON object")


class NativeCallWriter:
    """Writes a backend's tool calls to a turn. `start`, `feed` and `end` may interleave between calls."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._open_calls: dict[int, _NativeCall] = {}

    def start_call(self, index: int, name: str, call_id: str = "") -> None:
        """A call begins; `index` is the backend's own."""
        self._open_calls[index] = _NativeCall(self._turn, name, call_id)

    def feed(self, index: int, fragment: str) -> None:
        """More of a call's arguments. Fragments of a call that is over already are dropped."""
        call = self._open_calls.get(index)
        if call is not None:
            call.source.feed(fragment)
            self._advance_calls()

    @property
    def is_open(self) -> bool:
        """Whether a call is not over yet."""
        return bool(self._open_calls)

    def mark_cut(self) -> None:
        """The output was cut: a call that is not over yet is incomplete, also one that has no arguments so far."""
        for call in self._open_calls.values():
            call.is_cut = True

    def end_calls(self, index: int | None = None) -> None:
        """A call is over, or all of them are."""
        for at, call in self._open_calls.items():
            if index is None or at == index:
                call.source.close()
        self._advance_calls()

    def _advance_calls(self) -> None:
        """Go on with the oldest call, and when it is over with the next."""
        while self._open_calls:
            index, call = next(iter(self._open_calls.items()))
            if not call.advance_reading():
                return
            del self._open_calls[index]
