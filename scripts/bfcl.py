"""Render the tools and calls of a public benchmark in every dialect, and parse them back.

    make bfcl                              # every dialect; writes docs/bfcl.md
    python scripts/bfcl.py hermes glm45    # some dialects

The data comes from the package `bfcl-eval` (Berkeley Function Calling Leaderboard v4), which is downloaded without its
dependencies into .cache; none of it is in this repository. Each set of calls is rendered in a dialect, with difficult
text in its free strings, split at random places and parsed: names and values must be equal. Questions without a
relevant tool, and prose about the tools, must give no call in `auto`.
"""

from __future__ import annotations

import ast
import json
import random
import re
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from download import downloaded, store

from callwright import Dialect, Parser, collect, get_dialect
from callwright.dialects import REGISTRY
from callwright.dialects.elements import ElementTags, ToolNameTags
from callwright.ids import make_sequential_ids
from callwright.model import ToolCall, ToolSpec
from callwright.schema import Schema, parse_tool_spec, text_to_json
from tests.support.harness import NASTY, cut

DATA = ROOT / ".cache" / "bfcl"
PAGE = ROOT / "docs" / "bfcl.md"
PACKAGE = "bfcl-eval==2026.3.23"
CATEGORIES = (
    "simple_python", "simple_java", "simple_javascript", "multiple", "parallel", "parallel_multiple",
    "live_simple", "live_multiple", "live_parallel", "live_parallel_multiple",
)  # fmt: skip
KINDS = {
    bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object", type(None): "null",
}  # fmt: skip


class Case(NamedTuple):
    """One set of calls, and the tools of its question."""

    id: str
    tools: list[ToolSpec]
    calls: list[tuple[str, dict[str, Any]]]


def download() -> None:
    """Download the data files, once."""
    if DATA.exists():
        return
    wanted = tuple(f"bfcl_eval/data/{part}" for part in ("BFCL_v4_", "possible_answer/", "multi_turn_"))
    with downloaded(PACKAGE) as wheel, zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith(wanted)]
        store(((name.removeprefix("bfcl_eval/data/"), archive.read(name)) for name in names), DATA)


def lines(name: str) -> Iterator[dict[str, Any]]:
    for line in (DATA / name).read_text(encoding="utf-8").split("\n"):
        if line.strip():
            yield json.loads(line)


def cases(left_out: Counter[str]) -> Iterator[Case]:
    """Return every usable set of calls, and count the reasons why others are skipped."""
    for category in CATEGORIES:
        answers = {line["id"]: line["ground_truth"] for line in lines(f"possible_answer/BFCL_v4_{category}.json")}
        for question in lines(f"BFCL_v4_{category}.json"):
            tools = [parse_tool_spec(tool) for tool in question["function"]]
            schemas = {tool.name: Schema(tool.parameters) for tool in tools}
            calls = []
            for answer in answers.get(question["id"], []):
                [(name, given)] = answer.items()
                if name not in schemas:
                    left_out["names a tool that is not offered"] += 1
                    break
                calls.append((name, first_choices(given, schemas[name])))
            else:
                if not calls:
                    left_out["has no call"] += 1
                elif not all(fits(given, schemas[name]) for name, given in calls):
                    left_out["contradicts its own schema"] += 1
                else:
                    yield Case(question["id"], tools, calls)
    yield from conversations(left_out)


def fits(value: Any, schema: Schema) -> bool:
    """Return whether a value of the benchmark has the type of its schema. Sometimes it does not."""
    kind = KINDS[type(value)]
    if schema.types and kind not in schema.types and (kind != "integer" or "number" not in schema.types):
        return False
    if isinstance(value, dict):
        return all(fits(item, schema.get_member(key)) for key, item in value.items())
    return not isinstance(value, list) or all(fits(item, schema.items) for item in value)


def conversations(left_out: Counter[str]) -> Iterator[Case]:
    """Return the turns of the multi-turn sets, whose calls are written in Python."""
    files = sorted((DATA / "multi_turn_func_doc").glob("*.json"))
    tools = {
        tool["name"]: parse_tool_spec(tool) for file in files for tool in lines(f"multi_turn_func_doc/{file.name}")
    }
    for category in ("base", "long_context", "miss_func", "miss_param"):
        for answer in lines(f"possible_answer/BFCL_v4_multi_turn_{category}.json"):
            for at, turn in enumerate(answer["ground_truth"]):
                calls = [python_call(text, tools) for text in turn]
                if not calls:
                    left_out["has no call"] += 1
                elif not all(fits(given, Schema(tools[name].parameters)) for name, given in calls):
                    left_out["contradicts its own schema"] += 1
                else:
                    yield Case(f"{answer['id']}/{at}", [tools[name] for name in dict(calls)], calls)


