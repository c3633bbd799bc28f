"""The header of a framed message: its role, channel, recipient and content type, with the mistakes that models make.

    assistant<|channel|>commentary to=functions.get_weather <|constrain|>json

Headers are read word by word, and each word is judged by its form rather than by its position: the recipient is
wherever `to=` stands. A word that belongs to no header is loose; two loose words in a row are the body of a message
whose `<|message|>` is missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

__all__ = [
    "ANALYSIS",
    "CHANNEL",
    "CHANNELS",
    "CONSTRAIN",
    "MESSAGE",
    "RECIPIENT_PREFIX",
    "START",
    "MessageHeader",
    "is_glued",
]

CHANNEL = "<|channel|>"
CONSTRAIN = "<|constrain|>"
RECIPIENT_PREFIX = "to="
START = "<|start|>"
MESSAGE = "<|message|>"
ASSISTANT = "assistant"
ANALYSIS = "analysis"
CHANNELS = (ANALYSIS, "commentary", "final")
CONTENT_TYPES = frozenset({"json", "code", "xml", "text", "python"})
FOREIGN_ROLES = frozenset({"system", "developer", "user", "tool"})

_MARKERS = (START, CHANNEL, CONSTRAIN, MESSAGE)
_NON_NAME = re.compile(r"[^\w./:-]")
_AFTER_MARKER = frozenset("*#{[")
_JUNK = re.compile(rf"(?:[^\w\s]|{'|'.join(CHANNELS)})*").fullmatch


class MessageHeader:
    """What is known of a message from its header.

    `addresses` are the recipients that are not tools, each with its channel, if any; `find` returns the tool that a
    recipient names, or an empty string.
    """

    def __init__(self, channels: tuple[str, ...], addresses: Mapping[str, str], find: Callable[[str], str]) -> None:
        self.channel = ""
        self.recipient = ""
        self.tool = ""
        self.role = ""
        self.section = ""
        self.has_type = False
        self.has_start = False
        """Whether `<|start|>` was read."""
        self.has_glued_role = False
        """Whether text is glued to the role, as in `assistantfinal`."""
        self.has_gap = False
        """Whether white space follows a channel that is glued to the role: it may be a word of the text instead."""
        self.oddities: list[str] = []
        self._channels = channels
        self._addresses = addresses
        self._find_tool = find
        self._is_front = True
        self._is_returned = False
        self._loose_parts: list[str] = []
        self._loose_word_count = 0

    def enter_section(self, section: str) -> None:
        """Start a section after its marker; loose words before it are dropped."""
        self._drop_loose()
        self.section = section
        self._is_front = True

    def add_word(self, word: str) -> None:
        """Add one word of the section."""
        front, self._is_front = self._is_front, False
        if word.startswith(RECIPIENT_PREFIX):
            self._set_recipient(word.removeprefix(RECIPIENT_PREFIX))
        elif front and not self.section:
            self._add_role_word(word)
        elif front and self.section == CHANNEL:
            self._add_channel_word(word)
        elif word in CONTENT_TYPES or (front and self.section == CONSTRAIN):
            self.has_type = True
            if word not in CONTENT_TYPES:
                self.oddities.append(f"type {word!r}")
        else:
            self._add_loose(word)

    def add_space(self, space: str) -> None:
        """Add white space between words."""
        if self._loose_parts:
            self._loose_parts.append(space)
        elif self.has_glued_role and self.channel:
            self.has_gap = True

    def finish_header(self) -> None:
        """End the header; loose words in it are dropped."""
        self._drop_loose()
        if self.section == CHANNEL and not self.channel and not self.oddities:
            self.oddities.append("no channel")

    @property
    def loose_text(self) -> str:
        """Words that belong to no header: the beginning of a body without its marker."""
        return "".join(self._loose_parts)

    @property
    def is_prose(self) -> bool:
        """Whether these words are a body rather than a header. A call waits for its arguments instead."""
        return (
            self._loose_word_count > 1
            and self.section != CONSTRAIN
            and not self.tool
            and not (self.has_start and self.is_foreign)
        )

    @property
    def is_foreign(self) -> bool:
        """Whether the message is from another role: the model invents a user or a tool result."""
        has_other_role = self.role not in ("", ASSISTANT)
        return (
            self.role in FOREIGN_ROLES or self.role.startswith("functions.") or (has_other_role and self._is_returned)
        )

    @property
    def is_partial(self) -> bool:
        """Whether the loose words may be the beginning of a word or a marker of a header."""
        return any(
            word.startswith(self.loose_text)
            for word in (*self._channels, ASSISTANT, RECIPIENT_PREFIX, *CONTENT_TYPES, *_MARKERS)
        )

    @property
    def is_empty(self) -> bool:
        """Whether the header has nothing but the assistant's role."""
        other_role = self.role if self.role != ASSISTANT else ""
        return not (self.channel or self.recipient or other_role or self.oddities or self._loose_parts or self.has_type)

    def _add_role_word(self, word: str) -> None:
        self.role = ASSISTANT
        rest = word.removeprefix(ASSISTANT)
        if not rest:
            return
        self.has_glued_role = rest != word
        if self.has_glued_role and rest.startswith(RECIPIENT_PREFIX):
            self._set_recipient(rest.removeprefix(RECIPIENT_PREFIX))
        elif self._begins_channel(rest):
            if not self.has_glued_role:
                self.oddities.append(f"role {word!r}")
            self._add_channel_word(rest)
        else:
            if not self.has_glued_role:
                self.role = word
            self._add_loose(rest)

    def _begins_channel(self, word: str) -> bool:
        name = self._find_channel(word)
        rest = word[len(name) :]
        return bool(name) and (not rest or rest.startswith(RECIPIENT_PREFIX) or is_glued(name, rest[0]))

    def _find_channel(self, word: str) -> str:
        return next((name for name in self._channels if word.startswith(name)), "")

    def _add_channel_word(self, word: str) -> None:
        name = self._find_channel(word)
        rest = word[len(name) :]
        self.channel = name or self.channel
        if name and rest.startswith(RECIPIENT_PREFIX):
            self._set_recipient(rest.removeprefix(RECIPIENT_PREFIX))
        elif not name and word in CONTENT_TYPES:
            self.has_type = True
            self.oddities.append(f"{CHANNEL} was written instead of {CONSTRAIN}")
        elif rest and _JUNK(rest):
            self.oddities.append(f"channel {word!r}")
        elif rest:
            self._add_loose(rest)

    def _set_recipient(self, recipient: str) -> None:
        name = _NON_NAME.split(recipient, 1)[0]
        if name != recipient:
            self.oddities.append(f"recipient {recipient!r}")
        if name in self._addresses:
            self.channel = self._addresses[name] or self.channel
            self._is_returned = self._is_returned or name == ASSISTANT
            return
        if self.recipient:
            self.oddities.append(f"recipients {self.recipient!r} and {name!r}")
        if not self.tool:
            self.recipient = name
            self.tool = self._find_tool(name)

    def _add_loose(self, word: str) -> None:
        self._loose_parts.append(word)
        self._loose_word_count += 1

    def _drop_loose(self) -> None:
        if self._loose_parts:
            self.oddities.append(f"{self.loose_text.strip()!r}")
            self._loose_parts.clear()
            self._loose_word_count = 0


def is_glued(channel: str, char: str) -> bool:
    """Whether text follows a channel's name so closely that a stripped marker stood between them.

    `final` begins English words; the other names do not.
    """
    return char in _AFTER_MARKER or (char.isalnum() and not (channel == "final" and char.islower()))
