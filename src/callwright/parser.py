"""Parser: drives one dialect's grammar over one model's turn, chunk by chunk.

`feed` and `close` return the events that the chunk settled. Reading is linear in the text, and any
cutting of it gives the same merged events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from callwright.dialects import Dialect
from callwright.errors import MisuseError
from callwright.events import Event, FinishReason
from callwright.ids import make_call_id
from callwright.model import ToolSpec
from callwright.schema import Toolbox, parse_tool_spec
from callwright.text.source import DEFAULT_LIMIT, Source
from callwright.turn import IdFactory, TruncationMode, Turn, UnknownToolMode

__all__ = ["Parser"]


class Parser:
    """Reads one turn.

    Args:
        dialect: how the model writes calls; `dialect("auto")` when that is not known.
        tools: what the request offers, as OpenAI tool objects or `ToolSpec`. Only these count as calls;
            with none given, a dialect takes every name it reads (`auto` takes none).
        prefill: what the prompt already wrote of the answer, such as `<think>` or `<|start|>assistant`.
        ids: makes ids for calls whose dialect carries none.
        truncated: what becomes of a call that the output was cut in.
        unknown_tool: whether a call of a tool that was not offered stays text or is passed on.
        limit: characters that may be held undecided before it is an error.
    """

    def __init__(
        self,
        dialect: Dialect,
        tools: Iterable[ToolSpec | Mapping[str, Any]] = (),
        *,
        prefill: str = "",
        ids: IdFactory = make_call_id,
        truncated: TruncationMode = "partial",
        unknown_tool: UnknownToolMode = "text",
        limit: int = DEFAULT_LIMIT,
    ) -> None:
        if not isinstance(dialect, Dialect):
            raise MisuseError(f"a parser needs a dialect, not {dialect!r}; dialect(NAME) gives one")
        self.dialect = dialect
        self._closed = False
        self._segment_prefill = ""
        turn = partial(Turn, Toolbox(map(parse_tool_spec, tools)), ids, truncated=truncated, unknown_tool=unknown_tool)
        if not self._start_turn(Source(limit=limit), turn(), prefill):
            # The prompt's last words are all text and open nothing: the answer begins after them.
            self._start_turn(Source(limit=limit), turn())

    def _start_turn(self, source: Source, turn: Turn, prefill: str = "") -> bool:
        """Begin to read, after a prefill. False: nothing but text was read in it."""
        self.turn = turn
        turn.dialect = self.dialect.name
        turn.begin_prefill()
        self._start_grammar(source, prefill)
        said = turn.end_prefill()
        return not prefill or bool(prefill.removeprefix(said).strip())

    def _start_grammar(self, source: Source, prefill: str) -> None:
        self._source = source
        self._grammar = self.dialect.grammar(source, self.turn)
        next(self._grammar, None)
        if prefill:
            source.feed(prefill)
            next(self._grammar, None)

    def feed(self, text: str, special: Iterable[int] | None = None) -> list[Event]:
        """Read a chunk. `special`: where in it special tokens begin, if the backend tells; once given, the
        dialect's special tokens count only where they were announced."""
        if self._closed:
            raise MisuseError("the parser is closed: it reads one turn, make another for the next")
        if not isinstance(text, str):
            raise MisuseError(f"a chunk is a string, not {type(text).__name__}; decode bytes before")
        if special is not None and not self._source.special_tokens:
            self._source.expect_tokens(self.dialect.tokens)
        self._source.feed(text, special or ())
        next(self._grammar, None)
        return self.turn.drain_events()

    def end_segment(self, after: str = "") -> None:
        """The text breaks off here, because the backend says something else in between: what is undecided is read as
        if the text ended. Reading goes on with text that stands by itself, or after these words."""
        if self._source.text[self._source.position :] or self.turn.has_open_call or after != self._segment_prefill:
            self._source.close()
            next(self._grammar, None)
            self._start_grammar(Source(limit=self._source.limit), after)
            self._segment_prefill = after

    def close(self, reason: FinishReason | None = None) -> list[Event]:
        """The model is done; `reason` is what the backend said of it. Returns the last events, `Finish` included."""
        if self._closed:
            return []
        self._closed = True
        self._source.close()
        next(self._grammar, None)
        self.turn.finish(reason)
        return self.turn.drain_events()
