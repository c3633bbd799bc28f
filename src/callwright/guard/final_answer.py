"""Pass a final answer to the client as text, whether the model called `final_answer` or wrote a tag of that name.

The answer streams: the string is read from the call's arguments as they arrive, and only text that may still become a
tag is held back. Calls of other tools keep their order and are numbered without it. A turn with both ends with
`tool_calls`, because a conversation with calls that nobody ran cannot continue.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

import msgspec

from callwright.events import CallDelta, CallEnd, CallStart, Event, Finish, TextDelta
from callwright.text.json_stream import copy_string, escape_json, take_json, take_key
from callwright.text.source import ParseStep, Source, compile_markers, ignore

__all__ = ["FinalAnswerAsText"]

_TOOL_NAME = "final_answer"
_match_high_surrogate = re.compile("[\ud800-\udbff]").fullmatch
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_TAGS = compile_markers(f"<{_TOOL_NAME}>\n", f"<{_TOOL_NAME}>", f"\n</{_TOOL_NAME}>", f"</{_TOOL_NAME}>")


class FinalAnswerAsText:
    """Turns final answers into text. `calls` says whether calls of that name are final answers too."""

    def __init__(self, *, calls: bool) -> None:
        self._reads_calls = calls
        self._answer: _AnswerReader | None = None
        self._text: list[str] = []
        self._start_grammar()
        self._call_count = 0
        self._has_answer = False

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """Return the events, with answers as text."""
        out: list[Event] = []
        for event in events:
            match event:
                case TextDelta():
                    self._source.feed(event.text)
                    next(self._grammar, None)
                    out += self._take_text()
                case CallStart() | CallDelta() | CallEnd():
                    out += [*self._flush_text(), *self._process_call_event(event)]
                case Finish():
                    out += [*self._flush_text(), self._adjust_finish(event)]
                case _:
                    out += [*self._flush_text(), event]
        return out

    # ── tags ───────────────────────────────────────────────────────────────────────────────────

    def _start_grammar(self) -> None:
        self._source = Source()
        self._grammar = self._strip_tags()
        next(self._grammar, None)

    def _strip_tags(self) -> ParseStep[None]:
        while (yield from self._source.copy_until(_TAGS, self._text.append)) is not None:
            pass

    def _flush_text(self) -> list[Event]:
        """Return the text that was held back, because something else follows."""
        if self._source.text[self._source.position :]:
            self._source.close()
            next(self._grammar, None)
            self._start_grammar()
        return self._take_text()

    def _take_text(self) -> list[Event]:
        text = "".join(self._text)
        self._text.clear()
        return [TextDelta(text)] if text else []

    # ── calls ──────────────────────────────────────────────────────────────────────────────────

    def _process_call_event(self, event: CallStart | CallDelta | CallEnd) -> list[Event]:
        if isinstance(event, CallStart) and self._reads_calls and event.name == _TOOL_NAME:
            self._answer = _AnswerReader()
            self._has_answer = True
            return []
        if self._answer is None:
            renumbered = msgspec.structs.replace(event, index=self._call_count)
            self._call_count += isinstance(event, CallEnd)
            return [renumbered]
        if isinstance(event, CallDelta):
            text = self._answer.feed(event.text)
        else:
            text, self._answer = self._answer.close(), None
        return [TextDelta(text)] if text else []

    def _adjust_finish(self, finish: Finish) -> Finish:
        only = self._has_answer and not self._call_count and finish.reason == "tool_calls"
        return msgspec.structs.replace(finish, reason="stop") if only else finish


class _AnswerReader:
    """Reads the string in a call's arguments as it arrives."""

    def __init__(self) -> None:
        self._source = Source()
        self._raw: list[str] = []
        self._out: list[str] = []
        self._has_answer = False
        self._partial_escape = ""
        self._grammar = self._parse_arguments()
        next(self._grammar, None)

    def feed(self, text: str) -> str:
        """Read more of the arguments and return the new text of the answer."""
        if not self._has_answer:
            self._raw.append(text)
        self._source.feed(text)
        next(self._grammar, None)
        return self._take_text()

    def close(self) -> str:
        """End the call. Arguments without an answer are returned unchanged."""
        self._source.close()
        next(self._grammar, None)
        return self._take_text() if self._has_answer else "".join(self._raw)

    def _take_text(self) -> str:
        text = "".join(self._out)
        self._out.clear()
        return text

    def _parse_arguments(self) -> ParseStep[None]:
        yield from self._source.skip_space()
        self._source.position += 1
        while True:
            yield from self._source.skip_space()
            key = yield from take_key(self._source, ignore)
            if key is None:
                return
            if key == "answer" and (yield from self._source.peek()) == '"':
                self._has_answer = True
                self._source.position += 1
                yield from copy_string(self._source, self._decode_piece, ignore)
                return
            yield from take_json(self._source, ignore)
            yield from self._source.accept(compile_markers(","))

    def _decode_piece(self, piece: str) -> None:
        """Decode a run of plain text or one escape; the halves of a surrogate pair arrive one by one."""
        self._partial_escape += piece if piece.startswith("\\") else escape_json(piece)
        char = json.loads(f'"{self._partial_escape}"')
        if not _match_high_surrogate(char):
            self._partial_escape = ""
            self._out.append(_LONE_SURROGATE.sub("\ufffd", char))
