"""Journal entries on screen: as a table, one in full, and the differences between two runs of a turn."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from callwright.cli import turn_view
from callwright.events import Event, ReasoningDelta, TextDelta
from callwright.model import Request, ToolSpec
from callwright.store.journal_records import JournalEntry, RecordedAttempt
from callwright.turn import collect

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["build_entry_table", "compare_entries", "print_entry", "summarize_entry"]


def summarize_entry(entry: JournalEntry) -> dict[str, Any]:
    """Return the facts of an entry without its texts."""
    return {
        "number": entry.number,
        "at": datetime.fromtimestamp(entry.at).astimezone().isoformat(timespec="seconds"),
        "request_id": entry.request_id,
        "client": entry.client,
        "model": entry.model,
        "wire": entry.wire,
        "status": entry.status,
        "calls": entry.record.get("tool_call_names", []),
        "attempts": len(entry.asked),
        "repairs": [repair.kind for repair in entry.repairs],
        "error_source": entry.record.get("fault", ""),
        "error_kind": entry.record.get("error", ""),
    }


def build_entry_table(entries: Sequence[JournalEntry]) -> Table:
    """Build a table with one line per entry."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    for column in ("turn", "time", "client", "model", "wire", "status", "result"):
        table.add_column(column, justify="right" if column == "turn" else "left", overflow="fold")
    for entry in entries:
        summary = summarize_entry(entry)
        status = Text(str(entry.status), style="green" if entry.status < 400 else "red")
        time = summary["at"][5:19].replace("T", " ")
        table.add_row(
            str(entry.number), time, entry.client, Text(entry.model), entry.wire, status, _format_outcome(summary)
        )
    return table


def _format_outcome(summary: dict[str, Any]) -> Text:
    parts = [", ".join(summary["calls"])]
    if summary["error_source"]:
        parts = [f"{summary['error_source']} error: {summary['error_kind']}"]
    if summary["attempts"] > 1:
        parts.append(f"{summary['attempts']} attempts")
    if summary["repairs"]:
        parts.append(f"{len(summary['repairs'])} repaired")
    return Text("; ".join(filter(None, parts)) or "text")


def print_entry(entry: JournalEntry, console: Console) -> None:
    """Print everything of an entry, from the client's request to the response."""
    started_at = summarize_entry(entry)["at"]
    console.print(Rule(Text(f"{entry.number}  {started_at}  {entry.request_id}", style="bold"), align="left"))
    line = f"{entry.client} requested {entry.model} on {entry.wire}: {entry.status}"
    console.print(Text(f"{line}, {entry.problem}" if entry.problem else line))
    console.print(Text(json.dumps(entry.record, ensure_ascii=False), style="dim"))
    if entry.client_sent:
        console.print(Rule("request of the client", align="left", style="dim"))
        console.print(Text(_indent_json(entry.client_sent)))
    for number, attempt in enumerate(entry.asked, 1):
        console.print(Rule(_format_attempt(number, attempt), align="left", style="dim"))
        if attempt.request:
            console.print(Padding(Text("\n".join(_iter_request_lines(attempt.request))), (0, 0, 0, 2)))
        if attempt.events:
            console.print(Rule("response of the model", align="left", style="dim"))
            console.print(*map(_render_event, attempt.events), sep="\n")
        if attempt.failure:
            console.print(Text(f"failed: {attempt.failure.message or attempt.failure.kind}", style="red"))
        if attempt.retry_reason:
            console.print(Text(f"retried: {attempt.retry_reason}", style="yellow"))
    for events in entry.client_got:
        console.print(Rule("response to the client", align="left", style="dim"))
        turn_view.print_turn(collect(events), console)
    if entry.cut:
        console.print(Text("Parts of this turn were too long or were masked and are missing here.", style="yellow"))


def _render_event(event: Event) -> Text:
    """Render an event as the backend sent it: text and reasoning as text, all other events as JSON."""
    match event:
        case TextDelta():
            return Text(event.text)
        case ReasoningDelta():
            return Text(event.text, style="dim italic")
        case _:
            return Text(_encode_json(msgspec.to_builtins(event)), style="dim")


def _format_attempt(number: int, attempt: RecordedAttempt) -> str:
    reason = f": {attempt.strategy_reason}" if attempt.strategy_reason else ""
    return f"attempt {number}: request to {attempt.backend} (tools {attempt.strategy}{reason})"


def compare_entries(then: JournalEntry, now: JournalEntry) -> list[str]:
    """Return the differences in the response to the client, then those in the requests to the model.

    Generated ids are ignored.
    """
    responses = _diff_lines(_list_outcome_lines(then), _list_outcome_lines(now))
    requests = _diff_lines(
        [line for attempt in then.asked if attempt.request for line in _iter_request_lines(attempt.request)],
        [line for attempt in now.asked if attempt.request for line in _iter_request_lines(attempt.request)],
    )
    return [*responses, *(["requests to the model:", *requests] if requests else [])]


def _diff_lines(then: Sequence[str], now: Sequence[str]) -> list[str]:
    return [line for line in difflib.unified_diff(then, now, lineterm="", n=1) if not line.startswith(("---", "+++"))]


def _list_outcome_lines(entry: JournalEntry) -> list[str]:
    lines = [f"status {entry.status}", *([entry.problem] if entry.problem else [])]
    for events in entry.client_got:
        lines += _iter_turn_lines(events)
    return [*lines, *(f"repaired {repair.kind}" for repair in entry.repairs)]


def _iter_turn_lines(events: Sequence[Event]) -> Iterator[str]:
    turn = collect(events)
    yield from (f"reasoning: {line}" for line in turn.reasoning.splitlines())
    yield from (f"text: {line}" for line in turn.text.splitlines())
    for call in turn.tool_calls:
        yield f"call {call.name} {call.arguments}{'' if call.complete else ' (cut)'}"
    yield f"finish {turn.finish_reason}"


def _iter_request_lines(request: Request) -> Iterator[str]:
    """Yield a request as lines: its messages, its tools, and the constraint on the answer."""
    for message in request.messages:
        for part in message.parts:
            fields: dict[str, Any] = msgspec.to_builtins(part)
            kind = fields.pop("type")
            text = fields.pop("text", None)
            first, *rest = str(text).splitlines() or [""] if text is not None else [_encode_json(fields)]
            yield f"{message.role} {kind}: {first}"
            yield from (f"  {line}" for line in rest)
    yield from map(_format_tool, request.tools)
    yield f"tool_choice {request.tool_choice}, options {_encode_json(request.options)}"
    if request.constraint:
        yield f"constraint {_encode_json(msgspec.to_builtins(request.constraint))}"


def _format_tool(tool: ToolSpec) -> str:
    return f"tool {tool.name} {_encode_json(tool.parameters)}"


def _encode_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _indent_json(text: str) -> str:
    try:
        return msgspec.json.format(text, indent=2)
    except msgspec.DecodeError:
        return text
