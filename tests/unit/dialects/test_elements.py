"""Dialects whose tags are names of tools and parameters: what depends on the tools, and raw values at their worst."""

from __future__ import annotations

import pytest

from callwright import get_dialect
from callwright.schema import Toolbox, parse_tool_spec
from tests.support.harness import TOOLS, read, told

BY_NAME = ("element", "morph_xml", "yaml_xml")
TOOLBOX = Toolbox(TOOLS)


@pytest.mark.parametrize("name", BY_NAME)
def test_openers_are_the_tools_on_offer(name: str) -> None:
    found = get_dialect(name)
    assert found.openers == found.list_openers(Toolbox()) == found.list_markers(Toolbox()) == ()
    assert {"<ping>", "<ping/>", "<ping />"} <= set(found.list_openers(TOOLBOX))
    assert "</ping>" in found.list_markers(TOOLBOX)


def test_a_static_dialect_has_the_same_openers_whatever_is_offered() -> None:
    for name in ("hermes", "use_tool", "minimax_m3"):
        found = get_dialect(name)
        assert found.list_openers(TOOLBOX) == found.list_openers(Toolbox()) == found.openers
        assert found.list_markers(TOOLBOX) == found.markers


def test_what_follows_an_opener_is_declared() -> None:
    assert "<tool_name>" in get_dialect("use_tool").body_starts
    assert "]<]minimax[>[<invoke" in get_dialect("minimax_m3").body_starts
    assert get_dialect("element").body_starts == ("<",)
    assert get_dialect("yaml_xml").body_starts == ()


@pytest.mark.parametrize("name", ["element", "morph_xml", "yaml_xml", "minimax_m3", "use_tool"])
@pytest.mark.parametrize("size", range(1, 8))
def test_a_value_that_is_or_holds_own_markup(name: str, size: int) -> None:
    found = get_dialect(name)
    inner = found.render_call(found.build_sample_call("get_weather", {"city": "Oslo", "days": 2}))
    same = found.render_call(found.build_sample_call("write_file", {"path": "p", "content": "c"}))
    for content in (
        *found.list_markers(TOOLBOX),
        inner,
        same,
        f"say {inner} so",
        f"{same}\n",
        f"\n{inner}",
    ):
        given = {"path": "a", "content": content}
        text = found.render_call(found.build_sample_call("write_file", given)) + "\nThat was it."
        turn = read(found, text, size)
        assert told(turn) == [("write_file", given)], content
        assert turn.text == "\nThat was it."


@pytest.mark.parametrize("name", ["element", "morph_xml"])
@pytest.mark.parametrize("size", range(1, 8))
def test_a_whole_call_of_the_same_tool_among_words(name: str, size: int) -> None:
    found = get_dialect(name)
    same = found.render_call(found.build_sample_call("write_file", {"path": "p", "content": "c"}))
    given = {"path": "a", "content": f"say {same} so"}
    turn = read(found, found.render_call(found.build_sample_call("write_file", given)) + "\nThat was it.", size)
    assert told(turn) == [("write_file", given)]
    assert turn.text == "\nThat was it."


@pytest.mark.parametrize("name", ["morph_xml", "minimax_m3", "yaml_xml"])
def test_nesting_without_end_is_harmless(name: str) -> None:
    tool = parse_tool_spec({"name": "t", "parameters": {"properties": {"o": {"type": "object"}}}})
    prefix = "]<]minimax[>[" if name == "minimax_m3" else ""
    deep = f"{prefix}<a>" * 3000 + f"{prefix}</a>" * 3000
    texts = {
        "morph_xml": f"<t><o>{deep}</o></t>",
        "minimax_m3": f'{prefix}<invoke name="t">{prefix}<o>{deep}{prefix}</o>{prefix}</invoke>',
        "yaml_xml": f"<t>\no: {'[' * 3000}{']' * 3000}\n</t>",
    }
    turn = read(get_dialect(name), texts[name], tools=[tool])
    assert [(call.name, call.complete) for call in turn.tool_calls] == [("t", True)]


def test_what_elements_cannot_carry_is_written_as_json() -> None:
    found = get_dialect("morph_xml")
    for value in ([], ["42"], ["a"], ["a", "<b>"], {}, {"a b": "x"}, {"item": "x"}, {"a": None}, {"a": ["x"]}):
        assert "<o>" + ("{" if isinstance(value, dict) else "[") in found.render_call(
            found.build_sample_call("t", {"o": value})
        )
    nested = {"a": "x", "l": ["y", {"z": 1.5}], "t": True}
    call = found.render_call(found.build_sample_call("t", {"o": nested}))
    assert "<o><a>x</a><l>y</l><l><z>1.5</z></l><t>true</t></o>" in call
    tool = parse_tool_spec({"name": "t", "parameters": {"properties": {"o": {"type": "object"}}}})
    assert told(read(found, call, tools=[tool])) == [("t", {"o": nested})]
