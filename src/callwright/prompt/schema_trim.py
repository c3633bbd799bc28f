"""Shorten tool descriptions, and simplify schemas for services with restrictions.

Too many tools overload models: 44 of them are 22,000 tokens, and an 8B model that fails with 259 works with one
(claude-code #25857). Gemini and Moonshot refuse `$ref`, `$defs` and `anyOf`, and with them every turn (opencode
#12295). Only text for people is removed; the allowed values stay the same, except that recursion ends after one level,
and that settings may exclude null and unlimited values. Each schema is processed once and cached.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any

import msgspec

from callwright.input_limits import MAX_INLINED_CHARACTERS, MAX_INLINED_GROWTH, WorkBudget
from callwright.model import ToolSpec
from callwright.prompt.schema_bounds import bound_schema
from callwright.prompt.settings import ToolLimitSettings

__all__ = ["trim_tool", "truncate_text"]

_ANNOTATION_KEYWORDS = (
    "title",
    "examples",
    "example",
    "$schema",
    "$id",
    "$comment",
    "deprecated",
    "readOnly",
    "writeOnly",
)
_SCHEMA_KEYWORDS = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_SCHEMA_LIST_KEYWORDS = ("anyOf", "oneOf", "allOf", "prefixItems", "items")
_SCHEMA_MAP_KEYWORDS = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
_DEFINITION_KEYWORDS = ("$defs", "definitions")
_MAX_DEPTH = 64
_SENTENCE_END = re.compile(r"[.!?。](?=\s|$)|\n")

_SchemaBody = dict[str, Any]


class _SchemaTooLargeError(Exception):
    """The schema would become too large."""


def trim_tool(tool: ToolSpec, settings: ToolLimitSettings) -> ToolSpec:
    """Shorten the tool as the settings require."""
    return ToolSpec(
        tool.name,
        truncate_text(tool.description, settings.max_description),
        _trim_schema(msgspec.json.encode(tool.parameters), settings),
    )


def truncate_text(text: str, max_length: int) -> str:
    """Truncate the text after the last sentence that fits; a first sentence that is too long is cut. 0 means no
    limit."""
    if not max_length or len(text) <= max_length:
        return text
    head = text[:max_length]
    ends = [match.end() for match in _SENTENCE_END.finditer(text, 0, max_length + 1) if match.end() <= max_length]
    return head[: ends[-1]].rstrip() if ends else f"{head[: max_length - 1].rstrip()}…"


@lru_cache(4096)
def _trim_schema(encoded: bytes, settings: ToolLimitSettings) -> _SchemaBody:
    body = msgspec.json.decode(encoded)
    if settings.inline_refs and b'"$ref"' in encoded:
        with suppress(_SchemaTooLargeError):
            body = _RefInliner(body, len(encoded)).inline_schema(body, ())
    brief: _SchemaBody = _trim_node(body, settings)
    # An empty schema is a tool without parameters.
    return bound_schema(brief) if settings.terse and brief else brief


def _map_subschemas(body: _SchemaBody, change: Callable[[Any], Any]) -> _SchemaBody:
    """Change the schemas directly below a schema; enums, defaults and names are unchanged."""
    changed = dict(body)
    for key, value in body.items():
        if key in _SCHEMA_MAP_KEYWORDS and isinstance(value, dict):
            changed[key] = {name: change(each) for name, each in value.items()}
        elif key in _SCHEMA_LIST_KEYWORDS and isinstance(value, list):
            changed[key] = [change(each) for each in value]
        elif key in _SCHEMA_KEYWORDS and isinstance(value, dict):
            changed[key] = change(value)
    return changed


class _RefInliner:
    """Replaces references by their targets. `trail` has the references on the path."""

    def __init__(self, root: _SchemaBody, size: int) -> None:
        self._root = root
        self._targets: dict[str, tuple[_SchemaBody, int]] = {}
        """The target of each reference, and its size."""
        self._budget = WorkBudget(MAX_INLINED_CHARACTERS + MAX_INLINED_GROWTH * size)

    def inline_schema(self, body: Any, trail: tuple[str, ...], depth: int = 0) -> Any:
        if not isinstance(body, dict):
            return body
        if depth > _MAX_DEPTH:
            raise _SchemaTooLargeError
        ref = body.get("$ref")
        if isinstance(ref, str) and ref.startswith("#"):
            beside = {key: value for key, value in body.items() if key != "$ref"}
            if ref not in self._targets:
                found = self._resolve_ref(ref)
                self._targets[ref] = found, len(msgspec.json.encode(found))
            target, size = self._targets[ref]
            if not self._budget.take_amount(size):
                raise _SchemaTooLargeError
            if ref in trail:  # recursion: deeper levels allow anything of the same type
                target = {"type": target["type"]} if "type" in target else {}
            return self.inline_schema({**target, **beside}, (*trail, ref), depth + 1)
        # Definitions are inlined where they are used.
        body = {key: value for key, value in body.items() if key not in _DEFINITION_KEYWORDS}
        return _map_subschemas(body, lambda each: self.inline_schema(each, trail, depth + 1))

    def _resolve_ref(self, ref: str) -> _SchemaBody:
        target: Any = self._root
        for step in ref.removeprefix("#").split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            target = target.get(name) if isinstance(target, dict) else None
        return target if isinstance(target, dict) else {}


def _trim_node(body: Any, settings: ToolLimitSettings) -> Any:
    if not isinstance(body, dict):  # a schema may be `true`
        return body
    if settings.trim_schemas:
        body = {key: value for key, value in body.items() if key not in _ANNOTATION_KEYWORDS}
    if settings.drop_null:
        body = _drop_null(body)
    if isinstance(body.get("description"), str):
        body = {**body, "description": truncate_text(body["description"], settings.max_description)}
    return _map_subschemas(body, lambda each: _trim_node(each, settings))


def _drop_null(body: _SchemaBody) -> _SchemaBody:
    """Simplify a choice between a schema and null to that schema."""
    if isinstance(body.get("type"), list):
        kinds = [kind for kind in body["type"] if kind != "null"]
        body = {**body, "type": kinds[0] if len(kinds) == 1 else kinds} if kinds else body
    for word in ("anyOf", "oneOf"):
        branches = body.get(word)
        if not isinstance(branches, list):
            continue
        others = [each for each in branches if not (isinstance(each, dict) and each.get("type") == "null")]
        if len(others) == 1 < len(branches) and isinstance(others[0], dict):
            beside = {key: value for key, value in body.items() if key != word}
            body = _drop_null({**others[0], **beside})
        elif others:
            body = {**body, word: others}
    return {key: value for key, value in body.items() if key != "nullable"}
