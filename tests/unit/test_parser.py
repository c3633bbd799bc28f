"""Parser: what it says to a program that uses it wrongly."""

from __future__ import annotations

from typing import Any

import pytest

from callwright import Parser, collect, get_dialect
from callwright.errors import MisuseError
from callwright.events import CallDelta
from callwright.model import Repair
from tests.support.harness import TOOLS

CALL = '<tool_call>{"name": "ping", "arguments": {}}'


def test_wrong_uses_are_named() -> None:
    name: Any = "hermes"
    with pytest.raises(MisuseError, match=r"dialect must be a Dialect, not 'hermes'; use get_dialect\(NAME\)"):
        Parser(name)
    parser = Parser(get_dialect("hermes"))
    chunk: Any = b"bytes"
    with pytest.raises(MisuseError, match="a chunk must be a string, not bytes"):
        parser.feed(chunk)
    parser.close()
    with pytest.raises(MisuseError, match="the parser is closed"):
        parser.feed("more")
    assert parser.close() == []
    with pytest.raises(MisuseError, match="call 0 has no CallStart; collect needs all events of a turn"):
        collect([CallDelta(0, "{}")])


def test_markers_count_only_as_tokens_in_auto_too() -> None:
    parser = Parser(get_dialect("auto"), TOOLS)
    events = parser.feed("Say <|tool_call_start|>[ping()]<|tool_call_end|> and <tool_call>", [])
    events += parser.feed('{"name": "ping"}</tool_call>', [])
    turn = collect(events + parser.close())
    assert (turn.text, len(turn.tool_calls)) == ("Say <|tool_call_start|>[ping()]<|tool_call_end|> and ", 1)


@pytest.mark.parametrize("rest", ["<", "\n</tool_ca", "<|im_", " </tool_call"])
def test_a_marker_that_the_output_ends_in_is_no_text_after_a_call(rest: str) -> None:
    parser = Parser(get_dialect("hermes"), TOOLS)
    turn = collect([*parser.feed(CALL + rest), *parser.close()])
    assert (turn.text, len(turn.tool_calls), turn.finish_reason) == ("", 1, "tool_calls")
    assert turn.repairs[-1] == Repair("cut_marker", f"the output ended inside a marker: {rest.strip()}")


@pytest.mark.parametrize("text", ["<", "a </tool_ca", f"{CALL}</tool_call>So <|im_"])
def test_elsewhere_it_is_text(text: str) -> None:
    parser = Parser(get_dialect("hermes"), TOOLS)
    turn = collect([*parser.feed(text), *parser.close()])
    assert turn.text == text.removeprefix(f"{CALL}</tool_call>")
    assert not turn.malformed
