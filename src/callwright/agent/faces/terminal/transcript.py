"""The transcript: session events folded into what is on the screen.

What `feed` returns has settled: it is printed once and never changes. Everything else is the moving part. A session
that is opened again is fed the same events and prints the same lines, whatever the pieces in which text arrived.
Linear in the events; the moving part costs the same however long the session is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.text import Text

from callwright.agent.faces.terminal.cards import card, line, tool_card
from callwright.agent.faces.terminal.diffview import edit_view
from callwright.agent.faces.terminal.prose import Paragraphs, Prose
from callwright.agent.faces.terminal.wording import allowance, clean, duration, one_line, place
from callwright.agent.session_events import (
    ApprovalRequested,
    CallDecided,
    CallProgress,
    FilesChanged,
    FileStat,
    GroupClosed,
    GroupOpened,
    ModelAnswered,
    ModelCallPurpose,
    SessionEvent,
    SessionOpened,
    SessionResumed,
    StampedEvent,
    TaskStarted,
    TaskStopped,
    TaskSummarized,
    TextAppended,
    ThinkingAppended,
    ThinkingEnded,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnStarted,
)

__all__ = ["Tail", "Transcript", "reopened"]

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_WAITING: dict[ModelCallPurpose, str] = {
    "turn": "Waiting for the model",
    "content": "Waiting for the file's content",
    "condense": "Shortening older messages",
}
_SPACE_BEFORE = (TaskStarted, ApprovalRequested, TaskStopped)
_SPACE_AFTER = (TaskStarted, TaskSummarized)
_TAIL_LINES = 5
_THINKING_LINES = 8
_TAIL_CHARACTERS = 4000
"""More than the moving tail can show, on any screen."""


class Tail:
    """The last lines of something, as they are wrapped; without a number as many as there is room for.

    What is taller than the screen cannot be taken off it again.
    """

    def __init__(self, content: RenderableType, lines: int = 0) -> None:
        self._content = content
        self._lines = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        most = self._lines or max(console.size.height - 2, 1)
        for row in console.render_lines(self._content, options, pad=False)[-most:]:
            yield from row
            yield Segment.line()


class _Running(msgspec.Struct):
    """A call that runs."""

    began: ToolStarted
    since: float
    output: list[str]
    tail: str = ""


class Transcript:
    """A session, as far as its events have been fed."""

    def __init__(self, *, home: str = "", thinking: bool = False, hints: bool = False) -> None:
        self.thinking = thinking
        """Show what the model thinks, and not only for how long."""
        self.asked: ApprovalRequested | None = None
        """What a person must answer now."""
        self.files: tuple[FileStat, ...] = ()
        """Changes that are neither kept nor undone."""
        self.thought = ""
        """What the model thought last."""
        self.output = ""
        """What the last command said."""
        self._home = home
        self._hints = hints
        self._paragraphs = Paragraphs()
        self._thoughts: list[str] = []
        self._thinking_since = 0.0
        self._running: dict[str, _Running] = {}
        self._decided: dict[str, CallDecided] = {}
        self._indent = 0
        self._doing = ""
        self._since = 0.0
        self._apart = False
        self._settled: list[RenderableType] = []

    def feed(self, stamped: StampedEvent) -> list[RenderableType]:
        """What has settled with this event, to be printed below everything before it."""
        event = stamped.event
        if not isinstance(event, TextAppended):
            self._say(self._paragraphs.close())
        if self._thoughts and not isinstance(event, ThinkingAppended | ThinkingEnded):
            self._end_thinking(stamped.at - self._thinking_since)
        self._fold(event, stamped.at)
        return self._take()

    def close(self) -> list[RenderableType]:
        """What settles because nothing more will come: the events of an interrupted session end anywhere."""
        self._say(self._paragraphs.close())
        for running in self._running.values():
            self._settle(line("?", "yellow", Text(one_line(running.began.view)), self._indent))
        self._running.clear()
        return self._take()

    def moving(self, now: float, hint: str = "") -> RenderableType:
        """What is being written or done at this moment; nothing when nobody works."""
        parts: list[RenderableType] = []
        if pending := self._paragraphs.pending.strip("\n"):
            parts.append(Text(clean(pending)))
        if self._thoughts and self.thinking:
            parts.append(Tail(Text(clean("".join(self._thoughts)), style="dim italic"), _THINKING_LINES))
        for running in self._running.values():
            parts.append(self._status(one_line(running.began.view), now - running.since, hint))
            if running.tail.strip():
                tail = Text(clean(running.tail).rstrip("\n"), style="dim", no_wrap=True, overflow="ellipsis")
                parts.append(Padding(Tail(tail, _TAIL_LINES), (0, 0, 0, self._indent + 2)))
        if self._doing and not self._running:
            thought = one_line("".join(self._thoughts[-20:]))[-60:] if not self.thinking else ""
            parts.append(self._status(self._doing, now - self._since, hint, thought))
        if parts and (self._apart or pending):
            parts.insert(0, Text())
        return Tail(Group(*parts))

    def _status(self, doing: str, seconds: float, *details: str) -> Text:
        spinner = _SPINNER[int(seconds * 10) % len(_SPINNER)]
        text = Text.assemble(" " * self._indent, (spinner, "cyan"), f" {doing}", no_wrap=True, overflow="ellipsis")
        return text.append("  " + " · ".join((f"{max(int(seconds), 0)} s", *filter(None, details))), "dim")

    def _fold(self, event: SessionEvent, at: float) -> None:
        match event:
            case SessionOpened():
                self._settle(self._header(event))
            case TurnStarted():
                self._now(_WAITING[event.purpose], at)
            case ThinkingAppended():
                if not self._thoughts:
                    self._thinking_since = at
                    self._now("Thinking", at)
                self._thoughts.append(event.text)
            case ThinkingEnded():
                self._end_thinking(event.seconds)
            case TextAppended():
                self._say(self._paragraphs.feed(event.text))
                self._now("Writing", self._since if self._doing == "Writing" else at)
            case CallProgress():
                doing = f"Writing {one_line(event.name)}"
                started = self._since if self._doing.startswith(doing) else at
                self._now(f"{doing}, {event.characters:,} characters", started)
            case ModelAnswered():
                self._now("", at)
                if event.problem:
                    self._settle(line("✗", "red", Text(clean(event.problem), style="red")))
            case GroupOpened() if event.calls > 1:
                self._settle(line("●", "cyan", Text(one_line(event.title))))
                self._indent = 2
            case GroupClosed():
                self._indent = 0
            case FilesChanged():
                self.files = event.files
            case _:
                self._fold_call(event, at)

    def _fold_call(self, event: SessionEvent, at: float) -> None:
        match event:
            case ApprovalRequested():
                self.asked = event
                self._now("", at)
            case CallDecided():
                self.asked = None
                self._decided[event.call.id] = event
                if event.verdict == "allow" and event.by in ("person", "remembered"):
                    self._settle(_allowed(event, self._indent))
            case ToolStarted():
                self._running[event.call] = _Running(event, at, [])
            case ToolOutput() if running := self._running.get(event.call):
                running.output.append(event.text)
                running.tail = (running.tail + event.text)[-_TAIL_CHARACTERS:]
            case ToolFinished():
                self._end_call(event)
            case SessionResumed() | TaskStopped():
                self.asked = None
                self._running.clear()
                self._decided.clear()
                self._indent = 0
                self._now("", at)
            case _:
                pass
        if (shown := card(event)) is not None:
            self._settle(shown, apart=isinstance(event, _SPACE_BEFORE))
        if isinstance(event, TaskSummarized) and event.files and self._hints:
            self._settle(Text("  /diff shows the changes, /undo takes them back, /keep keeps them.", style="dim"))
        if isinstance(event, _SPACE_AFTER):
            self._apart = True

    def _header(self, event: SessionOpened) -> RenderableType:
        name = Text.assemble(("callwright agent  ", "bold"), (clean(event.model), "bold green"))
        name.append(f"  {place(event.workspace, self._home)}")
        below = [Text(clean(event.sandbox), style="dim")] if event.sandbox else []
        return Group(name, *below, Text(f"session {clean(event.session)}", style="dim"))

    def _end_thinking(self, seconds: float) -> None:
        self.thought = "".join(self._thoughts)
        self._thoughts.clear()
        self._settle(Text(f"Thought for {duration(seconds)}", style="dim"))
        if self.thinking and self.thought.strip():
            self._settle(Padding(Text(clean(self.thought.strip()), style="dim italic"), (0, 0, 0, 2)))

    def _end_call(self, event: ToolFinished) -> None:
        running = self._running.pop(event.call, None)
        decided = self._decided.pop(event.call, None)
        output = "".join(running.output) if running else ""
        self.output = output or self.output
        why = (decided.words or decided.why) if decided and event.status == "denied" else ""
        self._settle(tool_card(event, output, why, self._indent))
        # Who was asked about an edit has just seen it.
        if event.diff and not (decided and decided.by == "person"):
            self._settle(Padding(edit_view(event.diff), (0, 0, 0, self._indent + 2)))

    def _say(self, blocks: Iterable[str]) -> None:
        for block in blocks:
            self._settle(Prose(block), apart=True)
            self._apart = True

    def _now(self, doing: str, since: float) -> None:
        self._doing, self._since = doing, since

    def _settle(self, piece: RenderableType, *, apart: bool = False) -> None:
        if apart or self._apart:
            self._settled.append(Text())
        self._settled.append(piece)
        self._apart = False

    def _take(self) -> list[RenderableType]:
        settled, self._settled = self._settled, []
        return settled


def _allowed(event: CallDecided, indent: int) -> RenderableType:
    if event.by == "remembered":
        return line("✓", "green", Text(f"Allowed before: {one_line(event.why)}", style="dim"), indent)
    text = Text("You allowed it", style="dim")
    if event.words:
        text.append(f". {clean(event.words)}")
    if event.remembered:
        allowed = "; ".join(map(allowance, event.remembered))
        text.append(f", and until this session ends: {clean(allowed)}")
    return line("✓", "green", text, indent)


def reopened(events: Iterable[StampedEvent], **settings: Any) -> list[RenderableType]:
    """A stored session as it was on the screen."""
    transcript = Transcript(**settings)
    return [piece for event in events for piece in transcript.feed(event)] + transcript.close()
