"""Call ids. This is the only module that uses randomness; parsers get an id factory from their caller."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from itertools import count

__all__ = ["make_call_id", "make_sequential_ids"]


def make_call_id() -> str:
    """Return `call_` and 24 hexadecimal characters, the form that OpenAI's clients expect."""
    return f"call_{secrets.token_hex(12)}"


def make_sequential_ids(prefix: str = "call_") -> Callable[[], str]:
    """Return a factory of ids that count up from 1, for tests and wherever output must be reproducible."""
    numbers = count(1)
    return lambda: f"{prefix}{next(numbers)}"
