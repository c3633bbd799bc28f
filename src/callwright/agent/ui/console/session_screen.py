"""The terminal while a task runs: finished lines scroll up, the live region stays below them, keys are handled.

It tracks what has been printed: each event of the session is printed once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from prompt_toolkit.application import get_app_session
from rich.console import Console, Group, RenderableType
from rich.live import Live

from callwright.agent.session_api import SessionHandle
from callwright.agent.ui.console.session_transcript import SessionTranscript

__all__ = ["SessionScreen", "handle_keys"]


class SessionScreen:
    """One session on one console."""

    def __init__(self, console: Console, session: SessionHandle, transcript: SessionTranscript) -> None:
        self.console = console
        self.session = session
        self.transcript = transcript
        self.printed_count = 0
        """The number of printed events."""
        self.key_hint = ""
        """The effect of a key at the moment."""

    def print_new_events(self) -> None:
        """Print new events."""
        events = self.session.events[self.printed_count :]
        self.printed_count += len(events)
        self.print(*(piece for event in events for piece in self.transcript.feed(event)))

    def print(self, *pieces: RenderableType) -> None:
        """Print above the live region, all at once."""
        if pieces:
            self.console.print(Group(*pieces))

    @contextmanager
    def show_live_region(self) -> Iterator[Callable[[], None]]:
        """Show the live region; call the yielded function to redraw it."""
        live = Live(
            get_renderable=lambda: self.transcript.build_live_region(time.time(), self.key_hint),
            console=self.console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        with live:
            yield live.refresh


@contextmanager
def handle_keys(keys: Mapping[str, Callable[[], None]]) -> Iterator[None]:
    """Handle these keys when they are pressed. Other keys are dropped, so that none can answer a later prompt."""
    source = get_app_session().input

    def pressed() -> None:
        for press in source.read_keys():
            if act := keys.get(press.key):
                act()

    with source.raw_mode(), source.attach(pressed):
        yield
