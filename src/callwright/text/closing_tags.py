"""Closing tags that models get wrong: misspelt, cut short, or of another family."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from callwright.input_limits import MAX_SPACE_LENGTH
from callwright.text.source import ParseStep, Source

__all__ = ["FOREIGN_CLOSERS", "MAX_MISTAKES", "count_mistakes", "find_near_token", "skip_stray_closers"]

FOREIGN_CLOSERS = frozenset(
    f"</{word}>"
    for word in (
        "tool_call",
        "tool_calls",
        "function_call",
        "function_calls",
        "function",
        "invoke",
        "parameter",
        "param",
        "argument",
        "arguments",
        "arg",
        "arg_value",
        "value",
        "use_tool",
        "tool",
    )
)
"""Closing tags of calls in other families. No text needs them, except to quote a call of such a family."""

MAX_MISTAKES = 2
_GAP = rf"\s{{0,{MAX_SPACE_LENGTH}}}"
_INDENT = rf"[ \t]{{0,{MAX_SPACE_LENGTH}}}"
_CLOSER = re.compile(_GAP + r"(<[/|｜][^<>\n]{0,60}>?)")
_LONE_FENCE = re.compile(_GAP + rf"(```)(?={_INDENT}(?:\n|\Z))")
_OPEN_FENCE = re.compile(_GAP + rf"(?:`{{1,2}}|```{_INDENT})\Z")
_NEAR_TOKEN = re.compile(r"<[/|][^<>\n|]{1,40}\|?>?")
_OPEN_CLOSER = re.compile(_GAP + r"(?:<(?:[/|｜][^<>\n]{0,60})?)?\Z")


@lru_cache(maxsize=4096)
def count_mistakes(tag: str, real: str) -> int:
    """Return how many characters of a tag are wrong, missing or too many; three for more than two of them."""
    if abs(len(tag) - len(real)) > MAX_MISTAKES or len(real) <= 2 * MAX_MISTAKES:
        return MAX_MISTAKES + 1
    row = list(range(len(real) + 1))
    for at, char in enumerate(tag, 1):
        before, row[0] = row[0], at
        for column, other in enumerate(real, 1):
            before, row[column] = row[column], min(row[column] + 1, row[column - 1] + 1, before + (char != other))
    return row[-1]


def find_near_token(source: Source, at: int, tokens: tuple[str, ...]) -> tuple[str, int] | None:
    """Return the token that the one at this place was meant to be, and where that ends; None if it is none of them."""
    match = _NEAR_TOKEN.match(source.text, at)
    if match is None or (source.may_be_cut and match.end() == len(source.text.rstrip())):
        return None
    mistakes, real = min((count_mistakes(match.group(), token), token) for token in tokens)
    return (real, match.end()) if mistakes <= MAX_MISTAKES else None


def skip_stray_closers(source: Source, closers: Iterable[str], openers: Iterable[str] = ()) -> ParseStep[list[str]]:
    """Consume closing tags after a call: its own once more, misspelt ones, those of other families. Return them.

    One of `openers` is none of them, however similar it is.
    """
    known = tuple(closers)
    starts = frozenset(openers)
    found: list[str] = []
    while True:
        while not source.closed and _OPEN_CLOSER.match(source.text, source.position):
            yield
        match = _CLOSER.match(source.text, source.position)
        if "```" in known and not match:
            match = yield from _match_lone_fence(source)
        tag = match.group(1).rstrip() if match else ""
        if (
            not tag
            or tag in starts
            or not _is_stray(tag, known)
            or (source.may_be_cut and match and match.end() == len(source.text))
        ):
            return found
        source.position = match.start(1) + len(tag) if match else source.position
        found.append(tag)


def _match_lone_fence(source: Source) -> ParseStep[re.Match[str] | None]:
    """Match a fence that stands alone on its line."""
    while not source.closed and _OPEN_FENCE.match(source.text, source.position):
        yield
    return _LONE_FENCE.match(source.text, source.position)


def _is_stray(tag: str, closers: tuple[str, ...]) -> bool:
    return (
        tag in closers or tag in FOREIGN_CLOSERS or any(count_mistakes(tag, real) <= MAX_MISTAKES for real in closers)
    )
