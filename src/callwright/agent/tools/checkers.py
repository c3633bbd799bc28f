"""The table of checkers: programs that find mistakes, how each is called, and how its words are read.

None of them may change the workspace: caches and output files are off. The exception is cargo, which has nowhere else
to keep what it builds than the project's `target` folder.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from typing import Literal

import msgspec

__all__ = ["CHECKERS", "PARSERS", "Checker", "Finding"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One mistake, or what looks like one."""

    path: str
    line: int
    column: int = 1
    severity: Literal["error", "warning"] = "error"
    code: str = ""
    message: str = ""


class Checker(msgspec.Struct, frozen=True, kw_only=True):
    """A program that finds mistakes in files with these endings."""

    name: str
    suffixes: tuple[str, ...]
    argv: tuple[str, ...]
    """Its name and options; what is to be checked follows, as `./path`."""
    read: Callable[[str], Iterator[Finding]]
    takes: Literal["file", "files", "folders", "project"] = "files"
    """`file`: one at a time; `folders`: also whole ones; `project`: nothing, it checks what it is started in."""
    home: tuple[str, ...] = ()
    """Files of which a project has one where this checker is used; without any it is of no use."""
    instead: str = ""
    """Only where that other checker is not there."""
    runs_code: bool = False
    """It runs code of the project: a configuration that is a program, a plugin, a build script."""


def _by_line(pattern: str, severity: Literal["error", "warning"] = "error") -> Callable[[str], Iterator[Finding]]:
    line = re.compile(pattern)

    def read(text: str) -> Iterator[Finding]:
        for found in filter(None, (line.match(each[:2000]) for each in text.splitlines())):
            given = {name: value for name, value in found.groupdict().items() if value}
            parts = {"severity": severity, "column": "1", "code": given.get("rule", ""), **given}
            if parts["severity"] != "note":
                yield _finding(parts)

    return read


def _finding(parts: dict[str, str]) -> Finding:
    code = parts["code"]
    is_error = parts["severity"].endswith("error") or "syntax" in code.lower() or code.startswith("E9")
    return Finding(
        path=parts["path"],
        line=int(parts["line"]),
        column=int(parts["column"]),
        severity="error" if is_error else "warning",
        code=code,
        message=parts["message"].strip(),
    )


_PLACE = r"(?P<path>[^:]+):(?P<line>\d+):(?:(?P<column>\d+):)? "
_TYPICAL = _by_line(
    _PLACE + r"(?P<severity>(?:fatal )?error|warning|note)(?:\[(?P<code>\w+)\])?: (?P<message>.+?)"
    r"(?:\s+\[(?P<rule>[\w=+-]+)\])?$"
)
_RUFF = _by_line(_PLACE + r"(?P<code>[\w-]+):? (?:\[\*\] )?(?P<message>.+)", "warning")
_GO = _by_line(r"(?:vet: )?" + _PLACE + r"(?P<message>.+)")
_TSC = _by_line(
    r"(?P<path>[^(]+)\((?P<line>\d+),(?P<column>\d+)\): (?P<severity>error|warning) (?P<code>TS\d+): (?P<message>.+)"
)
_NODE = re.compile(
    r"^(?P<path>[^\n]+\.[cm]?js):(?P<line>\d+)\n(?P<body>.*?)^(?P<message>\w*Error: [^\n]+)", re.M | re.S
)


def _read_node(text: str) -> Iterator[Finding]:
    for found in _NODE.finditer(text):
        caret = re.search(r"^( *)\^", found["body"], re.M)
        column = len(caret[1]) + 1 if caret else 1
        yield Finding(path=found["path"], line=int(found["line"]), column=column, message=found["message"])


def _read_eslint(text: str) -> Iterator[Finding]:
    """ESLint has no format of one line per mistake since version 9; its JSON is on a line of its own."""
    line = next((each for each in text.splitlines() if each.startswith("[{")), "[]")
    try:
        reports = msgspec.json.decode(line, type=list[_Report])
    except msgspec.DecodeError:
        return
    for report in reports:
        for one in report.messages:
            yield Finding(
                path=report.filePath,
                line=one.line,
                column=one.column,
                severity="error" if one.severity == 2 else "warning",
                code=one.ruleId or "",
                message=one.message,
            )


class _Message(msgspec.Struct):
    message: str
    severity: int = 2
    line: int = 1
    column: int = 1
    ruleId: str | None = None  # noqa: N815  # ESLint's own name


