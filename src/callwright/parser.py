"""Parser: run one dialect's grammar over one model's turn, chunk by chunk.

`feed` and `close` return the events that the chunk decided. Parsing is linear in the length of the text, and the
merged events do not depend on how the text is cut into chunks.
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
    """Parses one turn.

    Args:
        dialect: how the model writes calls; `get_dialect("auto")` if that is not known.
        tools: the tools of the request, as OpenAI tool objects or `ToolSpec`. Only these count as calls; without any,
            a dialect accepts every name (`auto` accepts none).
        prefill: the beginning of the answer that the prompt contains, such as `<think>` or `<|start|>assistant`.
        ids: makes ids for calls whose dialect has none.
        truncated: what happens to a call if the output ended inside it.
        unknown_tool: whether a call of an unknown tool stays text or is passed on.
        limit: how many undecided characters may be buffered before an error is raised.
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
            raise MisuseError(f"dialect must be a Dialect, not {dialect!r}; use get_dialect(NAME)")
        self.dialect = dialect
        self._closed = False
        self._segment_prefill = ""
        turn = partial(Turn, Toolbox(map(parse_tool_spec, tools)), ids, truncated=truncated, unknown_tool=unknown_tool)
        if not self._start_turn(Source(limit=limit), turn(), prefill):
            # The prefill is plain text and opens nothing: the answer begins after it.
            self._start_turn(Source(limit=limit), turn())

    def _start_turn(self, source: Source, turn: Turn, prefill: str = "") -> bool:
        """Start to read, after the prefill. Return False if the prefill was nothing but text."""
        self.turn = turn
        turn.dialect = self.dialect.name
        turn.begin_prefill()
        self._start_grammar(source, prefill)
        prefill_text = turn.end_prefill()
        return not prefill or bool(prefill.removeprefix(prefill_text).strip())

    def _start_grammar(self, source: Source, prefill: str) -> None:
        self._source = source
        self._grammar = self.dialect.grammar(source, self.turn)
        next(self._grammar, None)
        if prefill:
            source.feed(prefill)
            next(self._grammar, None)

    def feed(self, text: str, special: Iterable[int] | None = None) -> list[Event]:
        """Parse a chunk and return its events. `special` has the offsets of special tokens in the chunk, if the backend
        reports them; from then on the dialect's special tokens count only at these offsets."""
        if self._closed:
            raise MisuseError("the parser is closed; create a new Parser for the next turn")
        if not isinstance(text, str):
            raise MisuseError(f"a chunk must be a string, not {type(text).__name__}; decode bytes first")
        if special is not None and not self._source.special_tokens:
            self._source.expect_tokens(self.dialect.tokens)
        self._source.feed(text, special or ())
        next(self._grammar, None)
        return self.turn.drain_events()

    def end_segment(self, after: str = "") -> None:
        """End a segment of text, because the backend sent something else in between. Undecided text is read as if the
        output ended here. The next segment is read on its own, after the prefill `after`."""
        if self._source.text[self._source.position :] or self.turn.has_open_call or after != self._segment_prefill:
            self._source.close()
            next(self._grammar, None)
            self._start_grammar(Source(limit=self._source.limit), after)
            self._segment_prefill = after

    def close(self, reason: FinishReason | None = None) -> list[Event]:
        """End the turn and return the last events, including `Finish`. `reason` is what the backend reported."""
        if self._closed:
            return []
        self._closed = True
        self._source.close(reason)
        next(self._grammar, None)
        self.turn.finish(reason)
        return self.turn.drain_events()
