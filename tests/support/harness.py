"""What every test of a dialect needs: tools with every type, cutting, driving a parser, nasty values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import strategies as st

from callwright import Collected, Dialect, Parser, check_events, collect
from callwright.events import Event
from callwright.ids import make_sequential_ids
from callwright.model import ToolCall, ToolSpec
from callwright.schema import Toolbox
from callwright.text.repair import convert_python_literal

VECTORS = Path(__file__).parents[1] / "vectors" / "dialects"
SIZES = (1, 2, 3, 4, 5, 7, 13, 64, 1_000_000)

WEATHER = ToolSpec(
    "get_weather",
    "Forecast for a city.",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
    },
)
PING = ToolSpec("ping", "Answer with pong.", {"type": "object", "properties": {}})
WRITE = ToolSpec(
    "write_file",
    "Write a file.",
    {
        "type": "object",
        "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
        "required": ["path", "content"],
    },
)
TYPED = ToolSpec(
    "typed",
    "A parameter of each type.",
    {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "count": {"type": "integer"},
            "ratio": {"type": "number"},
            "flag": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "options": {"type": "object", "additionalProperties": {"type": ["string", "integer", "null"]}},
            "mode": {"type": "string", "enum": ["fast", "slow"]},
            "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        },
        "required": ["text"],
    },
)
TOOLS = (WEATHER, PING, WRITE, TYPED)


def pieces(text: str, size: int) -> list[str]:
    """The text in chunks of one size."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def cut(text: str, places: Iterable[int]) -> list[str]:
    """The text cut at these places (taken modulo its length)."""
    ends = sorted({place % (len(text) + 1) for place in places} | {len(text)})
    return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def drive(dialect: Dialect, chunks: Iterable[str], tools: Sequence[Any] = TOOLS, **options: Any) -> list[Event]:
    """All events of a turn, checked against the event grammar."""
    parser = Parser(dialect, tools, ids=make_sequential_ids(), **options)
    events: list[Event] = []
    for chunk in chunks:
        events += parser.feed(chunk)
    events += parser.close()
    check_events(events)
    return events


def read(dialect: Dialect, text: str, size: int = 1_000_000, **options: Any) -> Collected:
    """The whole turn that a text comes to."""
    return collect(drive(dialect, pieces(text, size), **options))


def told(turn: Collected) -> list[tuple[str, Any]]:
    """The calls of a turn as names and values."""
    return [(call.name, json.loads(call.arguments)) for call in turn.tool_calls]


class Expected(msgspec.Struct, forbid_unknown_fields=True):
    """What a vector's text must come to. `repairs` are kinds; calls are name and arguments."""

    content: str = ""
    reasoning: str = ""
    calls: list[tuple[str, Any]] = []
    finish: str = "stop"
    repairs: list[str] = []
    malformed: int = 0
    ids: list[str] | None = None
    complete: list[bool] | None = None


class Vector(msgspec.Struct, forbid_unknown_fields=True):
    """One line of a vectors file. `hand`: written out from the format's definition, not rendered by our code."""

    id: str
    text: str
    expect: Expected
    hand: bool = False
    source: str = ""
    prefill: str = ""
    tools: list[Any] | None = None
    truncated: str = "partial"


def vectors(name: str) -> list[Vector]:
    """The vectors of one dialect."""
    lines = (VECTORS / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")
    return [msgspec.json.decode(line, type=Vector) for line in lines if line.strip()]


# ── nasty values ──────────────────────────────────────────────────────────────────────────────────

NASTY = (
    '"quoted"',
    "it's",
    "back\\slash \\n \\",
    "tab\there",
    "\n",
    "\nlines\n\nat both ends\n",
    "  spaces around  ",
    "naïve ☃ 😀 日本",
    '{"json": [1, null, "x"]}',
    "[1, 2]",
    "42",
    "3.0",
    "true",
    "null",
    "None",
    "",
    "a < b && c > d",
    "<b>html</b> &amp; entities",
    "```python\nprint(1)\n```",
    "def f(x):\n    return {'a': [x, \"y\"]}\n",
    "C:\\temp\\new",
    "}}]]",
    "{{[[",
    "key: value, other: [x]",
    "</x>",
    "a,b;c",
    "'''triple''' \"\"\"quotes\"\"\"",
    "\u2028\u00a0",
)


def markers_of(dialect: Dialect) -> tuple[str, ...]:
    """The markers of the dialect when `TOOLS` are offered."""
    return dialect.list_markers(Toolbox(TOOLS)) or ("<x>",)


# Strategies are made once for each dialect: making them takes longer than drawing from them.


@cache
def words(dialect: Dialect) -> st.SearchStrategy[str]:
    """Strings for arguments: nasty ones, plain ones, and the dialect's own markers inside other text."""
    markers = st.sampled_from(markers_of(dialect))
    inside = st.builds(lambda marker, tail: f"see {marker} and {tail}", markers, st.sampled_from(NASTY[:8]))
    if dialect.raw_values:
        # Glued markers can spell real structure where nothing is escaped; one among words never does.
        return st.one_of(st.sampled_from(NASTY), plain(), inside)
    glued = st.lists(st.one_of(markers, st.sampled_from(NASTY)), max_size=4).map("".join)
    return st.one_of(st.sampled_from(NASTY), plain(), inside, glued)


@cache
def plain() -> st.SearchStrategy[str]:
    """Any text without surrogates."""
    return st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20)


