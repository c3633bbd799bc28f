"""A planned or written change to one file: its content before and after. Nothing here touches a disk."""

from __future__ import annotations

import msgspec

__all__ = ["FileChange"]


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """One file before and after; None for a file that does not exist."""

    path: str
    """Relative to the workspace's root, with forward slashes."""
    before: bytes | None
    after: bytes | None
