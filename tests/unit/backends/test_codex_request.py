"""A request as Codex takes it: nothing is lost, nothing changes its place, and no tool has a name that Codex drops."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.backends.codex.request import alias_reserved_tools, build_codex_request, describe_unsent_options
from callwright.errors import BackendError
from callwright.model import Message, Request, Text, ToolCall, ToolSpec
from callwright.prompt.tool_aliases import rename_tools

ROLES = st.sampled_from(["system", "developer", "user", "assistant"])
SAID = st.text("ab\n", min_size=1)
MESSAGES = st.lists(st.builds(lambda role, text: Message(role, (Text(text),)), ROLES, SAID))
NAMES = st.sampled_from(
    ["exec_command", "shell_command", "client_exec_command", "mcp__a__b", "mcp__" + "x" * 59, "read"]
)
SEEN = {"system": "developer", "developer": "developer", "user": "user", "assistant": "assistant"}


def asked(*tools: str, **fields: Any) -> Request:
    return Request("m", (Message("user", (Text("hi"),)),), tuple(ToolSpec(name) for name in tools), **fields)


@given(MESSAGES)
def test_instructions_and_history_stay_in_their_order(messages: list[Message]) -> None:
    """As the provider sees them: base instructions, developer instructions, then the items."""
    thread, items, _ = build_codex_request(Request("m", tuple(messages)), "/work")
    heads = [thread["baseInstructions"], thread["developerInstructions"]]
    seen = "".join(f"developer:{head.replace(chr(10) * 2, '')}" for head in heads if head)
    seen += "".join(f"{item['role']}:{item['content'][0]['text']}" for item in items)
    meant = "".join(f"{SEEN[each.role]}:{each.parts[0].text}" for each in messages)  # type: ignore[union-attr]
    assert seen.replace("developer:", "").replace("\n", "") == meant.replace("developer:", "").replace("\n", "")
    assert all(item["role"] != "system" for item in items)


def test_no_instructions_are_empty_instructions() -> None:
    thread = build_codex_request(asked(), "/work").thread
    assert (thread["baseInstructions"], thread["developerInstructions"]) == ("", None)


@given(st.sets(NAMES))
def test_every_tool_has_a_name_that_codex_takes_and_its_own_back(names: set[str]) -> None:
    request = asked(*sorted(names))
    aliases = alias_reserved_tools(request)
    offered = {tool.name for tool in rename_tools(request, aliases).tools}
    assert len(offered) == len(names)
    assert all(len(name) <= 64 and not name.startswith("mcp__") for name in offered)
    assert not offered & {"exec_command", "shell_command"}
    back = {alias: name for name, alias in aliases.items()}
    assert {back.get(name, name) for name in offered} == names


def test_calls_in_the_history_go_by_the_same_names() -> None:
    call = ToolCall("call_1", "exec_command", "{}")
    request = Request("m", (Message("assistant", (call,)),), (ToolSpec("exec_command"),))
    thread, items, _ = build_codex_request(rename_tools(request, alias_reserved_tools(request)), "/work")
    assert items[0]["name"] == thread["dynamicTools"][0]["name"] == "client_exec_command"


@pytest.mark.parametrize(
    ("choice", "offered"), [("auto", ["a", "b"]), ("required", ["a", "b"]), ("none", []), ("b", ["b"])]
)
def test_a_choice_is_kept_by_what_is_offered(choice: str, offered: list[str]) -> None:
    thread = build_codex_request(asked("a", "b", tool_choice=choice), "/work").thread
    assert [tool["name"] for tool in thread["dynamicTools"]] == offered


def test_options_go_where_they_have_a_place_and_the_others_are_named() -> None:
    form = {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}}
    options = {"reasoning_effort": "low", "response_format": form, "temperature": 1, "max_tokens": 5}
    request = asked(options=options)
    assert build_codex_request(request, "/work").turn == {"effort": "low", "outputSchema": {"type": "object"}}
    assert describe_unsent_options(request) == "max_tokens, temperature"
    assert build_codex_request(asked(options={"response_format": {"type": "text"}}), "/work").turn == {}
    for form in (
        {"type": "json_object"},
        {"type": "json_schema"},
        {"type": "json_schema", "json_schema": {"name": "x"}},
    ):
        with pytest.raises(BackendError, match="only JSON schemas") as refused:
            build_codex_request(asked(options={"response_format": form}), "/work")
        assert (refused.value.kind, refused.value.status) == ("refused", 400)
