"""The batch mode of `parse`: one JSON object per line, in and out, in the same order.

A line that cannot be parsed gives `{"id", "error"}`, and the batch continues.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TextIO, get_args

from callwright import Collected, Parser, collect, get_dialect
from callwright.errors import CallwrightError, RequestError
from callwright.turn import TruncationMode

__all__ = ["run_batch", "turn_to_dict"]


def run_batch(
    lines: Iterable[bytes], out: TextIO, *, default: str = "auto", size: int = 0, truncated: TruncationMode
) -> None:
    """Parse every line and write its result.

    `default` is the dialect of lines without one; `size` is the chunk size, 0 for the whole text at once.
    """
    for line in lines:
        if line.strip():
            out.write(json.dumps(_answer_line(line, default, size, truncated)) + "\n")
            out.flush()


def _answer_line(line: bytes, default: str, size: int, truncated: TruncationMode) -> dict[str, Any]:
    case: Any = None
    try:
        case = _decode_line(line)
        if not isinstance(case, dict):
            return {"id": None, "error": "the line must be a JSON object"}
        return {"id": case.get("id"), **turn_to_dict(_parse_case(case, default, size, truncated))}
    except (CallwrightError, ValueError, RecursionError) as problem:
        return {"id": case.get("id") if isinstance(case, dict) else None, "error": f"{problem}"}


def _decode_line(line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as problem:
        raise ValueError(f"the line is not UTF-8: byte {line[problem.start]:#04x} at {problem.start}") from None
    except ValueError as problem:
        raise ValueError(f"the line is not JSON: {problem}") from None


def _parse_case(case: dict[str, Any], default: str, size: int, truncated: TruncationMode) -> Collected:
    text, chunks = case.get("text"), case.get("chunks")
    if chunks is None and isinstance(text, str):
        step = size or max(len(text), 1)
        chunks = [text[start : start + step] for start in range(0, len(text), step)]
    if not isinstance(chunks, list) or not all(isinstance(chunk, str) for chunk in chunks):
        raise RequestError('the line needs "text", a string, or "chunks", a list of strings')
    tools = case.get("tools") or []
    if not isinstance(tools, list):
        raise RequestError('"tools" must be a list of tool objects')
    prefill, policy = case.get("prefill") or "", case.get("truncated") or truncated
    if not isinstance(prefill, str):
        raise RequestError('"prefill" must be a string')
    if policy not in get_args(TruncationMode):
        raise RequestError(f'"truncated" must be one of {", ".join(get_args(TruncationMode))}')
    parser = Parser(get_dialect(str(case.get("dialect") or default)), tools, prefill=prefill, truncated=policy)
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return collect([*events, *parser.close()])


def turn_to_dict(turn: Collected) -> dict[str, Any]:
    """Return a turn as a JSON object."""
    return {
        "content": turn.text,
        "reasoning": turn.reasoning,
        "tool_calls": [
            {"id": call.id, "name": call.name, "arguments": call.arguments}
            | ({} if call.complete else {"incomplete": True})
            for call in turn.tool_calls
        ],
        "finish_reason": turn.finish_reason,
        "repairs": [{"kind": repair.kind, "detail": repair.detail} for repair in turn.repairs],
        "malformed": [{"raw": bad.raw, "reason": bad.reason, "shown": bad.shown} for bad in turn.malformed],
        "dialect": turn.dialect,
        "why": turn.why,
    }
