"""Numbers, names and lines as they stand in sentences for models and people."""

from __future__ import annotations

__all__ = ["format_count", "format_size", "to_one_line", "truncate_line"]


def format_count(number: int, one: str, several: str = "") -> str:
    """`1 file`, `2 files`."""
    return f"{number} {one if number == 1 else several or f'{one}s'}"


def format_size(size: int) -> str:
    """A number of bytes for readers."""
    if size < 1024:
        return format_count(size, "byte")
    return f"{size / 1024:.1f} KB" if size < 1024 * 1024 else f"{size / 1024 / 1024:.1f} MB"


def truncate_line(line: str, max_length: int) -> str:
    """A line of bearable length."""
    left = len(line) - max_length
    return line if left <= 0 else f"{line[:max_length]}… ({format_count(left, 'more character')})"


def to_one_line(text: str, max_length: int = 100) -> str:
    """Any text as a line that a screen can show."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return line if len(line) <= max_length else f"{line[: max_length - 1]}…"
