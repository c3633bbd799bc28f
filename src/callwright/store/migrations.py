"""Creates and updates the tables in numbered steps. Each runs once and is recorded in `versions`.

A released step never changes; new steps are added at the end. All missing steps run in one transaction when the store
is opened, so a database is never between two versions. Steps are SQL that both databases understand; what differs has a
name in braces: `{number}`, an auto-incrementing key, and `{bytes}`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from sqlalchemy import func, insert, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from callwright.errors import StoreError
from callwright.store.tables import versions

__all__ = ["MIGRATIONS", "run_migrations"]

_TYPES = {
    "sqlite": {"number": "integer primary key", "bytes": "blob"},
    "postgresql": {"number": "bigserial primary key", "bytes": "bytea"},
}
_LOCK_ID = 0x63616C6C
"""PostgreSQL's advisory lock for migrations. The number is arbitrary, but every replica must use the same."""

_CREATE_VERSIONS = "create table if not exists versions (number integer primary key, at double precision not null)"

MIGRATIONS: Sequence[Sequence[str]] = (
    (
        """
        create table journal (
            number {number}, at double precision not null,
            request_id text not null, wire text not null, model text not null, client text not null, key text not null,
            status integer not null, cut boolean not null, record text not null, problem text not null,
            headers text not null, client_sent text not null, recalled text not null, asked text not null,
            client_got text not null, repairs text not null,
            size bigint not null
        )
        """,
        "create index journal_request on journal (request_id)",
        "create index journal_at on journal (at)",
        "create index journal_size on journal (number, size)",
        """
        create table conversations (
            number {number}, at double precision not null,
            scope text not null, backend_id text not null, head text not null, messages integer not null,
            unique (scope, backend_id)
        )
        """,
        "create index conversations_head on conversations (head)",
        "create index conversations_at on conversations (at)",
    ),
    (
        """
        create table sessions (
            number {number}, id text not null unique, title text not null, workspace text not null,
            model text not null, began double precision not null, updated double precision not null,
            working boolean not null, added integer not null, removed integer not null
        )
        """,
        "create index sessions_updated on sessions (updated)",
        """
        create table session_events (
            number {number}, session text not null, seq integer not null, at double precision not null,
            kind text not null, body text not null, unique (session, seq)
        )
        """,
    ),
    (
        """
        create table contents (
            session text not null, digest text not null, data {bytes} not null, primary key (session, digest)
        )
        """,
        """
        create table edits (
            number {number}, at double precision not null,
            session text not null, task integer, call text not null, path text not null,
            kind text not null, state text not null, before text, after text, mode integer,
            folder text not null, hunk text not null
        )
        """,
        "create index edits_session on edits (session)",
    ),
    (
        """
        create table usage (
            day text not null, key text not null, model text not null, client text not null,
            requests bigint not null, prompt_tokens bigint not null, completion_tokens bigint not null,
            primary key (day, key, model, client)
        )
        """,
    ),
)


async def run_migrations(
    connection: AsyncConnection, steps: Sequence[Sequence[str]] = MIGRATIONS, *, clock: Callable[[], float] = time.time
) -> None:
    """Run the missing steps. Raises `StoreError` when the database is newer than this version."""
    kind = connection.dialect.name
    if kind == "postgresql":
        # Replicas that start together wait for each other. SQLite's transaction is exclusive anyway.
        await connection.execute(select(func.pg_advisory_xact_lock(_LOCK_ID)))
    await connection.execute(text(_CREATE_VERSIONS))
    done = (await connection.execute(select(func.max(versions.c.number)))).scalar() or 0
    if done > len(steps):
        message = f"the database has version {done}, but this Callwright supports {len(steps)}: use a newer Callwright"
        raise StoreError(message)
    for number, step in enumerate(steps[done:], done + 1):
        for statement in step:
            await connection.execute(text(statement.format(**_TYPES[kind])))
        await connection.execute(insert(versions).values(number=number, at=clock()))
