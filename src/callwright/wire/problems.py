"""The words of an error: clients show them as they are, so they say who failed."""

from __future__ import annotations

from callwright.wire.base import Fault, Problem

__all__ = ["told"]

_WHO: dict[Fault, str] = {
    "client": "The request cannot be served: ",
    "gateway": "The gateway failed: ",
    "backend": "The backend failed: ",
}


def told(problem: Problem) -> str:
    """The message for the client's user."""
    return _WHO[problem.fault] + problem.message
