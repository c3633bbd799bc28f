"""The transcript: folds session events into the lines on the screen.

What `feed` returns is final: it is printed once and never changes. Everything else is the live region. A reopened
session feeds the same events and prints the same lines, whatever the pieces in which text arrived. The work is linear
in the events; the live region costs the same however long the session is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.text import Text

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
from callwright.agent.ui.console.cards import build_card, build_line, build_tool_card
from callwright.agent.ui.console.diff_view import build_edit_view
from callwright.agent.ui.console.formatting import (
    describe_allowance,
    format_duration,
    format_folder,
    sanitize_text,
    to_one_line,
)
from callwright.agent.ui.console.markdown import MarkdownBlock, MarkdownSplitter

__all__ = ["SessionTranscript", "TailView", "render_stored_session"]

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_WAIT_LABELS: dict[ModelCallPurpose, str] = {
    "turn": "Waiting for the model",
    "content": "Waiting for the file's content",
    "condense": "Shortening older messages",
}
_SPACE_BEFORE = (TaskStarted, ApprovalRequested, TaskStopped)
_SPACE_AFTER = (TaskStarted, TaskSummarized)
_TAIL_LINES = 5
_THINKING_LINES = 8
_TAIL_CHARACTERS = 4000
"""More than the live tail can show on any screen."""


class TailView:
    """The last wrapped lines of something; without a number, as many as fit on the screen.

    Lines that scroll off the screen could not be erased again.
    """

    def __init__(self, content: RenderableType, lines: int = 0) -> None:
        self._content = content
        self._lines = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        max_lines = self._lines or max(console.size.height - 2, 1)
        for row in console.render_lines(self._content, options, pad=False)[-max_lines:]:
            yield from row
            yield Segment.line()


class _RunningCall(msgspec.Struct):
    """A running call."""

    start_event: ToolStarted
    started_at: float
    output: list[str]
    tail: str = ""


class SessionTranscript:
    """The view of a session, for the events fed so far."""

    def __init__(self, *, home: str = "", thinking: bool = False, hints: bool = False) -> None:
        self.thinking = thinking
        """Show the model's thinking, and not only its duration."""
        self.pending_approval: ApprovalRequested | None = None
        """The approval that the user must answer now."""
        self.files: tuple[FileStat, ...] = ()
        """Changes that are neither kept nor undone."""
        self.last_thought = ""
        """The model's last thinking."""
        self.last_output = ""
        """The output of the last command."""
        self._home = home
        self._hints = hints
        self._splitter = MarkdownSplitter()
        self._thoughts: list[str] = []
        self._thinking_since = 0.0
        self._running: dict[str, _RunningCall] = {}
        self._decisions: dict[str, CallDecided] = {}
        self._indent = 0
        self._activity = ""
        self._activity_started = 0.0
        self._needs_gap = False
        self._pieces: list[RenderableType] = []

    def feed(self, stamped: StampedEvent) -> list[RenderableType]:
        """Return what this event makes final, to be printed below everything before it."""
        event = stamped.event
        if not isinstance(event, TextAppended):
            self._add_blocks(self._splitter.close())
        if self._thoughts and not isinstance(event, ThinkingAppended | ThinkingEnded):
            self._end_thinking(stamped.at - self._thinking_since)
        self._apply_event(event, stamped.at)
        return self._flush_pieces()

    def close(self) -> list[RenderableType]:
        """Return what is final because no event follows: an interrupted session can end anywhere."""
        self._add_blocks(self._splitter.close())
        for running in self._running.values():
            self._add_piece(build_line("?", "yellow", Text(to_one_line(running.start_event.view)), self._indent))
        self._running.clear()
        return self._flush_pieces()

    def build_live_region(self, now: float, hint: str = "") -> RenderableType:
        """Build the live region: what is being written or run at the moment; empty if nothing is running."""
        parts: list[RenderableType] = []
        if pending := self._splitter.pending.strip("\n"):
            parts.append(Text(sanitize_text(pending)))
        if self._thoughts and self.thinking:
            parts.append(TailView(Text(sanitize_text("".join(self._thoughts)), style="dim italic"), _THINKING_LINES))
        for running in self._running.values():
            parts.append(self._build_status(to_one_line(running.start_event.view), now - running.started_at, hint))
            if running.tail.strip():
                tail = Text(sanitize_text(running.tail).rstrip("\n"), style="dim", no_wrap=True, overflow="ellipsis")
                parts.append(Padding(TailView(tail, _TAIL_LINES), (0, 0, 0, self._indent + 2)))
        if self._activity and not self._running:
            thought = to_one_line("".join(self._thoughts[-20:]))[-60:] if not self.thinking else ""
            parts.append(self._build_status(self._activity, now - self._activity_started, hint, thought))
        if parts and (self._needs_gap or pending):
            parts.insert(0, Text())
        return TailView(Group(*parts))

    def _build_status(self, activity: str, seconds: float, *details: str) -> Text:
        spinner = _SPINNER[int(seconds * 10) % len(_SPINNER)]
        text = Text.assemble(" " * self._indent, (spinner, "cyan"), f" {activity}", no_wrap=True, overflow="ellipsis")
        return text.append("  " + " · ".join((f"{max(int(seconds), 0)} s", *filter(None, details))), "dim")

    def _apply_event(self, event: SessionEvent, at: float) -> None:
        match event:
            case SessionOpened():
                self._add_piece(self._build_header(event))
            case TurnStarted():
                self._set_activity(_WAIT_LABELS[event.purpose], at)
            case ThinkingAppended():
                if not self._thoughts:
                    self._thinking_since = at
                    self._set_activity("Thinking", at)
                self._thoughts.append(event.text)
            case ThinkingEnded():
                self._end_thinking(event.seconds)
            case TextAppended():
                self._add_blocks(self._splitter.feed(event.text))
                self._set_activity("Writing", self._activity_started if self._activity == "Writing" else at)
            case CallProgress():
                doing = f"Writing {to_one_line(event.name)}"
                started = self._activity_started if self._activity.startswith(doing) else at
                self._set_activity(f"{doing}, {event.characters:,} characters", started)
            case ModelAnswered():
                self._set_activity("", at)
                if event.problem:
                    self._add_piece(build_line("✗", "red", Text(sanitize_text(event.problem), style="red")))
            case GroupOpened() if event.calls > 1:
                self._add_piece(build_line("●", "cyan", Text(to_one_line(event.title))))
                self._indent = 2
            case GroupClosed():
                self._indent = 0
            case FilesChanged():
                self.files = event.files
            case _:
                self._apply_call_event(event, at)

    def _apply_call_event(self, event: SessionEvent, at: float) -> None:
        match event:
            case ApprovalRequested():
                self.pending_approval = event
                self._set_activity("", at)
            case CallDecided():
                self.pending_approval = None
                self._decisions[event.call.id] = event
                if event.verdict == "allow" and event.by in ("person", "remembered"):
                    self._add_piece(_build_allowance_line(event, self._indent))
            case ToolStarted():
                self._running[event.call] = _RunningCall(event, at, [])
            case ToolOutput() if running := self._running.get(event.call):
                running.output.append(event.text)
                running.tail = (running.tail + event.text)[-_TAIL_CHARACTERS:]
            case ToolFinished():
                self._end_call(event)
            case SessionResumed() | TaskStopped():
                self.pending_approval = None
                self._running.clear()
                self._decisions.clear()
                self._indent = 0
                self._set_activity("", at)
            case _:
                pass
        if (card := build_card(event)) is not None:
            self._add_piece(card, gap_before=isinstance(event, _SPACE_BEFORE))
        if isinstance(event, TaskSummarized) and event.files and self._hints:
            self._add_piece(Text("  /diff shows the changes, /undo reverts them, /keep keeps them.", style="dim"))
        if isinstance(event, _SPACE_AFTER):
            self._needs_gap = True

    def _build_header(self, event: SessionOpened) -> RenderableType:
        name = Text.assemble(("callwright agent  ", "bold"), (sanitize_text(event.model), "bold green"))
        name.append(f"  {format_folder(event.workspace, self._home)}")
        below = [Text(sanitize_text(event.sandbox), style="dim")] if event.sandbox else []
        return Group(name, *below, Text(f"session {sanitize_text(event.session)}", style="dim"))

    def _end_thinking(self, seconds: float) -> None:
        self.last_thought = "".join(self._thoughts)
        self._thoughts.clear()
        self._add_piece(Text(f"Thought for {format_duration(seconds)}", style="dim"))
        if self.thinking and self.last_thought.strip():
            self._add_piece(Padding(Text(sanitize_text(self.last_thought.strip()), style="dim italic"), (0, 0, 0, 2)))

    def _end_call(self, event: ToolFinished) -> None:
        running = self._running.pop(event.call, None)
        decided = self._decisions.pop(event.call, None)
        output = "".join(running.output) if running else ""
        self.last_output = output or self.last_output
        why = (decided.words or decided.why) if decided and event.status == "denied" else ""
        self._add_piece(build_tool_card(event, output, why, self._indent))
        # An edit that the user approved was just shown in full.
        if event.diff and not (decided and decided.by == "person"):
            self._add_piece(Padding(build_edit_view(event.diff), (0, 0, 0, self._indent + 2)))

    def _add_blocks(self, blocks: Iterable[str]) -> None:
        for block in blocks:
            self._add_piece(MarkdownBlock(block), gap_before=True)
            self._needs_gap = True

    def _set_activity(self, activity: str, since: float) -> None:
        self._activity, self._activity_started = activity, since

    def _add_piece(self, piece: RenderableType, *, gap_before: bool = False) -> None:
        if gap_before or self._needs_gap:
            self._pieces.append(Text())
        self._pieces.append(piece)
        self._needs_gap = False

    def _flush_pieces(self) -> list[RenderableType]:
        settled, self._pieces = self._pieces, []
        return settled


def _build_allowance_line(event: CallDecided, indent: int) -> RenderableType:
    if event.by == "remembered":
        return build_line("✓", "green", Text(f"Allowed earlier: {to_one_line(event.why)}", style="dim"), indent)
    text = Text("Allowed by you", style="dim")
    if event.words:
        text.append(f". {sanitize_text(event.words)}")
    if event.remembered:
        allowed = "; ".join(map(describe_allowance, event.remembered))
        text.append(f"; until this session ends, also: {sanitize_text(allowed)}")
    return build_line("✓", "green", text, indent)


def render_stored_session(events: Iterable[StampedEvent], **settings: Any) -> list[RenderableType]:
    """Render a stored session as it was on the screen."""
    transcript = SessionTranscript(**settings)
    return [piece for event in events for piece in transcript.feed(event)] + transcript.close()
