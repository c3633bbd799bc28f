"""Scripts: the turn is chosen by the conversation, steps become events, mistakes in a file are told; and the demo."""

from __future__ import annotations

import asyncio
import json
import re
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright import Parser, collect, get_dialect
from callwright.backends.script import ModelScript, play_turn
from callwright.backends.scripted import ScriptedBackend, load_script, parse_script
from callwright.backends.settings import BackendSettings
from callwright.dialects import REGISTRY
from callwright.errors import BackendError, PolicyError
from callwright.events import Event, Finish, TextDelta, UsageSeen, check_events, merge_deltas
from callwright.ids import make_sequential_ids
from callwright.model import Message, Request, Text, ToolCall, ToolResult, ToolSpec, Usage

WEATHER = ToolSpec(
    "get_weather",
    "",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "unit": {"enum": ["C", "F"]}},
        "required": ["city", "days", "unit"],
    },
)


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def called(name: str = "get_weather") -> Message:
    return Message("assistant", (Text("Let me see."), ToolCall("1", name, "{}")))


def result(content: str) -> Message:
    return Message("tool", (ToolResult("1", content),))


SAID = Message("assistant", (Text("There you are."),))


def ask(*messages: Message, tools: tuple[ToolSpec, ...] = (), model: str = "m") -> Request:
    return Request(model, messages or (user("hi"),), tools=tools)


def script(*turns: dict[str, Any], **settings: Any) -> ModelScript:
    return msgspec.convert({"turns": turns, **settings}, ModelScript)


def play(one: ModelScript, request: Request) -> list[Event]:
    events = [event for event in play_turn(one, request, make_sequential_ids()) if not isinstance(event, float | int)]
    check_events(events)
    return merge_deltas(events)


def says(text: str, **when: Any) -> dict[str, Any]:
    return {"when": when, "steps": [{"text": text}]}


# ── which turn ───────────────────────────────────────────────────────────────────────────────────

LONG = (user("old"), called(), result("old result"), SAID, user("What is new?"))


@pytest.mark.parametrize(
    ("when", "request_", "fits"),
    [
        ({}, ask(), True),
        ({"results": 0}, ask(*LONG), True),
        ({"results": 1}, ask(*LONG), False),
        ({"results": 1}, ask(*LONG, called(), result("a")), True),
        ({"results": 2}, ask(*LONG, called(), result("a"), called(), result("b")), True),
        ({"results_from": 1}, ask(*LONG, called(), result("a"), called(), result("b")), True),
        ({"results_from": 1}, ask(*LONG), False),
        ({"results": 1}, ask(*LONG, called(), result("a"), user("<system-reminder>")), True),
        ({"user": "NEW"}, ask(*LONG), True),
        ({"user": "new"}, ask(*LONG, called(), result("a"), user("<system-reminder>")), True),
        ({"user": "old"}, ask(*LONG), False),
        ({"pattern": r"is \w+\?$"}, ask(*LONG), True),
        ({"pattern": "^new"}, ask(*LONG), False),
        ({"tools": True}, ask(), False),
        ({"tools": False}, ask(), True),
        ({"tools": True}, ask(tools=(WEATHER,)), True),
        ({"offers": "get_*"}, ask(tools=(ToolSpec("x"), WEATHER)), True),
        ({"offers": "set_*"}, ask(tools=(WEATHER,)), False),
        ({"model": "qwen*"}, ask(model="qwen3-coder"), True),
        ({"model": "qwen*"}, ask(), False),
    ],
)
def test_a_turn_is_chosen_by_the_conversation(when: dict[str, Any], request_: Request, fits: bool) -> None:
    events = play(script(says("yes", **when), says("no")), request_)
    assert events[0] == TextDelta("yes" if fits else "no")


def test_the_first_turn_that_fits_is_played_every_time() -> None:
    one = script(says("first"), says("second"))
    assert [play(one, ask())[0] for _ in range(3)] == [TextDelta("first")] * 3


def test_a_turn_whose_tool_is_not_offered_is_passed_over() -> None:
    one = script({"steps": [{"call": {"name": "get_weather", "arguments": {}}}]}, says("no tool"))
    assert play(one, ask())[0] == TextDelta("no tool")
    assert collect(play(one, ask(tools=(WEATHER,)))).tool_calls[0].name == "get_weather"


def test_no_turn_that_fits_is_an_error_that_says_what_was_seen() -> None:
    with pytest.raises(BackendError, match=r"no turn .* user 'hi', 0 results, tools: get_weather"):
        play(script(says("x", results=9)), ask(tools=(WEATHER,)))


# ── what is said ─────────────────────────────────────────────────────────────────────────────────


