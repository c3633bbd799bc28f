"""Parses the two patch formats of models into one: unified diffs as git writes them, and `*** Begin Patch`.

    --- a/app.py                    *** Begin Patch
    +++ b/app.py                    *** Update File: app.py
    @@ -3,2 +3,2 @@                 @@ def main():
     def main():                    -    return 1
    -    return 1                   +    return 2
    +    return 2                   *** End Patch

Git's format is in its documentation (diff-generate-patch); the other is that of OpenAI's Codex (apply-patch), which
several families of models were trained on. Models often miscount lines: where the numbers of a hunk's head do not fit
its body, the body counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from callwright.errors import ToolError

__all__ = ["FilePatch", "PatchHunk", "parse_patch"]

_HUNK_HEADER = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_CODE_FENCE = re.compile(r"\A\s*```[a-z]*\n(.*?)\n?```\s*\Z", re.DOTALL)
_QUOTED_PATH = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")
_ESCAPES = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}
_DEV_NULL = "/dev/null"
_SYMLINK_MODE = "120000"
_MAIL_SIGNATURE = "-- "
"""The line that git puts under a patch in an email."""


class PatchHunk(NamedTuple):
    """Lines of a file, each with its operation."""

    lines: tuple[tuple[str, str], ...]
    """A sign, one of ` -+`, and the line without its end."""
    start: int | None = None
    """The line on which it begins, from 0, if the hunk has one."""
    anchors: tuple[str, ...] = ()
    """Lines that occur before it in the file, in order."""
    is_at_end: bool = False
    """Whether it reaches the end of the file."""
    has_final_newline: bool | None = None
    """Whether the last line then has a line end, if the patch specifies that."""


class FilePatch(NamedTuple):
    """The changes to one file."""

    kind: Literal["add", "update", "delete", "copy"]
    path: str
    target: str = ""
    """The new name of the file, if it is moved or copied."""
    hunks: tuple[PatchHunk, ...] = ()


def parse_patch(text: str) -> list[FilePatch]:
    """Parse a patch into its files, in order. Raises `ToolError` for text that is not a patch."""
    if text.count("\r\n") == text.count("\n"):  # the line ends of the patch, which do not determine those of the file
        text = text.replace("\r\n", "\n")
    if fenced := _CODE_FENCE.match(text):
        text = fenced[1]
    lines = text.removesuffix("\n").split("\n")
    while lines and not lines[0].strip():
        lines.pop(0)
    begins = lines and lines[0].strip() == "*** Begin Patch"
    found = list(_parse_codex_patch(_LineReader(lines)) if begins else _parse_unified(_LineReader(lines)))
    if not found:
        raise ToolError(
            "this is not a patch: it begins neither with `*** Begin Patch` nor with `--- a/file` and `+++ b/file`"
        )
    return found


class _LineReader:
    """Reads the lines of a patch one by one."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self.position = 0

    def peek(self, ahead: int = 0) -> str | None:
        """Return a line ahead without taking it; None past the end."""
        return self._lines[self.position + ahead] if self.position + ahead < len(self._lines) else None

    def take(self, beginning: str = "") -> str | None:
        """Take the next line if it has this prefix, and return the rest of it."""
        line = self.peek()
        if line is None or not line.startswith(beginning):
            return None
        self.position += 1
        return line[len(beginning) :]

    def make_error(self, what: str) -> ToolError:
        """Return the error for the next line."""
        return ToolError(f"line {self.position + 1} of the patch: {what}, but found {self.peek()!r}")


# `*** Begin Patch`


def _parse_codex_patch(lines: _LineReader) -> Iterator[FilePatch]:
    lines.take()
    while lines.take("*** End Patch") is None:
        if (path := lines.take("*** Add File: ")) is not None:
            added = []
            while (line := lines.take("+")) is not None:
                added.append(("+", line))
            yield FilePatch("add", _require_path(path), hunks=(PatchHunk(tuple(added)),))
        elif (path := lines.take("*** Delete File: ")) is not None:
            yield FilePatch("delete", _require_path(path))
        elif (path := lines.take("*** Update File: ")) is not None:
            target = lines.take("*** Move to: ")
            hunks = tuple(_parse_codex_hunks(lines))
            if not hunks and target is None:
                raise lines.make_error(f"expected a change to {_require_path(path)}")
            yield FilePatch("update", _require_path(path), _require_path(target) if target else "", hunks)
        elif lines.peek() is None:
            raise ToolError("the patch has no `*** End Patch`: it is incomplete")
        elif lines.take() != "":
            lines.position -= 1
            raise lines.make_error("expected `*** Add File: `, `*** Update File: `, `*** Delete File: ` with a path")


