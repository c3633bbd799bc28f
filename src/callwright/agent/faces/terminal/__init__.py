"""The terminal face: a person talks to the agent, line by line, and decides what it may do.

`transcript` is the view, a function of the events alone; everything else here is about keys and drawing.
"""

from callwright.agent.faces.terminal.talking import talk

__all__ = ["talk"]
