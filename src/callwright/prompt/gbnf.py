"""JSON schemas as GBNF: what a model held to the grammar writes is JSON of that schema.

Objects have their members in the order in which the schema declares them, each optional one there or not. A schema
that contains itself does so `SELF_DEPTH` times, and values of no declared type nest `ANY_DEPTH` deep: a small model
that may nest does nothing else until its tokens are spent (seen with SmolLM2-135M on llama.cpp). Some keywords have no
counterpart (`multipleOf`, `uniqueItems`, `not`, ranges of fractions): the grammar then allows more than the schema, and
the guard checks what is written.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from callwright.prompt.merge import flattened, merged
from callwright.prompt.pattern import ANY_CHARACTER, pattern_rule
from callwright.prompt.ranges import integers
from callwright.prompt.rules import Rules, char_class, either, literal, repeated
from callwright.schema import Schema

__all__ = ["ANY_DEPTH", "SELF_DEPTH", "SchemaRules"]

ANY_DEPTH = 6
SELF_DEPTH = 3
_DEPTH = 32

_SHARED = {
    "ws": '" "?',
    # Four hexadecimal digits are for control characters: all others can stand for themselves, and halves of surrogate
    # pairs cannot be written at all.
    "char": rf'{ANY_CHARACTER} | "\\" (["\\/bfnrt] | "u00" [0-9a-fA-F] [0-9a-fA-F])',
    "string": r'"\"" char* "\""',
    "integer": '"-"? natural',
    "natural": '"0" | [1-9] [0-9]{0,18}',
    "number": 'integer ("." [0-9]{1,17})? ([eE] [-+]? [0-9] [0-9]?)?',
    "boolean": '"true" | "false"',
    "null": '"null"',
    "any-0": "string | number | boolean | null",
}
_TYPES = ("string", "number", "integer", "boolean", "null", "array", "object")


class SchemaRules:
    """Writes the rules for schemas of one document into a grammar."""

    def __init__(self, rules: Rules, document: Any) -> None:
        self._rules = rules
        self._document = document
        self._names: dict[tuple[str, int], str] = {}

    @staticmethod
    def begin(rules: Rules) -> None:
        """Write what the rules of every schema share."""
        for name, body in _SHARED.items():
            rules.set(name, body)
        for depth in range(1, ANY_DEPTH + 1):
            below = f"any-{depth - 1}"
            item = f'"[" ({below} ("," ws {below})*)? "]"'
            member = f'string ":" ws {below}'
            rules.set(f"any-{depth}", f'any-0 | {item} | "{{" ({member} ("," ws {member})*)? "}}"')

    def value(self, body: Any, hint: str, above: tuple[str, ...] = ()) -> str:
        """What a value of this schema looks like; empty where it would stand too deep. `above`: what it stands in."""
        body = flattened(body, self._document)
        if "anyOf" not in body and not _is_built(body):
            return either(self._choices(body, hint, above))
        key = json.dumps(body, default=str)
        path = (*above, key)
        again = max(map(path.count, path)) - 1
        if again > SELF_DEPTH or len(path) > _DEPTH:
            return ""
        if (key, again) not in self._names:
            rule = " | ".join(self._choices(body, hint, path))
            self._names[key, again] = self._rules.add(hint, rule) if rule else ""
        return self._names[key, again]

    def _choices(self, body: Mapping[str, Any], hint: str, path: tuple[str, ...]) -> list[str]:
        if body.get("anyOf"):
            shared = {word: value for word, value in body.items() if word != "anyOf"}
            branches = (merged(shared, branch, self._document) if shared else branch for branch in body["anyOf"])
            found = (self.value(branch, hint, path) for branch in branches)
            return list(dict.fromkeys(filter(None, found)))
        schema = Schema(body)
        types = schema.types
        if schema.choices:
            return [literal(json.dumps(choice, ensure_ascii=False)) for choice in schema.choices]
        kinds = [kind for kind in _TYPES if kind in types and not (kind == "integer" and "number" in types)]
        if not kinds:
            return [f"any-{ANY_DEPTH}"]
        return list(filter(None, (self._kind(kind, body, hint, path) for kind in kinds)))

    def _kind(self, kind: str, body: Mapping[str, Any], hint: str, path: tuple[str, ...]) -> str:
        match kind:
            case "object":
                return self._object(body, hint, path)
            case "array":
                return self._array(body, hint, path)
            case "string":
                return _string(body)
            case "integer":
                return _integer(body)
            case _:
                return kind

    # ── objects ──────────────────────────────────────────────────────────────────────────────────

    def _object(self, body: Mapping[str, Any], hint: str, path: tuple[str, ...]) -> str:
        declared: dict[str, Any] = dict(body.get("properties") or {})
        required = [str(name) for name in body.get("required") or ()]
        others = body.get("additionalProperties") or {}
        declared |= {name: others for name in required if name not in declared}
        values = {name: self.value(schema, f"{hint}-{name}", path) for name, schema in declared.items()}
        if not all(values[name] for name in required):
            return ""
        members = {name: f"{_key(name)} ws {value}" for name, value in values.items() if value}
        # From the last member to the first: what may follow a member, and what may stand there if none came before.
        first, after = self._others(body, declared, hint, path)
        for at, (name, member) in reversed(list(enumerate(members.items()))):
            if name in required:
                first = f"{member} {after}".rstrip()
                after = f'"," ws {member} {after}'.rstrip()
                continue
            if not any(earlier in required for earlier in list(members)[:at]):
                # Every member up to the first that must come may be the first: they share what follows.
                after = self._rules.add(f"{hint}-after", after) if after else ""
                first = f"({member} {after} | {first})" if first else f"({member})?"
            after = f'("," ws {member})? {after}'.rstrip()
        return f'"{{" {first} "}}"' if first else '"{" "}"'

    def _others(
        self, body: Mapping[str, Any], declared: Collection[str], hint: str, path: tuple[str, ...]
    ) -> tuple[str, str]:
        """Any number of members that are not declared, where none stands before them and after others."""
        most = _count(body, "maxProperties")
        room = None if most is None else most - len(declared)
        kinds = list(self._extras(body, declared, hint, path)) if room is None or room > 0 else []
        if not kinds:
            return "", ""
        # A rule of its own: repetitions in it must not be multiplied.
        extra = self._rules.add(f"{hint}-other", " | ".join(kinds))
        more = f'("," ws {extra})'
        return f"({extra} {repeated(more, 0, room and room - 1)})?", repeated(more, 0, room)

    def _extras(
        self, body: Mapping[str, Any], declared: Iterable[str], hint: str, path: tuple[str, ...]
    ) -> Iterable[str]:
        """Members that are not declared by name."""
        patterns = body.get("patternProperties") or {}
        for pattern, schema in patterns.items():
            if (key := pattern_rule(pattern)) and (value := self.value(schema, f"{hint}-pattern", path)):
                yield rf'"\"" {key} "\"" ":" ws {value}'
        extra = body.get("additionalProperties", not patterns and "properties" not in body)
        value = "" if extra is False else self.value(extra, f"{hint}-extra", path)
        if not value:
            return
        names = body.get("propertyNames")
        names = names if isinstance(names, Mapping) else {}
        if isinstance(names.get("enum"), list):
            keys = [literal(json.dumps(name, ensure_ascii=False)) for name in names["enum"] if name not in declared]
        else:
            other = _no_word_of({"", *declared}, _count(names, "maxLength"))
            keys = [rf'"\"" ({other}) "\""'] if other else []
        yield from (f'{key} ":" ws {value}' for key in keys)

    # ── arrays ───────────────────────────────────────────────────────────────────────────────────

    def _array(self, body: Mapping[str, Any], hint: str, path: tuple[str, ...]) -> str:
        items = body.get("items", {})
        tuple_of = items if isinstance(items, list) else body.get("prefixItems")
        if tuple_of:
            firsts = [self.value(each, f"{hint}-{at}", path) for at, each in enumerate(tuple_of)]
            return f'"[" {_COMMA.join(firsts)} "]"' if all(firsts) else ""
        item = self.value(items, f"{hint}-item", path)
        least, most = _count(body, "minItems") or 0, _count(body, "maxItems")
        if most == 0 or not item:
            return "" if least and not item else '"[" "]"'
        more = repeated(f'("," ws {item})', max(least - 1, 0), None if most is None else most - 1)
        inner = item if more == '""' else f"{item} {more}"
        return f'"[" {inner} "]"' if least else f'"[" ({inner})? "]"'


_LIMITS = frozenset({"minLength", "maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
_COMMA = ' "," ws '


def _key(name: str) -> str:
    return literal(f"{json.dumps(name, ensure_ascii=False)}:")


def _is_built(body: Mapping[str, Any]) -> bool:
    """Whether a value gets a rule of its own: it has others inside, or repetitions that must not be multiplied."""
    schema = Schema(body)
    return not schema.choices and (bool(schema.types & {"object", "array"}) or not _LIMITS.isdisjoint(body))


def _string(body: Mapping[str, Any]) -> str:
    pattern = body.get("pattern")
    inside = pattern_rule(pattern) if isinstance(pattern, str) else None
    least, most = _count(body, "minLength") or 0, _count(body, "maxLength")
    if inside is None and not least and most is None:
        return "string"
    return rf'"\"" {inside or repeated("char", least, most)} "\""'


def _integer(body: Mapping[str, Any]) -> str:
    low = [math.ceil(limit) for limit in _limit(body, "minimum")]
    low += [math.floor(limit) + 1 for limit in _limit(body, "exclusiveMinimum")]
    high = [math.floor(limit) for limit in _limit(body, "maximum")]
    high += [math.ceil(limit) - 1 for limit in _limit(body, "exclusiveMaximum")]
    if not low and not high:
        return "integer"
    return either(integers(max(low, default=None), min(high, default=None)) or ["integer"])


def _limit(body: Mapping[str, Any], word: str) -> list[float]:
    """The limit, if there is one. In an old draft the exclusive ones are true or false."""
    value = body.get(word)
    if isinstance(value, float):
        return [value] if math.isfinite(value) else []
    return [value] if isinstance(value, int) and not isinstance(value, bool) else []


def _count(body: Mapping[str, Any], word: str) -> int | None:
    value = body.get(word)
    return value if type(value) is int and value >= 0 else None


def _no_word_of(words: set[str], most: int | None = None) -> str:
    """Any text that is none of these, of so many characters at most: a declared member does not come twice. Empty
    where there is no such text."""
    choices = []
    if most != 0:
        left = None if most is None else most - 1
        heads = sorted({word[0] for word in words if word and word[0] >= " " and word[0] not in '"\\'})
        choices.append(rf'[^"\\\x00-\x1F{char_class("".join(heads))}] {repeated(ANY_CHARACTER, 0, left)}')
        longer = {head: _no_word_of({word[1:] for word in words if word[:1] == head}, left) for head in heads}
        choices += [f"{literal(head)} ({rest})" for head, rest in longer.items() if rest]
    if "" not in words:
        choices.append('""')
    return " | ".join(choices)
