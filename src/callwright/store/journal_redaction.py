"""Values and texts without what must not be written. Pure.

Structured values are cleaned string by string, before they become JSON: a mask that fell on a quotation mark or half
an escape would make them unreadable, and an expression for a line end would not find the two characters that JSON
writes for it. What stands under a name such as `api_key` is masked whatever it looks like.
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
"""What the text of an object or a list begins with."""


class JournalRedactor:
    """Takes out known secrets, what looks like one, and what the settings' expressions match."""

    def __init__(self, redactor: Redactor, hidden: Sequence[re.Pattern[str]]) -> None:
        self._redactor = redactor
        self._hidden = hidden

    def redact_text(self, text: str) -> str:
        """A text, as any database takes it."""
        text = self._redactor.redact(replace_unstorable(text))
        for pattern in self._hidden:
            text = pattern.sub(MASK, text)
        return text

    def redact_value(self, value: Any, *, secret: bool = False) -> Any:
        """A value of JSON. `secret`: it stands under a name that says so."""
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
        """A text that may be JSON, as bodies and arguments are: untouched but for what has to be masked, in the value
        and in how it is written."""
        text = replace_unstorable(text)
        if not text.lstrip().startswith(_JSON_STARTS):
            return self.redact_text(text)
        try:
            value = msgspec.json.decode(text)
            cleaned = self.redact_value(value)
            if cleaned != value:
                text = msgspec.json.encode(cleaned).decode()
        except JSON_DECODE_ERRORS:
            pass  # no JSON: it is text like any other
        return self.redact_text(text)
