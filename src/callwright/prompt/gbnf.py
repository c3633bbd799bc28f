"""JSON schemas as GBNF: what a model held to the grammar writes is JSON of that schema.

Objects have their members in the order in which the schema declares them, each optional one there or not. Every shape
becomes one rule, by its content, so that schemas that contain themselves come out finite. Some keywords have no
counterpart (`multipleOf`, `uniqueItems`, `not`, wide ranges of numbers): the grammar then allows more than the schema,
never less than one value of it, and the guard checks what is written. Values of no declared type nest `ANY_DEPTH` deep.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from callwright.prompt.merge import flattened, merged
from callwright.prompt.pattern import ANY_CHARACTER, pattern_rule
from callwright.prompt.rules import Rules, char_class, either, literal, repeated
from callwright.schema import Schema

__all__ = ["ANY_DEPTH", "SchemaRules"]

ANY_DEPTH = 6
_LISTED = 100
"""A range of this many integers is written out."""

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
        self._names: dict[str, str] = {}

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

    def value(self, body: Any, hint: str, within: tuple[str, ...] = ()) -> str:
        """What a value of this schema looks like. `within`: the unions that it stands in directly; one that contains
        itself says nothing new there, and is the empty string."""
        body = flattened(body, self._document)
        if "anyOf" not in body and not _is_built(body):
            return either(self._choices(body, hint))
        key = json.dumps(body, default=str)
        if key in within:
            return ""
        if key not in self._names:
            self._names[key] = name = self._rules.add(hint)
            self._rules.set(name, " | ".join(self._choices(body, hint, (*within, key))))
        return self._names[key]

    def _choices(self, body: Mapping[str, Any], hint: str, within: tuple[str, ...] = ()) -> list[str]:
        if "anyOf" in body:
            shared = {word: value for word, value in body.items() if word != "anyOf"}
            branches = (merged(shared, branch, self._document) if shared else branch for branch in body["anyOf"])
            found = [self.value(branch, hint, within) for branch in branches]
            return list(dict.fromkeys(filter(None, found))) or [f"any-{ANY_DEPTH}"]
        schema = Schema(body)
        types = schema.types
        if schema.choices:
            return [literal(json.dumps(choice, ensure_ascii=False)) for choice in schema.choices]
        kinds = [kind for kind in _TYPES if kind in types and not (kind == "integer" and "number" in types)]
        return [self._kind(kind, body, hint) for kind in kinds] or [f"any-{ANY_DEPTH}"]

    def _kind(self, kind: str, body: Mapping[str, Any], hint: str) -> str:
        match kind:
            case "object":
                return self._object(body, hint)
            case "array":
                return self._array(body, hint)
            case "string":
                return _string(body)
            case "integer":
                return _integer(body)
            case _:
                return kind

    # ── objects ──────────────────────────────────────────────────────────────────────────────────

    def _object(self, body: Mapping[str, Any], hint: str) -> str:
        declared: dict[str, Any] = dict(body.get("properties") or {})
        required = [str(name) for name in body.get("required") or ()]
        others = body.get("additionalProperties") or {}
        declared |= {name: others for name in required if name not in declared}
        members = {name: self._member(name, schema, hint) for name, schema in declared.items()}
        extras = either(kinds) if (kinds := list(self._extras(body, declared, hint))) else ""
        # From the last member to the first: what may follow a member, and what may stand there if none came before.
        after = f'("," ws {extras})*' if extras else ""
        first = f"({extras} {after})?" if extras else ""
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

    def _member(self, name: str, schema: Any, hint: str) -> str:
        return f"{literal(f'{json.dumps(name, ensure_ascii=False)}:')} ws {self.value(schema, f'{hint}-{name}')}"

    def _extras(self, body: Mapping[str, Any], declared: Iterable[str], hint: str) -> Iterable[str]:
        """Members that are not declared by name."""
        patterns = body.get("patternProperties") or {}
        for pattern, schema in patterns.items():
            if key := pattern_rule(pattern):
                yield rf'"\"" {key} "\"" ":" ws {self.value(schema, f"{hint}-pattern")}'
        extra = body.get("additionalProperties", not patterns and "properties" not in body)
        if extra is False:
            return
        names = body.get("propertyNames")
        known = names.get("enum") if isinstance(names, Mapping) else None
        if isinstance(known, list):
            key = either([literal(json.dumps(name, ensure_ascii=False)) for name in known if name not in declared])
        else:
            key = rf'"\"" ({_no_word_of({"", *declared})}) "\""'
        yield f'{key} ":" ws {self.value(extra, f"{hint}-extra")}'

    # ── arrays ───────────────────────────────────────────────────────────────────────────────────

    def _array(self, body: Mapping[str, Any], hint: str) -> str:
        items = body.get("items", {})
        tuple_of = items if isinstance(items, list) else body.get("prefixItems")
        if tuple_of:
            firsts = [self.value(each, f"{hint}-{at}") for at, each in enumerate(tuple_of)]
            return f'"[" {(_COMMA).join(firsts)} "]"'
        item = self.value(items, f"{hint}-item")
        least, most = _count(body, "minItems") or 0, _count(body, "maxItems")
        if most == 0:
            return '"[" "]"'
        more = repeated(f'("," ws {item})', max(least - 1, 0), None if most is None else most - 1)
        inner = item if more == '""' else f"{item} {more}"
        return f'"[" {inner} "]"' if least else f'"[" ({inner})? "]"'


_LIMITS = frozenset({"minLength", "maxLength", "pattern"})
_COMMA = ' "," ws '


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
    low, high = _bound(body, "minimum", "exclusiveMinimum", 1), _bound(body, "maximum", "exclusiveMaximum", -1)
    if low is not None and high is not None and 0 <= high - low < _LISTED:
        return either([f'"{number}"' for number in range(low, high + 1)])
    if low is not None and low >= 0:
        return "[1-9] [0-9]{0,18}" if low else "natural"
    return "integer"


def _bound(body: Mapping[str, Any], word: str, exclusive: str, step: int) -> int | None:
    found = [body[word]] if type(body.get(word)) is int else []
    found += [body[exclusive] + step] if type(body.get(exclusive)) is int else []
    return (max if step > 0 else min)(found) if found else None


def _count(body: Mapping[str, Any], word: str) -> int | None:
    value = body.get(word)
    return value if type(value) is int and value >= 0 else None


def _no_word_of(words: set[str]) -> str:
    """Any text that is none of these: a declared member does not come twice."""
    heads = sorted({word[0] for word in words if word and word[0] >= " " and word[0] not in '"\\'})
    choices = [rf'[^"\\\x00-\x1F{char_class("".join(heads))}] {ANY_CHARACTER}*']
    for head in heads:
        choices.append(f"{literal(head)} ({_no_word_of({word[1:] for word in words if word[:1] == head})})")
    if "" not in words:
        choices.append('""')
    return " | ".join(choices)
