"""Rows of the journal on a person's screen: as a list, one by one, and two of the same turn compared."""

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
    """A row without the words."""
    return {
        "number": entry.number,
        "at": datetime.fromtimestamp(entry.at).astimezone().isoformat(timespec="seconds"),
        "request_id": entry.request_id,
        "client": entry.client,
        "model": entry.model,
        "wire": entry.wire,
        "status": entry.status,
        "calls": entry.record.get("tool_call_names", []),
        "asked": len(entry.asked),
        "repairs": [repair.kind for repair in entry.repairs],
        "fault": entry.record.get("fault", ""),
        "error": entry.record.get("error", ""),
    }


def build_entry_table(entries: Sequence[JournalEntry]) -> Table:
    """One line each."""
    shown = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    for column in ("row", "time", "client", "model", "wire", "status", "what became of it"):
        shown.add_column(column, justify="right" if column == "row" else "left", overflow="fold")
    for entry in entries:
        about = summarize_entry(entry)
        status = Text(str(entry.status), style="green" if entry.status < 400 else "red")
        when = about["at"][5:19].replace("T", " ")
        shown.add_row(
            str(entry.number), when, entry.client, Text(entry.model), entry.wire, status, _format_outcome(about)
        )
    return shown


def _format_outcome(about: dict[str, Any]) -> Text:
    parts = [", ".join(about["calls"])]
    if about["fault"]:
        parts = [f"{about['fault']}: {about['error']}"]
    if about["asked"] > 1:
        parts.append(f"asked {about['asked']} times")
    if about["repairs"]:
        parts.append(f"{len(about['repairs'])} repaired")
    return Text("; ".join(filter(None, parts)) or "text")


def print_entry(entry: JournalEntry, console: Console) -> None:
    """All of a row, from what the client sent to what it got."""
    about = summarize_entry(entry)
    console.print(Rule(Text(f"{entry.number}  {about['at']}  {entry.request_id}", style="bold"), align="left"))
    line = f"{entry.client} asked for {entry.model} on {entry.wire}: {entry.status}"
    console.print(Text(f"{line}, {entry.problem}" if entry.problem else line))
    console.print(Text(json.dumps(entry.record, ensure_ascii=False), style="dim"))
    if entry.client_sent:
        console.print(Rule("the client sent", align="left", style="dim"))
        console.print(Text(_indent_json(entry.client_sent)))
    for number, asked in enumerate(entry.asked, 1):
        console.print(Rule(_format_attempt(number, asked), align="left", style="dim"))
        if asked.request:
            console.print(Padding(Text("\n".join(_iter_request_lines(asked.request))), (0, 0, 0, 2)))
        if asked.events:
            console.print(Rule("it said", align="left", style="dim"))
            console.print(*map(_render_event, asked.events), sep="\n")
        if asked.failure:
            console.print(Text(f"it failed: {asked.failure.message or asked.failure.kind}", style="red"))
        if asked.retry_reason:
            console.print(Text(f"asked again: {asked.retry_reason}", style="yellow"))
    for events in entry.client_got:
        console.print(Rule("the client got", align="left", style="dim"))
        turn_view.print_turn(collect(events), console)
    if entry.cut:
        console.print(Text("Something was too long, or was masked, so this row is not the whole turn.", style="yellow"))


def _render_event(event: Event) -> Text:
    """As the backend sent it: calls may be interleaved, and anything but the words is shown as it is."""
    match event:
        case TextDelta():
            return Text(event.text)
        case ReasoningDelta():
            return Text(event.text, style="dim italic")
        case _:
            return Text(_encode_json(msgspec.to_builtins(event)), style="dim")


def _format_attempt(number: int, attempt: RecordedAttempt) -> str:
    why = (
        f"tools {attempt.strategy}, because {attempt.strategy_reason}" if attempt.strategy_reason else attempt.strategy
    )
    return f"{number}. {attempt.backend} got ({why})"


def compare_entries(then: JournalEntry, now: JournalEntry) -> list[str]:
    """What is different: what the client got, then what the model was told. Ids that are made up do not count."""
    got = _diff_lines(_list_outcome_lines(then), _list_outcome_lines(now))
    told = _diff_lines(
        [line for asked in then.asked if asked.request for line in _iter_request_lines(asked.request)],
        [line for asked in now.asked if asked.request for line in _iter_request_lines(asked.request)],
    )
    return [*got, *(["the model is told:", *told] if told else [])]


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
    """A request in lines: who says what, what is offered, and how the answer is to be written."""
    for message in request.messages:
        for part in message.parts:
            fields: dict[str, Any] = msgspec.to_builtins(part)
            kind = fields.pop("type")
            words = fields.pop("text", None)
            first, *rest = str(words).splitlines() or [""] if words is not None else [_encode_json(fields)]
            yield f"{message.role} {kind}: {first}"
            yield from (f"  {line}" for line in rest)
    yield from map(_format_tool, request.tools)
    yield f"tool_choice {request.tool_choice}, options {_encode_json(request.options)}"
    if request.constraint:
        yield f"held to {_encode_json(msgspec.to_builtins(request.constraint))}"


def _format_tool(tool: ToolSpec) -> str:
    return f"tool {tool.name} {_encode_json(tool.parameters)}"


def _encode_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _indent_json(text: str) -> str:
    try:
        return msgspec.json.format(text, indent=2)
    except msgspec.DecodeError:
        return text
