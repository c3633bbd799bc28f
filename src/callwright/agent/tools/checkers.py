"""The table of checkers: programs that find mistakes, how each is called, and how its output is parsed.

None of them may change the workspace: caches and output files are off. The exception is cargo, which can build only in
the project's `target` folder.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from typing import Literal

import msgspec

__all__ = ["CHECKERS", "SYNTAX_CHECKS", "Checker", "Diagnostic"]


class Diagnostic(msgspec.Struct, frozen=True, kw_only=True):
    """One error or warning."""

    path: str
    line: int
    column: int = 1
    severity: Literal["error", "warning"] = "error"
    code: str = ""
    message: str = ""


class Checker(msgspec.Struct, frozen=True, kw_only=True):
    """A program that checks files with these suffixes."""

    name: str
    suffixes: tuple[str, ...]
    argv: tuple[str, ...]
    """Its name and options; the targets follow, as `./path`."""
    parse_output: Callable[[str], Iterator[Diagnostic]]
    target_kind: Literal["file", "files", "folders", "project"] = "files"
    """`file`: one file at a time; `folders`: also whole folders; `project`: no target, it checks the current folder."""
    project_files: tuple[str, ...] = ()
    """Files that mark a project which uses this checker; without any of them it is skipped."""
    fallback_for: str = ""
    """Used only if that other checker is not installed."""
    runs_project_code: bool = False
    """Whether it runs code of the project: configuration that is code, a plugin, a build script."""


def _make_line_parser(
    pattern: str, severity: Literal["error", "warning"] = "error"
) -> Callable[[str], Iterator[Diagnostic]]:
    line = re.compile(pattern)

    def read(text: str) -> Iterator[Diagnostic]:
        for found in filter(None, (line.match(each[:2000]) for each in text.splitlines())):
            groups = {name: value for name, value in found.groupdict().items() if value}
            parts = {"severity": severity, "column": "1", "code": groups.get("rule", ""), **groups}
            if parts["severity"] != "note":
                yield _build_diagnostic(parts)

    return read


def _build_diagnostic(parts: dict[str, str]) -> Diagnostic:
    code = parts["code"]
    is_error = parts["severity"].endswith("error") or "syntax" in code.lower() or code.startswith("E9")
    return Diagnostic(
        path=parts["path"],
        line=int(parts["line"]),
        column=int(parts["column"]),
        severity="error" if is_error else "warning",
        code=code,
        message=parts["message"].strip(),
    )


_LOCATION = r"(?P<path>[^:]+):(?P<line>\d+):(?:(?P<column>\d+):)? "
_GNU_PARSER = _make_line_parser(
    _LOCATION + r"(?P<severity>(?:fatal )?error|warning|note)(?:\[(?P<code>\w+)\])?: (?P<message>.+?)"
    r"(?:\s+\[(?P<rule>[\w=+-]+)\])?$"
)
_RUFF_PARSER = _make_line_parser(_LOCATION + r"(?P<code>[\w-]+):? (?:\[\*\] )?(?P<message>.+)", "warning")
_GO_PARSER = _make_line_parser(r"(?:vet: )?" + _LOCATION + r"(?P<message>.+)")
_TSC_PARSER = _make_line_parser(
    r"(?P<path>[^(]+)\((?P<line>\d+),(?P<column>\d+)\): (?P<severity>error|warning) (?P<code>TS\d+): (?P<message>.+)"
)
_NODE_ERROR = re.compile(
    r"^(?P<path>[^\n]+\.[cm]?js):(?P<line>\d+)\n(?P<body>.*?)^(?P<message>\w*Error: [^\n]+)", re.M | re.S
)


def _parse_node_output(text: str) -> Iterator[Diagnostic]:
    for found in _NODE_ERROR.finditer(text):
        caret = re.search(r"^( *)\^", found["body"], re.M)
        column = len(caret[1]) + 1 if caret else 1
        yield Diagnostic(path=found["path"], line=int(found["line"]), column=column, message=found["message"])


def _parse_eslint_output(text: str) -> Iterator[Diagnostic]:
    """Parse ESLint's JSON, which is on a line of its own; version 9 has no format with one line per finding."""
    line = next((each for each in text.splitlines() if each.startswith("[{")), "[]")
    try:
        reports = msgspec.json.decode(line, type=list[_EslintReport])
    except msgspec.DecodeError:
        return
    for report in reports:
        for one in report.messages:
            yield Diagnostic(
                path=report.filePath,
                line=one.line,
                column=one.column,
                severity="error" if one.severity == 2 else "warning",
                code=one.ruleId or "",
                message=one.message,
            )


class _EslintMessage(msgspec.Struct):
    message: str
    severity: int = 2
    line: int = 1
    column: int = 1
    ruleId: str | None = None  # noqa: N815  # ESLint's own name


class _EslintReport(msgspec.Struct):
    filePath: str  # noqa: N815  # ESLint's own name
    messages: list[_EslintMessage] = []


