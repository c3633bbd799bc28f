"""Halves of surrogate pairs. JSON can write a character outside the basic plane as two escapes, and servers that cut
their output into tokens send the two halves in two strings."""

from __future__ import annotations

import re

__all__ = ["has_open_half", "join_halves"]

_HALF = re.compile("[\ud800-\udfff]").search


def has_open_half(text: str) -> bool:
    """Whether the text ends with the first half of a pair, whose second half may still come."""
    return "\ud800" <= text[-1:] <= "\udbff"


def join_halves(text: str) -> str:
    """Join the two halves of each pair to one character. A half that stands alone is kept."""
    if not _HALF(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
