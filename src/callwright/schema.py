"""Types of arguments: the only module where a tool's JSON schema decides the type of a value.

Tag dialects write values as bare text, JSON dialects write them almost right. `text_to_json` types the first kind,
`coerce_value` the second. The rules, in order: a value that the schema declares as a string is never changed; then
JSON, then a Python literal, then the raw string. Each change of a value that already had a type is a named repair.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any

from callwright.errors import RequestError
from callwright.input_limits import MAX_COMPARED_NAME_LENGTH, MAX_JSON_DEPTH
from callwright.model import Repair, ToolSpec
from callwright.text.json_stream import escape_json
from callwright.text.nesting import describe_unreadable, is_text_deeper_than
from callwright.text.repair import convert_python_literal, parse_json, repair_json

__all__ = [
    "ANY_SCHEMA",
    "MAX_MEMBER_DEPTH",
    "Schema",
    "Tool",
    "Toolbox",
    "coerce_value",
    "is_similar_name",
    "parse_tool_spec",
    "text_to_json",
]

_TYPE_ALIASES = {
    # Names outside JSON schema that tool authors use anyway; BFCL's tools use many of them.
    "str": "string",
    "text": "string",
    "char": "string",
    "int": "integer",
    "long": "integer",
    "float": "number",
    "double": "number",
    "bool": "boolean",
    "dict": "object",
    "map": "object",
    "hashmap": "object",
    "list": "array",
    "tuple": "array",
    "set": "array",
    "arraylist": "array",
    "nonetype": "null",
}
_SIMILAR_RATIO = 0.8
_JSON_TYPES = frozenset({"string", "integer", "number", "boolean", "object", "array", "null"})
_REF_LIMIT = 32

MAX_MEMBER_DEPTH = MAX_JSON_DEPTH - 1
"""Nested brackets in one argument: the object of all arguments is around it."""


class Schema:
    """A JSON schema as far as typing needs it: the types it allows, and the schemas below it."""

    def __init__(self, body: Any, parent: Schema | None = None) -> None:
        self._root: Any = body if parent is None else parent._root
        self._depth: int = 0 if parent is None else parent._depth + 1
        self._shared: dict[tuple[int, int], Schema] = {} if parent is None else parent._shared
        """All schemas below the root, by the identity of their bodies and by depth. Without it, definitions that refer
        to each other twice would double the schemas at every level."""
        self.body: Mapping[str, Any] = self._resolve_reference(body)

    def _resolve_reference(self, body: Any) -> Mapping[str, Any]:
        for _ in range(_REF_LIMIT):
            if not isinstance(body, Mapping):
                return {}
            ref = body.get("$ref")
            if not isinstance(ref, str):
                return body
            body = self._find_target(ref)
        return {}

    def _find_target(self, ref: str) -> Any:
        target: Any = self._root
        for step in ref.removeprefix("#").split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            target = target.get(name) if isinstance(target, Mapping) else None
        return target

    def _build_child(self, body: Any) -> Schema:
        if self._depth >= _REF_LIMIT:
            return ANY_SCHEMA
        body = self._resolve_reference(body)
        key = id(body), self._depth
        if key not in self._shared:
            self._shared[key] = Schema(body, self)  # it refers to the body, whose identity stays unique with it
        return self._shared[key]

    @cached_property
    def branches(self) -> tuple[Schema, ...]:
        """The alternatives of anyOf, oneOf and allOf, each once."""
        found = [self.body.get(word) for word in ("anyOf", "oneOf", "allOf")]
        children = (self._build_child(body) for group in found if isinstance(group, list) for body in group)
        return tuple(dict.fromkeys(children))

    @cached_property
    def types(self) -> frozenset[str]:
        """The allowed types; empty if the schema declares none."""
        kinds = self.body.get("type")
        names = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else []
        allowed = {_TYPE_ALIASES.get(str(name).lower(), str(name).lower()) for name in names} & _JSON_TYPES
        if not allowed:
            allowed = {_get_json_type(choice) for choice in self.choices}
        if not allowed and self.branches:
            parts = [branch.types for branch in self.branches]
            allowed = set().union(*parts) if all(parts) else set()
        if not allowed:
            allowed = {"object"} if self.properties else {"array"} if "items" in self.body else set()
        if allowed and self.body.get("nullable") is True:
            allowed.add("null")
        return frozenset(allowed)

    @cached_property
    def choices(self) -> tuple[Any, ...]:
        """The values of enum or const; empty if any value is allowed."""
        choices = self.body.get("enum")
        if isinstance(choices, list):
            return tuple(choices)
        return (self.body["const"],) if "const" in self.body else ()

    @cached_property
    def properties(self) -> dict[str, Schema]:
        """The declared members of an object, including those of its branches."""
        declared = self.body.get("properties")
        members: dict[str, Schema] = {}
        for branch in reversed(self.branches):
            members |= branch.properties
        if isinstance(declared, Mapping):
            members |= {str(name): self._build_child(body) for name, body in declared.items()}
        return members

    @cached_property
    def required(self) -> frozenset[str]:
        names = self.body.get("required")
        return frozenset(map(str, names)) if isinstance(names, list) else frozenset()

    def get_member(self, name: str) -> Schema:
        """Return the schema of one member of an object."""
        found = self.properties.get(name)
        if found is not None:
            return found
        extra = self.body.get("additionalProperties")
        return self._build_child(extra) if isinstance(extra, Mapping) else ANY_SCHEMA

    @cached_property
    def items(self) -> Schema:
        """The schema of an array's items."""
        if "items" in self.body:
            return self._build_child(self.body["items"])
        return next((branch.items for branch in self.branches if "array" in branch.types), ANY_SCHEMA)

    def matches_type(self, text: str) -> bool:
        """Whether a value, given as JSON text, has one of the allowed types."""
        return _matches_types(self.types, parse_json(text))

    @cached_property
    def is_string(self) -> bool:
        """Whether the value can only be a string, so that it may stream while it is read."""
        return self.types == {"string"}


