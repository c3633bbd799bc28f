"""The tools and ground-truth calls of a public benchmark, through every dialect and back.

    make bfcl                              # every dialect
    python scripts/bfcl.py hermes glm45    # some of them

The data is what PyPI's `bfcl-eval` carries (Berkeley Function Calling Leaderboard v4), installed without
its dependencies into .cache; nothing of it is kept in this repository. Each set of calls is rendered in a
dialect with its free strings made nasty, cut at random places and parsed back: names and values must be
equal. The questions for which no tool is relevant, and prose about the tools, must give no call in `auto`.
"""

from __future__ import annotations

import ast
import json
import random
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from harness import NASTY, cut

from callwright import Dialect, Parser, collect, dialect
from callwright.dialects import REGISTRY
from callwright.ids import counted_ids
from callwright.model import ToolCall, ToolSpec
from callwright.schema import Schema, coerce, from_text, tool_spec

DATA = ROOT / ".cache" / "bfcl"
CATEGORIES = (
    "simple_python", "simple_java", "simple_javascript", "multiple", "parallel", "parallel_multiple",
    "live_simple", "live_multiple", "live_parallel", "live_parallel_multiple",
)  # fmt: skip


class Case(NamedTuple):
    """One set of calls with the tools that were offered for it."""

    id: str
    tools: list[ToolSpec]
    calls: list[tuple[str, dict[str, Any]]]


def download() -> None:
    """Get the data files once."""
    if DATA.exists():
        return
    folder = ROOT / ".cache" / "download"
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), "bfcl-eval"], check=True
    )
    [wheel] = folder.glob("bfcl_eval-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.startswith(
                tuple(f"bfcl_eval/data/{part}" for part in ("BFCL_v4_", "possible_answer/", "multi_turn_"))
            ):
                target = DATA / name.removeprefix("bfcl_eval/data/")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(name))
    wheel.unlink()


def lines(name: str) -> Iterator[dict[str, Any]]:
    for line in (DATA / name).read_text(encoding="utf-8").split("\n"):
        if line.strip():
            yield json.loads(line)


def cases(left_out: Counter[str]) -> Iterator[Case]:
    """Every usable set of calls; why the others are not is counted."""
    for category in CATEGORIES:
        answers = {line["id"]: line["ground_truth"] for line in lines(f"possible_answer/BFCL_v4_{category}.json")}
        for question in lines(f"BFCL_v4_{category}.json"):
            tools = [tool_spec(tool) for tool in question["function"]]
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
                elif any(contradicts(given, schemas[name]) for name, given in calls):
                    left_out["contradicts its own schema"] += 1
                else:
                    yield Case(question["id"], tools, calls)
    yield from conversations(left_out)


def contradicts(given: dict[str, Any], schema: Schema) -> bool:
    """Whether the benchmark's own values are not of the types that its schema declares."""
    nulls = (key for key, value in given.items() if value is None and schema.member(key).types)
    return bool(coerce(given, schema)[1]) or any("null" not in schema.member(key).types for key in nulls)


def conversations(left_out: Counter[str]) -> Iterator[Case]:
    """The turns of the multi-turn sets, whose calls are written as Python."""
    files = sorted((DATA / "multi_turn_func_doc").glob("*.json"))
    tools = {tool["name"]: tool_spec(tool) for file in files for tool in lines(f"multi_turn_func_doc/{file.name}")}
    for category in ("base", "long_context", "miss_func", "miss_param"):
        for answer in lines(f"possible_answer/BFCL_v4_multi_turn_{category}.json"):
            for at, turn in enumerate(answer["ground_truth"]):
                calls = [python_call(text, tools) for text in turn]
                if not calls:
                    left_out["has no call"] += 1
                elif any(contradicts(given, Schema(tools[name].parameters)) for name, given in calls):
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
    """The benchmark lists every acceptable value of a parameter; the first that is one."""
    chosen = {}
    for key, options in given.items():
        value = next((option for option in options if option != ""), "")
        if value == "" and key not in schema.required:
            continue
        chosen[key] = unwrapped(value, schema.member(key))
    return chosen


def unwrapped(value: Any, schema: Schema) -> Any:
    """Inside objects the benchmark lists acceptable values again."""
    if isinstance(value, dict) and all(isinstance(option, list) and option for option in value.values()):
        return first_choices(value, schema)
    if isinstance(value, list):
        return [unwrapped(item, schema.items) for item in value]
    return value


def mutated(case: Case, draw: random.Random) -> Case:
    """The same calls with nasty text in every free string parameter."""
    schemas = {tool.name: Schema(tool.parameters) for tool in case.tools}
    calls = []
    for name, given in case.calls:
        free = {key for key in given if schemas[name].member(key).is_string and not schemas[name].member(key).choices}
        nasty = {key: value + draw.choice(NASTY) if key in free else value for key, value in given.items()}
        calls.append((name, nasty))
    return Case(case.id, case.tools, calls)


