"""`get_diagnostics`: what the checkers that the workspace has say about a file, a folder or everything.

Every checker says the same in its own way; here it is one line each, `path:line:column: severity code message`. What
was not checked, and why, is said too: no findings must not be taken for no mistakes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from posixpath import dirname, join, normpath, relpath
from typing import Annotated, NamedTuple

import msgspec

from callwright.agent.tools.base import Arguments, Room
from callwright.agent.tools.checkers import CHECKERS, PARSERS, Checker, Finding
from callwright.agent.tools.form import Form
from callwright.agent.tools.lines import decoded
from callwright.agent.tools.names import similar
from callwright.agent.tools.programs import found, run
from callwright.agent.tools.words import counted, one_line
from callwright.errors import ToolError

__all__ = ["tool"]

_FINDINGS = 100
_FILES = 100
"""How many files are given to a checker that takes no folders."""
_ALONE = 20
"""... and to one that is started for each of them."""
_LONGEST = 400
# These are JSON with comments, whatever their names end in.
_COMMENTED = (".vscode/", ".devcontainer/", "tsconfig", "jsconfig", ".eslintrc", "devcontainer.json")


class _Diagnose(msgspec.Struct, frozen=True, kw_only=True):
    """Check code for errors with the compilers and linters that the workspace has. Use it after changing files."""

    path: Annotated[
        str,
        msgspec.Meta(
            description="The file or folder to check. The default is the whole workspace.", examples=["src/app.py"]
        ),
    ] = "."


class _Job(NamedTuple):
    """One checker, where it is started and on what."""

    checker: Checker
    program: str
    folder: str
    targets: tuple[str, ...]


class _Checked(msgspec.Struct):
    """What came of it."""

    findings: list[Finding] = []
    by: list[str] = []
    notes: list[str] = []


class _GetDiagnostics:
    form = Form("get_diagnostics", _Diagnose)
    spec = form.spec

    def view(self, arguments: Arguments) -> str:
        return self.form.view(arguments, lambda wanted: f"Check {_named(wanted.path)}")

    def paths(self, arguments: Arguments) -> tuple[str, ...]:
        wanted = self.form.tried(arguments)
        return () if wanted is None else (wanted.path or ".",)

    async def read(self, arguments: Arguments, room: Room) -> str:
        path = self.form.read(arguments).path or "."
        files = await asyncio.to_thread(_files, path, room)
        target = room.workspace.relative(path)
        jobs, notes = _jobs(target, files, room)
        checked = [await asyncio.to_thread(_parsed, files, room)]
        async with asyncio.TaskGroup() as group:
            checking = [group.create_task(_check(job, room)) for job in jobs]
        checked += [each.result() for each in checking]
        findings = [finding for each in checked for finding in each.findings if _is_below(finding.path, target)]
        return _told(target, findings, [name for each in checked for name in each.by], _noted(checked, notes))


def _named(path: str) -> str:
    return "the workspace" if path in {"", "."} else path


def _is_below(path: str, target: str) -> bool:
    return target == "." or path == target or path.startswith(f"{target}/")


def _files(path: str, room: Room) -> list[str]:
    match room.workspace.kind(path):
        case "file":
            return [room.workspace.relative(path)]
        case "folder":
            return [name for name in room.workspace.files(path) if not room.protected(name)]
        case _:
            raise ToolError(f"there is no file {path!r}.{similar(path, room.workspace.files())}")


def _jobs(target: str, files: Sequence[str], room: Room) -> tuple[list[_Job], list[str]]:
    """What to run, and a sentence for what cannot be."""
    jobs: list[_Job] = []
    missing: list[str] = []
    notes: list[str] = []
    for checker in CHECKERS:
        mine = tuple(name for name in files if name.endswith(checker.suffixes))
        home = _home(checker, target if target not in files else dirname(target) or ".", room) if mine else None
        if home is None or checker.instead in {job.checker.name for job in jobs}:
            continue
        if checker.runs_code and not room.project_code:
            notes.append(f"{checker.name} was not used: it runs code of the project")
        elif program := found(checker.argv[0], room, home):
            targets = _targets(checker, target, mine, home)
            if len(targets) < len(mine) and checker.takes in {"file", "files"}:
                notes.append(f"{checker.name} checked the first {len(targets)} of {len(mine)} files")
            jobs.append(_Job(checker, program, home, targets))
        else:
            missing.append(checker.name)
    if missing:
        notes.append(f"not installed here: {', '.join(missing)}")
    return jobs, notes


def _home(checker: Checker, folder: str, room: Room) -> str | None:
    """The folder to start it in: the nearest one above that has what it needs. None where it is of no use."""
    if not checker.home:
        return "."
    while True:
        if any(room.workspace.kind(join(folder, name)) == "file" for name in checker.home):
            return folder
        if folder == ".":
            return None
        folder = dirname(folder) or "."


def _targets(checker: Checker, target: str, files: tuple[str, ...], home: str) -> tuple[str, ...]:
    """What follows the options; `./` keeps names that begin with a dash from being options."""
    chosen = {"project": (), "folders": (target,), "files": files[:_FILES], "file": files[:_ALONE]}[checker.takes]
    return tuple(f"./{relpath(name, home)}" for name in chosen)


async def _check(job: _Job, room: Room) -> _Checked:
    room.tell(f"{job.checker.name} is checking\n")
    each: Iterable[tuple[str, ...]] = ((one,) for one in job.targets) if job.checker.takes == "file" else (job.targets,)
    done = _Checked(by=[job.checker.name])
    for targets in each:
        said = await run((job.program, *job.checker.argv[1:], *targets), room, job.folder)
        findings = list(_inside(job.checker.read(said.text), job.folder, room))
        done.findings += findings
        if said.code is None or (said.code != 0 and not findings):
            done.notes.append(f"{job.checker.name} failed: {one_line(said.text, _LONGEST) or f'exit code {said.code}'}")
    return done


def _inside(findings: Iterable[Finding], folder: str, room: Room) -> Iterator[Finding]:
    """Findings by their path from the root; those outside of the workspace are left out."""
    root = room.workspace.root
    for finding in findings:
        place = Path(root, folder, finding.path)
        path = normpath(str(place))
        if path.startswith(f"{root}/"):
            yield msgspec.structs.replace(finding, path=path.removeprefix(f"{root}/"))


def _parsed(files: Sequence[str], room: Room) -> _Checked:
    """Formats that need no program."""
    done = _Checked()
    for name in files:
        suffix = next((suffix for suffix in PARSERS if name.endswith(suffix)), "")
        if not suffix or any(part in name for part in _COMMENTED):
            continue
        try:
            text, _ = decoded(room.workspace.read(name))
        except ToolError as error:
            done.notes.append(f"{name} was not checked: {error}")
            continue
        if finding := PARSERS[suffix](text):
            done.findings.append(msgspec.structs.replace(finding, path=name))
        if suffix[1:] not in done.by:
            done.by.append(suffix[1:])
    return done


def _noted(checked: Iterable[_Checked], notes: list[str]) -> list[str]:
    return [*(note for each in checked for note in each.notes), *notes]


def _told(target: str, findings: list[Finding], by: list[str], notes: list[str]) -> str:
    rest = "".join(f"\n({note})" for note in notes)
    where = _named(target)
    if not by:
        return f"Nothing was checked in {where}: no checker for these files is there.{rest}"
    if not findings:
        return f"No problems found in {where} by {', '.join(by)}.{rest}"
    worst = sorted(set(map(_line, findings)))
    errors = sum(rank == 0 for rank, *_ in worst)
    lines = [text for *_, text in worst]
    left = f"\n({len(lines) - _FINDINGS} more)" if len(lines) > _FINDINGS else ""
    counts = f"{counted(errors, 'error')} and {counted(len(lines) - errors, 'warning')}"
    head = f"{counts} in {where}, found by {', '.join(by)}:"
    return "\n".join([head, *lines[:_FINDINGS]]) + left + rest


def _line(finding: Finding) -> tuple[int, str, int, int, str]:
    """A finding as it is shown, behind what it is sorted by: errors first."""
    words = " ".join(part for part in (finding.severity, finding.code, finding.message[:_LONGEST]) if part)
    text = f"{finding.path}:{finding.line}:{finding.column}: {words}"
    return (0 if finding.severity == "error" else 1, finding.path, finding.line, finding.column, text)


tool = _GetDiagnostics()