def _parse_codex_hunks(lines: _LineReader) -> Iterator[PatchHunk]:
    while (line := lines.peek()) is not None and not line.startswith("*** "):
        anchors = []
        while (anchor := lines.take("@@")) is not None:
            anchors += [anchor.removeprefix(" ")] if anchor.strip() else []
        body = [line for line in _read_whole_body(lines, may_end=False) if line[0] != "\\"]
        if not body:
            raise lines.make_error("expected lines that begin with a space, `-` or `+`")
        at_end = lines.take("*** End of File") is not None
        yield PatchHunk(tuple(body), anchors=tuple(anchors), is_at_end=at_end)


def _require_path(path: str) -> str:
    if not path.strip():
        raise ToolError("the patch has a heading without a path")
    return path.strip()


# unified diffs


class _FileHeaders(NamedTuple):
    old: str
    new: str
    kind: Literal["add", "update", "delete", "copy"]


def _parse_unified(lines: _LineReader) -> Iterator[FilePatch]:
    while lines.peek() is not None:
        headers = _parse_headers(lines)
        if headers is None:
            if (lines.peek() or "").startswith("@@"):
                raise lines.make_error("expected `--- a/file` and `+++ b/file` before it")
            lines.take()  # a commit message, or text of the model around the patch
            continue
        hunks = []
        while (lines.peek() or "").startswith("@@"):
            hunks.append(_parse_unified_hunk(lines))
        path = headers.new if headers.kind == "add" else headers.old
        target = headers.new if headers.new != path and headers.kind in ("update", "copy") else ""
        if not hunks and headers.kind == "update" and not target:
            raise ToolError(f"the patch has no hunk for {path}")
        yield FilePatch(headers.kind, path, target, tuple(hunks))


def _parse_headers(lines: _LineReader) -> _FileHeaders | None:
    """Parse the headers of one file; None if no file begins here."""
    first = lines.peek() or ""
    if first.startswith("diff --git "):
        return _parse_git_headers(lines)
    if _has_headers_ahead(lines):
        return _parse_plain_headers(lines)
    return None


def _parse_plain_headers(lines: _LineReader) -> _FileHeaders:
    old, new = (_parse_path(lines.take(sign) or "") for sign in ("--- ", "+++ "))
    if old == _DEV_NULL:
        return _FileHeaders(old, new.removeprefix("b/"), "add")
    if new == _DEV_NULL:
        return _FileHeaders(old.removeprefix("a/"), new, "delete")
    if old.startswith("a/") and new.startswith("b/"):
        old, new = old[2:], new[2:]
    return _FileHeaders(old, new, "update")


def _parse_git_headers(lines: _LineReader) -> _FileHeaders:
    both = lines.take("diff --git ") or ""
    values: dict[str, str] = {}
    while (line := lines.peek()) and not line.startswith(("diff --git ", "--- ", "@@")):
        if line.startswith(("Binary files ", "GIT binary patch")):
            raise lines.make_error("a patch of a binary file cannot be applied")
        for name in ("new file mode ", "deleted file mode ", "rename from ", "rename to ", "copy from ", "copy to "):
            if (value := lines.take(name)) is not None:
                values[name.strip()] = _parse_path(value)
                break
        else:
            lines.take()
    if _SYMLINK_MODE in (values.get("new file mode"), values.get("deleted file mode")):
        raise ToolError("the patch is about a symbolic link, which cannot be patched")
    plain = _parse_plain_headers(lines) if (lines.peek() or "").startswith("--- ") else None
    if "rename from" in values:
        return _FileHeaders(values["rename from"], values.get("rename to", ""), "update")
    if "copy from" in values:
        return _FileHeaders(values["copy from"], values.get("copy to", ""), "copy")
    if plain:
        return plain
    name = _parse_common_name(both)
    kind: Literal["add", "update", "delete"] = "update"
    if "new file mode" in values or "deleted file mode" in values:
        kind = "add" if "new file mode" in values else "delete"
    return _FileHeaders(name, name, kind)


