"""Summarizes a task from its events alone: what was done, what failed, and what was denied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from callwright.agent.loop.answer_stream import strip_completion_signal
from callwright.agent.session_events import (
    FileStat,
    ModelAnswered,
    StampedEvent,
    TaskStarted,
    TaskSummarized,
    ToolFinished,
)
from callwright.model import Text

__all__ = ["summarize_task"]

_MAX_LINES = 20


def summarize_task(events: Iterable[StampedEvent], files: Sequence[FileStat]) -> TaskSummarized:
    """Summarize the events of one task."""
    task, text, turns, tokens, seconds = 0, "", 0, 0, 0.0
    lines: dict[str, list[str]] = {"ok": [], "failed": [], "denied": []}
    for stamped in events:
        match stamped.event:
            case TaskStarted(task=number):
                task = number
            case ModelAnswered() as answer:
                turns += answer.purpose == "turn"
                tokens += answer.usage.prompt_tokens + answer.usage.completion_tokens
                seconds += answer.seconds
                full_text = "".join(part.text for part in answer.message.parts if isinstance(part, Text))
                if answer.purpose == "turn" and (visible := strip_completion_signal(full_text).strip()):
                    text = visible
            case ToolFinished() as ended:
                seconds += ended.seconds
                lines["failed" if ended.status in ("error", "stopped", "unknown") else ended.status].append(ended.view)
            case _:
                pass
    return TaskSummarized(
        task=task,
        text=text,
        done=_limit_lines(lines["ok"]),
        failed=_limit_lines(lines["failed"]),
        denied=_limit_lines(lines["denied"]),
        files=tuple(files),
        turns=turns,
        tokens=tokens,
        seconds=round(seconds, 3),
    )


def _limit_lines(lines: list[str]) -> tuple[str, ...]:
    """Return each line once, and only the last ones of many."""
    counts: dict[str, int] = {}
    for line in lines:
        counts[line] = counts.get(line, 0) + 1
    limited = [line if count == 1 else f"{line} ({count} times)" for line, count in counts.items()]
    if len(limited) > _MAX_LINES:
        limited = [f"{len(limited) - _MAX_LINES} more", *limited[-_MAX_LINES:]]
    return tuple(limited)
