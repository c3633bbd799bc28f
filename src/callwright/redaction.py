"""Redaction: remove secrets from text before it is written to the log or to the journal.

Keys from the configuration are replaced wherever they occur. Text that looks like a credential is replaced too,
because a client may send a key that is not in the configuration.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

__all__ = ["MASK", "Redactor", "is_secret_name"]

MASK = "***"
_SECRET_NAMES = r"authorization|api[-_]?key|(?:access|refresh)[-_]?token|client[-_]?secret|password"  # noqa: S105
# Each pattern begins with a lookahead for one letter: that halves the time, which matters for bodies of megabytes.
_PATTERNS = tuple(
    (re.compile(pattern, re.IGNORECASE), rf"\g<1>{MASK}")
    for pattern in (
        # A scheme and its credential, anywhere.
        r"(?=b)(\b(?:bearer|basic)\s+)[\w.~+/=-]{4,}",
        # A name and its value, in JSON (also as text inside JSON), headers, Python and query strings.
        rf"""(?=[acrp])((?:{_SECRET_NAMES})['"\\]*\s*[=:]\s*['"\\]*(?:(?:bearer|basic)\s+)?)[^\s'"\\&,;}}]{{4,}}""",
        # user:password@ in an address.
        r"(://)[^/\s@'\"]+(?=@)",
        # The forms of well-known keys.
        r"(?=[spghxn])(\b(?:sk|pk|gsk|hf|ghp|gho|xai|nvapi)[-_])[\w-]{8,}",
    )
)
_SECRET_NAME = re.compile(rf"(?:{_SECRET_NAMES})$", re.IGNORECASE)
_MIN_SECRET_LENGTH = 4
"""A shorter key cannot be distinguished from a word; replacing it everywhere would damage the log."""


def is_secret_name(name: str) -> bool:
    """Whether a field of this name holds a credential, judged by the name alone."""
    return bool(_SECRET_NAME.search(name))


class Redactor:
    """Removes secrets from text."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: tuple[str, ...] = ()
        self.add_secrets(secrets)

    def add_secrets(self, secrets: Iterable[str]) -> None:
        """Add secrets, at the start and after each reload. Old secrets are kept, because text from before a reload may
        be written after it."""
        known = {*self._secrets, *(secret for secret in secrets if len(secret) >= _MIN_SECRET_LENGTH)}
        # In their JSON-escaped form too. The longest come first: one may be the prefix of another.
        known |= {msgspec.json.encode(secret).decode()[1:-1] for secret in known.difference(self._secrets)}
        self._secrets = tuple(sorted(known, key=len, reverse=True))

    def redact(self, text: str) -> str:
        """Return the text with all secrets masked."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        for pattern, replacement in _PATTERNS:
            text = pattern.sub(replacement, text)
        return text
