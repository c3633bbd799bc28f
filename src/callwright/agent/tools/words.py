"""Numbers, names and lines as they stand in sentences for models and people."""

from __future__ import annotations

__all__ = ["counted", "cut", "one_line", "sized"]


def counted(number: int, one: str, several: str = "") -> str:
    """`1 file`, `2 files`."""
    return f"{number} {one if number == 1 else several or f'{one}s'}"


def sized(size: int) -> str:
    """A number of bytes for readers."""
    if size < 1024:
        return counted(size, "byte")
    return f"{size / 1024:.1f} KB" if size < 1024 * 1024 else f"{size / 1024 / 1024:.1f} MB"


def cut(line: str, longest: int) -> str:
    """A line of bearable length."""
    left = len(line) - longest
    return line if left <= 0 else f"{line[:longest]}… ({counted(left, 'more character')})"


def one_line(text: str, longest: int = 100) -> str:
    """Any text as a line that a screen can show."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"
