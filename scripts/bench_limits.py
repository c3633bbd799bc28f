"""Measure deep, large and hostile input: milliseconds at three sizes, and how they grow when the input doubles.

    make bench-limits                                       # prints the table and writes it into docs/benchmarks.md
    python scripts/bench_limits.py --only "tool results"    # some rows, and writes no file

Each row is one kind of input at n, 2n and 4n. The input is built before the clock starts. Times are CPU time of this
thread, the best of three runs; a run of more than 20 seconds is given up. A ratio of 2 is linear and 4 is quadratic;
where a limit ends the work, the ratio is near 1. The limits are in `callwright/input_limits.py`.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import itertools

from callwright import Parser, collect, get_dialect
from callwright.dialects import REGISTRY
from callwright.engine.normalize import normalize_request
from callwright.engine.routing import RouteTable
from callwright.engine.settings import ModelSettings, ToolRules
from callwright.engine.turn_report import TurnReport
from callwright.errors import CallwrightError
from callwright.events import CallDelta, CallEnd, CallStart, Malformed
from callwright.grammar import constraint_builder
from callwright.guard import schema_check
from callwright.guard.native_calls import NativeCallWriter
from callwright.guard.schema_check import SchemaCheckedCalls
from callwright.ids import make_sequential_ids
from callwright.model import ToolSpec
from callwright.prompt import schema_trim
from callwright.prompt.settings import PromptSettings, ToolLimitSettings
from callwright.prompt.tool_prompt import render_tool_prompt
from callwright.schema import Schema, Toolbox
from callwright.turn import Collected, Turn
from callwright.wire import SERVER_CODECS
from tests.support import hostile

BEGIN, END = "<!-- bench-limits:begin -->", "<!-- bench-limits:end -->"
TIMEOUT_SECONDS = 20
RUNS = 3
ROUTE = RouteTable([ModelSettings(name="m")], ("b",), ToolRules(), PromptSettings()).find_route("m")
LIMITS = ToolLimitSettings(inline_refs=True, terse=True, trim_schemas=True, drop_null=True)
Run = Callable[[], str]


class Case(NamedTuple):
    """One kind of input. `build` makes it in a size and returns what is timed."""

    label: str
    size: int
    build: Callable[[int], Run]


# ── model output ──────────────────────────────────────────────────────────────────────────────────

OPEN_TOOL = ToolSpec("act", "", {"properties": {"value": {}, "items": {"type": "array"}}})
NUMBERS_TOOL = ToolSpec("act", "", {"properties": {"items": {"type": "array", "items": {"type": "integer"}}}})
WIDE_TOOL = ToolSpec("act", "", {"properties": {f"value_{at}": {"type": "integer"} for at in range(100)}})


def describe_turn(turn: Collected) -> str:
    kinds = sorted({repair.kind for repair in turn.repairs} | {each.reason for each in turn.malformed})
    return "; ".join([f"{len(turn.tool_calls)} calls", *kinds])


def parse(name: str, text: str, size: int = 64) -> Collected:
    parser = Parser(get_dialect(name), (OPEN_TOOL,), ids=make_sequential_ids())
    events = [event for at in range(0, len(text), size) for event in parser.feed(text[at : at + size])]
    return collect([*events, *parser.close()])


def parse_all(texts: dict[str, str], size: int) -> Run:
    """Parse one text in each dialect."""

    def run() -> str:
        turns = [parse(name, text, size) for name, text in texts.items()]
        calls, repairs = sum(len(turn.tool_calls) for turn in turns), sum(len(turn.repairs) for turn in turns)
        malformed = sum(len(turn.malformed) for turn in turns)
        return f"{len(turns)} answers: {calls} calls, {repairs} repairs, {malformed} malformed"

    return run


def parse_native(arguments: str, tool: ToolSpec = OPEN_TOOL) -> Run:
    def run() -> str:
        turn = Turn(Toolbox([tool]), make_sequential_ids())
        native = NativeCallWriter(turn)
        native.start_call(0, "act")
        for at in range(0, len(arguments), 64):
            native.feed(0, arguments[at : at + 64])
        native.end_calls()
        turn.finish()
        return describe_turn(collect(turn.drain_events()))

    return run


def declare_many(n: int) -> ToolSpec:
    return ToolSpec("act", "", {"properties": {f"key_{at:06}": {"type": "integer"} for at in range(n)}})


NATIVE: dict[str, tuple[int, Callable[[int], Run]]] = {
    "unknown keys, 100 parameters": (
        2_000,
        lambda n: parse_native(json.dumps({f"key{at:06}": at for at in range(n)}), WIDE_TOOL),
    ),
    "misspelled keys, as many parameters": (
        2_000,
        lambda n: parse_native(json.dumps({f"kex{at:06}z": at for at in range(n)}), declare_many(n)),
    ),
    "nested brackets": (25_000, lambda n: parse_native('{"items": ' + "[" * n + "]" * n + "}")),
    "nested brackets, encoded twice": (
        25_000,
        lambda n: parse_native(json.dumps('{"items": ' + "[" * n + "]" * n + "}")),
    ),
    "an integer of many digits": (25_000, lambda n: parse_native('{"value": ' + "1" * n + "}")),
    "comments": (
        2_000,
        lambda n: parse_native('{"items": [' + "".join(f"/* c{at} */ {at}," for at in range(n)) + "]}"),
    ),
    "keys without values": (
        2_000,
        lambda n: parse_native('{"value": {' + ",".join(f"'k{at}'" for at in range(n)) + "}}"),
    ),
    "spaces after a quote": (5_000, lambda n: parse_native('{"value": "a"' + " " * n + "}")),
    "items of a wrong type": (2_000, lambda n: parse_native(json.dumps({"items": ["1"] * n}), NUMBERS_TOOL)),
}


def build_output_cases() -> Iterator[Case]:
    for label, (size, build) in NATIVE.items():
        yield Case(f"native call: {label}", size, build)
    for label, nest in hostile.NESTINGS.items():
        yield Case(
            f"a call in every dialect: {label}",
            5_000,
            lambda n, nest=nest: parse_all(
                {name: hostile.write_call(name, nest(n)) for name in callable_dialects()}, 64
            ),
        )
    for label in hostile.list_runs("hermes"):
        yield Case(
            f"text in every dialect: a run of {label}",
            2_000,
            lambda n, label=label: parse_all({name: hostile.list_runs(name)[label] * n for name in REGISTRY}, 16),
        )


def callable_dialects() -> list[str]:
    """Return the dialects in which a call can be written."""
    names = []
    for name in REGISTRY:
        try:
            hostile.write_call(name, "[]")
        except (ValueError, NotImplementedError, CallwrightError):
            continue
        names.append(name)
    return names


# ── schemas ───────────────────────────────────────────────────────────────────────────────────────


def walk(body: dict[str, Any]) -> str:
    members = Schema(body).properties
    kinds = [(member.types, member.items.types, member.properties.keys()) for member in members.values()]
    return f"{len(kinds)} members"


def trim(body: dict[str, Any]) -> str:
    schema_trim._trim_schema.cache_clear()
    return f"{len(json.dumps(schema_trim.trim_tool(ToolSpec('act', '', body), LIMITS).parameters))} characters"


def constrain(body: dict[str, Any]) -> str:
    constraint_builder._build_cached_constraint.cache_clear()
    constraint = constraint_builder.build_constraint([ToolSpec("act", "", body)], REGISTRY["hermes"])
    return f"{len(constraint.grammar)} characters"


def describe(body: dict[str, Any]) -> str:
    tools = (ToolSpec("act", "", body),)
    prompts = [render_tool_prompt(tools, REGISTRY[name], "full") for name in ("hermes", "harmony", "pythonic")]
    return f"{sum(map(len, prompts))} characters"


def check(body: dict[str, Any], arguments: str) -> str:
    schema_check._build_checker.cache_clear()
    stage = SchemaCheckedCalls([ToolSpec("act", "", body)])
    events = stage.feed([CallStart(0, "a", "act"), CallDelta(0, arguments), CallEnd(0, True, ())])
    return "malformed" if isinstance(events[0], Malformed) else "passed on"


def build_schema_cases() -> Iterator[Case]:
    uses: dict[str, Callable[[dict[str, Any], int], str]] = {
        "types of": lambda body, n: walk(body),
        "trimming": lambda body, n: trim(body),
        "a grammar for": lambda body, n: constrain(body),
        "a prompt for": lambda body, n: describe(body),
        # Only the schema that branches at every level of a value has a title.
        "checking": lambda body, n: check(
            body, hostile.nest_value(min(n, 90)) if "title" in body else '{"a": {"x": 1}}'
        ),
    }
    for label, (size, _) in hostile.SCHEMAS.items():
        for use, run in uses.items():
            yield Case(
                f"{use} {label}", size, lambda n, label=label, run=run: prepare(run, hostile.build_schema(label, n), n)
            )


def prepare(run: Callable[[dict[str, Any], int], str], body: dict[str, Any], n: int) -> Run:
    return lambda: run(body, n)


# ── requests ──────────────────────────────────────────────────────────────────────────────────────


def serve(wire: str, body: bytes) -> Run:
    """Decode a request and normalize it, as for a turn."""

    def run() -> str:
        normalized = normalize_request(SERVER_CODECS[wire].decode_request(body).request, ROUTE)
        report = TurnReport()
        report.record_repairs(normalized.repairs)
        request = normalized.request
        return f"{len(request.messages)} messages, {len(request.tools)} tools, {len(report.repairs)} repairs"

    return run


def build_request_cases() -> Iterator[Case]:
    for label, (wire, size, _) in hostile.REQUESTS.items():
        yield Case(
            f"a request: {label}", size, lambda n, label=label, wire=wire: serve(wire, hostile.build_body(label, n))
        )
    for wire in hostile.WIRES:
        for where in ("schema", "call", "other"):
            yield Case(
                f"a request, `{wire}`: brackets ({where})",
                25_000,
                lambda n, wire=wire, where=where: serve(wire, hostile.build_deep_body(wire, n, where)),
            )


# ── measuring ─────────────────────────────────────────────────────────────────────────────────────


class TooLongError(BaseException):
    """A run took too long."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    def give_up(*_: object) -> None:
        raise TooLongError

    signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def measure(case: Case, n: int, runs: int) -> tuple[float, str]:
    """Return the milliseconds of the best run, and the result."""
    run = case.build(n)
    best, result = math.inf, ""
    for _ in range(runs):
        start = time.thread_time()
        try:
            with time_limit(TIMEOUT_SECONDS):
                result = run()
        except TooLongError:
            return math.inf, f"more than {TIMEOUT_SECONDS} s"
        except CallwrightError as problem:
            result = f"refused: {problem}"
        except Exception as problem:  # the table shows it
            result = f"**{type(problem).__name__}**"
        best = min(best, time.thread_time() - start)
    return best * 1000, result