ANY_SCHEMA = Schema({})


class Tool:
    """A tool of the request with its compiled schema."""

    def __init__(self, spec: ToolSpec) -> None:
        self.spec = spec
        self.name = spec.name
        self.schema = Schema(spec.parameters)

    @property
    def sample_arguments(self) -> dict[str, str]:
        """Sample arguments with every parameter, each as an empty string."""
        return dict.fromkeys(self.schema.properties, "")


class Toolbox:
    """The tools of one request, by name."""

    def __init__(self, specs: Iterable[ToolSpec] = ()) -> None:
        self._tools = {spec.name: Tool(spec) for spec in specs}

    def __len__(self) -> int:
        return len(self._tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def get(self, name: str) -> Tool | None:
        """Return the tool with this name, or None if the request does not have it."""
        return self._tools.get(name)


def parse_tool_spec(tool: ToolSpec | Mapping[str, Any]) -> ToolSpec:
    """Return a tool from any of the shapes that clients send.

    These are OpenAI's `{"type": "function", "function": {…}}`, the bare function object, the flat form of the Responses
    API, and Anthropic's `input_schema`.
    """
    if isinstance(tool, ToolSpec):
        return tool
    body = tool.get("function", tool) if isinstance(tool, Mapping) else None
    if not isinstance(body, Mapping) or not isinstance(body.get("name"), str) or not body["name"]:
        raise RequestError(f"a tool needs a name: {json.dumps(tool, default=str)[:200]}")
    parameters: Any = next((body[key] for key in ("parameters", "input_schema", "inputSchema") if body.get(key)), {})
    if not isinstance(parameters, Mapping):
        raise RequestError(f"tool {body['name']!r}: parameters must be a JSON schema object")
    return ToolSpec(body["name"], str(body.get("description") or ""), dict(parameters))


def text_to_json(raw: str, schema: Schema) -> tuple[str, tuple[Repair, ...]]:
    """Return the JSON for a value that a tag dialect wrote as bare text."""
    types = schema.types
    if schema.is_string:
        return _quote_json(raw), ()
    text = raw.strip()
    for choice in schema.choices:
        if not isinstance(choice, str) and text in (json.dumps(choice), str(choice)):
            return json.dumps(choice), ()
    literal = convert_python_literal(text, MAX_MEMBER_DEPTH) if text else None
    if literal is not None and schema.matches_type(literal):
        return _coerce_json_text(literal, schema)
    if (
        types
        and types <= {"object", "array"}
        and (repaired := repair_json(text, MAX_MEMBER_DEPTH))
        and not repaired.is_lossy
        and schema.matches_type(repaired.text)
    ):
        value, repairs = _coerce_json_text(repaired.text, schema)
        return value, repaired.repairs + repairs
    if literal is not None and "string" not in types:
        return _coerce_json_text(literal, schema)
    lowered = text.lower()
    if "boolean" in types and lowered in ("true", "false"):
        return lowered, ()
    if literal is None and types and "string" not in types and is_text_deeper_than(text, MAX_MEMBER_DEPTH):
        reason = f"the value is {describe_unreadable(text)} and was passed on as a string"
        return _quote_json(raw), (Repair("quoted_value", reason),)
    return _quote_json(raw), ()


def _coerce_json_text(text: str, schema: Schema) -> tuple[str, tuple[Repair, ...]]:
    """Return JSON text with its inner values coerced; unchanged if nothing needed a repair."""
    value = parse_json(text)
    coerced, repairs = coerce_value(value, schema)
    return (json.dumps(coerced, ensure_ascii=False) if repairs else text), repairs


def _quote_json(text: str) -> str:
    return f'"{escape_json(text)}"'


def _get_json_type(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case None:
            return "null"
        case list():
            return "array"
        case _:
            return "object"


def _matches_types(types: frozenset[str], value: Any) -> bool:
    kind = _get_json_type(value)
    return not types or kind in types or (kind == "integer" and "number" in types)


def coerce_value(value: Any, schema: Schema, path: str = "") -> tuple[Any, tuple[Repair, ...]]:
    """Convert a value to the type that the schema declares, where that is safe. Return it with the repairs."""
    types = schema.types
    if not _matches_types(types, value):
        converted = _convert_type(value, types)
        if converted is None:
            return value, ()
        repair = Repair(
            "coerced_type", f"{path or 'value'}: {_get_json_type(value)} became {_get_json_type(converted[0])}"
        )
        inner, repairs = coerce_value(converted[0], schema, path)
        return inner, (repair, *repairs)
    if isinstance(value, dict) and schema.properties:
        return _coerce_members(value, schema, path)
    if isinstance(value, list):
        coerced_items = [coerce_value(item, schema.items, f"{path}[{at}]") for at, item in enumerate(value)]
        return [item for item, _ in coerced_items], tuple(repair for _, repairs in coerced_items for repair in repairs)
    return value, ()


def _coerce_members(value: dict[str, Any], schema: Schema, path: str) -> tuple[Any, tuple[Repair, ...]]:
    members = {
        name: coerce_value(item, schema.get_member(name), f"{path}.{name}" if path else name)
        for name, item in value.items()
    }
    repairs = tuple(repair for _, repairs in members.values() for repair in repairs)
    return {name: item for name, (item, _) in members.items()}, repairs


def _convert_type(value: Any, types: frozenset[str]) -> tuple[Any] | None:
    """Convert the value to one of the types, in a tuple of one; None if no conversion is safe."""
    if isinstance(value, str):
        literal = convert_python_literal(value.strip()) or _repair_nested_json(value, types)
        parsed = parse_json(literal) if literal else None
        if literal and not isinstance(parsed, str):
            if _matches_types(types, parsed):
                return (parsed,)
            value = parsed
    if isinstance(value, float) and value.is_integer() and "integer" in types:
        return (int(value),)
    if types == {"string"} and isinstance(value, bool | int | float):
        return (json.dumps(value),)
    if types == {"string"} and isinstance(value, dict | list):
        return (json.dumps(value, ensure_ascii=False),)
    return None


def _repair_nested_json(text: str, types: frozenset[str]) -> str:
    """Repair JSON text inside a string where an object or array is declared; accept true and false in any case."""
    if types & {"object", "array"} and (repaired := repair_json(text.strip())) and not repaired.is_lossy:
        return repaired.text
    lowered = text.strip().lower()
    return lowered if "boolean" in types and lowered in ("true", "false") else ""


def is_similar_name(one: str, other: str) -> bool:
    """Whether two parameter names are so similar that one is probably a misspelling of the other."""
    left, right = (name.replace("_", "").replace("-", "").lower() for name in (one, other))
    short, long = sorted((left, right), key=len)
    if left == right or (len(short) >= 3 and (long.startswith(short) or long.endswith(short))):
        return True
    if len(long) > MAX_COMPARED_NAME_LENGTH:
        return False
    matcher = SequenceMatcher(None, left, right)
    # The quick ratios are upper bounds, and rule out most pairs.
    ratios = (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)
    return all(ratio() >= _SIMILAR_RATIO for ratio in ratios)
