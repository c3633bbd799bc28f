"""Formats numbers, sizes and lines for messages to models and users."""

from __future__ import annotations

__all__ = ["format_count", "format_size", "to_one_line", "truncate_line"]


def format_count(number: int, one: str, several: str = "") -> str:
    """Return `1 file`, `2 files`."""
    return f"{number} {one if number == 1 else several or f'{one}s'}"


def format_size(size: int) -> str:
    """Format a number of bytes."""
    if size < 1024:
        return format_count(size, "byte")
    return f"{size / 1024:.1f} KB" if size < 1024 * 1024 else f"{size / 1024 / 1024:.1f} MB"


def truncate_line(line: str, max_length: int) -> str:
    """Truncate a line to a maximum length."""
    omitted = len(line) - max_length
    return line if omitted <= 0 else f"{line[:max_length]}… ({format_count(omitted, 'more character')})"


def to_one_line(text: str, max_length: int = 100) -> str:
    """Convert any text to a single printable line."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return line if len(line) <= max_length else f"{line[: max_length - 1]}…"