def _parse_common_name(both: str) -> str:
    """Return the file of `diff --git a/x b/x`, whose name is otherwise missing if nothing but its mode changes."""
    return (_parse_path(both) if both.startswith('"') else both[: len(both) // 2]).removeprefix("a/")


def _parse_path(text: str) -> str:
    """Parse a path in a header: quoted, or up to the tab before a timestamp."""
    if not (found := _QUOTED_PATH.match(text)):
        return text.partition("\t")[0].rstrip()

    def plain(escape: re.Match[bytes]) -> bytes:
        sign = escape[1]
        return bytes([int(sign, 8) & 255]) if len(sign) == 3 else _ESCAPES.get(sign, sign)

    return _ESCAPE.sub(plain, found[1].encode()).decode("utf-8", "replace")


def _parse_unified_hunk(lines: _LineReader) -> PatchHunk:
    head = lines.take() or ""
    numbers = _HUNK_HEADER.match(head)
    header = lines.position
    body = _read_counted_body(lines, *(int(numbers[group] or 1) for group in (2, 4))) if numbers else None
    if body is None:
        lines.position = header
        body = _read_whole_body(lines)
    if not any(sign != "\\" for sign, _ in body):
        raise lines.make_error("expected lines that begin with a space, `-` or `+`")
    anchors: tuple[str, ...] = ()
    start = None
    if numbers:
        has_old = any(sign in " -" for sign, _ in body)
        start = max(0, int(numbers[1]) - (1 if has_old else 0))
    elif anchor := head.strip("@ "):
        anchors = (anchor,)
    plain = tuple((sign, line) for sign, line in body if sign != "\\")
    return PatchHunk(plain, start, anchors, has_final_newline=_detect_final_newline(body))


def _detect_final_newline(body: Sequence[tuple[str, str]]) -> bool | None:
    """Return whether the new last line has a line end; None without `\\ No newline at end of file`."""
    bare = {body[number - 1][0] for number, (sign, _) in enumerate(body) if sign == "\\" and number}
    return None if not bare else not bare & {"+", " "}


def _read_counted_body(lines: _LineReader, old: int, new: int) -> list[tuple[str, str]] | None:
    """Read as many lines as the hunk header counts; None if the counts do not match or more lines follow."""
    body = []
    while old > 0 or new > 0 or (lines.peek() or "").startswith("\\"):
        line = lines.take()
        if line is None or line[:1] not in ("", " ", "-", "+", "\\"):
            return None
        sign = line[:1] or " "
        old -= sign in " -"
        new -= sign in " +"
        body.append((sign, line[1:]))
    return body if old == new == 0 and _is_hunk_complete(lines) else None


def _is_hunk_complete(lines: _LineReader) -> bool:
    """Return whether no line follows that may still belong to the hunk."""
    ahead = 0
    while lines.peek(ahead) == "":
        ahead += 1
    follows = lines.peek(ahead) or ""
    return follows[:1] not in (" ", "-", "+") or follows == _MAIL_SIGNATURE or _has_headers_ahead(lines, ahead)


def _read_whole_body(lines: _LineReader, *, may_end: bool = True) -> list[tuple[str, str]]:
    """Read all lines up to the next header; empty lines at the end are not part of it."""
    body: list[tuple[str, str]] = []
    while (line := lines.peek()) is not None and line[:1] in ("", " ", "-", "+", "\\"):
        if may_end and (line == _MAIL_SIGNATURE or _has_headers_ahead(lines)):
            break
        lines.take()
        body.append((line[:1], line[1:]))
    while body and not body[-1][0]:
        body.pop()
    return [(sign or " ", line) for sign, line in body]


def _has_headers_ahead(lines: _LineReader, ahead: int = 0) -> bool:
    return (lines.peek(ahead) or "").startswith("--- ") and (lines.peek(ahead + 1) or "").startswith("+++ ")