def arguments(dialect: Dialect, tool: ToolSpec) -> st.SearchStrategy[dict[str, Any]]:
    """Arguments that fit a tool of `TOOLS`, in any order, with or without the optional ones."""
    string = words(dialect)
    by_name: dict[str, st.SearchStrategy[Any]] = {
        "count": st.integers(-(10**12), 10**12),
        "days": st.integers(0, 14),
        "ratio": st.floats(-1e9, 1e9, allow_nan=False).map(lambda number: round(number, 6)),
        "flag": st.booleans(),
        "tags": st.lists(string, max_size=3),
        "options": st.dictionaries(
            st.sampled_from(["a", "b_c", "deep"]), st.one_of(string, st.integers(-9, 9), st.none()), max_size=3
        ),
        "mode": st.sampled_from(["fast", "slow"]),
        "maybe": st.one_of(st.none(), st.integers(-5, 5)),
    }
    if dialect.nested_format == "elements":
        untyped = string.filter(lambda text: convert_python_literal(text.strip()) is None)
        by_name["options"] = st.dictionaries(st.sampled_from(["a", "b_c"]), st.one_of(untyped, st.integers(-9, 9)))
        by_name["maybe"] = st.integers(-5, 5)
    names = list(tool.parameters["properties"])
    chosen = st.lists(st.sampled_from(names), unique=True) if names else st.just([])
    return chosen.flatmap(lambda keys: st.fixed_dictionaries({key: by_name.get(key, string) for key in keys}))


@cache
def calls(dialect: Dialect, most: int = 3) -> st.SearchStrategy[list[ToolCall]]:
    """One to three calls of the offered tools."""
    of_tool = {tool.name: _calls_of(dialect, tool) for tool in TOOLS}
    one = st.sampled_from(list(of_tool)).flatmap(of_tool.__getitem__)
    return st.lists(one, min_size=1, max_size=most).map(
        lambda some: [msgspec.structs.replace(call, id=_id(dialect, call, at)) for at, call in enumerate(some)]
    )


def _calls_of(dialect: Dialect, tool: ToolSpec) -> st.SearchStrategy[ToolCall]:
    return arguments(dialect, tool).map(lambda given: ToolCall("", tool.name, json.dumps(given, ensure_ascii=False)))


def _id(dialect: Dialect, call: ToolCall, at: int) -> str:
    """An id of the form that the dialect's own model would write."""
    return dialect.make_call_id(call.name, at)


@cache
def soup(dialect: Dialect) -> st.SearchStrategy[str]:
    """Markers, halves of markers, and other text in any order."""
    markers = markers_of(dialect) + tuple(think.open for think in dialect.reasoning_tags)
    markers += tuple(think.close for think in dialect.reasoning_tags) + dialect.framing
    halves = st.builds(
        lambda marker, at: marker[: at % (len(marker) + 1)], st.sampled_from(markers), st.integers(0, 40)
    )
    piece = st.one_of(
        st.sampled_from(markers),
        halves,
        st.sampled_from(NASTY),
        st.sampled_from(
            ["get_weather", '{"name": "ping"', '"arguments": {', "}", "]", "city", "=", ">", ": ", "\n", " "]
        ),
        plain(),
    )
    return st.lists(piece, max_size=14).map("".join)


WORD = re.compile(r"wq\d\dz")
"""The words of `worded`: no marker, no name and no value holds one."""


def worded(texts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Texts with words put in at any places, each once and in rising order."""

    def put(text: str, places: list[int]) -> str:
        return "".join(f"{piece}wq{number}z" for number, piece in enumerate(cut(text, places), 10))

    return st.builds(put, texts, st.lists(st.integers(0, 5000), max_size=4))
