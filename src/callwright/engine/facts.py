"""What is known about model families: the table in `models.toml`, first match wins."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache, lru_cache
from importlib.resources import files

import msgspec

from callwright.dialects import REGISTRY, Dialect, find_model_dialect

__all__ = ["RAW_HARMONY", "Facts", "facts_of", "table", "taught_in"]

_TAUGHT_OTHERWISE = "hermes"


class Facts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One family's entry."""

    patterns: tuple[str, ...] = ()
    source: str = ""
    reads: str = "auto"
    teach: str = ""
    vision: bool | None = None
    reasons_on: bool = False
    """It refuses a round of calls whose reasoning does not come back."""
    tools: bool | None = None
    terse: bool = False


RAW_HARMONY = Facts(
    source="model card of gpt-oss; openai/harmony docs/format.md on what is kept of a chain of calls",
    reads="harmony",
    teach="harmony",
    vision=False,
    reasons_on=True,
)
"""Of whatever a backend of the kind `harmony` has, and whatever it is called there."""


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    families: tuple[Facts, ...]


@cache
def table() -> tuple[Facts, ...]:
    """All entries, in order."""
    text = files("callwright.engine").joinpath("models.toml").read_bytes()
    return msgspec.toml.decode(text, type=_Table).families


@lru_cache(1024)
def facts_of(model: str) -> Facts:
    """What is known about a model of this name; an entry of defaults when nothing is."""
    name = model.lower()
    return next((each for each in table() if any(fnmatchcase(name, one) for one in each.patterns)), Facts())


def taught_in(model: str) -> Dialect:
    """The dialect that a model is taught: its family's own where that is known."""
    named = facts_of(model).teach
    return REGISTRY[named] if named else find_model_dialect(model) or REGISTRY[_TAUGHT_OTHERWISE]
