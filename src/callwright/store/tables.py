"""The current tables. `migrations` creates them; a test compares the two."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Double,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    TypeDecorator,
)
from sqlalchemy.dialects import postgresql, sqlite

__all__ = [
    "CONTENT_COLUMNS",
    "INSERTS",
    "METADATA",
    "contents",
    "conversations",
    "edits",
    "journal",
    "replace_unstorable",
    "session_events",
    "sessions",
    "usage",
    "versions",
]

CONTENT_COLUMNS = ("client_sent", "asked", "client_got", "problem")
"""Columns with the content of a turn."""

INSERTS: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}
"""Insert constructs with `on conflict` support, by the name of the database."""


def replace_unstorable(text: str) -> str:
    """Replace characters that databases refuse with U+FFFD: PostgreSQL refuses NUL, and both refuse half a surrogate
    pair. Clients can send either as a JSON escape."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class StorableText(TypeDecorator[str]):
    """A column for any text."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Convert a value for the driver."""
        return None if value is None else replace_unstorable(value)


def _build_number_column() -> Column[int]:
    # SQLite numbers rows automatically only when the type is INTEGER.
    return Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True)


def _build_text_columns(*names: str) -> list[Column[str]]:
    return [Column(name, StorableText, nullable=False) for name in names]


METADATA = MetaData()

versions = Table(
    "versions",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False),
)

journal = Table(
    "journal",
    METADATA,
    _build_number_column(),
    Column("at", Double, nullable=False),
    *_build_text_columns(
        "request_id", "wire", "model", "client", "key", *CONTENT_COLUMNS, "headers", "recalled", "repairs", "record"
    ),
    Column("status", Integer, nullable=False),
    Column("cut", Boolean, nullable=False),
    Column("size", BigInteger, nullable=False),
)

conversations = Table(
    "conversations",
    METADATA,
    _build_number_column(),
    Column("at", Double, nullable=False),
    *_build_text_columns("scope", "backend_id", "head"),
    Column("messages", Integer, nullable=False),
)

sessions = Table(
    "sessions",
    METADATA,
    _build_number_column(),
    *_build_text_columns("id", "title", "workspace", "model"),
    Column("began", Double, nullable=False),
    Column("updated", Double, nullable=False),
    Column("working", Boolean, nullable=False),
    Column("added", Integer, nullable=False),
    Column("removed", Integer, nullable=False),
)

session_events = Table(
    "session_events",
    METADATA,
    _build_number_column(),
    *_build_text_columns("session", "kind", "body"),
    Column("seq", Integer, nullable=False),
    Column("at", Double, nullable=False),
)

contents = Table(
    "contents",
    METADATA,
    Column("session", StorableText, primary_key=True),
    Column("digest", Text, primary_key=True),
    Column("data", LargeBinary, nullable=False),
)

edits = Table(
    "edits",
    METADATA,
    _build_number_column(),
    Column("at", Double, nullable=False),
    *_build_text_columns("session", "call", "path", "kind", "state", "folder", "hunk"),
    Column("task", Integer),
    Column("before", Text),
    Column("after", Text),
    Column("mode", Integer),
)

usage = Table(
    "usage",
    METADATA,
    *(Column(name, StorableText, primary_key=True) for name in ("day", "key", "model", "client")),
    *(Column(name, BigInteger, nullable=False) for name in ("requests", "prompt_tokens", "completion_tokens")),
)
