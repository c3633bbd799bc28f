"""Table, modules, cases and document agree: a tool of the agent is not there until all four have it."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import pytest

from callwright.agent.tools import BUILTIN_TOOLS, find_tool
from callwright.agent.tools.base import CommandTool, EditTool, ExternalTool, ReadTool
from callwright.agent.tools.checkers import CHECKERS, SYNTAX_CHECKS
from tests.meta.repository import TESTS, modules, text_of

CASES = TESTS / "vectors" / "tools"
CASES_EACH = 6
DOCUMENT = "docs/agent/tools.md"
NAMES = [tool.spec.name for tool in BUILTIN_TOOLS]


def with_a_tool() -> set[str]:
    """The modules of the folder that have a tool in them."""
    stems = [module.path.stem for module in modules() if re.fullmatch(r"agent/tools/[a-z]\w*\.py", module.name)]
    return {stem for stem in stems if hasattr(importlib.import_module(f"callwright.agent.tools.{stem}"), "tool")}


def cases(name: str) -> list[Path]:
    return sorted(path.parent for path in (CASES / name).glob("*/call.json"))


def test_every_tool_is_a_module_of_its_name_and_every_such_module_is_in_the_table() -> None:
    assert sorted(NAMES) == sorted(with_a_tool())
    for name in NAMES:
        assert importlib.import_module(f"callwright.agent.tools.{name}").tool is find_tool(name)
    assert find_tool("no_such_tool") is None


def test_every_tool_is_of_one_kind() -> None:
    for tool in BUILTIN_TOOLS:
        assert sum(isinstance(tool, kind) for kind in (ReadTool, EditTool, CommandTool)) == 1, tool.spec.name


def test_every_tool_has_cases_and_every_case_a_tool() -> None:
    assert {path.name for path in CASES.iterdir()} == set(NAMES)
    assert not {name: len(cases(name)) for name in NAMES if len(cases(name)) < CASES_EACH}


@pytest.mark.parametrize("name", NAMES)
def test_cases_are_numbered_and_say_what_comes_of_them(name: str) -> None:
    found = cases(name)
    assert [path.name[:4] for path in found] == [f"{number:03}_" for number in range(1, len(found) + 1)]
    results = [json.loads((path / "result.json").read_text(encoding="utf-8")) for path in found]
    assert any("error" in result for result in results), "no case of an error"
    assert any("error" not in result for result in results)


def test_the_document_lists_every_tool_with_its_parameters() -> None:
    rows = re.findall(r"(?m)^\| `(\w+)` \| (.+?) \|", text_of(DOCUMENT))
    told = {name: re.findall(r"`(\w+)`", parameters) for name, parameters in rows}
    assert told == {tool.spec.name: list(tool.spec.parameters["properties"]) for tool in BUILTIN_TOOLS}


def test_the_documents_example_is_a_tool() -> None:
    (example,) = re.findall(r"(?s)```python\n(.*?)```", text_of(DOCUMENT))
    scope: dict[str, object] = {"__name__": "example"}
    exec(compile(example, DOCUMENT, "exec"), scope)
    assert isinstance(scope["weather"], ExternalTool)


def test_the_document_names_every_checker() -> None:
    text = text_of(DOCUMENT)
    assert not [checker.name for checker in CHECKERS if f"`{checker.name}`" not in text]
    assert not [suffix for suffix in SYNTAX_CHECKS if f"`{suffix}`" not in text]
    names = [checker.name for checker in CHECKERS]
    assert not [checker.name for checker in CHECKERS if checker.fallback_for not in {"", *names}]
