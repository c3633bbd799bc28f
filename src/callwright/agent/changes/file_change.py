"""A change to one file, planned or made: what it was, and what it becomes. Nothing here touches a disk."""

from __future__ import annotations

import msgspec

__all__ = ["FileChange"]


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """One file before and after; None for a file that is not there."""

    path: str
    """From the workspace's root, with forward slashes."""
    before: bytes | None
    after: bytes | None
