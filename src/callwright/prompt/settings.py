"""What a person sets about the prompt of one model: how its history is mended, and what it is spared."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

__all__ = ["DietSettings", "HistorySettings"]

_Count = Annotated[int, msgspec.Meta(ge=0)]


class HistorySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `history` table inside a model's: what becomes of earlier messages before they are sent."""

    repair: bool = True
    """Give every call its one result and every result its call, unique ids, and arguments that are JSON objects."""
    leaks: bool = True
    """Turn calls of offered tools that stand in the text of earlier answers into calls: they teach a model to leak."""
    roles: Literal["as-sent", "strict"] = "as-sent"
    """`strict`: instructions first, in one message, and neighbours of one role joined, as many templates demand."""
    reasoning: Literal["keep", "drop"] = "keep"
    """Whether a server gets to see what was thought in earlier turns; some demand it and some refuse it."""
    result_images: Literal["auto", "keep", "move"] = "auto"
    """Pictures in tool results stay there or move to a user's message; `auto` moves them where the API has no place."""


class DietSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `diet` table inside a model's: which tools it is offered, how briefly, and what becomes of long prompts."""

    allow: tuple[str, ...] = ()
    """Tools that are offered, by name or pattern such as `read_*`. Empty: all."""
    deny: tuple[str, ...] = ()
    """Tools that are not; this comes before `allow`."""
    max_tools: _Count = 0
    """How many are offered: those that were called, are named or fit the user's words best. 0: any number."""
    max_description: _Count = 0
    """Characters of a description; a longer one is cut after a sentence. 0: any number."""
    slim: bool = False
    """Leave out of schemas what only people read: titles, examples, comments."""
    inline_refs: bool = True
    """Put the target of each `$ref` in its place; some services refuse schemas with references."""
    drop_null: bool = False
    """Do not tell that a parameter may be null."""
    alias_names: bool = True
    """Tell tools whose names are over 64 characters long, or have odd ones, under another name that services take."""
    overflow: Literal["refuse", "condense", "send"] = "refuse"
    """A prompt that does not fit the window: refused with the numbers, shortened at its oldest part, or sent as is."""
    reserve: _Count = 1024
    """Tokens of the window that are kept for the answer."""
