"""What a person sets about the store: where it is, what it keeps, and for how long."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Literal, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from callwright.errors import ConfigError

__all__ = [
    "ADDRESS_OPTIONS",
    "JournalLevel",
    "StoreMistake",
    "StoreSettings",
    "check_store_settings",
    "compile_redactions",
    "find_mistakes",
]

JournalLevel = Literal["off", "meta", "full"]

ADDRESS_OPTIONS = {"sslmode": "ssl", "ssl": "ssl", "host": "host", "port": "port"}
"""What may follow `?` in an address: libpq's name, and that of asyncpg."""

_SCHEMES = ("sqlite", "postgresql", "postgres")
_ADDRESS_EXAMPLES = "sqlite:///file or postgresql://host/database"
_Limit = Annotated[int, msgspec.Meta(ge=0)]


class StoreSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[store]` table: where conversations and the journal are kept, and how much of it."""

    journal: JournalLevel = "off"
    """What is kept of each turn: nothing, what the log says of it, or everything, so that it can be replayed."""
    address: str = ""
    """`sqlite:///file` or `postgresql://user:password@host/database`, or `env:NAME` for what that variable says; empty
    for `callwright/callwright.db` in the user's state folder."""
    days: _Limit = 30
    """How long rows and idle conversations are kept; 0 for ever."""
    megabytes: _Limit = 512
    """How much the journal may hold; the oldest rows go first. 0 for any amount."""
    redact: tuple[str, ...] = ()
    """Regular expressions; what they match is masked before it is written. Keys always are."""

    @property
    def display_address(self) -> str:
        """The address as it may be shown: without user, password and query."""
        parts = urlsplit(self.address)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if parts.scheme else ""

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown to anybody: the password in the address."""
        password = urlsplit(self.address).password
        return tuple({password, unquote(password)}) if password else ()

    def __repr__(self) -> str:
        return f"StoreSettings(address={self.display_address!r}, journal={self.journal!r})"


class StoreMistake(NamedTuple):
    """Something that a type cannot say: a key, what is wrong with its value, and what to do."""

    key: str
    problem: str
    remedy: str


def find_mistakes(settings: StoreSettings) -> Iterator[StoreMistake]:
    """Everything that is wrong. An address is never quoted: it may hold a password."""
    if settings.address and (wrong := _find_address_mistake(settings.address)):
        yield StoreMistake("address", *wrong)
    for text in settings.redact:
        try:
            empty = re.compile(text).search("")
        except (re.error, OverflowError) as error:
            yield StoreMistake("redact", f"has {text!r}, which is no regular expression", f"mend it: {error}")
        else:
            if empty:
                yield StoreMistake("redact", f"has {text!r}, which matches empty text", "name at least one character")


def _find_address_mistake(address: str) -> tuple[str, str] | None:
    nowhere = "is no address of a database", f"it must look like {_ADDRESS_EXAMPLES}"
    try:
        parts = urlsplit(address)
        if not parts.scheme or parts.port == 0:
            return nowhere
    except ValueError:
        return nowhere
    if parts.scheme not in _SCHEMES:
        return f"begins with {parts.scheme!r}, which is not known", "use sqlite or postgresql"
    if not parts.path.strip("/") or (parts.scheme == "sqlite" and parts.netloc):
        return "names no database", f"use {_ADDRESS_EXAMPLES}"
    unknown = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True) if name not in ADDRESS_OPTIONS]
    return (f"sets {', '.join(unknown)}", f"only {', '.join(ADDRESS_OPTIONS)} can be set there") if unknown else None


def check_store_settings(settings: StoreSettings) -> None:
    """Raise `ConfigError` with every mistake."""
    if wrong := [f"store.{each.key} {each.problem}; {each.remedy}" for each in find_mistakes(settings)]:
        raise ConfigError(wrong)


def compile_redactions(settings: StoreSettings) -> tuple[re.Pattern[str], ...]:
    """The expressions of `redact`, ready for use."""
    return tuple(map(re.compile, settings.redact))