def through(it: Dialect, case: Case, draw: random.Random) -> str:
    """Render, cut, parse. Empty when equal, else what came instead."""
    calls = [
        ToolCall(it.make_id(name, at), name, json.dumps(given, ensure_ascii=False))
        for at, (name, given) in enumerate(case.calls)
    ]
    text = it.render_call(*calls)
    parser = Parser(it, case.tools, ids=counted_ids(), prefill=it.call_prefill)
    events = [
        event for chunk in cut(text, (draw.randrange(len(text)) for _ in range(12))) for event in parser.feed(chunk)
    ]
    turn = collect([*events, *parser.close()])
    got = [(call.name, json.loads(call.arguments) if call.complete else None) for call in turn.tool_calls]
    return "" if got == case.calls and turn.text == "" else f"{case.id}: {text!r} gave {got} and {turn.text!r}"


def judged(name: str) -> tuple[str, int, list[str], int]:
    """One dialect over all cases: how many, the failures, and how many it cannot write."""
    it = dialect(name)
    draw = random.Random(name)
    failures, count, passed_over = [], 0, 0
    for case in cases(Counter()):
        for one in (case, mutated(case, draw)):
            if not can_carry(it, one):
                passed_over += 1
                continue
            count += 1
            if failure := through(it, one, draw):
                failures.append(failure)
    return name, count, failures, passed_over


def can_carry(it: Dialect, case: Case) -> bool:
    """Whether a dialect can tell these values apart at all.

    Where values are bare text, an untyped string that looks like a number is one; where nesting is written
    as elements, lists and objects have no certain types.
    """
    schemas = {tool.name: Schema(tool.parameters) for tool in case.tools}
    for name, given in case.calls:
        for key, value in given.items():
            schema = schemas[name].member(key)
            if getattr(it, "nested", "json") == "elements" and isinstance(value, dict | list):
                return False
            if it.raw_values and isinstance(value, str) and json.loads(from_text(value, schema)[0]) != value:
                return False
    return True


def false_alarms() -> tuple[int, list[str]]:
    """Questions without a relevant tool, and prose about tools, read by `auto`: how many, and which gave calls."""
    count, alarms = 0, []
    for category in ("irrelevance", "live_irrelevance"):
        for question in lines(f"BFCL_v4_{category}.json"):
            tools = [tool_spec(tool) for tool in question["function"]]
            asked = "\n".join(message["content"] for turn in question["question"] for message in turn)
            for text in (asked, *prose(tools)):
                count += 1
                parser = Parser(dialect("auto"), tools)
                turn = collect([*parser.feed(text), *parser.close()])
                if turn.tool_calls or turn.text != text:
                    alarms.append(f"{question['id']}: {text!r} gave {turn.tool_calls} and {turn.text!r}")
    return count, alarms


def prose(tools: list[ToolSpec]) -> Iterator[str]:
    """What a model may say about tools without calling one."""
    for tool in tools[:2]:
        sample = json.dumps({"name": tool.name, "arguments": {}})
        schema = json.dumps(tool.parameters)
        yield f"I cannot answer that with {tool.name}: {tool.description} Its parameters are {schema}."
        yield f"A call would be written `<tool_call>{sample}</tool_call>`, but that does not help here."
        yield f"For example:\n```xml\n<tool_call>\n{sample}\n</tool_call>\n```\nNothing of the kind is needed."
        yield f"```json\n{sample}\n```\nThis is only how it would look."
        yield f"In Python you would write {tool.name}(x=1), or [{tool.name}] for the list of them."


def main(names: list[str]) -> int:
    download()
    left_out: Counter[str] = Counter()
    usable = sum(1 for _ in cases(left_out))
    print(f"{usable} sets of calls; left out: {dict(left_out)}", flush=True)
    wrong = 0
    with ProcessPoolExecutor() as pool:
        for name, count, failures, passed_over in pool.map(judged, names or list(REGISTRY)):
            mark = "ok " if not failures else "BAD"
            print(
                f"{mark} {name:16} {count - len(failures)} of {count} equal, {passed_over} it cannot tell", flush=True
            )
            for failure in failures[:3]:
                print(f"      {failure[:600]}")
            wrong += len(failures)
    count, alarms = false_alarms()
    print(f"{'ok ' if not alarms else 'BAD'} auto             {count - len(alarms)} of {count} texts without a call")
    for alarm in alarms[:5]:
        print(f"      {alarm[:600]}")
    return 1 if wrong or alarms else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
