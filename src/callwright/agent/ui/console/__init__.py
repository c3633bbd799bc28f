"""The terminal face: a person talks to the agent, line by line, and decides what it may do.

`transcript` is the view, a function of the events alone; everything else here is about keys and drawing.
"""

from callwright.agent.ui.console.interactive import run_terminal_ui

__all__ = ["run_terminal_ui"]
