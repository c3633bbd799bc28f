"""What the vectors of bare JSON, fences and ReAct do not reach: when text goes out, what is taught."""

from __future__ import annotations

import pytest

from callwright import Parser, get_dialect
from callwright.events import CallDelta, TextDelta
from tests.support.harness import TOOLS, read, told


@pytest.mark.parametrize("name", ["llama3_json", "fenced"])
@pytest.mark.parametrize("answer", ['{"title": ', '[{"title": ', '{"name": "Bob", ', "[1, "])
def test_json_that_is_an_answer_need_not_wait_for_its_end(name: str, answer: str) -> None:
    parser = Parser(get_dialect(name), TOOLS)
    lead = "```json\n" if name == "fenced" else ""
    assert parser.feed(lead + answer) == [TextDelta(lead + answer)]
    assert parser.feed('"x"') == [TextDelta('"x"')]


def test_a_bare_input_streams() -> None:
    parser = Parser(get_dialect("react"), TOOLS)
    parser.feed("Action: get_weather\nAction Input: New")
    assert parser.feed(" York") == [CallDelta(0, " York")]


def test_react_explains_itself() -> None:
    react = get_dialect("react")
    taught = react.render_tools(TOOLS)
    assert all(marker in taught for marker in react.markers)
    assert '"get_weather"' in taught
    assert react.openers == ("Action:",)


def test_react_without_known_tools_takes_every_name() -> None:
    turn = read(get_dialect("react"), "Action: look\nAction Input: here", 3, tools=())
    assert told(turn) == [("look", {"input": "here"})]
