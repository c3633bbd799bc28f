"""Ranges of integers as GBNF: exactly the numbers from a minimum to a maximum, digit by digit.

    5 to 120    [5-9] | [1-9] [0-9] | "1" ([0-1] [0-9] | "2" "0")

A rule grows with the number of digits of its limits, not with the numbers between them.
"""

from __future__ import annotations

from callwright.grammar.grammar_rules import format_choice

__all__ = ["build_integer_range"]

_MAX_INTEGER = 10**19 - 1
"""The end of a range without a maximum: more than 64 bits hold."""


def build_integer_range(low: int | None, high: int | None) -> list[str]:
    """Return the alternatives; empty if there are no such numbers. None means no limit on that side."""
    low = -_MAX_INTEGER if low is None else max(low, -_MAX_INTEGER)
    high = _MAX_INTEGER if high is None else min(high, _MAX_INTEGER)
    negative = _build_natural_range(max(-high, 1), -low)
    return [*([f'"-" {format_choice(negative)}'] if negative else []), *_build_natural_range(max(low, 0), high)]


def _build_natural_range(low: int, high: int) -> list[str]:
    if low > high:
        return []
    min_digits, max_digits = len(str(low)), len(str(high))
    if min_digits == max_digits:
        return _build_digit_range(str(low), str(high))
    shortest, longest = (
        _build_digit_range(str(low), "9" * min_digits),
        _build_digit_range(f"1{'0' * (max_digits - 1)}", str(high)),
    )
    between = [f"[1-9] {_format_digits(min_digits, max_digits - 2)}"] if max_digits - min_digits > 1 else []
    return [*shortest, *between, *longest]


def _build_digit_range(low: str, high: str) -> list[str]:
    """Build alternatives for digits from `low` to `high`, which have the same length."""
    rest = len(low) - 1
    zeros, nines = "0" * rest, "9" * rest
    first, last = int(low[0]), int(high[0])
    if rest and first == last:
        return [f'"{first}" {format_choice(_build_digit_range(low[1:], high[1:]))}']
    ways = []
    if low[1:] != zeros:
        ways.append(f'"{first}" {format_choice(_build_digit_range(low[1:], nines))}')
        first += 1
    last -= high[1:] != nines
    if first <= last:
        digit = f'"{first}"' if first == last else f"[{first}-{last}]"
        ways.append(f"{digit} {_format_digits(rest, rest)}".rstrip())
    if high[1:] != nines:
        ways.append(f'"{high[0]}" {format_choice(_build_digit_range(zeros, high[1:]))}')
    return ways


def _format_digits(minimum: int, maximum: int) -> str:
    """Format a number of digits."""
    if minimum != maximum:
        return f"[0-9]{{{minimum},{maximum}}}"
    return f"[0-9]{{{maximum}}}" if maximum > 1 else "[0-9]" * maximum