_PYTHON_SCRIPT = """
import ast, sys
for name in sys.argv[1:]:
    try:
        ast.parse(open(name, "rb").read(), name)
    except SyntaxError as error:
        print(f"{name}:{error.lineno or 1}:{error.offset or 1}: error: {error.msg} [SyntaxError]")
    except (ValueError, RecursionError, MemoryError) as error:
        print(f"{name}:1:1: error: {error or type(error).__name__} [SyntaxError]")
"""
_C_SUFFIXES = (".c", ".h", ".cc", ".cpp", ".cxx", ".hpp")
_SYNTAX_ONLY_OPTIONS = ("-fsyntax-only", "-Wall", "-fdiagnostics-color=never", "-fno-diagnostics-show-caret")
_JS_SUFFIXES = (".js", ".mjs", ".cjs")
_TS_SUFFIXES = (".ts", ".tsx", ".mts", ".cts")
_ESLINT_CONFIG_FILES = (
    *(f"eslint.config.{ending}" for ending in ("js", "mjs", "cjs", "ts", "mts", "cts")),
    *(f".eslintrc{ending}" for ending in (".js", ".cjs", ".yaml", ".yml", ".json", "")),
)
_MYPY_COMMAND = ("mypy", "--cache-dir=/dev/null", "--no-error-summary", "--no-pretty", "--no-color-output")

CHECKERS: tuple[Checker, ...] = (
    Checker(
        name="ruff",
        suffixes=(".py", ".pyi"),
        argv=("ruff", "check", "--no-cache", "--no-fix", "--quiet", "--force-exclude", "--output-format=concise"),
        parse_output=_RUFF_PARSER,
        target_kind="folders",
    ),
    Checker(
        name="mypy",
        suffixes=(".py", ".pyi"),
        argv=(*_MYPY_COMMAND, "--show-column-numbers", "--show-error-codes", "--hide-error-context"),
        parse_output=_GNU_PARSER,
        target_kind="folders",
        project_files=("mypy.ini", ".mypy.ini", "pyproject.toml", "setup.cfg"),
        runs_project_code=True,
    ),
    Checker(
        name="python",
        suffixes=(".py", ".pyi"),
        argv=("python3", "-I", "-W", "ignore", "-c", _PYTHON_SCRIPT),
        parse_output=_GNU_PARSER,
        fallback_for="ruff",
    ),
    Checker(
        name="tsc",
        suffixes=_TS_SUFFIXES,
        argv=("tsc", "--noEmit", "--incremental", "false", "--composite", "false", "--pretty", "false"),
        parse_output=_TSC_PARSER,
        target_kind="project",
        project_files=("tsconfig.json",),
    ),
    Checker(
        name="eslint",
        suffixes=(*_JS_SUFFIXES, ".jsx", *_TS_SUFFIXES),
        argv=("eslint", "--format=json", "--no-color", "--no-error-on-unmatched-pattern"),
        parse_output=_parse_eslint_output,
        target_kind="folders",
        project_files=_ESLINT_CONFIG_FILES,
        runs_project_code=True,
    ),
    Checker(
        name="node",
        suffixes=_JS_SUFFIXES,
        argv=("node", "--check"),
        parse_output=_parse_node_output,
        target_kind="file",
        fallback_for="eslint",
    ),
    Checker(name="gcc", suffixes=_C_SUFFIXES, argv=("gcc", *_SYNTAX_ONLY_OPTIONS), parse_output=_GNU_PARSER),
    Checker(
        name="clang",
        suffixes=_C_SUFFIXES,
        argv=("clang", *_SYNTAX_ONLY_OPTIONS[:-1]),
        parse_output=_GNU_PARSER,
        fallback_for="gcc",
    ),
    Checker(
        name="go",
        suffixes=(".go",),
        argv=("go", "vet", "./..."),
        parse_output=_GO_PARSER,
        target_kind="project",
        project_files=("go.mod",),
    ),
    Checker(
        name="cargo",
        suffixes=(".rs",),
        argv=("cargo", "check", "--quiet", "--message-format=short"),
        parse_output=_GNU_PARSER,
        target_kind="project",
        project_files=("Cargo.toml",),
        runs_project_code=True,
    ),
)


def _check_json(text: str) -> Diagnostic | None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return Diagnostic(path="", line=error.lineno, column=error.colno, code="json", message=error.msg)
    except RecursionError:
        return Diagnostic(path="", line=1, code="json", message="nested too deeply")
    return None


def _check_toml(text: str) -> Diagnostic | None:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        position = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        line, column = (int(position[1]), int(position[2])) if position else (text.count("\n") + 1, 1)
        message = str(error).partition(" (at ")[0]
        return Diagnostic(path="", line=line, column=column, code="toml", message=message)
    except RecursionError:
        return Diagnostic(path="", line=1, code="toml", message="nested too deeply")
    return None


SYNTAX_CHECKS: dict[str, Callable[[str], Diagnostic | None]] = {".json": _check_json, ".toml": _check_toml}
"""Formats that are checked without a program."""
