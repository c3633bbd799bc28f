"""Structured logs: one JSON object per line, one line per turn, no secrets.

Secrets are redacted in the finished line, which covers tracebacks and bodies.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec

from callwright.redaction import Redactor

__all__ = ["JsonLogFormatter", "configure_logging"]


class JsonLogFormatter(logging.Formatter):
    """Formats a record as one line of JSON. `extra={"fields": {...}}` adds fields."""

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
        return self._redactor.redact(msgspec.json.encode(line, enc_hook=str).decode())


def configure_logging(stream: TextIO, redactor: Redactor, *, debug: bool = False) -> None:
    """Write the logs of Callwright and uvicorn to this stream. Call once, where the service is started."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLogFormatter(redactor))
    for name, level in (("callwright", logging.DEBUG if debug else logging.INFO), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(level)