def python_call(text: str, tools: dict[str, ToolSpec]) -> tuple[str, dict[str, Any]]:
    node = ast.parse(text, mode="eval").body
    assert isinstance(node, ast.Call)
    name = ast.unparse(node.func)
    given = dict(zip(tools[name].parameters["properties"], map(ast.literal_eval, node.args), strict=False))
    return name, given | {str(word.arg): ast.literal_eval(word.value) for word in node.keywords}


def first_choices(given: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """Return the first usable value of a parameter; the benchmark lists all acceptable ones."""
    chosen = {}
    for key, options in given.items():
        value = next((option for option in options if option != ""), "")
        if value == "" and key not in schema.required:
            continue
        chosen[key] = unwrapped(value, schema.get_member(key))
    return chosen


def unwrapped(value: Any, schema: Schema) -> Any:
    """Resolve the lists of acceptable values inside objects."""
    if isinstance(value, dict) and all(isinstance(option, list) and option for option in value.values()):
        return first_choices(value, schema)
    if isinstance(value, list):
        return [unwrapped(item, schema.items) for item in value]
    return value


def mutated(case: Case, draw: random.Random) -> Case:
    """Return the same calls with difficult text in every free string parameter."""
    schemas = {tool.name: Schema(tool.parameters) for tool in case.tools}
    calls = []
    for name, given in case.calls:
        free = {
            key
            for key in given
            if schemas[name].get_member(key).is_string and not schemas[name].get_member(key).choices
        }
        nasty = {key: value + draw.choice(NASTY) if key in free else value for key, value in given.items()}
        calls.append((name, nasty))
    return Case(case.id, case.tools, calls)


def through(it: Dialect, case: Case, draw: random.Random) -> str:
    """Render, split and parse the calls. Return what was parsed instead; empty if it is equal."""
    calls = [
        ToolCall(it.make_call_id(name, at), name, json.dumps(given, ensure_ascii=False))
        for at, (name, given) in enumerate(case.calls)
    ]
    text = it.render_call(*calls)
    parser = Parser(it, case.tools, ids=make_sequential_ids(), prefill=it.call_prefill)
    events = [
        event for chunk in cut(text, (draw.randrange(len(text)) for _ in range(12))) for event in parser.feed(chunk)
    ]
    turn = collect([*events, *parser.close()])
    got = [(call.name, json.loads(call.arguments) if call.complete else None) for call in turn.tool_calls]
    return "" if got == case.calls and turn.text == "" else f"{case.id}: {text!r} gave {got} and {turn.text!r}"


class Result(NamedTuple):
    """Run all cases in one dialect."""

    name: str
    count: int
    failures: list[str]
    passed_over: Counter[str]


def judged(name: str) -> Result:
    it = get_dialect(name)
    draw = random.Random(name)
    result = Result(name, 0, [], Counter())
    for case in cases(Counter()):
        for one in (case, mutated(case, draw)):
            if reason := cannot_carry(it, one):
                result.passed_over[reason] += 1
                continue
            result = result._replace(count=result.count + 1)
            if failure := through(it, one, draw):
                result.failures.append(failure)
    return result


def cannot_carry(it: Dialect, case: Case) -> str:
    """Return why a dialect cannot write a value of these calls; empty if it can."""
    schemas = {tool.name: Schema(tool.parameters) for tool in case.tools}
    # Where the tool's name is the tag, what follows must be a parameter; where parameters are tags too, all must be.
    told = None if isinstance(it, ElementTags) else 1 if isinstance(it, ToolNameTags) else 0
    if any(key not in schemas[name].properties for name, given in case.calls for key in list(given)[:told]):
        return "a parameter that its tool does not declare, which is taken for text"
    values = ((value, schemas[name].get_member(key)) for name, given in case.calls for key, value in given.items())
    return next(filter(None, (unwritable(it, value, schema) for value, schema in values)), "")


def unwritable(it: Dialect, value: Any, schema: Schema) -> str:
    """Return why a value cannot be written; empty if it can. Bare text without a declared type is read by its form."""
    if not tells_types(it) and isinstance(value, str) and json.loads(text_to_json(value, schema)[0]) != value:
        return "text without a declared type that reads as another type"
    if it.nested_format == "elements" and (value is None or value == [] or value == {}):
        return "null or an empty list or object, which elements cannot show"
    if it.nested_format == "elements" and isinstance(value, dict):
        if any(re.search(r"[\s<>/]", key) for key in value):
            return "a member whose name cannot be a tag's"
        return next(filter(None, (unwritable(it, item, schema.get_member(key)) for key, item in value.items())), "")
    if it.nested_format == "elements" and isinstance(value, list):
        return next(filter(None, (unwritable(it, item, schema.items) for item in value)), "")
    return ""


@cache
def tells_types(it: Dialect) -> bool:
    """Return whether the dialect distinguishes text from numbers; some write or parse both in the same way."""
    text, number = (it.render_call(it.build_sample_call("f", {"x": value})) for value in ("42", 42))
    return text != number and not getattr(it, "quotes_all", False)


def false_alarms() -> tuple[int, list[str]]:
    """Parse questions without a relevant tool and prose about tools with `auto`; return their number and the calls."""
    count, alarms = 0, []
    for category in ("irrelevance", "live_irrelevance"):
        for question in lines(f"BFCL_v4_{category}.json"):
            tools = [parse_tool_spec(tool) for tool in question["function"]]
            asked = "\n".join(message["content"] for turn in question["question"] for message in turn)
            for text in (asked, *prose(tools)):
                count += 1
                parser = Parser(get_dialect("auto"), tools)
                turn = collect([*parser.feed(text), *parser.close()])
                if turn.tool_calls or turn.text != text:
                    alarms.append(f"{question['id']}: {text!r} gave {turn.tool_calls} and {turn.text!r}")
    return count, alarms


def prose(tools: list[ToolSpec]) -> Iterator[str]:
    """Return sentences about a tool that do not call it."""
    for tool in tools[:2]:
        sample = json.dumps({"name": tool.name, "arguments": {}})
        schema = json.dumps(tool.parameters)
        yield f"I cannot answer that with {tool.name}: {tool.description} Its parameters are {schema}."
        yield f"A call would be written `<tool_call>{sample}</tool_call>`, but that does not help here."
        yield f"For example:\n```xml\n<tool_call>\n{sample}\n</tool_call>\n```\nNothing of the kind is needed."
        yield f"```json\n{sample}\n```\nThis is only how it would look."
        yield f"In Python you would write {tool.name}(x=1), or [{tool.name}] for the list of them."


INTRODUCTION = """# The calls of a public benchmark

Written by `make bfcl`. The tools and ground-truth calls of the Berkeley Function Calling Leaderboard v4, as PyPI's
`{package}` contains them, go through every dialect: each set of calls is rendered unchanged and once
more with difficult text in its free strings, cut at random positions, and parsed back. Names and values must be equal,
and no text may be left over.

{usable} sets of calls are used; {left_out}.

The questions for which no tool is relevant, and prose about the tools, must give no call in `auto`. False alarms:
{alarms} in {texts} texts.

| dialect | equal | wrong | skipped, because the dialect cannot express it |
| --- | --- | --- | --- |
"""


def row(result: Result) -> str:
    """Return the row of a dialect."""
    why = "; ".join(f"{count} with {reason}" for reason, count in result.passed_over.items())
    return f"| `{result.name}` | {result.count - len(result.failures)} | {len(result.failures)} | {why} |\n"


def main(names: list[str]) -> int:
    download()
    left_out: Counter[str] = Counter()
    usable = sum(1 for _ in cases(left_out))
    print(f"{usable} sets of calls; left out: {dict(left_out)}", flush=True)
    results = []
    with ProcessPoolExecutor() as pool:
        for result in pool.map(judged, names or list(REGISTRY)):
            results.append(result)
            equal, passed_over = result.count - len(result.failures), result.passed_over.total()
            mark = "BAD" if result.failures else "ok "
            print(f"{mark} {result.name:16} {equal} of {result.count} equal, {passed_over} passed over", flush=True)
            for failure in result.failures[:3]:
                print(f"      {failure[:600]}")
    texts, alarms = false_alarms()
    print(f"{'BAD' if alarms else 'ok '} auto             {texts - len(alarms)} of {texts} texts without a call")
    for alarm in alarms[:5]:
        print(f"      {alarm[:600]}")
    if not names:
        left = " and ".join(f"{count} left out, because the set {reason}" for reason, count in left_out.items())
        numbers = {"usable": usable, "left_out": left, "texts": texts, "alarms": len(alarms)}
        PAGE.write_text(INTRODUCTION.format(package=PACKAGE, **numbers) + "".join(map(row, results)), encoding="utf-8")
    return 1 if alarms or any(result.failures for result in results) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
