"""Harmony beyond its vectors: what it renders, when things go out, and reading from a marker on."""

from __future__ import annotations

import pytest

from callwright import Collected, Parser, collect, get_dialect
from callwright.events import CallDelta, ReasoningDelta, TextDelta
from callwright.model import ToolResult, ToolSpec
from callwright.schema import Toolbox
from callwright.text.source import Source
from callwright.turn import Turn
from tests.support.harness import PING, TOOLS, WEATHER, drive, pieces, read, told

HARMONY = get_dialect("harmony")
ARGUMENTS = '{"city": "Oslo"}'


def test_tools_are_typescript() -> None:
    assert HARMONY.render_tools([WEATHER, PING]) == (
        "# Tools\n\n## functions\n\nnamespace functions {\n\n"
        "// Forecast for a city.\ntype get_weather = (_: {\ncity: string,\ndays?: number,\n}) => any;\n\n"
        "// Answer with pong.\ntype ping = () => any;\n\n"
        "} // namespace functions\n\nCalls to these tools must go to the commentary channel: 'functions'."
    )


def test_types_of_every_kind_have_a_name() -> None:
    body = {
        "type": "object",
        "properties": {
            "mode": {"enum": ["fast", 3], "description": "How.\nOr not.", "default": "fast"},
            "maybe": {"type": ["null", "integer"]},
            "mixed": {"type": "array", "items": {"type": ["string", "boolean"]}},
            "rows": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "number"}}}},
            "list": {"type": "array"},
            "what": {},
        },
    }
    assert HARMONY.render_tools([ToolSpec("t", "", body)]).split("\n\n")[3] == (
        "type t = (_: {\n"
        '// How.\n// Or not.\nmode?: "fast" | 3, // default: fast\n'
        "maybe?: number | null,\n"
        "mixed?: (boolean | string)[],\n"
        "rows?: {\n    x?: number,\n    }[],\n"
        "list?: any[],\n"
        "what?: any,\n"
        "}) => any;"
    )


def test_a_type_that_holds_itself_ends() -> None:
    body = {"type": "object", "properties": {"next": {"$ref": "#"}, "all": {"type": "array", "items": {"$ref": "#"}}}}
    assert f"{'    ' * 7}next?: object,\n{'    ' * 7}all?: any[]," in HARMONY.render_tools([ToolSpec("t", "", body)])


def test_beam_lists_tools_as_schemas() -> None:
    assert '"name": "get_weather"' in get_dialect("beam").render_tools([WEATHER])


def test_a_result_is_a_message_of_the_tool() -> None:
    shown = HARMONY.render_result(ToolResult("call_1", "12 degrees", "get_weather"))
    assert shown == "<|start|>functions.get_weather to=assistant<|channel|>commentary<|message|>12 degrees<|end|>"


def test_no_tools_offered_means_any_tool() -> None:
    turn = read(HARMONY, f"<|channel|>commentary to=functions.any.thing<|message|>{ARGUMENTS}<|call|>", tools=())
    assert told(turn) == [("any.thing", {"city": "Oslo"})]


def test_a_special_token_that_is_known_to_be_text_is_text() -> None:
    parser = Parser(HARMONY, TOOLS)
    events = parser.feed("<|channel|>final<|message|>the <|end|> token", special=(0, 16))
    assert collect(events + parser.close()).text == "the <|end|> token"


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        ("<|channel|>analysis<|message|>", ReasoningDelta),
        ("<|channel|>final<|message|>", TextDelta),
        ("<|channel|>final Two words ", TextDelta),
        ("analysisWe think ", ReasoningDelta),
        ('<|channel|>commentary to=functions.get_weather<|message|>{"city": "', CallDelta),
        ('analysisHm.assistantcommentary to=functions.get_weather json{"city": "', CallDelta),
    ],
)
def test_bodies_stream(head: str, kind: type) -> None:
    parser = Parser(HARMONY, TOOLS)
    parser.feed(head)
    for char in "Oslo":
        (event,) = parser.feed(char)
        assert isinstance(event, kind)
        assert event.text == char


@pytest.mark.parametrize("name", ["harmony", "beam", "atem"])
def test_reading_from_an_opening_marker_on(name: str) -> None:
    """What the automatic dialect does: it has read the opener, and asks whether this is the dialect."""
    known = get_dialect(name)
    rendered = known.render_text("One moment.") + known.render_call(
        known.build_sample_call("get_weather", {"city": "Oslo"})
    )
    for size in (1, 5, 1000):
        problem, turn = _from_opener(name, rendered, size)
        assert (problem, turn.text) == ("", "One moment.")
        assert told(turn) == [("get_weather", {"city": "Oslo"})]
    problem, turn = _from_opener(name, "<|start|> opens a message", 4)
    assert problem == "no message follows"
    assert not turn.tool_calls


def _from_opener(name: str, text: str, size: int) -> tuple[str, Collected]:
    source, turn = Source(), Turn(Toolbox(TOOLS), iter(["a", "b"]).__next__)
    opener = next(marker for marker in get_dialect(name).openers if text.startswith(marker))
    reading = get_dialect(name).read_calls(source, turn, opener)
    for piece in [*pieces(text.removeprefix(opener), size), ""]:
        try:
            next(reading)
        except StopIteration as end:
            turn.finish()
            return end.value, collect(turn.drain_events())
        source.feed(piece)
    source.close()
    with pytest.raises(StopIteration) as ended:
        next(reading)
    turn.finish()
    return ended.value.value, collect(turn.drain_events())


def test_atem_reads_a_leaked_block_from_its_opener() -> None:
    text = '<atem:function_calls>\n<atem:invoke name="ping">\n</atem:invoke>\n</atem:function_calls>'
    problem, turn = _from_opener("atem", text, 3)
    assert not problem
    assert told(turn) == [("ping", {})]


def test_long_prose_in_a_header_is_bounded_work() -> None:
    text = "<|channel|>commentary to=functions.ping <|constrain|>" + "word " * 2000 + "<|message|>{}<|call|>"
    turn = collect(drive(HARMONY, pieces(text, 7)))
    assert told(turn) == [("ping", {})]
