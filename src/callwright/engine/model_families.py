"""What is known about model families: the table in `models.toml`, first match wins."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache, lru_cache
from importlib.resources import files

import msgspec

from callwright.dialects import REGISTRY, Dialect, find_model_dialect

__all__ = ["RAW_HARMONY", "ModelFamily", "choose_prompt_dialect", "find_family", "load_families"]

_DEFAULT_PROMPT_DIALECT = "hermes"


class ModelFamily(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One family's entry."""

    patterns: tuple[str, ...] = ()
    source: str = ""
    answer_dialect: str = "auto"
    prompt_dialect: str = ""
    vision: bool | None = None
    requires_reasoning_echo: bool = False
    """It refuses a round of calls whose reasoning does not come back."""
    tools: bool | None = None
    terse: bool = False


RAW_HARMONY = ModelFamily(
    source="model card of gpt-oss; openai/harmony docs/format.md on what is kept of a chain of calls",
    answer_dialect="harmony",
    prompt_dialect="harmony",
    vision=False,
    requires_reasoning_echo=True,
)
"""Of whatever a backend of the kind `harmony` has, and whatever it is called there."""


class _FamilyTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    families: tuple[ModelFamily, ...]


@cache
def load_families() -> tuple[ModelFamily, ...]:
    """All entries, in order."""
    text = files("callwright.engine").joinpath("models.toml").read_bytes()
    return msgspec.toml.decode(text, type=_FamilyTable).families


@lru_cache(1024)
def find_family(model: str) -> ModelFamily:
    """What is known about a model of this name; an entry of defaults when nothing is."""
    name = model.lower()
    return next(
        (each for each in load_families() if any(fnmatchcase(name, one) for one in each.patterns)), ModelFamily()
    )


def choose_prompt_dialect(model: str) -> Dialect:
    """The dialect that a model is taught: its family's own where that is known."""
    named = find_family(model).prompt_dialect
    return REGISTRY[named] if named else find_model_dialect(model) or REGISTRY[_DEFAULT_PROMPT_DIALECT]
