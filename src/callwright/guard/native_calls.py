"""Native calls under the same checks as calls read from text.

A backend's own tool calls are JSON too, with the same mistakes: strings for numbers, objects sent as text, a parameter
under a similar name. Their arguments go through the reader that the dialects use, so they are typed by the tool's
schema, repaired with named repairs, and still stream. What needs no repair is passed on as the backend wrote it. Calls
that a backend interleaves are written one after the other, as the event grammar requires.
"""

from __future__ import annotations

from callwright.arguments import ArgumentsWriter, read_object
from callwright.guard.verbatim_call import VerbatimCallWriter
from callwright.text.json_stream import copy_json
from callwright.text.repair import is_json, parse_json, repair_json
from callwright.text.source import ParseStep, Source
from callwright.turn import Turn

__all__ = ["NativeCallWriter"]

_NO_ARGUMENTS = ("null", "None", "[]")
"""What backends send as the arguments of a call that has none; an empty text or string means the same."""


class _NativeCall:
    """One call of the backend: its text, and the reader once it is this call's turn."""

    def __init__(self, turn: Turn, name: str, call_id: str) -> None:
        self._source = Source()
        self._turn = turn
        self._name = name
        self._id = call_id
        self.is_cut = False
        self._writer: VerbatimCallWriter | None = None
        self._grammar: ParseStep[None] | None = None

    def advance_reading(self) -> bool:
        """Write what can be written now; return True when the call is over."""
        if self._grammar is None:
            self._grammar = self._read_arguments()
        for _ in self._grammar:
            return False
        return True

    def feed(self, fragment: str) -> None:
        """Append a piece of the arguments."""
        self._source.feed(fragment)
        if self._writer is not None:
            self._writer.add_original(fragment)

    def close(self, *, is_cut: bool = False) -> None:
        """End the arguments. If the output was truncated, a call without arguments is incomplete."""
        self.is_cut = self.is_cut or is_cut
        self._source.close()

    def _read_arguments(self) -> ParseStep[None]:
        source = self._source
        call = self._writer = self._turn.start_call_with(VerbatimCallWriter, self._name, self._id)
        arguments = ArgumentsWriter(call)
        first = yield from source.skip_space()
        if first == '"':
            yield from self._read_quoted_arguments(arguments)
        elif first == "{":
            call.start_comparing(source.text[source.position :], lambda: len(source.text) - source.position)
            if not (yield from read_object(source, arguments)):
                self._cut_call(arguments, source.text[source.position :])
        else:
            yield from self._read_other_arguments(arguments)

    def _read_other_arguments(self, arguments: ArgumentsWriter) -> ParseStep[None]:
        """Read arguments that are no object: none, in one of the forms that backends have for that, or nonsense."""
        pieces = [self._source.take_rest()]
        while not self._source.closed:
            yield
            pieces.append(self._source.take_rest())
        text = "".join(pieces).strip()
        if not text and self.is_cut:
            arguments.call.end_truncated()
        elif text and (text not in _NO_ARGUMENTS or arguments.call.schema.required):
            self._cut_call(arguments, text)
        else:
            self._close_empty(arguments, text)

    def _close_empty(self, arguments: ArgumentsWriter, text: str) -> None:
        if text:
            arguments.call.add_repair("empty_arguments", f"the arguments were {text}, which means none")
        arguments.close()

    def _read_quoted_arguments(self, arguments: ArgumentsWriter) -> ParseStep[None]:
        """Read an object that was encoded as JSON twice: Qwen2.5 (sglang PR #7863) and Granite 4 (vLLM PR #54964) do
        it."""
        read: list[str] = []
        complete = yield from copy_json(self._source, read.append, arguments.call.add_repair)
        raw = "".join(read)
        text = str(parse_json(raw)) if complete and is_json(raw) else None
        if text is not None and text.strip() in ("", *_NO_ARGUMENTS) and not arguments.call.schema.required:
            self._close_empty(arguments, raw)
            return
        repaired = repair_json(text) if text is not None else None
        if repaired is None or not isinstance(parse_json(repaired.text), dict):
            self._cut_call(arguments, raw)
            return
        arguments.call.add_repair("unwrapped_arguments", "the arguments were JSON inside a string")
        yield from read_object(Source.from_text(repaired.text), arguments)

    def _cut_call(self, arguments: ArgumentsWriter, broken: str) -> None:
        arguments.call.end_truncated()
        if broken:
            self._turn.add_malformed(broken, "the backend's arguments are not a JSON object")


class NativeCallWriter:
    """Writes a backend's tool calls to a turn. Events of several calls may interleave."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._open_calls: dict[int, _NativeCall] = {}

    def start_call(self, index: int, name: str, call_id: str = "") -> None:
        """Start a call; `index` is the backend's own."""
        self._open_calls[index] = _NativeCall(self._turn, name, call_id)

    def feed(self, index: int, fragment: str) -> None:
        """Append a piece of a call's arguments. Fragments of a call that is already over are dropped."""
        call = self._open_calls.get(index)
        if call is not None:
            call.feed(fragment)
            self._advance_calls()

    @property
    def is_open(self) -> bool:
        """Whether a call is not over yet."""
        return bool(self._open_calls)

    def mark_cut(self) -> None:
        """Mark open calls as incomplete because the output was truncated, including those without arguments so far."""
        for call in self._open_calls.values():
            call.is_cut = True

    def end_calls(self, index: int | None = None, *, is_cut: bool = False) -> None:
        """End one call, or all of them. With `is_cut`, a call without any arguments is incomplete."""
        for at, call in self._open_calls.items():
            if index is None or at == index:
                call.close(is_cut=is_cut)
        self._advance_calls()

    def _advance_calls(self) -> None:
        """Continue with the oldest call, and when it is over with the next."""
        while self._open_calls:
            index, call = next(iter(self._open_calls.items()))
            if not call.advance_reading():
                return
            del self._open_calls[index]
