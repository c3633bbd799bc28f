"""Retold: messages as one text, for a service that is sent one message at a time and keeps the others by itself.

What is new goes as it is. What was said before, where the service does not have it, stands in front under headings,
which nothing that was said can imitate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from callwright.model import Message
from callwright.prompt.transcript import Template, transcript
from callwright.prompt.words import text_of

__all__ = ["Told", "one_message"]

_EARLIER = "What was said so far:\n\n"
_NEWEST = "=== Now ===\n"

_HEADED = Template(
    before="=== {role} ===\n",
    after="\n\n",
    answer="",
    roles={"user": "User", "assistant": "Assistant", "tool": "Results"},
    stops=(),
    marker=r"(?m)^=== (User|Assistant|Results|Now) ===",
    broken=r"== \1 ==",
)
_PLAIN = Template(before="", after="\n\n", answer="", roles={}, stops=(), marker=r"(?!)", broken="")


class Told(NamedTuple):
    """What is sent in one message."""

    prompt: str
    system: str
    """What the system messages say, for services that have a place for it."""


def one_message(messages: Sequence[Message]) -> Told:
    """The messages as one; all up to the last answer are earlier ones."""
    system = [text_of(message) for message in messages if message.role in ("system", "developer")]
    others = [message for message in messages if message.role not in ("system", "developer")]
    answered = max((at for at, message in enumerate(others, 1) if message.role == "assistant"), default=0)
    newest = transcript(others[answered:], _PLAIN).removesuffix(_PLAIN.after)
    earlier = _EARLIER + transcript(others[:answered], _HEADED) + _NEWEST if answered else ""
    return Told(earlier + newest, "\n\n".join(system))