def test_steps_become_events_in_order() -> None:
    one = script(
        {
            "steps": [
                {"reasoning": "hm"},
                {"text": "ha", "repeat": 3},
                {"call": {"name": "get_weather", "arguments": {"city": "Paris"}}},
                {"call": {"name": "other", "anyway": True}},
            ],
            "usage": {"prompt_tokens": 3},
        }
    )
    events = play(one, ask(tools=(WEATHER,)))
    turn = collect(events)
    assert (turn.reasoning, turn.text, turn.finish_reason) == ("hm", "hahaha", "tool_calls")
    assert [(call.name, call.arguments) for call in turn.tool_calls] == [
        ("get_weather", '{"city": "Paris"}'),
        ("other", "{}"),
    ]
    assert UsageSeen(Usage(3)) in events


@pytest.mark.parametrize(
    ("settings", "turn", "sizes"), [({}, {}, [4, 4, 2]), ({"chunk": 3}, {}, [3, 3, 3, 1]), ({}, {"chunk": 0}, [10])]
)
def test_text_is_cut_as_asked(settings: dict[str, Any], turn: dict[str, Any], sizes: list[int]) -> None:
    one = script({"steps": [{"text": "0123456789"}], **turn}, **settings)
    events = [event for event in play_turn(one, ask(), make_sequential_ids()) if isinstance(event, TextDelta)]
    assert [len(event.text) for event in events] == sizes


def test_exact_pieces_stay_as_they_are() -> None:
    one = script({"steps": [{"chunks": ["<tool", "", "_call>", "…"]}]})
    events = list(play_turn(one, ask(), make_sequential_ids()))
    assert events == [TextDelta("<tool"), TextDelta("_call>"), TextDelta("…"), Finish("stop")]


@pytest.mark.parametrize("name", sorted(set(REGISTRY) - {"auto"}))
def test_a_call_can_be_said_in_every_dialect(name: str) -> None:
    say = {"name": "get_weather", "arguments": {"city": "Paris", "days": 3, "unit": "C"}}
    one = script({"steps": [{"say": say, "dialect": name}]})
    text = collect(play(one, ask(tools=(WEATHER,)))).text
    parser = Parser(get_dialect(name), [WEATHER], prefill=get_dialect(name).call_prefill)
    (call,) = collect([*parser.feed(text), *parser.close()]).tool_calls
    assert (call.name, json.loads(call.arguments)) == ("get_weather", say["arguments"])


def test_of_several_calls_the_first_that_is_offered_is_made() -> None:
    say = [{"name": "Read"}, {"name": "read_*", "arguments": {"path": "a"}}, {"name": "get_weather"}]
    one = script({"steps": [{"call": say}]})
    tools = (WEATHER, ToolSpec("read_file"))
    (call,) = collect(play(one, ask(tools=tools))).tool_calls
    assert (call.name, call.arguments) == ("read_file", '{"path": "a"}')


def test_placeholders_are_filled_in_text_and_arguments() -> None:
    arguments = {"q": "${last_user}", "deep": [{"r": "${result}"}, 3], "m": "${model} ${unknown}"}
    one = script(
        {"steps": [{"text": "${tool}: ${result}"}, {"call": {"name": "x", "arguments": arguments, "anyway": True}}]}
    )
    turn = collect(play(one, ask(user('say "hi"'), called("look"), result("${last_user}"))))
    assert turn.text == "look: ${last_user}"
    assert json.loads(turn.tool_calls[0].arguments) == {
        "q": 'say "hi"',
        "deep": [{"r": "${last_user}"}, 3],
        "m": "m ${unknown}",
    }


def test_arguments_are_made_up_from_the_schema() -> None:
    one = script({"steps": [{"call": {"name": "*"}}]}, values={"*city*": "Lisbon", "days": "no number"})
    (call,) = collect(play(one, ask(tools=(WEATHER,)))).tool_calls
    assert json.loads(call.arguments) == {"city": "Lisbon", "days": 0, "unit": "C"}


@given(
    st.dictionaries(
        st.text(max_size=5),
        st.fixed_dictionaries(
            {}, optional={"type": st.sampled_from(["string", "integer", "array", ["string", "null"], None, []])}
        ),
        max_size=4,
    )
)
def test_made_up_arguments_have_what_is_required(properties: dict[str, Any]) -> None:
    tool = ToolSpec("t", "", {"properties": properties, "required": list(properties)})
    (call,) = collect(play(script({"steps": [{"call": {"name": "t"}}]}), ask(tools=(tool,)))).tool_calls
    assert json.loads(call.arguments).keys() == properties.keys()


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, "refused", False),
        (401, "auth", False),
        (429, "rate_limit", True),
        (500, "unavailable", True),
        (503, "overloaded", True),
    ],
)
def test_an_error_comes_where_it_stands(status: int, kind: str, retryable: bool) -> None:
    one = script({"steps": [{"text": "ab"}, {"error": {"status": status, "message": "no", "salvage": "<x>"}}]})
    events = play_turn(one, ask(), make_sequential_ids())
    assert next(events) == TextDelta("ab")
    with pytest.raises(BackendError, match="no") as raised:
        next(events)
    error = raised.value
    assert (error.status, error.kind, error.retryable, error.salvage) == (status, kind, retryable, "<x>")


