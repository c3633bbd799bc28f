"""Regular expressions of models, matched in linear time whatever they are.

Python's own engine takes for ever over `(a+)+$`, and nothing can stop it meanwhile. The engine of the JSON schema
library that we have anyway (Rust's `regex`) takes time in proportion to the text; what it cannot do so, look-around and
back-references, it refuses. ripgrep, whose patterns models know best, does the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import jsonschema_rs

from callwright.errors import ToolError

__all__ = ["compile_pattern", "escape_literal"]

_MAX_PATTERN_LENGTH = 1000
_MAX_COMPILED_BYTES = 1 << 20
"""Of the compiled pattern: counted repetitions of counted repetitions grow without end."""


def compile_pattern(pattern: str, *, match_case: bool = True) -> Callable[[str], bool]:
    """Whether a text has the pattern in it. `ToolError` when it is no pattern, or none that can be matched safely."""
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
    """A pattern for the text itself."""
    return re.sub(r"[\\.+*?()|\[\]{}^$/-]", r"\\\g<0>", text)
