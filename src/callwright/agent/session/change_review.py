"""Reviewing what a session changed: what is still open, and keeping or taking back all of it, a task's, a file's or a
hunk's share."""

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
    """Of one session. What is decided is an event of it."""

    def __init__(self, checkpoints: Checkpoints, log: EventLog) -> None:
        self._checkpoints = checkpoints
        self._log = log

    async def list_file_stats(self) -> tuple[FileStat, ...]:
        """The files that have changes which are neither kept nor undone."""
        return tuple(
            FileStat(path=file.path, added=file.added, removed=file.removed, state=_STATE_BY_KIND[file.kind])
            for file in await self._list_open_files(0)
        )

    async def list_file_reviews(self, task: int = 0) -> tuple[FileReview, ...]:
        """The same, with what changed; of one task, or of all."""
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
        """Keep changes: they can no longer be taken back."""
        paths = await self._checkpoints.keep_changes(task=task or None, path=path or None, hunk=hunk or None)
        kept = ChangesKept(paths=tuple(paths), hunk=hunk)
        await self._log.add(kept)
        await self._log.add(FilesChanged(files=await self.list_file_stats()))
        return kept

    async def undo_changes(
        self, path: str = "", hunk: str = "", *, task: int = 0, force: bool = False
    ) -> ChangesUndone:
        """Take changes back. What the person changed meanwhile is left alone unless forced."""
        done = await self._checkpoints.undo_changes(
            task=task or None, path=path or None, hunk=hunk or None, force=force
        )
        undone = ChangesUndone(paths=done.paths, hunk=hunk, conflicts=tuple(each.reason for each in done.conflicts))
        await self._log.add(undone)
        await self._log.add(FilesChanged(files=await self.list_file_stats()))
        return undone

    async def _list_open_files(self, task: int) -> list[ChangedFile]:
        return [file for file in await self._checkpoints.list_changed_files(task or None) if file.state == "open"]
