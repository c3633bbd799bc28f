"""Redaction: secrets taken out of text before it is written anywhere, to the log or to the journal.

By two means: the keys that the configuration holds are known and replaced wherever they stand; what merely looks like
a credential is replaced too, since a client may send a key that is not ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

__all__ = ["MASK", "Redactor", "is_secret_name"]

MASK = "***"
_SECRET_NAMES = r"authorization|api[-_]?key|(?:access|refresh)[-_]?token|client[-_]?secret|password"  # noqa: S105
# Each begins with a look at one letter: that halves the time, which counts for bodies of megabytes.
_PATTERNS = tuple(
    (re.compile(pattern, re.IGNORECASE), rf"\g<1>{MASK}")
    for pattern in (
        # A scheme and its credential, wherever they stand.
        r"(?=b)(\b(?:bearer|basic)\s+)[\w.~+/=-]{4,}",
        # A name and its value, in JSON (also as text inside JSON), headers, Python and query strings.
        rf"""(?=[acrp])((?:{_SECRET_NAMES})['"\\]*\s*[=:]\s*['"\\]*(?:(?:bearer|basic)\s+)?)[^\s'"\\&,;}}]{{4,}}""",
        # user:password@ in an address.
        r"(://)[^/\s@'\"]+(?=@)",
        # The shapes of well-known keys.
        r"(?=[spghxn])(\b(?:sk|pk|gsk|hf|ghp|gho|xai|nvapi)[-_])[\w-]{8,}",
    )
)
_SECRET_NAME = re.compile(rf"(?:{_SECRET_NAMES})$", re.IGNORECASE)
_MIN_SECRET_LENGTH = 4
"""A shorter key cannot be told from a word; replacing it everywhere would spoil the log."""


def is_secret_name(name: str) -> bool:
    """Whether what has this name is a credential, by the name alone."""
    return bool(_SECRET_NAME.search(name))


class Redactor:
    """Takes secrets out of text."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: tuple[str, ...] = ()
        self.add_secrets(secrets)

    def add_secrets(self, secrets: Iterable[str]) -> None:
        """These are secrets too; called at the start and after each reload. None is forgotten: what was said before a
        reload may be written after it."""
        known = {*self._secrets, *(secret for secret in secrets if len(secret) >= _MIN_SECRET_LENGTH)}
        # As they stand in a JSON string, too. The longest first: one may be the beginning of another.
        known |= {msgspec.json.encode(secret).decode()[1:-1] for secret in known.difference(self._secrets)}
        self._secrets = tuple(sorted(known, key=len, reverse=True))

    def redact(self, text: str) -> str:
        """The text without them."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        for pattern, replacement in _PATTERNS:
            text = pattern.sub(replacement, text)
        return text
