"""What vectors cannot show of the function tags."""

from __future__ import annotations

import pytest

from callwright import Dialect, Parser, collect, get_dialect
from callwright.dialects.function_tags import DIALECTS
from tests.support.harness import TOOLS, told


@pytest.mark.parametrize("family", DIALECTS, ids=lambda family: family.name)
def test_an_opening_tag_is_followed_by_a_function(family: Dialect) -> None:
    assert family.body_starts == ("<function=",)


def test_the_wrapper_is_no_marker_where_it_is_known_to_be_no_token() -> None:
    parser = Parser(get_dialect("qwen3_coder"), TOOLS)
    events = parser.feed("say <tool_call> here", [])
    events += parser.feed("<tool_call>\n<function=ping>\n</function>\n</tool_call>", [0, 41])
    turn = collect(events + parser.close())
    assert (turn.text, told(turn)) == ("say <tool_call> here", [("ping", {})])
