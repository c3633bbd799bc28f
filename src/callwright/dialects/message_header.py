"""The header of a framed message: who speaks, on which channel, to whom, in what type; and what models make of it.

    assistant<|channel|>commentary to=functions.get_weather <|constrain|>json

Headers are read word by word, and each word is judged by its own form rather than by its place: the
recipient is wherever `to=` stands. What is no header at all ends it: two such words in a row are the
body of a message whose `<|message|>` is missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

__all__ = ["ANALYSIS", "CHANNEL", "CHANNELS", "CONSTRAIN", "MESSAGE", "START", "TO", "Header", "is_glued"]

CHANNEL = "<|channel|>"
CONSTRAIN = "<|constrain|>"
TO = "to="
START = "<|start|>"
MESSAGE = "<|message|>"
ASSISTANT = "assistant"
ANALYSIS = "analysis"
CHANNELS = (ANALYSIS, "commentary", "final")
TYPES = frozenset({"json", "code", "xml", "text", "python"})
FOREIGN = frozenset({"system", "developer", "user", "tool"})

_MARKERS = (START, CHANNEL, CONSTRAIN, MESSAGE)
_NO_NAME = re.compile(r"[^\w./:-]")
_AFTER_MARKER = frozenset("*#{[")
_JUNK = re.compile(rf"(?:[^\w\s]|{'|'.join(CHANNELS)})*").fullmatch


class Header:
    """What is known of a message from its header.

    `addresses` are the recipients that are no tools, with the channel that each one means, if any;
    `find` gives the offered tool that a recipient names, or nothing.
    """

    def __init__(self, channels: tuple[str, ...], addresses: Mapping[str, str], find: Callable[[str], str]) -> None:
        self.channel = ""
        self.recipient = ""
        self.tool = ""
        self.role = ""
        self.section = ""
        self.typed = False
        self.started = False
        """`<|start|>` was read."""
        self.glued = False
        """Something is glued to the role, as in `assistantfinal`."""
        self.gap = False
        """White space follows a channel that is glued to the role: it may be no channel but a word of the text."""
        self.odd: list[str] = []
        self._channels = channels
        self._addresses = addresses
        self._find = find
        self._front = True
        self._returned = False
        self._loose: list[str] = []
        self._words = 0

    def enter(self, section: str) -> None:
        """A marker opens a section; what was loose before it is junk."""
        self._drop_loose()
        self.section = section
        self._front = True

    def word(self, word: str) -> None:
        """One word of the section."""
        front, self._front = self._front, False
        if word.startswith(TO):
            self._address(word.removeprefix(TO))
        elif front and not self.section:
            self._role_word(word)
        elif front and self.section == CHANNEL:
            self._channel_word(word)
        elif word in TYPES or (front and self.section == CONSTRAIN):
            self.typed = True
            if word not in TYPES:
                self.odd.append(f"type {word!r}")
        else:
            self._add_loose(word)

    def space(self, space: str) -> None:
        """White space between words."""
        if self._loose:
            self._loose.append(space)
        elif self.glued and self.channel:
            self.gap = True

    def message(self) -> None:
        """The header is over: what is loose in it is junk."""
        self._drop_loose()
        if self.section == CHANNEL and not self.channel and not self.odd:
            self.odd.append("no channel")

    @property
    def loose(self) -> str:
        """Words that are no header: the beginning of a body that nothing announced."""
        return "".join(self._loose)

    @property
    def is_prose(self) -> bool:
        """Whether these words are a body rather than a header. A call waits for its arguments instead."""
        return self._words > 1 and self.section != CONSTRAIN and not self.tool and not (self.started and self.foreign)

    @property
    def foreign(self) -> bool:
        """Whether somebody else speaks: the model makes up a user or the result of a tool."""
        named = self.role not in ("", ASSISTANT)
        return self.role in FOREIGN or self.role.startswith("functions.") or (named and self._returned)

    @property
    def partial(self) -> bool:
        """Whether the loose words may be the beginning of a word or a marker that belongs into a header."""
        return any(word.startswith(self.loose) for word in (*self._channels, ASSISTANT, TO, *TYPES, *_MARKERS))

    @property
    def empty(self) -> bool:
        """Whether nothing was said beyond that the assistant speaks."""
        spoken = self.role if self.role != ASSISTANT else ""
        return not (self.channel or self.recipient or spoken or self.odd or self._loose or self.typed)

    def _role_word(self, word: str) -> None:
        self.role = ASSISTANT
        rest = word.removeprefix(ASSISTANT)
        if not rest:
            return
        self.glued = rest != word
        if self.glued and rest.startswith(TO):
            self._address(rest.removeprefix(TO))
        elif self._begins_channel(rest):
            if not self.glued:
                self.odd.append(f"role {word!r}")
            self._channel_word(rest)
        else:
            if not self.glued:
                self.role = word
            self._add_loose(rest)

    def _begins_channel(self, word: str) -> bool:
        name = self._channel_of(word)
        rest = word[len(name) :]
        return bool(name) and (not rest or rest.startswith(TO) or is_glued(name, rest[0]))

    def _channel_of(self, word: str) -> str:
        return next((name for name in self._channels if word.startswith(name)), "")

    def _channel_word(self, word: str) -> None:
        name = self._channel_of(word)
        rest = word[len(name) :]
        self.channel = name or self.channel
        if name and rest.startswith(TO):
            self._address(rest.removeprefix(TO))
        elif not name and word in TYPES:
            self.typed = True
            self.odd.append(f"{CHANNEL} stood for {CONSTRAIN}")
        elif rest and _JUNK(rest):
            self.odd.append(f"channel {word!r}")
        elif rest:
            self._add_loose(rest)

    def _address(self, recipient: str) -> None:
        name = _NO_NAME.split(recipient, 1)[0]
        if name != recipient:
            self.odd.append(f"recipient {recipient!r}")
        if name in self._addresses:
            self.channel = self._addresses[name] or self.channel
            self._returned = self._returned or name == ASSISTANT
            return
        if self.recipient:
            self.odd.append(f"recipients {self.recipient!r} and {name!r}")
        if not self.tool:
            self.recipient = name
            self.tool = self._find(name)

    def _add_loose(self, word: str) -> None:
        self._loose.append(word)
        self._words += 1

    def _drop_loose(self) -> None:
        if self._loose:
            self.odd.append(f"{self.loose.strip()!r}")
            self._loose.clear()
            self._words = 0


def is_glued(channel: str, char: str) -> bool:
    """Whether text follows a channel's name so closely that a stripped marker stood between them.

    `final` begins English words; the other names do not.
    """
    return char in _AFTER_MARKER or (char.isalnum() and not (channel == "final" and char.islower()))
