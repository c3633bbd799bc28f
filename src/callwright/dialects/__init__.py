"""The registry of dialects: every id, with the names by which people and servers know it."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType

from callwright.dialects import (
    arg_pairs,
    atem,
    bare_json,
    deepseek,
    elements,
    function_tags,
    functionary,
    gemma,
    harmony,
    header_json,
    hermes,
    inkling,
    invoke_tags,
    json_array,
    kimi,
    minimax_m3,
    mistral,
    python_calls,
    tagged_json,
    use_tool,
    xtml,
    yaml_xml,
)
from callwright.dialects.auto import TOKEN_PREFIXES, TURN_END_TOKENS, AutoDialect
from callwright.dialects.base import Dialect
from callwright.errors import MisuseError

__all__ = ["REGISTRY", "Dialect", "find_model_dialect", "get_dialect", "register_dialect"]

_FAMILY_MODULES = (
    hermes,
    tagged_json,
    inkling,
    json_array,
    header_json,
    mistral,
    kimi,
    deepseek,
    functionary,
    harmony,
    function_tags,
    arg_pairs,
    invoke_tags,
    xtml,
    atem,
    elements,
    minimax_m3,
    yaml_xml,
    use_tool,
    python_calls,
    gemma,
    bare_json,
)

_MEMBER_DIALECTS = tuple(dialect for family in _FAMILY_MODULES for dialect in family.DIALECTS)


def _is_reasoning_tag(marker: str) -> bool:
    """Whether a reasoning marker is a tag: not plain words, which prose has too, and not a token of one family's
    frame."""
    return not marker[0].isalpha() and not marker.startswith("<|")


def _build_auto_dialect(members: tuple[Dialect, ...]) -> Dialect:
    return AutoDialect(
        name="auto",
        shape="auto",
        models="any model whose dialect is not known",
        source="the registry of dialects itself",
        members=members,
        framing=TURN_END_TOKENS,
        reasoning_tags=tuple(
            dict.fromkeys(tags for one in members for tags in one.reasoning_tags if _is_reasoning_tag(tags.open))
        ),
        # Tokens of one model may be plain text for another, unless they cannot occur in ordinary text.
        tokens=frozenset(token for one in members for token in one.tokens if token.startswith(TOKEN_PREFIXES)),
        text_tags=True,
    )


_dialects: dict[str, Dialect] = {
    dialect.name: dialect for dialect in (*_MEMBER_DIALECTS, _build_auto_dialect(_MEMBER_DIALECTS))
}
REGISTRY: Mapping[str, Dialect] = MappingProxyType(_dialects)
"""Every dialect by its id, `auto` last."""

_dialects_by_parser = {parser: dialect for dialect in REGISTRY.values() for parser in dialect.parsers}


def register_dialect(dialect: Dialect) -> None:
    """Add a dialect to the registry. `auto` listens for it from now on; parsers that exist do not change.

    Raises `MisuseError` when its id or one of its parser names is taken.
    """
    taken = [name for name in (dialect.name, *dialect.parsers) if name in _dialects or name in _dialects_by_parser]
    if taken:
        raise MisuseError(f"the dialect {dialect.name!r} cannot be registered: {taken[0]!r} is taken")
    members = (*(one for one in _dialects.values() if one.name != "auto"), dialect)
    del _dialects["auto"]
    _dialects.update({dialect.name: dialect, "auto": _build_auto_dialect(members)})
    _dialects_by_parser.update(dict.fromkeys(dialect.parsers, dialect))


def get_dialect(name: str) -> Dialect:
    """Return the dialect with this id, `--tool-call-parser` name (vLLM, SGLang) or model name."""
    dialect = (
        REGISTRY.get(name)
        or _dialects_by_parser.get(name)
        or REGISTRY.get(name.replace("-", "_"))
        or find_model_dialect(name)
    )
    if dialect is None:
        names = ", ".join(sorted(REGISTRY))
        raise MisuseError(f"unknown dialect, parser or model {name!r}; the dialects are: {names}")
    return dialect


def find_model_dialect(model: str) -> Dialect | None:
    """Return the dialect of a model by the longest pattern that matches its name; None if there is none."""
    lowered = model.lower()
    matches = [
        (len(pattern), dialect)
        for dialect in REGISTRY.values()
        for pattern in dialect.patterns
        if fnmatchcase(lowered, pattern)
    ]
    return max(matches, key=lambda match: match[0])[1] if matches else None
