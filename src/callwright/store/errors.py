"""Converts database exceptions to `StoreError`, without the values of the statement."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from callwright.errors import StoreError

__all__ = ["DATABASE_ERRORS", "as_store_error", "get_reason"]

DATABASE_ERRORS = (SQLAlchemyError, OSError)
"""A refused connection is a plain `OSError`; SQLAlchemy wraps everything else."""


def get_reason(error: Exception) -> str:
    """Return the driver's message, without the statement and the link that SQLAlchemy adds."""
    return str(error.orig if isinstance(error, DBAPIError) else error)


@contextmanager
def as_store_error(what: str) -> Iterator[None]:
    """Raise database exceptions as a `StoreError` whose message begins with `what`."""
    try:
        yield
    except DATABASE_ERRORS as error:
        raise StoreError(f"{what}: {get_reason(error)}") from error
