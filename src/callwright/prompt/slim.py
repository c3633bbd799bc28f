"""Slim: tools told in fewer words, and schemas that picky services take.

Models drown in tools: 44 of them are 22,000 tokens, and an 8B model that fails with 259 works with one (claude-code
#25857). Gemini and Moonshot refuse `$ref`, `$defs` and `anyOf`, and with them every turn (opencode #12295). What is
left out here only people read; what a value may be stays as it was, but for recursion, which ends after one round, and
for null and values without an end where a setting says so. A schema is worked on once; after that it is looked up.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any

import msgspec

from callwright.model import ToolSpec
from callwright.prompt.settings import DietSettings
from callwright.prompt.terse import bounded

__all__ = ["cut", "slimmed"]

_FOR_PEOPLE = ("title", "examples", "example", "$schema", "$id", "$comment", "deprecated", "readOnly", "writeOnly")
_ONE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems", "items")
_MAPS = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
_DEFINITIONS = ("$defs", "definitions")
_MAX_DEPTH = 64
_MAX_NODES = 20_000
"""More than any tool has; references that multiply each other reach it quickly."""
_SENTENCE_END = re.compile(r"[.!?。](?=\s|$)|\n")

_Body = dict[str, Any]


class _TooLargeError(Exception):
    """The schema would grow beyond what anybody reads."""


def slimmed(tool: ToolSpec, settings: DietSettings) -> ToolSpec:
    """The tool as briefly as the settings say."""
    return ToolSpec(
        tool.name,
        cut(tool.description, settings.max_description),
        _slim(msgspec.json.encode(tool.parameters), settings),
    )


def cut(text: str, most: int) -> str:
    """The text up to the last sentence that fits; a first sentence that does not is cut inside. 0: all of it."""
    if not most or len(text) <= most:
        return text
    head = text[:most]
    ends = [found.end() for found in _SENTENCE_END.finditer(text, 0, most + 1) if found.end() <= most]
    return head[: ends[-1]].rstrip() if ends else f"{head[: most - 1].rstrip()}…"


@lru_cache(4096)
def _slim(encoded: bytes, settings: DietSettings) -> _Body:
    body = msgspec.json.decode(encoded)
    if settings.inline_refs and b'"$ref"' in encoded:
        with suppress(_TooLargeError):
            body = _Inlining(body).schema(body, ())
    brief: _Body = _brief(body, settings)
    # Nothing at all is a tool without parameters.
    return bounded(brief) if settings.terse and brief else brief


def _below(body: _Body, change: Callable[[Any], Any]) -> _Body:
    """A schema with the schemas directly below it changed; enums, defaults and names stay what they are."""
    changed = dict(body)
    for key, value in body.items():
        if key in _MAPS and isinstance(value, dict):
            changed[key] = {name: change(each) for name, each in value.items()}
        elif key in _LISTS and isinstance(value, list):
            changed[key] = [change(each) for each in value]
        elif key in _ONE and isinstance(value, dict):
            changed[key] = change(value)
    return changed


class _Inlining:
    """Puts targets in the place of references. `trail` has the references that led to a place."""

    def __init__(self, root: _Body) -> None:
        self._root = root
        self._nodes = 0

    def schema(self, body: Any, trail: tuple[str, ...], depth: int = 0) -> Any:
        if not isinstance(body, dict):
            return body
        self._nodes += 1
        if self._nodes > _MAX_NODES or depth > _MAX_DEPTH:
            raise _TooLargeError
        ref = body.get("$ref")
        if isinstance(ref, str) and ref.startswith("#"):
            beside = {key: value for key, value in body.items() if key != "$ref"}
            target = self._target(ref)
            if ref in trail:  # recursion: what is further in may be anything of the same type
                target = {"type": target["type"]} if "type" in target else {}
            return self.schema({**target, **beside}, (*trail, ref), depth + 1)
        # Definitions are written where they are used.
        body = {key: value for key, value in body.items() if key not in _DEFINITIONS}
        return _below(body, lambda each: self.schema(each, trail, depth + 1))

    def _target(self, ref: str) -> _Body:
        target: Any = self._root
        for step in ref.removeprefix("#").split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            target = target.get(name) if isinstance(target, dict) else None
        return target if isinstance(target, dict) else {}


def _brief(body: Any, settings: DietSettings) -> Any:
    if not isinstance(body, dict):  # a schema may be `true`
        return body
    if settings.slim:
        body = {key: value for key, value in body.items() if key not in _FOR_PEOPLE}
    if settings.drop_null:
        body = _without_null(body)
    if isinstance(body.get("description"), str):
        body = {**body, "description": cut(body["description"], settings.max_description)}
    return _below(body, lambda each: _brief(each, settings))


def _without_null(body: _Body) -> _Body:
    """A choice between something and null, as that something."""
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
            body = _without_null({**others[0], **beside})
        elif others:
            body = {**body, word: others}
    return {key: value for key, value in body.items() if key != "nullable"}
