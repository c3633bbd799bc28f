"""How a database fails, told in one way and without what was being written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from callwright.errors import StoreError

__all__ = ["DATABASE_ERRORS", "as_store_error", "get_reason"]

DATABASE_ERRORS = (SQLAlchemyError, OSError)
"""A refused connection comes from the socket as it is; the rest is wrapped."""


def get_reason(error: Exception) -> str:
    """What the driver said; SQLAlchemy would add the statement and a link."""
    return str(error.orig if isinstance(error, DBAPIError) else error)


@contextmanager
def as_store_error(what: str) -> Iterator[None]:
    """Faults inside become a `StoreError` that begins with these words."""
    try:
        yield
    except DATABASE_ERRORS as error:
        raise StoreError(f"{what}: {get_reason(error)}") from error
