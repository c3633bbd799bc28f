"""Small files and functions, by rule: the rule must exist before the first big file does."""

from __future__ import annotations

from tests.meta.repository import ROOT, TESTS, Function, at, functions, modules

SOURCE_LINES = 500
TEST_LINES = 1000
FUNCTION_LINES = 60
PARAMETERS = 8

# Path from the package -> why this file may be longer.
LONG_FILES: dict[str, str] = {}


def parameters(function: Function) -> int:
    given = function.args
    count = len(given.posonlyargs) + len(given.args) + len(given.kwonlyargs)
    count += (given.vararg is not None) + (given.kwarg is not None)
    first = next(iter(given.posonlyargs + given.args), None)
    return count - (first is not None and first.arg in {"self", "cls"})


def test_source_files_are_short() -> None:
    long = {f"src/callwright/{module.name}": module.lines for module in modules() if module.lines > SOURCE_LINES}
    excused = {f"src/callwright/{name}" for name in LONG_FILES}
    assert not {name: lines for name, lines in long.items() if name not in excused}
    assert excused <= long.keys(), "a file in LONG_FILES has become short: take it off the list"


def test_test_files_are_short() -> None:
    lengths = {path: path.read_text(encoding="utf-8").count("\n") for path in TESTS.rglob("*.py")}
    assert not {str(path.relative_to(ROOT)): count for path, count in lengths.items() if count > TEST_LINES}


def test_functions_are_short() -> None:
    long = {}
    for module in modules():
        for function in functions(module.tree):
            lines = (function.end_lineno or function.lineno) - function.lineno + 1
            if lines > FUNCTION_LINES:
                long[f"{at(module, function)} {function.name}"] = lines
    assert not long


def test_functions_take_few_parameters() -> None:
    wide = {}
    for module in modules():
        for function in functions(module.tree):
            if (count := parameters(function)) > PARAMETERS:
                wide[f"{at(module, function)} {function.name}"] = count
    assert not wide
