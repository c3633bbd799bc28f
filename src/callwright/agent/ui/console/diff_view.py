"""A unified diff in colour, each line with its number. Without colour the signs remain."""

from __future__ import annotations

import re

from rich.text import Text

from callwright.agent.ui.console.formatting import sanitize_text

__all__ = ["build_diff_view", "build_edit_view"]

_HUNK_HEADER = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_STYLES = {"+": "green", "-": "red"}
_MAX_EDIT_LINES = 20


def build_diff_view(diff: str) -> Text:
    """Build the diff with the line numbers of the new file, and those of the old one for removed lines."""
    view = Text()
    old = new = last_old = last_new = 0
    for line in sanitize_text(diff).removesuffix("\n").split("\n"):
        if found := _HUNK_HEADER.match(line):
            old, new = int(found[1]), int(found[3])
            last_old, last_new = old + int(found[2] or 1), new + int(found[4] or 1)
            view.append(f"{line}\n", "cyan")
        elif line.startswith("\\"):  # No newline at end of file
            view.append(f"      {line}\n", "dim")
        elif old < last_old or new < last_new:
            sign = line[:1]
            view.append(f"{old if sign == '-' else new:>5} ", "dim").append(f"{line}\n", _STYLES.get(sign, ""))
            old += sign != "+"
            new += sign != "-"
        else:  # between hunks: file names and other headers of git
            view.append(f"{line}\n", "bold")
    view.rstrip()
    return view


def build_edit_view(diff: str) -> Text:
    """Build the beginning of a written edit, without its file headers: the line above it names the files."""
    lines = diff.split("\n")
    start = next((index for index, line in enumerate(lines) if line.startswith("@@")), 0)
    visible = build_diff_view("\n".join(lines[start : start + _MAX_EDIT_LINES]))
    if len(lines) - start > _MAX_EDIT_LINES:
        visible.append(f"\n… {len(lines) - start - _MAX_EDIT_LINES} more lines, see /diff", "dim")
    return visible
