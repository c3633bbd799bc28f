"""`get_diagnostics`: runs the checkers that the workspace has on a file, a folder or everything.

Checkers have different output formats; the tool returns one line per finding, `path:line:column: severity code
message`. It also reports what was not checked, and why: no findings must not be mistaken for no errors.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from posixpath import dirname, join, normpath, relpath
from typing import Annotated, NamedTuple

import msgspec

from callwright.agent.tools.base import ToolArguments, ToolContext
from callwright.agent.tools.checkers import CHECKERS, SYNTAX_CHECKS, Checker, Diagnostic
from callwright.agent.tools.file_text import decode_file
from callwright.agent.tools.path_match import suggest_paths
from callwright.agent.tools.program_runner import find_program, run_program
from callwright.agent.tools.signature import ToolSignature
from callwright.agent.tools.text_format import format_count, to_one_line
from callwright.errors import ToolError

__all__ = ["tool"]

_MAX_DIAGNOSTICS = 100
_MAX_FILES = 100
"""How many files are passed to a checker that takes no folders."""
_MAX_SINGLE_RUNS = 20
"""How many files are passed to a checker that is started for each file."""
_MAX_MESSAGE_LENGTH = 400
# These files are JSON with comments, whatever their suffix.
_JSON_WITH_COMMENTS = (".vscode/", ".devcontainer/", "tsconfig", "jsconfig", ".eslintrc", "devcontainer.json")


class _DiagnosticsArguments(msgspec.Struct, frozen=True, kw_only=True):
    """Check code for errors with the compilers and linters that the workspace has. Use it after changing files."""

    path: Annotated[
        str,
        msgspec.Meta(
            description="The file or folder to check. The default is the whole workspace.", examples=["src/app.py"]
        ),
    ] = "."


class _CheckerJob(NamedTuple):
    """One run of a checker: its folder and its targets."""

    checker: Checker
    program: str
    folder: str
    targets: tuple[str, ...]


class _CheckResult(msgspec.Struct):
    """The findings and notes of a run."""

    diagnostics: list[Diagnostic] = []
    checker_names: list[str] = []
    notes: list[str] = []


class _GetDiagnostics:
    signature = ToolSignature("get_diagnostics", _DiagnosticsArguments)
    spec = signature.spec

    def describe_call(self, arguments: ToolArguments) -> str:
        return self.signature.describe_call(arguments, lambda parsed: f"Check {_format_target(parsed.path)}")

    def list_paths(self, arguments: ToolArguments) -> tuple[str, ...]:
        parsed = self.signature.try_parse(arguments)
        return () if parsed is None else (parsed.path or ".",)

    async def read(self, arguments: ToolArguments, context: ToolContext) -> str:
        path = self.signature.parse(arguments).path or "."
        files = await asyncio.to_thread(_list_files, path, context)
        target = context.workspace.resolve_path(path)
        jobs, notes = _plan_jobs(target, files, context)
        checked = [await asyncio.to_thread(_check_syntax, files, context)]
        async with asyncio.TaskGroup() as group:
            checking = [group.create_task(_run_checker(job, context)) for job in jobs]
        checked += [each.result() for each in checking]
        findings = [finding for each in checked for finding in each.diagnostics if _is_below(finding.path, target)]
        return _format_report(
            target, findings, [name for each in checked for name in each.checker_names], _collect_notes(checked, notes)
        )


def _format_target(path: str) -> str:
    return "the workspace" if path in {"", "."} else path


def _is_below(path: str, target: str) -> bool:
    return target == "." or path == target or path.startswith(f"{target}/")


def _list_files(path: str, context: ToolContext) -> list[str]:
    match context.workspace.get_kind(path):
        case "file":
            return [context.workspace.resolve_path(path)]
        case "folder":
            return [name for name in context.workspace.iter_files(path) if not context.is_protected(name)]
        case _:
            raise ToolError(f"there is no file {path!r}.{suggest_paths(path, context.workspace.iter_files())}")


def _plan_jobs(target: str, files: Sequence[str], context: ToolContext) -> tuple[list[_CheckerJob], list[str]]:
    """Return the runs, and a note for each checker that cannot run."""
    jobs: list[_CheckerJob] = []
    missing: list[str] = []
    notes: list[str] = []
    for checker in CHECKERS:
        matching = tuple(name for name in files if name.endswith(checker.suffixes))
        home = (
            _find_project_folder(checker, target if target not in files else dirname(target) or ".", context)
            if matching
            else None
        )
        if home is None or checker.fallback_for in {job.checker.name for job in jobs}:
            continue
        if checker.runs_project_code and not context.allows_project_code:
            notes.append(f"{checker.name} was not used: it runs the project's own code")
        elif program := find_program(checker.argv[0], context, home):
            targets = _build_targets(checker, target, matching, home)
            if len(targets) < len(matching) and checker.target_kind in {"file", "files"}:
                notes.append(f"{checker.name} checked the first {len(targets)} of {len(matching)} files")
            jobs.append(_CheckerJob(checker, program, home, targets))
        else:
            missing.append(checker.name)
    if missing:
        notes.append(f"not installed here: {', '.join(missing)}")
    return jobs, notes


def _find_project_folder(checker: Checker, folder: str, context: ToolContext) -> str | None:
    """Return the folder to start it in: the nearest parent with one of its marker files. None if there is no such
    folder.
    """
    if not checker.project_files:
        return "."
    while True:
        if any(context.workspace.get_kind(join(folder, name)) == "file" for name in checker.project_files):
            return folder
        if folder == ".":
            return None
        folder = dirname(folder) or "."


def _build_targets(checker: Checker, target: str, files: tuple[str, ...], home: str) -> tuple[str, ...]:
    """Return the targets after the options; `./` keeps names that begin with a dash from being options."""
    chosen = {"project": (), "folders": (target,), "files": files[:_MAX_FILES], "file": files[:_MAX_SINGLE_RUNS]}[
        checker.target_kind
    ]
    return tuple(f"./{relpath(name, home)}" for name in chosen)


async def _run_checker(job: _CheckerJob, context: ToolContext) -> _CheckResult:
    context.report_progress(f"{job.checker.name} is checking\n")
    each: Iterable[tuple[str, ...]] = (
        ((one,) for one in job.targets) if job.checker.target_kind == "file" else (job.targets,)
    )
    result = _CheckResult(checker_names=[job.checker.name])
    for targets in each:
        output = await run_program((job.program, *job.checker.argv[1:], *targets), context, job.folder)
        findings = list(_resolve_paths(job.checker.parse_output(output.text), job.folder, context))
        result.diagnostics += findings
        if output.exit_code is None or (output.exit_code != 0 and not findings):
            reason = to_one_line(output.text, _MAX_MESSAGE_LENGTH) or f"exit code {output.exit_code}"
            result.notes.append(f"{job.checker.name} failed: {reason}")
    return result


def _resolve_paths(findings: Iterable[Diagnostic], folder: str, context: ToolContext) -> Iterator[Diagnostic]:
    """Yield findings with paths relative to the root; findings outside the workspace are dropped."""
    root = context.workspace.root
    for finding in findings:
        location = Path(root, folder, finding.path)
        path = normpath(str(location))
        if path.startswith(f"{root}/"):
            yield msgspec.structs.replace(finding, path=path.removeprefix(f"{root}/"))


def _check_syntax(files: Sequence[str], context: ToolContext) -> _CheckResult:
    """Check formats that need no program."""
    result = _CheckResult()
    for name in files:
        suffix = next((suffix for suffix in SYNTAX_CHECKS if name.endswith(suffix)), "")
        if not suffix or any(part in name for part in _JSON_WITH_COMMENTS):
            continue
        try:
            text, _ = decode_file(context.workspace.read_file(name))
        except ToolError as error:
            result.notes.append(f"{name} was not checked: {error}")
            continue
        if finding := SYNTAX_CHECKS[suffix](text):
            result.diagnostics.append(msgspec.structs.replace(finding, path=name))
        if suffix[1:] not in result.checker_names:
            result.checker_names.append(suffix[1:])
    return result


def _collect_notes(checked: Iterable[_CheckResult], notes: list[str]) -> list[str]:
    return [*(note for each in checked for note in each.notes), *notes]


def _format_report(target: str, findings: list[Diagnostic], checker_names: list[str], notes: list[str]) -> str:
    rest = "".join(f"\n({note})" for note in notes)
    target_name = _format_target(target)
    if not checker_names:
        return f"Nothing was checked in {target_name}: no checker for these files is installed.{rest}"
    if not findings:
        return f"No problems found in {target_name} by {', '.join(checker_names)}.{rest}"
    worst = sorted(set(map(_format_diagnostic, findings)))
    errors = sum(rank == 0 for rank, *_ in worst)
    lines = [text for *_, text in worst]
    left = f"\n({len(lines) - _MAX_DIAGNOSTICS} more)" if len(lines) > _MAX_DIAGNOSTICS else ""
    counts = f"{format_count(errors, 'error')} and {format_count(len(lines) - errors, 'warning')}"
    head = f"{counts} in {target_name}, found by {', '.join(checker_names)}:"
    return "\n".join([head, *lines[:_MAX_DIAGNOSTICS]]) + left + rest


def _format_diagnostic(finding: Diagnostic) -> tuple[int, str, int, int, str]:
    """Return a finding as shown to the model, with its sort key: errors first."""
    words = " ".join(part for part in (finding.severity, finding.code, finding.message[:_MAX_MESSAGE_LENGTH]) if part)
    text = f"{finding.path}:{finding.line}:{finding.column}: {words}"
    return (0 if finding.severity == "error" else 1, finding.path, finding.line, finding.column, text)


tool = _GetDiagnostics()
