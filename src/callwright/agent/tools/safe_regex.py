"""Matches the regular expressions of models in linear time.

Python's own engine takes exponential time for `(a+)+$` and cannot be interrupted. The engine of the JSON schema library
that is installed anyway (Rust's `regex`) takes time in proportion to the text; it rejects what it cannot match that
way, look-around and back-references. ripgrep, whose patterns models know best, does the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import jsonschema_rs

from callwright.errors import ToolError

__all__ = ["compile_pattern", "escape_literal"]

_MAX_PATTERN_LENGTH = 1000
_MAX_COMPILED_BYTES = 1 << 20
"""The limit for the compiled pattern: nested counted repetitions grow exponentially."""


def compile_pattern(pattern: str, *, match_case: bool = True) -> Callable[[str], bool]:
    """Return a predicate that searches a text. Raises `ToolError` for an invalid or unsafe pattern."""
    if len(pattern) > _MAX_PATTERN_LENGTH:
        raise ToolError(f"the pattern is too long: {_MAX_PATTERN_LENGTH} characters at most")
    written = pattern if match_case else f"(?i){pattern}"
    try:
        schema = {"type": "string", "pattern": written}
        options = jsonschema_rs.RegexOptions(size_limit=_MAX_COMPILED_BYTES)
        return jsonschema_rs.validator_for(schema, pattern_options=options).is_valid
    except ValueError as error:
        raise ToolError(
            f"{pattern!r} is not a regular expression that can be used here: brackets must be closed and literal ones "
            "escaped, and there is no look-around and no back-reference. For plain text leave `regex` out."
        ) from error


def escape_literal(text: str) -> str:
    """Return a pattern that matches the text itself."""
    return re.sub(r"[\\.+*?()|\[\]{}^$/-]", r"\\\g<0>", text)
