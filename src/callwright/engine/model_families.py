"""Facts about model families: the table in `models.toml`. The first match counts."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache, lru_cache
from importlib.resources import files

import msgspec

from callwright.dialects import REGISTRY, Dialect, find_model_dialect

__all__ = ["RAW_HARMONY", "ModelFamily", "choose_prompt_dialect", "find_family", "load_families"]

_DEFAULT_PROMPT_DIALECT = "hermes"


class ModelFamily(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The facts about one family."""

    patterns: tuple[str, ...] = ()
    source: str = ""
    answer_dialect: str = "auto"
    prompt_dialect: str = ""
    vision: bool | None = None
    requires_reasoning_echo: bool = False
    """It refuses a history in which a call lacks its reasoning."""
    tools: bool | None = None
    terse: bool = False


RAW_HARMONY = ModelFamily(
    source="model card of gpt-oss; openai/harmony docs/format.md on what is kept of a chain of calls",
    answer_dialect="harmony",
    prompt_dialect="harmony",
    vision=False,
    requires_reasoning_echo=True,
)
"""The family of every model at a backend of kind `harmony`, whatever its name."""


class _FamilyTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    families: tuple[ModelFamily, ...]


@cache
def load_families() -> tuple[ModelFamily, ...]:
    """Load all entries, in order."""
    text = files("callwright.engine").joinpath("models.toml").read_bytes()
    return msgspec.toml.decode(text, type=_FamilyTable).families


@lru_cache(1024)
def find_family(model: str) -> ModelFamily:
    """Find the family of a model by its name. An unknown model has an entry of defaults."""
    name = model.lower()
    return next(
        (each for each in load_families() if any(fnmatchcase(name, one) for one in each.patterns)), ModelFamily()
    )


def choose_prompt_dialect(model: str) -> Dialect:
    """Choose the dialect that the prompt teaches a model: that of its family where known."""
    named = find_family(model).prompt_dialect
    return REGISTRY[named] if named else find_model_dialect(model) or REGISTRY[_DEFAULT_PROMPT_DIALECT]
