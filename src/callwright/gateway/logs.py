"""Structured logs: one JSON object a line, one line a turn, and never a secret.

Secrets are taken out of the finished line, tracebacks and bodies included, by two means: the keys that the
configuration holds are known and replaced wherever they stand; what merely looks like a credential is replaced too,
since a client may send a key that is not ours.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec

__all__ = ["MASK", "JsonLines", "Redactor", "setup"]

MASK = "***"
_NAMES = r"(?:proxy-)?authorization|x-api-key|api[-_]?key|access[-_]?token|refresh[-_]?token|client[-_]?secret|password"
_PATTERNS = tuple(
    (re.compile(pattern, re.IGNORECASE), rf"\g<1>{MASK}")
    for pattern in (
        # A scheme and its credential, wherever they stand.
        r"\b((?:bearer|basic)\s+)[\w.~+/=-]{4,}",
        # A name and its value, in JSON (also as text inside JSON), headers, Python and query strings.
        rf"""((?:{_NAMES})['"\\]*\s*[=:]\s*['"\\]*(?:(?:bearer|basic)\s+)?)[^\s'"\\&,;}}]{{4,}}""",
        # user:password@ in an address.
        r"(://)[^/\s@'\"]+(?=@)",
        # The shapes of well-known keys.
        r"\b((?:sk|pk|gsk|hf|ghp|gho|xai|nvapi)[-_])[\w-]{8,}",
    )
)
_SECRET_LENGTH = 4
"""A shorter key cannot be told from a word; replacing it everywhere would spoil the log."""


class Redactor:
    """Takes secrets out of text."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: tuple[str, ...] = ()
        self.know(secrets)

    def know(self, secrets: Iterable[str]) -> None:
        """These are the secrets now; called at the start and after each reload."""
        known = {secret for secret in secrets if len(secret) >= _SECRET_LENGTH}
        # As they stand in a JSON string, too. The longest first: one may be the beginning of another.
        known |= {msgspec.json.encode(secret).decode()[1:-1] for secret in known}
        self._secrets = tuple(sorted(known, key=len, reverse=True))

    def clean(self, text: str) -> str:
        """The text without them."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        for pattern, replacement in _PATTERNS:
            text = pattern.sub(replacement, text)
        return text


class JsonLines(logging.Formatter):
    """Writes a record as one line of JSON; `extra={"fields": {...}}` adds to it."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return self._redactor.clean(msgspec.json.encode(line, enc_hook=str).decode())


def setup(stream: TextIO, redactor: Redactor, *, debug: bool = False) -> None:
    """Send our log and uvicorn's to this stream. Called once, by whoever runs the service."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines(redactor))
    for name, level in (("callwright", logging.DEBUG if debug else logging.INFO), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(level)