class _Report(msgspec.Struct):
    filePath: str  # noqa: N815  # ESLint's own name
    messages: list[_Message] = []


_PYTHON = """
import ast, sys
for name in sys.argv[1:]:
    try:
        ast.parse(open(name, "rb").read(), name)
    except SyntaxError as error:
        print(f"{name}:{error.lineno or 1}:{error.offset or 1}: error: {error.msg} [SyntaxError]")
    except (ValueError, RecursionError, MemoryError) as error:
        print(f"{name}:1:1: error: {error or type(error).__name__} [SyntaxError]")
"""
_C = (".c", ".h", ".cc", ".cpp", ".cxx", ".hpp")
_SYNTAX_ONLY = ("-fsyntax-only", "-Wall", "-fdiagnostics-color=never", "-fno-diagnostics-show-caret")
_JS = (".js", ".mjs", ".cjs")
_TS = (".ts", ".tsx", ".mts", ".cts")
_ESLINT_HOME = (
    *(f"eslint.config.{ending}" for ending in ("js", "mjs", "cjs", "ts", "mts", "cts")),
    *(f".eslintrc{ending}" for ending in (".js", ".cjs", ".yaml", ".yml", ".json", "")),
)
_MYPY = ("mypy", "--cache-dir=/dev/null", "--no-error-summary", "--no-pretty", "--no-color-output")

CHECKERS: tuple[Checker, ...] = (
    Checker(
        name="ruff",
        suffixes=(".py", ".pyi"),
        argv=("ruff", "check", "--no-cache", "--no-fix", "--quiet", "--force-exclude", "--output-format=concise"),
        read=_RUFF,
        takes="folders",
    ),
    Checker(
        name="mypy",
        suffixes=(".py", ".pyi"),
        argv=(*_MYPY, "--show-column-numbers", "--show-error-codes", "--hide-error-context"),
        read=_TYPICAL,
        takes="folders",
        home=("mypy.ini", ".mypy.ini", "pyproject.toml", "setup.cfg"),
        runs_code=True,
    ),
    Checker(
        name="python",
        suffixes=(".py", ".pyi"),
        argv=("python3", "-I", "-W", "ignore", "-c", _PYTHON),
        read=_TYPICAL,
        instead="ruff",
    ),
    Checker(
        name="tsc",
        suffixes=_TS,
        argv=("tsc", "--noEmit", "--incremental", "false", "--composite", "false", "--pretty", "false"),
        read=_TSC,
        takes="project",
        home=("tsconfig.json",),
    ),
    Checker(
        name="eslint",
        suffixes=(*_JS, ".jsx", *_TS),
        argv=("eslint", "--format=json", "--no-color", "--no-error-on-unmatched-pattern"),
        read=_read_eslint,
        takes="folders",
        home=_ESLINT_HOME,
        runs_code=True,
    ),
    Checker(name="node", suffixes=_JS, argv=("node", "--check"), read=_read_node, takes="file", instead="eslint"),
    Checker(name="gcc", suffixes=_C, argv=("gcc", *_SYNTAX_ONLY), read=_TYPICAL),
    Checker(name="clang", suffixes=_C, argv=("clang", *_SYNTAX_ONLY[:-1]), read=_TYPICAL, instead="gcc"),
    Checker(name="go", suffixes=(".go",), argv=("go", "vet", "./..."), read=_GO, takes="project", home=("go.mod",)),
    Checker(
        name="cargo",
        suffixes=(".rs",),
        argv=("cargo", "check", "--quiet", "--message-format=short"),
        read=_TYPICAL,
        takes="project",
        home=("Cargo.toml",),
        runs_code=True,
    ),
)


def _parse_json(text: str) -> Finding | None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return Finding(path="", line=error.lineno, column=error.colno, code="json", message=error.msg)
    except RecursionError:
        return Finding(path="", line=1, code="json", message="nested too deeply")
    return None


def _parse_toml(text: str) -> Finding | None:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        line, column = (int(place[1]), int(place[2])) if place else (text.count("\n") + 1, 1)
        message = str(error).partition(" (at ")[0]
        return Finding(path="", line=line, column=column, code="toml", message=message)
    except RecursionError:
        return Finding(path="", line=1, code="toml", message="nested too deeply")
    return None


PARSERS: dict[str, Callable[[str], Finding | None]] = {".json": _parse_json, ".toml": _parse_toml}
"""Formats that are checked right here."""
