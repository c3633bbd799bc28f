"""Ids for calls: the one place where randomness enters, kept out of everything that reads text."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from itertools import count

__all__ = ["make_call_id", "make_sequential_ids"]


def make_call_id() -> str:
    """`call_` and 24 characters, the shape that OpenAI's clients know."""
    return f"call_{secrets.token_hex(12)}"


def make_sequential_ids(prefix: str = "call_") -> Callable[[], str]:
    """Ids that count up from 1: for tests, and wherever the same output must give the same ids."""
    numbers = count(1)
    return lambda: f"{prefix}{next(numbers)}"