@pytest.mark.parametrize(("finish", "calls"), [("length", False), ("content_filter", True)])
def test_the_finish_can_be_told(finish: str, calls: bool) -> None:
    steps = [{"call": {"name": "x", "anyway": True}} if calls else {"text": "x"}]
    assert play(script({"steps": steps, "finish": finish}), ask())[-1] == Finish(finish)  # type: ignore[arg-type]


# ── the backend ──────────────────────────────────────────────────────────────────────────────────


def settings(path: Path | str = "") -> BackendSettings:
    return BackendSettings(name="s", kind="scripted", script=str(path))


async def heard(one: Any, request: Request) -> list[Event]:
    return [event async for events in one.stream_response(request, {}) for event in events]


def test_a_file_is_played_with_its_pauses(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text('models = ["a", "b"]\n[[turns]]\nsteps = [{text = "x"}, {pause = 0.1}, {text = "y"}]\n')
    one = ScriptedBackend(settings(path))
    started = time.monotonic()
    assert merge_deltas(asyncio.run(heard(one, ask()))) == [TextDelta("xy"), Finish("stop")]
    assert time.monotonic() - started >= 0.1
    assert [(model.name, model.tools) for model in asyncio.run(one.list_models())] == [("a", True), ("b", True)]
    assert one.is_available


def test_json_lines_are_turns(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps(turn) for turn in (says("a", results=1), says("b"))))
    assert play(load_script(str(path)), ask())[0] == TextDelta("b")


def test_what_a_script_has_not_is_refused() -> None:
    with pytest.raises(BackendError) as raised:
        asyncio.run(ScriptedBackend(settings()).forward_request("/v1/embeddings", b"{}"))
    assert raised.value.status == 501


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("turns = 3", r"Expected `array`, got `int` - at `\$.turns`"),
        ("[[turns]]\nfinish = 'stop'", "missing required field `steps`"),
        ('[[turns]]\nsteps = [{txt = "x"}]', r"unknown field `txt` - at `\$.turns\[0\].steps\[0\]`"),
        ('[[turns]]\nsteps = [{text = "x", pause = 1}]', "exactly one of"),
        ("[[turns]]\nsteps = [{}]", "exactly one of"),
        ('[[turns]]\nwhen = {pattern = "("}\nsteps = []', "is not a regular expression"),
        ('[[turns]]\nsteps = [{text = "x", dialect = "klingon"}]', "unknown dialect, parser or model 'klingon'"),
        ("[[turns]", "Expected ']]'"),
    ],
)
def test_a_mistake_in_a_script_is_told_with_its_place(text: str, words: str) -> None:
    with pytest.raises(PolicyError, match=words) as raised:
        parse_script(text, "a.toml")
    assert str(raised.value).startswith("a.toml: ")


def test_a_script_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="cannot be read"):
        load_script(str(tmp_path / "none.toml"))


# ── the demo ─────────────────────────────────────────────────────────────────────────────────────


def demo(*messages: Message, tools: tuple[ToolSpec, ...] = ()) -> str:
    return collect(play(load_script(""), ask(*messages, tools=tools))).text


def test_the_demo_says_what_it_is() -> None:
    assert "demo model" in demo(user("hello"))


def test_the_demo_calls_a_tool_as_text_and_reports_what_came_back() -> None:
    text = demo(user("weather?"), tools=(ToolSpec("rm"), WEATHER))
    parser = Parser(get_dialect("auto"), [WEATHER])
    (call,) = collect([*parser.feed(text), *parser.close()]).tool_calls
    assert (call.name, json.loads(call.arguments)["city"]) == ("get_weather", "Lisbon")
    assert "sunny" in demo(user("weather?"), called(), result("sunny"), tools=(WEATHER,))


@pytest.mark.parametrize("name", ["rm", "write_file", "Bash", "shell", "delete_list", "run_in_terminal"])
def test_the_demo_leaves_tools_alone_that_may_change_something(name: str) -> None:
    text = demo(user("do it"), tools=(ToolSpec(name),))
    assert "I call none" in text


def test_the_demo_has_an_answer_to_everything() -> None:
    for messages in ((), (user("x"),), (called(), result("r")), LONG, (Message("system", (Text("s"),)),)):
        for tools in ((), (WEATHER,), (ToolSpec("rm"),)):
            assert collect(play(load_script(""), Request("m", messages, tools=tools))).text


def test_the_script_of_the_documentation_loads() -> None:
    text = (Path(__file__).parents[3] / "docs" / "scripted.md").read_text(encoding="utf-8")
    example = next(block for block in re.findall(r"(?s)```toml\n(.*?)```", text) if "[[turns]]" in block)
    assert len(parse_script(example, "scripted.md").turns) == 3
