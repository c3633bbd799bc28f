"""How a database fails, told in one way and without what was being written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from callwright.errors import StoreError

__all__ = ["FAULTS", "as_store_error", "reason"]

FAULTS = (SQLAlchemyError, OSError)
"""A refused connection comes from the socket as it is; the rest is wrapped."""


def reason(error: Exception) -> str:
    """What the driver said; SQLAlchemy would add the statement and a link."""
    return str(error.orig if isinstance(error, DBAPIError) else error)


@contextmanager
def as_store_error(what: str) -> Iterator[None]:
    """Faults inside become a `StoreError` that begins with these words."""
    try:
        yield
    except FAULTS as error:
        raise StoreError(f"{what}: {reason(error)}") from error
