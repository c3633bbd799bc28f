"""The batch form of `parse`: a JSON object per line in, one per line out, in the same order.

A line that cannot be read gives `{"id", "error"}`, and the rest go on.
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
    """Answer every line. `default` is the dialect of lines that name none; `size` cuts their texts."""
    for line in lines:
        if line.strip():
            out.write(json.dumps(_answer_line(line, default, size, truncated)) + "\n")
            out.flush()


def _answer_line(line: bytes, default: str, size: int, truncated: TruncationMode) -> dict[str, Any]:
    case: Any = None
    try:
        case = _decode_line(line)
        if not isinstance(case, dict):
            return {"id": None, "error": "a line must hold a JSON object"}
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
        raise RequestError('a line needs "text", a string, or "chunks", a list of strings')
    tools = case.get("tools") or []
    if not isinstance(tools, list):
        raise RequestError('"tools" must be a list of tool objects')
    prefill, policy = case.get("prefill") or "", case.get("truncated") or truncated
    if not isinstance(prefill, str):
        raise RequestError('"prefill" must be a string: what the prompt wrote of the answer')
    if policy not in get_args(TruncationMode):
        raise RequestError(f'"truncated" must be one of {", ".join(get_args(TruncationMode))}')
    parser = Parser(get_dialect(str(case.get("dialect") or default)), tools, prefill=prefill, truncated=policy)
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return collect([*events, *parser.close()])


def turn_to_dict(turn: Collected) -> dict[str, Any]:
    """A turn as the object that programs get."""
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
