"""JSON schemas as GBNF: a model that is constrained by the grammar writes JSON of that schema.

The members of an object come in the order in which the schema declares them; optional ones may be missing. A schema
that contains itself does so `SELF_DEPTH` times, and values without a declared type nest `ANY_DEPTH` deep: a small model
that may nest does nothing else until its tokens are used up (seen with SmolLM2-135M on llama.cpp). Some keywords have
no counterpart (`multipleOf`, `uniqueItems`, `not`, ranges of fractions): the grammar then allows more than the schema,
and the guard checks the result.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from callwright.grammar.grammar_rules import (
    GrammarRules,
    format_char_class,
    format_choice,
    format_literal,
    format_repetition,
)
from callwright.grammar.number_ranges import build_integer_range
from callwright.grammar.regex_pattern import ANY_CHARACTER, build_pattern_rule
from callwright.grammar.schema_merge import flatten_schema, merge_schemas
from callwright.input_limits import MAX_EXCLUDED_NAME_LENGTH, MAX_RULE_HINT_LENGTH
from callwright.schema import Schema

__all__ = ["MAX_ANY_DEPTH", "MAX_SELF_DEPTH", "SchemaRuleWriter"]

MAX_ANY_DEPTH = 6
MAX_SELF_DEPTH = 3
_MAX_DEPTH = 32

_SHARED_RULES = {
    "ws": '" "?',
    # Four hexadecimal digits are for control characters: all others are written directly, and halves of surrogate
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
_JSON_TYPES = ("string", "number", "integer", "boolean", "null", "array", "object")


class SchemaRuleWriter:
    """Writes the rules for the schemas of one document into a grammar."""

    def __init__(self, rules: GrammarRules, document: Any) -> None:
        self._rules = rules
        self._document = document
        self._names: dict[tuple[str, int], str] = {}

    @staticmethod
    def add_shared_rules(rules: GrammarRules) -> None:
        """Add the rules that all schemas share."""
        for name, body in _SHARED_RULES.items():
            rules.set_rule(name, body)
        for depth in range(1, MAX_ANY_DEPTH + 1):
            below = f"any-{depth - 1}"
            item = f'"[" ({below} ("," ws {below})*)? "]"'
            member = f'string ":" ws {below}'
            rules.set_rule(f"any-{depth}", f'any-0 | {item} | "{{" ({member} ("," ws {member})*)? "}}"')

    def build_value(self, body: Any, hint: str, above: tuple[str, ...] = ()) -> str:
        """Build the rule for a value; empty if it would be nested too deeply. `above` is the path to it."""
        hint = hint[:MAX_RULE_HINT_LENGTH]
        body = flatten_schema(body, self._document, self._rules.budget)
        if "anyOf" not in body and not _needs_rule(body):
            return format_choice(self._build_choices(body, hint, above))
        key = json.dumps(body, default=str)
        if not self._rules.budget.take_amount(len(key)):
            return f"any-{MAX_ANY_DEPTH}"
        path = (*above, key)
        repeats = max(map(path.count, path)) - 1
        if repeats > MAX_SELF_DEPTH or len(path) > _MAX_DEPTH:
            return ""
        if (key, repeats) not in self._names:
            rule = " | ".join(self._build_choices(body, hint, path))
            self._names[key, repeats] = self._rules.add_rule(hint, rule) if rule else ""
        return self._names[key, repeats]

    def _build_choices(self, body: Mapping[str, Any], hint: str, path: tuple[str, ...]) -> list[str]:
        if body.get("anyOf"):
            shared = {word: value for word, value in body.items() if word != "anyOf"}
            branches = (
                merge_schemas(shared, branch, self._document, self._rules.budget) if shared else branch
                for branch in body["anyOf"]
            )
            values = (self.build_value(branch, hint, path) for branch in branches)
            return list(dict.fromkeys(filter(None, values)))
        schema = Schema(body)
        types = schema.types
        if schema.choices:
            return [format_literal(json.dumps(choice, ensure_ascii=False)) for choice in schema.choices]
        kinds = [kind for kind in _JSON_TYPES if kind in types and not (kind == "integer" and "number" in types)]
        if not kinds:
            return [f"any-{MAX_ANY_DEPTH}"]
        return list(filter(None, (self._build_type(kind, body, hint, path) for kind in kinds)))

    def _build_type(self, kind: str, body: Mapping[str, Any], hint: str, path: tuple[str, ...]) -> str:
        match kind:
            case "object":
                return self._build_object(body, hint, path)
            case "array":
                return self._build_array(body, hint, path)
            case "string":
                return _build_string(body)
            case "integer":
                return _build_integer(body)
            case _:
                return kind

    # ── objects ──────────────────────────────────────────────────────────────────────────────────

    def _build_object(self, body: Mapping[str, Any], hint: str, path: tuple[str, ...]) -> str:
        declared: dict[str, Any] = dict(body.get("properties") or {})
        required = dict.fromkeys(str(name) for name in body.get("required") or ())
        additional = body.get("additionalProperties") or {}
        declared |= {name: additional for name in required if name not in declared}
        values = {name: self.build_value(schema, f"{hint}-{name}", path) for name, schema in declared.items()}
        if not all(values[name] for name in required):
            return ""
        members = {name: f"{_format_key(name)} ws {value}" for name, value in values.items() if value}
        first, after = self._build_other_members(body, declared, hint, path)
        names = list(members)
        lead = next((at for at, name in enumerate(names) if name in required), len(names))
        if lead < len(names):
            rest = (
                f'"," ws {members[name]}' if name in required else f'("," ws {members[name]})?'
                for name in names[lead + 1 :]
            )
            first = " ".join(filter(None, (members[names[lead]], *rest, after)))
            after = f'"," ws {first}'
        # Every member up to the first required one may be the first. They share what follows.
        openings: list[str] = []
        for name in reversed(names[:lead]):
            member = members[name]
            after = self._rules.add_rule(f"{hint}-after", after) if after else ""
            if first:
                openings.append(f"({member} {after} | ")
            else:
                first = f"({member})?"
            after = f'("," ws {member})? {after}'.rstrip()
        first = "".join(reversed(openings)) + first + ")" * len(openings)
        return f'"{{" {first} "}}"' if first else '"{" "}"'

    def _build_other_members(
        self, body: Mapping[str, Any], declared: Collection[str], hint: str, path: tuple[str, ...]
    ) -> tuple[str, str]:
        """Build rules for any number of undeclared members: as the first members, and after others."""
        maximum = _get_count(body, "maxProperties")
        room = None if maximum is None else maximum - len(declared)
        kinds = list(self._iter_extra_members(body, declared, hint, path)) if room is None or room > 0 else []
        if not kinds:
            return "", ""
        # A rule of its own: its repetitions must not be multiplied.
        extra = self._rules.add_rule(f"{hint}-other", " | ".join(kinds))
        more = f'("," ws {extra})'
        return f"({extra} {format_repetition(more, 0, room and room - 1)})?", format_repetition(more, 0, room)

    def _iter_extra_members(
        self, body: Mapping[str, Any], declared: Iterable[str], hint: str, path: tuple[str, ...]
    ) -> Iterable[str]:
        """Yield rules for members that are not declared by name."""
        patterns = body.get("patternProperties") or {}
        for pattern, schema in patterns.items():
            if (key := build_pattern_rule(pattern)) and (value := self.build_value(schema, f"{hint}-pattern", path)):
                yield rf'"\"" {key} "\"" ":" ws {value}'
        extra = body.get("additionalProperties", not patterns and "properties" not in body)
        value = "" if extra is False else self.build_value(extra, f"{hint}-extra", path)
        if not value:
            return
        names = body.get("propertyNames")
        names = names if isinstance(names, Mapping) else {}
        if isinstance(names.get("enum"), list):
            keys = [
                format_literal(json.dumps(name, ensure_ascii=False)) for name in names["enum"] if name not in declared
            ]
        else:
            excluded = {name for name in declared if len(name) <= MAX_EXCLUDED_NAME_LENGTH}
            other = _exclude_words({"", *excluded}, _get_count(names, "maxLength"))
            keys = [rf'"\"" ({other}) "\""'] if other else []
        yield from (f'{key} ":" ws {value}' for key in keys)

    # ── arrays ───────────────────────────────────────────────────────────────────────────────────

    def _build_array(self, body: Mapping[str, Any], hint: str, path: tuple[str, ...]) -> str:
        items = body.get("items", {})
        tuple_of = items if isinstance(items, list) else body.get("prefixItems")
        if tuple_of:
            firsts = [self.build_value(each, f"{hint}-{at}", path) for at, each in enumerate(tuple_of)]
            return f'"[" {_COMMA.join(firsts)} "]"' if all(firsts) else ""
        item = self.build_value(items, f"{hint}-item", path)
        minimum, maximum = _get_count(body, "minItems") or 0, _get_count(body, "maxItems")
        if maximum == 0 or not item:
            return "" if minimum and not item else '"[" "]"'
        more = format_repetition(f'("," ws {item})', max(minimum - 1, 0), None if maximum is None else maximum - 1)
        inner = item if more == '""' else f"{item} {more}"
        return f'"[" {inner} "]"' if minimum else f'"[" ({inner})? "]"'


_LIMIT_KEYWORDS = frozenset(
    {"minLength", "maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
)
_COMMA = ' "," ws '
_MAX_INLINE_CHOICES = 32
"""How many values of an enum are written where they are used; more are one rule for all uses."""


def _format_key(name: str) -> str:
    return format_literal(f"{json.dumps(name, ensure_ascii=False)}:")


def _needs_rule(body: Mapping[str, Any]) -> bool:
    """Whether a value needs a rule of its own: it contains others, or repetitions and long lists of values that must
    not be multiplied."""
    schema = Schema(body)
    if schema.choices:
        return len(schema.choices) > _MAX_INLINE_CHOICES
    return bool(schema.types & {"object", "array"}) or not _LIMIT_KEYWORDS.isdisjoint(body)


def _build_string(body: Mapping[str, Any]) -> str:
    pattern = body.get("pattern")
    inside = build_pattern_rule(pattern) if isinstance(pattern, str) else None
    minimum, maximum = _get_count(body, "minLength") or 0, _get_count(body, "maxLength")
    if inside is None and not minimum and maximum is None:
        return "string"
    return rf'"\"" {inside or format_repetition("char", minimum, maximum)} "\""'


def _build_integer(body: Mapping[str, Any]) -> str:
    low = [math.ceil(limit) for limit in _list_limits(body, "minimum")]
    low += [math.floor(limit) + 1 for limit in _list_limits(body, "exclusiveMinimum")]
    high = [math.floor(limit) for limit in _list_limits(body, "maximum")]
    high += [math.ceil(limit) - 1 for limit in _list_limits(body, "exclusiveMaximum")]
    if not low and not high:
        return "integer"
    return format_choice(build_integer_range(max(low, default=None), min(high, default=None)) or ["integer"])


def _list_limits(body: Mapping[str, Any], word: str) -> list[float]:
    """Return the limit as a list, empty if there is none. In an old draft the exclusive limits are booleans."""
    value = body.get(word)
    if isinstance(value, float):
        return [value] if math.isfinite(value) else []
    return [value] if isinstance(value, int) and not isinstance(value, bool) else []


def _get_count(body: Mapping[str, Any], word: str) -> int | None:
    value = body.get(word)
    return value if type(value) is int and value >= 0 else None


def _exclude_words(words: set[str], max_length: int | None = None) -> str:
    """Build a rule for any text other than these words, of at most this many characters, so that no declared member is
    repeated. Return an empty string if there is no such text."""
    choices = []
    if max_length != 0:
        remaining = None if max_length is None else max_length - 1
        tails: defaultdict[str, set[str]] = defaultdict(set)
        for word in words:
            if word and word[0] >= " " and word[0] not in '"\\':
                tails[word[0]].add(word[1:])
        heads = sorted(tails)
        choices.append(
            rf'[^"\\\x00-\x1F{format_char_class("".join(heads))}] {format_repetition(ANY_CHARACTER, 0, remaining)}'
        )
        longer = {head: _exclude_words(tails[head], remaining) for head in heads}
        choices += [f"{format_literal(head)} ({rest})" for head, rest in longer.items() if rest]
    if "" not in words:
        choices.append('""')
    return " | ".join(choices)
