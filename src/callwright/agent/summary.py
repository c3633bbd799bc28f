"""The summary of a task: what was done, what was not, and what was denied. Made from its events alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from callwright.agent.events import Answered, FileStat, Stamped, Summarised, TaskGiven, ToolEnded
from callwright.agent.stream import without_signal
from callwright.model import Text

__all__ = ["summarised"]

_LINES = 20


def summarised(events: Iterable[Stamped], files: Sequence[FileStat]) -> Summarised:
    """What the events of one task come to."""
    task, text, turns, tokens, seconds = 0, "", 0, 0, 0.0
    lines: dict[str, list[str]] = {"ok": [], "failed": [], "denied": []}
    for stamped in events:
        match stamped.event:
            case TaskGiven(task=number):
                task = number
            case Answered() as answer:
                turns += answer.purpose == "turn"
                tokens += answer.usage.prompt_tokens + answer.usage.completion_tokens
                seconds += answer.seconds
                said = "".join(part.text for part in answer.message.parts if isinstance(part, Text))
                if answer.purpose == "turn" and (shown := without_signal(said).strip()):
                    text = shown
            case ToolEnded() as ended:
                seconds += ended.seconds
                lines["failed" if ended.status in ("error", "stopped", "unknown") else ended.status].append(ended.view)
            case _:
                pass
    return Summarised(
        task=task,
        text=text,
        done=_bounded(lines["ok"]),
        failed=_bounded(lines["failed"]),
        denied=_bounded(lines["denied"]),
        files=tuple(files),
        turns=turns,
        tokens=tokens,
        seconds=round(seconds, 3),
    )


def _bounded(lines: list[str]) -> tuple[str, ...]:
    """Each once, and the last ones of many."""
    counts: dict[str, int] = {}
    for line in lines:
        counts[line] = counts.get(line, 0) + 1
    told = [line if count == 1 else f"{line} ({count} times)" for line, count in counts.items()]
    if len(told) > _LINES:
        told = [f"{len(told) - _LINES} more", *told[-_LINES:]]
    return tuple(told)