def format_row(case: Case, runs: int) -> str:
    figures: list[float] = []
    result = ""
    for n in (case.size, 2 * case.size, 4 * case.size):
        took, result = measure(case, n, runs)
        figures.append(took)
        if math.isinf(took):
            break
    ratios = [f"{after / before:.1f}" for before, after in itertools.pairwise(figures)]
    cells = [*(f"{took:.1f}" for took in figures), *[""] * (3 - len(figures)), *ratios, *[""] * (2 - len(ratios))]
    short = result if len(result) <= 90 else f"{result[:89]}…"
    return f"| {case.label} | {case.size} | {' | '.join(cells)} | {short} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="measure only rows that contain this text, and write no file")
    parser.add_argument("--runs", type=int, default=RUNS)
    arguments = parser.parse_args()
    lines = [
        "| input | n | at n, ms | at 2n | at 4n | 2n ÷ n | 4n ÷ 2n | result at 4n |",
        "| --- |" + " --: |" * 6 + " --- |",
    ]
    print("\n".join(lines))
    for case in (*build_output_cases(), *build_schema_cases(), *build_request_cases()):
        if arguments.only in case.label:
            lines.append(format_row(case, arguments.runs))
            print(lines[-1], flush=True)
    if not arguments.only:
        machine = f"{platform.system()} {platform.machine()}"
        note = f"Python {platform.python_version()}, {machine}, one thread, runs: {arguments.runs}."
        path = ROOT / "docs" / "benchmarks.md"
        before, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
        _, _, after = rest.partition(END)
        path.write_text(f"{before}{BEGIN}\n{note}\n\n" + "\n".join(lines) + f"\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
