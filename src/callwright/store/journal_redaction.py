"""Removes secrets from values and texts before they are written. Pure.

Structured values are redacted string by string before they become JSON: a mask over a quotation mark or half an escape
would make the JSON unreadable, and a pattern for a line break would not find its escape sequence. Values under a name
such as `api_key` are always masked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from callwright.redaction import MASK, Redactor, is_secret_name
from callwright.store.tables import replace_unstorable
from callwright.wire.framing import JSON_DECODE_ERRORS

__all__ = ["JournalRedactor"]

_JSON_STARTS = ("{", "[")
"""First characters of a JSON object or list."""


class JournalRedactor:
    """Masks known secrets, text that looks like a secret, and matches of the `redact` patterns."""

    def __init__(self, redactor: Redactor, patterns: Sequence[re.Pattern[str]]) -> None:
        self._redactor = redactor
        self._patterns = patterns

    def redact_text(self, text: str) -> str:
        """Redact a text, and make it storable in any database."""
        text = self._redactor.redact(replace_unstorable(text))
        for pattern in self._patterns:
            text = pattern.sub(MASK, text)
        return text

    def redact_value(self, value: Any, *, secret: bool = False) -> Any:
        """Redact a JSON value. `secret`: it stands under the name of a secret."""
        match value:
            case str():
                return MASK if secret and value else self.redact_body(value)
            case dict():
                return {
                    self.redact_text(name): self.redact_value(each, secret=is_secret_name(name))
                    for name, each in value.items()
                }
            case list() | tuple():
                return [self.redact_value(each, secret=secret) for each in value]
            case int() | float() if secret and not isinstance(value, bool):
                return MASK
            case _:
                return value

    def redact_body(self, text: str) -> str:
        """Redact a text that may be JSON, such as a body or arguments. It stays as it is, except for what has to be
        masked in its value or in its text."""
        text = replace_unstorable(text)
        if not text.lstrip().startswith(_JSON_STARTS):
            return self.redact_text(text)
        try:
            value = msgspec.json.decode(text)
            cleaned = self.redact_value(value)
            if cleaned != value:
                text = msgspec.json.encode(cleaned).decode()
        except JSON_DECODE_ERRORS:
            pass  # not JSON: redact it as text
        return self.redact_text(text)
