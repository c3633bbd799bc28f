"""What a person sets about the store: where it is, what it keeps, and for how long."""

from __future__ import annotations

import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec

from callwright.errors import ConfigError

__all__ = ["Keep", "StoreSettings", "patterns"]

Keep = Literal["off", "meta", "full"]

_Limit = Annotated[int, msgspec.Meta(ge=0)]


class StoreSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[store]` table: where conversations and the journal are kept, and how much of it."""

    address: str = ""
    """`sqlite:///file` or `postgresql://user:password@host/database`; empty for a file in the user's state folder."""
    keep: Keep = "meta"
    """What the journal has of each turn: nothing, all but the words, or everything."""
    days: _Limit = 30
    """How long rows and idle conversations are kept; 0 for ever."""
    megabytes: _Limit = 512
    """How much the journal may hold; the oldest rows go first. 0 for any amount."""
    redact: tuple[str, ...] = ()
    """Regular expressions; what they match is masked before it is written. Keys always are."""

    @property
    def shown(self) -> str:
        """The address as it may be shown: without user, password and query."""
        parts = urlsplit(self.address)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if parts.scheme else ""

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown to anybody: the password in the address."""
        password = urlsplit(self.address).password
        return (password,) if password else ()

    def __repr__(self) -> str:
        return f"StoreSettings(address={self.shown!r}, keep={self.keep!r})"


def patterns(settings: StoreSettings) -> tuple[re.Pattern[str], ...]:
    """The expressions of `redact`, ready for use. `ConfigError` names each one that is wrong."""
    found, mistakes = [], []
    for text in settings.redact:
        try:
            found.append(re.compile(text))
        except re.error as error:
            mistakes.append(f"store.redact: {text!r} is no regular expression: {error}")
    if mistakes:
        raise ConfigError(mistakes)
    return tuple(found)
