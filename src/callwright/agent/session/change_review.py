"""Reviews the changes of a session: lists open changes, and keeps or undoes all of them, a task's, a file's or a
hunk.
"""

from __future__ import annotations

from typing import Literal

from callwright.agent.changes.checkpoints import ChangedFile, Checkpoints
from callwright.agent.event_log import EventLog
from callwright.agent.session_api import FileReview
from callwright.agent.session_events import ChangesKept, ChangesUndone, FilesChanged, FileStat

__all__ = ["ChangeReview"]

_STATE_BY_KIND: dict[str, Literal["created", "changed", "deleted"]] = {
    "created": "created",
    "modified": "changed",
    "deleted": "deleted",
}


class ChangeReview:
    """The review of one session. Its decisions are events of the session."""

    def __init__(self, checkpoints: Checkpoints, log: EventLog) -> None:
        self._checkpoints = checkpoints
        self._log = log

    async def list_file_stats(self) -> tuple[FileStat, ...]:
        """Return the files with changes that are neither kept nor undone."""
        return tuple(
            FileStat(path=file.path, added=file.added, removed=file.removed, state=_STATE_BY_KIND[file.kind])
            for file in await self._list_open_files(0)
        )

    async def list_file_reviews(self, task: int = 0) -> tuple[FileReview, ...]:
        """Return the same files with their changes, of one task or of all."""
        return tuple(
            FileReview(
                path=file.path,
                added=file.added,
                removed=file.removed,
                diff="\n".join(hunk.text for hunk in file.hunks),
                hunks=file.hunks,
                changed_by_user=file.changed_since,
            )
            for file in await self._list_open_files(task)
        )

    async def keep_changes(self, path: str = "", hunk: str = "", *, task: int = 0) -> ChangesKept:
        """Keep changes: they can no longer be undone."""
        paths = await self._checkpoints.keep_changes(task=task or None, path=path or None, hunk=hunk or None)
        kept_paths = ChangesKept(paths=tuple(paths), hunk=hunk)
        await self._log.add(kept_paths)
        await self._log.add(FilesChanged(files=await self.list_file_stats()))
        return kept_paths

    async def undo_changes(
        self, path: str = "", hunk: str = "", *, task: int = 0, force: bool = False
    ) -> ChangesUndone:
        """Undo changes. Lines that the user changed since are left alone unless forced."""
        result = await self._checkpoints.undo_changes(
            task=task or None, path=path or None, hunk=hunk or None, force=force
        )
        undone = ChangesUndone(paths=result.paths, hunk=hunk, conflicts=tuple(each.reason for each in result.conflicts))
        await self._log.add(undone)
        await self._log.add(FilesChanged(files=await self.list_file_stats()))
        return undone

    async def _list_open_files(self, task: int) -> list[ChangedFile]:
        return [file for file in await self._checkpoints.list_changed_files(task or None) if file.state == "open"]
