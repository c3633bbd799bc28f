"""Settings of the store: the `[store]` table."""

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
"""Options allowed after `?` in an address: libpq's name, and asyncpg's name for it."""

_SCHEMES = ("sqlite", "postgresql", "postgres")
_ADDRESS_EXAMPLES = "sqlite:///file or postgresql://host/database"
_Limit = Annotated[int, msgspec.Meta(ge=0)]


class StoreSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[store]` table: where the journal, conversations and the usage are stored, and for how long."""

    journal: JournalLevel = "off"
    """What is recorded of each turn: nothing, the fields of the log, or everything, which allows a replay."""
    address: str = ""
    """`sqlite:///file` or `postgresql://user:password@host/database`; `env:NAME` reads it from an environment variable.
    Empty = `callwright/callwright.db` in the user's state folder."""
    days: _Limit = 30
    """Days after which journal entries and idle conversations are deleted. 0 = never. The usage is never deleted."""
    megabytes: _Limit = 512
    """Maximum size of the journal; the oldest entries are deleted first. 0 = no limit."""
    redact: tuple[str, ...] = ()
    """Regular expressions whose matches are masked before anything is written. Keys are always masked."""

    @property
    def display_address(self) -> str:
        """The address without user, password and query, safe to show."""
        parts = urlsplit(self.address)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if parts.scheme else ""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that must not be shown: the password in the address."""
        password = urlsplit(self.address).password
        return tuple({password, unquote(password)}) if password else ()

    def __repr__(self) -> str:
        return f"StoreSettings(address={self.display_address!r}, journal={self.journal!r})"


class StoreMistake(NamedTuple):
    """An invalid setting: its key, what is wrong with its value, and what to do."""

    key: str
    problem: str
    remedy: str


def find_mistakes(settings: StoreSettings) -> Iterator[StoreMistake]:
    """Yield every invalid setting. An address is never quoted, because it may contain a password."""
    if settings.address and (mistake := _find_address_mistake(settings.address)):
        yield StoreMistake("address", *mistake)
    for text in settings.redact:
        try:
            empty = re.compile(text).search("")
        except (re.error, OverflowError) as error:
            yield StoreMistake("redact", f"has {text!r}, which is not a regular expression", f"correct it: {error}")
        else:
            if empty:
                yield StoreMistake("redact", f"has {text!r}, which matches empty text", "match at least one character")


def _find_address_mistake(address: str) -> tuple[str, str] | None:
    invalid = "is not a database address", f"use {_ADDRESS_EXAMPLES}"
    try:
        parts = urlsplit(address)
        if not parts.scheme or parts.port == 0:
            return invalid
    except ValueError:
        return invalid
    if parts.scheme not in _SCHEMES:
        return f"begins with {parts.scheme!r}, which is not supported", "use sqlite or postgresql"
    if not parts.path.strip("/") or (parts.scheme == "sqlite" and parts.netloc):
        return "does not name a database", f"use {_ADDRESS_EXAMPLES}"
    unknown = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True) if name not in ADDRESS_OPTIONS]
    return (f"sets {', '.join(unknown)}", f"only {', '.join(ADDRESS_OPTIONS)} are supported") if unknown else None


def check_store_settings(settings: StoreSettings) -> None:
    """Raise `ConfigError` with every invalid setting."""
    if mistakes := [f"store.{each.key} {each.problem}; {each.remedy}" for each in find_mistakes(settings)]:
        raise ConfigError(mistakes)


def compile_redactions(settings: StoreSettings) -> tuple[re.Pattern[str], ...]:
    """Compile the patterns of `redact`."""
    return tuple(map(re.compile, settings.redact))
