"""Parses the arguments of a call and previews the changes that it would make."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from callwright.agent.changes.diff import format_unified_diff
from callwright.agent.changes.file_change import FileChange
from callwright.errors import ToolError
from callwright.model import ToolCall

__all__ = ["format_diff", "hash_changes", "parse_call_arguments"]


def parse_call_arguments(call: ToolCall) -> dict[str, Any]:
    """Parse a call's arguments. Raises `ToolError` when they are not a JSON object."""
    try:
        return msgspec.json.decode(call.arguments or "{}", type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError) as error:
        raise ToolError(f"The arguments of {call.name} are not a JSON object: {error}. Nothing was run.") from None


def hash_changes(changes: Sequence[FileChange]) -> str:
    """Return a hash of the changes; an empty string for none."""
    if not changes:
        return ""
    mark = hashlib.sha256()
    for change in changes:
        for piece in (change.path.encode(), change.before, change.after):
            mark.update(b"-" if piece is None else b"%d:%s" % (len(piece), piece))
    return mark.hexdigest()


def format_diff(changes: Sequence[FileChange], limit: int) -> str:
    """Format the changes as a diff for the user. Omitted text is reported at both ends, so that nobody misses it."""
    diff = "\n".join(format_unified_diff(change) for change in changes)
    if len(diff) <= limit:
        return diff
    cut = f"[{len(diff) - limit} of {len(diff)} characters of this diff are not shown]"
    return f"{cut}\n{diff[:limit]}\n{cut}"
