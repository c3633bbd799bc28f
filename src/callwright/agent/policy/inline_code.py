"""Inspects code in other languages on the command line: does it start programs or change files?

The code is searched, not parsed: a dangerous name counts wherever it occurs, and quoted texts are judged as commands if
the code can run them. `sed` and `awk` scripts are small enough to be parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["CodeInspection", "inspect_awk", "inspect_code", "inspect_sed"]

_STARTS_PROGRAMS = re.compile(
    r"\b(os\.system|os\.popen|os\.exec\w*|os\.spawn\w*|subprocess|popen|pty\.spawn|child_process|exec(Sync|File|FileSync)?\s*\("
    r"|spawn(Sync)?\s*\(|system\b|shell_exec|passthru|proc_open|pcntl_exec|Kernel\.|IO\.popen|Open3|qx\b"
    r"|do shell script|Deno\.(run|Command)|Bun\.spawn|os\.execute|io\.popen|Runtime\.getRuntime|Invoke-Expression|iex\b"
    r"|eval\b|exec\b|__import__|importlib|getattr|compile\b|marshal|pickle)|`[^`]+`|%x[\[({]"
)
_CHANGES_FILES = re.compile(
    r"\b(rmtree|unlink\w*|rmdir\w*|removedirs|os\.remove|rmSync|fs\.rm\b|rimraf|FileUtils|File\.(delete|unlink|rename)|delete_file"
    r"|shutil|os\.rename|os\.chmod|os\.chown|truncate|writeFile\w*|appendFile\w*|createWriteStream|write_text|write_bytes"
    r"|file_put_contents|os\.kill|killpg|chmodSync|\.touch\(|socket|urllib|requests|http\.client|fetch\s*\(|Net::HTTP|LWP"
    r"|open\s*\([^)]*,\s*['\"][rbt]*[wax+])"
)
_DELETES_FOLDERS = re.compile(r"\b(rmtree|rimraf|remove_entry\w*|rm_rf?\b|rmSync|removedirs|fs\.rm\b)")
_DELETES_RECURSIVELY = re.compile(r"\b(rmtree|rimraf|remove_entry\w*|rm_rf?)\b|\brecursive['\"]?\s*(?::|=>)\s*true")
_CRITICAL_PATH = re.compile(
    r"""['"](/|~|/(home|etc|usr|boot|var|root|Users)\b[^'"]*|\.|\.\.|\*)/?['"]|expanduser|HOME|Path\.home"""
)
_QUOTED_TEXT = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"|`([^`]+)`", re.DOTALL)
_QUOTED_LIST = re.compile(r"((?:'[^']*'|\"[^\"]*\")(?:\s*,\s*\[?\s*(?:'[^']*'|\"[^\"]*\"))+)")


class CodeInspection(NamedTuple):
    """What was found in a piece of code."""

    starts_programs: bool = False
    """It starts programs, or runs code that is not part of it."""
    changes_files: bool = False
    """It changes files or uses the network."""
    deletes_folders: bool = False
    """It deletes whole folders of the system or the home folder."""
    commands: tuple[str, ...] = ()
    """Texts in it that may run as shell commands."""
    output_files: tuple[str, ...] = ()
    """Files that it writes, where they can be determined."""
    quoted_texts: tuple[str, ...] = ()
    """All quoted texts."""


def inspect_code(code: str) -> CodeInspection:
    """Inspect code of any language."""
    starts = bool(_STARTS_PROGRAMS.search(code))
    quoted = [next(filter(None, found.groups()), "") for found in _QUOTED_TEXT.finditer(code)]
    listed = [re.sub(r"['\"]\s*,\s*\[?\s*['\"]", " ", found[1]).strip("'\"") for found in _QUOTED_LIST.finditer(code)]
    return CodeInspection(
        starts_programs=starts,
        changes_files=bool(_CHANGES_FILES.search(code)),
        deletes_folders=bool(
            _DELETES_RECURSIVELY.search(code) or (_DELETES_FOLDERS.search(code) and _CRITICAL_PATH.search(code))
        ),
        commands=tuple(text for text in (*listed, *quoted) if starts and " " in text.strip())[:16],
        quoted_texts=tuple(text for text in quoted if text)[:64],
    )


def inspect_awk(program: str) -> CodeInspection:
    """Inspect an awk program: `system`, pipes and output files."""
    texts: list[str] = []
    bare = re.sub(r'"((?:[^"\\]|\\.)*)"', lambda found: texts.append(found[1]) or '"', program)  # type: ignore[func-returns-value]
    bare = re.sub(r"(^|[~({,;!&|\s])/(?:[^/\\\n]|\\.)*/", r"\1 ", bare)
    pipes = bool(re.search(r"(?<!\|)\|(?!\|)", bare))
    starts = pipes or bool(re.search(r"\bsystem\s*\(|\|&|@load|@include", bare))
    writes = bool(re.search(r"\bprintf?\b[^;{}\n]*>", bare))
    return CodeInspection(
        starts_programs=starts,
        changes_files=writes,
        commands=tuple(texts[:16]) if starts else (),
        output_files=tuple(texts[:16]) if writes else (),
    )


def inspect_sed(script: str) -> CodeInspection:
    """Inspect a sed script: the commands `e`, `w`, `r`, and the flags `e` and `w` of `s`."""
    commands: list[str] = []
    writes: list[str] = []
    unread = False
    for kind, rest in _iter_sed_commands(script):
        if kind == "e":
            commands.append(rest or "\0")
        elif kind == "w":
            writes.append(rest)
        elif kind == "?":
            unread = True
    return CodeInspection(
        starts_programs=bool(commands) or unread,
        changes_files=bool(writes),
        commands=tuple(commands),
        output_files=tuple(writes),
    )


_SED_ADDRESS = re.compile(r"(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n]|\\.)*/[IM]*|\\(.)(?:(?!\1).)*\1[IM]*|[+~]\d+)")


def _iter_sed_commands(script: str) -> Iterator[tuple[str, str]]:
    """Yield the relevant commands: `e` and `w` with their arguments, `?` for what cannot be parsed."""
    at = 0
    while at < len(script):
        if script[at] in " \t\n;{}!,":
            at += 1
        elif address := _SED_ADDRESS.match(script, at):
            at = address.end()
        else:
            kind, end = script[at], script.find("\n", at)
            line = script[at + 1 : end if end >= 0 else len(script)]
            if kind in "sy":
                parts = _find_delimiter_end(script, at + 1)
                if parts is None:
                    yield "?", ""
                    return
                at = parts
                flags = re.compile(r"[gpiIMm0-9]*").match(script, at)
                at = flags.end() if flags else at
                if kind == "s" and script[at : at + 1] == "e":
                    yield "e", script[:at].rpartition(script[at - 1])[0].rpartition(script[at - 1])[2]
                elif kind == "s" and script[at : at + 1] == "w":
                    yield "w", script[at + 1 :].split("\n")[0].strip()
                if kind == "s" and script[at : at + 1] in ("e", "w"):
                    at += len(script[at:].split("\n")[0]) if script[at] == "w" else 1
            elif kind in "ewW":
                yield kind.lower(), line.strip()
                at += len(line) + 1
            elif kind in "aicrRbtT:#}lqQv":
                at += 1 + (len(line) if kind in "aicrR#" else len(line.split(";")[0].split("}")[0]))
            elif kind in "dDgGhHnNpPxz=F":
                at += 1
            else:
                yield "?", ""
                return


def _find_delimiter_end(script: str, at: int) -> int | None:
    """Return where `s/a/b/` ends, before its flags; `at` is its delimiter."""
    if at >= len(script):
        return None
    mark, count, brackets = script[at], 0, False
    at += 1
    while at < len(script):
        char = script[at]
        if char == "\\":
            at += 1
        elif char == "[" and not brackets and count == 0:
            brackets = True
            at += script[at + 1 : at + 3] in ("]", "^]") or script[at + 1 : at + 2] == "]"
        elif char == "]":
            brackets = False
        elif char == mark and not brackets:
            count += 1
            if count == 2:
                return at + 1
        at += 1
    return None
