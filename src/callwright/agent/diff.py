"""Differences between two versions of a file, for people and for undoing part of them."""

from __future__ import annotations

import msgspec

__all__ = ["Hunk"]


class Hunk(msgspec.Struct, frozen=True, kw_only=True):
    """One stretch of changed lines."""

    id: str
    """The same as long as the stretch is the same."""
    text: str
    """As in a unified diff, with its `@@` line."""
    added: int
    removed: int
