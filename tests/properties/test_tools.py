"""Laws of the agent's tools, over calls and files of any kind."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from callwright.agent.tools import BUILTIN_TOOLS, edit_file, read_file, search_workspace, write_file
from callwright.agent.tools.base import CommandTool, EditTool, ExternalTool, ReadTool, Tool, ToolContext
from callwright.agent.tools.path_match import compile_glob
from callwright.agent.tools.safe_regex import compile_pattern, escape_literal
from callwright.agent.tools.signature import _PARAMETER_ALIASES
from callwright.agent.workspace.workspace import Workspace
from callwright.errors import ToolError

NAMES = sorted(
    {
        *_PARAMETER_ALIASES,
        *(alias for group in _PARAMETER_ALIASES.values() for alias in group),
        "filePath",
        "PATH",
        "none",
    }
)
PATHS = st.sampled_from([".", "a.txt", "src", "src/b.py", "../x", "/etc", "", "~", "a.txt/b", "\0", "x" * 300, "ü"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 10**20) | st.floats(allow_nan=False) | st.text(max_size=20) | PATHS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
CALLS = st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=8), VALUES, max_size=6)
TOOLS = pytest.mark.parametrize("tool", BUILTIN_TOOLS, ids=lambda tool: tool.spec.name)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=300)


def workspace(folder: str, **files: str) -> Workspace:
    root = Path(folder)
    for name, text in {"a.txt": "one\ntwo\n", "src/b.py": "x = 1\n", **files}.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(text.encode())
    return Workspace(root)


def used(tool: Tool, arguments: dict[str, Any], room: ToolContext) -> None:
    match tool:
        case ReadTool():
            assert all(isinstance(path, str) for path in tool.list_paths(arguments))
            assert isinstance(asyncio.run(tool.read(arguments, room)), str)
        case EditTool():
            assert isinstance(tool.describe_deferred_content(arguments), str)
            assert all(change.before != change.after for change in tool.plan_changes(arguments, room.workspace))
        case CommandTool():
            assert tool.build_command(arguments).text
        case ExternalTool():
            raise AssertionError("a built-in tool is of a known kind")


@TOOLS
@given(arguments=CALLS)
def test_whatever_a_call_says_it_is_done_or_answered_and_never_breaks(tool: Tool, arguments: dict[str, Any]) -> None:
    line = tool.describe_call(arguments)
    assert line == " ".join(line.split())
    assert 0 < len(line) <= 120
    with TemporaryDirectory() as folder:
        room = ToolContext(
            workspace=workspace(folder), report_progress=lambda words: None, environment={"PATH": "/nowhere"}
        )
        before = {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}
        with suppress(ToolError):
            used(tool, arguments, room)
        assert {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()} == before


@TOOLS
@given(data=st.data())
def test_every_other_name_means_the_same(tool: Tool, data: st.DataObject) -> None:
    signature = tool.signature  # type: ignore[union-attr]
    fields = tool.spec.parameters["properties"]
    samples = {"string": "a.txt", "integer": 3, "number": 3.0, "boolean": True}
    call = {name: samples[field["type"]] for name, field in fields.items()}
    others = {
        name: data.draw(
            st.sampled_from([each for each in (name, *_PARAMETER_ALIASES[name]) if each not in fields or each == name])
        )
        for name in call
    }
    # One word may stand for two parameters of a tool; the one that is written first has it.
    if len(set(others.values())) < len(others):
        return
    aliases = {
        name: alias for name, alias in others.items() if signature._field_by_alias.get(alias.replace("_", "")) == name
    }
    told = {
        aliases.get(name, name): str(value).lower() if value is True else str(value) for name, value in call.items()
    }
    assert signature.parse(told) == signature.parse(call)


@given(text=TEXTS | st.text(st.sampled_from("ab\n\r\t\x0c\x85\u2028"), max_size=2000), limit=st.integers(1, 7))
def test_a_file_read_page_by_page_is_the_whole_file(text: str, limit: int) -> None:
    with TemporaryDirectory() as folder:
        room = ToolContext(workspace=workspace(folder, **{"t.txt": text}), report_progress=lambda words: None)
        seen: list[str] = []
        start = 1
        while True:
            page = asyncio.run(read_file.tool.read({"path": "t.txt", "start_line": start, "limit": limit}, room))
            _, *lines = page.split("\n")
            more = re.fullmatch(r"\(\d+ more lines?; continue with start_line (\d+)\)", lines[-1]) if lines else None
            seen += [line.split("\t", 1)[1] for line in (lines[:-1] if more else lines)]
            if not more:
                break
            start = int(more[1])
        lines = text.removeprefix("\ufeff").split("\n")
        assert seen == [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]


@given(
    lines=st.lists(st.text("abAB.*(", max_size=5), min_size=1, max_size=20),
    query=st.text("abAB.*(", min_size=1, max_size=3),
)
def test_a_search_for_text_finds_the_lines_that_have_it(lines: list[str], query: str) -> None:
    with TemporaryDirectory() as folder:
        room = ToolContext(
            workspace=workspace(folder, **{"t.txt": "\n".join(lines)}), report_progress=lambda words: None
        )
        said = asyncio.run(search_workspace.tool.read({"query": query, "path": "t.txt"}, room))
    found = [int(number) for number in re.findall(r"(?m)^t\.txt:(\d+): ", said)]
    assert found == [number for number, line in enumerate(lines, 1) if query.lower() in line.lower()]


@given(text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20), other=TEXTS)
def test_an_escaped_text_matches_itself_and_nothing_else(text: str, other: str) -> None:
    matches = compile_pattern(escape_literal(text))
    assert matches(f"{other}{text}{other}")
    assert matches(other) == (text in other)


@pytest.mark.parametrize("pattern", ["(a+)+$", "^(a|a)*$", "(.*)*x", "^(([a-z])+.)+[A-Z]([a-z])+$", "(a?){50}a{50}$"])
def test_no_pattern_takes_for_ever(pattern: str) -> None:
    assert not compile_pattern(pattern)("a" * 20_000 + "!")


GLOBS = st.text(st.sampled_from("ab*?.[]!-"), min_size=1, max_size=6)


@given(glob=GLOBS, name=st.text("ab.-", min_size=1, max_size=6))
@example(glob="[!a]*", name="b")
def test_a_glob_for_names_is_the_one_of_the_standard_library(glob: str, name: str) -> None:
    try:
        fits = compile_glob(glob)
    except ToolError:
        return
    if "[]" not in glob and "[!]" not in glob and "--" not in glob and not re.search(r"\[[^]]*[b-]-a", glob):
        assert fits(f"some/folder/{name}") == fnmatchcase(name, glob)


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("src/*.py", ["src/a.py"], ["src/b/a.py", "a.py", "lib/src/a.py"]),
        ("src/**/*.py", ["src/a.py", "src/b/c/a.py"], ["a.py", "src/a.pyc"]),
        ("**/test_*", ["test_a", "x/test_a"], ["x/a_test"]),
        ("*.{ts,tsx}", ["a.ts", "x/a.tsx"], ["a.js", "a.t"]),
        ("./docs/**", ["docs/a", "docs/a/b"], ["x/docs/a"]),
        ("a+b(c).txt", ["a+b(c).txt"], ["aab(c).txt"]),
        ("[ab].txt", ["a.txt"], ["c.txt", "ab.txt"]),
        ("**/*a*a*a*a*a*a*a*a*a*a*a*a*b", [], ["x/" + "a" * 2000]),
    ],
)
def test_a_glob_means_these_paths_and_not_those(glob: str, yes: list[str], no: list[str]) -> None:
    fits: Callable[[str], bool] = compile_glob(glob)
    assert [path for path in yes if not fits(path)] == []
    assert [path for path in no if fits(path)] == []


@given(before=TEXTS, content=TEXTS)
def test_a_file_that_was_written_reads_as_it_was_written(before: str, content: str) -> None:
    with TemporaryDirectory() as folder:
        room = workspace(folder, **{"t.txt": before})
        try:
            (change,) = write_file.tool.plan_changes({"path": "t.txt", "content": content}, room)
        except ToolError:
            return
        assert change.after is not None
        assert change.after.decode().replace("\r\n", "\n").removeprefix("\ufeff") == content.replace(
            "\r\n", "\n"
        ).removeprefix("\ufeff")


@given(code=TEXTS)
def test_a_deferred_file_in_a_code_block_is_what_is_in_it(code: str) -> None:
    if "```" in code or "\r" in code:
        return
    call = {"path": "a.py", "description": "something"}
    assert write_file.tool.describe_deferred_content(call) == "something"
    whole = write_file.tool.fill_content(call, f"```python\n{code}\n```")
    assert whole["content"] == f"{code}\n"
    assert write_file.tool.describe_deferred_content(whole) == ""
    assert write_file.tool.fill_content(call, f"{code}\n")["content"] == f"{code}\n"


def test_what_a_person_changed_is_the_command_under_its_own_name() -> None:
    runner = next(tool for tool in BUILTIN_TOOLS if isinstance(tool, CommandTool))
    changed = runner.replace_command({"cmd": ["rm", "-rf", "x"], "timeout": "5"}, "ls")
    assert changed == {"command": "ls", "seconds": 5}
    assert runner.build_command(changed).text == "ls"


def test_specs_are_small_and_plain() -> None:
    for tool in BUILTIN_TOOLS:
        told = msgspec.json.encode(tool.spec.parameters).decode()
        assert len(told) < 1000
        assert "anyOf" not in told
        assert "$ref" not in told
        assert all(field["description"] for field in tool.spec.parameters["properties"].values())
    assert edit_file.tool.spec.parameters["required"] == ["path", "old", "new"]
