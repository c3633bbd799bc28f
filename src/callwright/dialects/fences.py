"""Calls in a Markdown fence, for families with markers of their own that sometimes fall back to it.

    ```json
    {"name": "get_weather", "arguments": {"city": "Oslo"}}
    ```

Most fences are examples. A fence is a call if all of it is calls of known tools and the answer ends with it.
"""

from __future__ import annotations

from itertools import count

from callwright.dialects.base import FENCE, Dialect
from callwright.schema import Toolbox
from callwright.text.source import ParseStep, Source, compile_markers
from callwright.turn import Turn, collect

__all__ = ["has_only_calls", "read_fenced_calls"]

_LINE_FENCE = f"\n{FENCE}"
_NEXT_CALL_MARKS = compile_markers("{", "[", FENCE)


def read_fenced_calls(source: Source, turn: Turn, info: str, member: Dialect) -> ParseStep[str]:
    """Read the rest of a fenced block as the calls of a family, if they end the answer. Return an empty string, or the
    complete block to emit as text; no event was written then."""
    body, close = yield from source.take_to(compile_markers(_LINE_FENCE))
    block = f"{FENCE}{info}{body}{close or ''}"
    more = yield from source.peek_marker(_NEXT_CALL_MARKS)
    last = more or (source.closed and not source.text[source.position :].strip())
    if not last or not (yield from has_only_calls(member, block, turn.tools)):
        return block
    yield from member.grammar(Source.from_text(block), turn)
    return ""


def has_only_calls(member: Dialect, text: str, tools: Toolbox) -> ParseStep[bool]:
    """Whether a family reads a complete text as complete calls of known tools and nothing else."""
    numbers = count()
    trial = Turn(tools, lambda: str(next(numbers)))
    trial.accepts_unknown_tools = False
    yield from member.grammar(Source.from_text(text), trial)
    trial.finish()
    turn = collect(trial.drain_events())
    return bool(turn.tool_calls) and turn.finish_reason == "tool_calls" and not (turn.text.strip() or turn.malformed)
