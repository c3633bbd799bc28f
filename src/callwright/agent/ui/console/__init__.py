"""The terminal interface: the user talks to the agent line by line, and decides what it may do.

`session_transcript` is the view, a function of the events alone; the other modules handle keys and drawing.
"""

from callwright.agent.ui.console.interactive import run_terminal_ui

__all__ = ["run_terminal_ui"]
