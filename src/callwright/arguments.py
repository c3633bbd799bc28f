"""Write a call's arguments member by member, in the types that the tool's schema declares.

Every dialect writes through `ArgumentsWriter`: dialects with JSON bodies use `read_object`, dialects with tags use
`start_parameter`. A value that the schema declares as a string streams while it is read. Other values wait for their
end, because their type depends on the whole text. A member that the tool does not declare, but whose name resembles
a missing parameter, waits for the end of the object, where it is known whether that parameter was meant.
"""

from __future__ import annotations

import json

from callwright.schema import ANY_SCHEMA, Schema, coerce_value, is_similar_name, text_to_json
from callwright.text.json_stream import copy_string, escape_json, take_json, take_key
from callwright.text.repair import parse_json, repair_json
from callwright.text.source import ParseStep, Source
from callwright.turn import CallWriter

__all__ = ["ArgumentsWriter", "ParameterWriter", "read_object"]

_NULL_WORDS = ("null", "None")


class ParameterWriter:
    """One member whose value arrives as text: `write` appends a piece, `end` completes the value."""

    __slots__ = ("_arguments", "_key", "_parts", "_schema", "_streaming")

    def __init__(self, arguments: ArgumentsWriter, key: str, schema: Schema, *, streaming: bool) -> None:
        self._arguments = arguments
        self._key = key
        self._schema = schema
        self._parts: list[str] | None = [] if not streaming or "null" in schema.types else None
        self._streaming = streaming
        if self._parts is None:
            arguments.start_string(key)
        else:
            arguments.pending_values[key] = self._parts

    def write(self, text: str) -> None:
        """Append a piece of the raw value."""
        if self._parts is None:
            self._arguments.call.write(escape_json(text))
            return
        self._parts.append(text)
        if self._streaming and not self._can_be_null():
            self._arguments.start_string(self._key)
            pending, self._parts = "".join(self._arguments.pending_values.pop(self._key)), None
            self._arguments.call.write(escape_json(pending))

    def _can_be_null(self) -> bool:
        so_far = "".join(self._parts or ()).strip()
        return any(null.startswith(so_far) for null in _NULL_WORDS)

    def end(self) -> None:
        """Complete the value."""
        if self._parts is None:
            self._arguments.call.write('"')
        else:
            self._arguments.write_text(self._key, "".join(self._arguments.pending_values.pop(self._key)), self._schema)


class ArgumentsWriter:
    """Writes the argument object of one call. `close` ends the object and the call."""

    def __init__(self, call: CallWriter) -> None:
        self.call = call
        self._written_keys: set[str] = set()
        self._deferred_members: list[tuple[str, str, bool]] = []
        self.pending_values: dict[str, list[str]] = {}
        """Pieces of values that cannot be written before they are complete."""
        call.describe_pending = self._describe_pending

    def start_parameter(self, key: str, fallback: Schema = ANY_SCHEMA) -> ParameterWriter:
        """Start a member whose value is bare text. `fallback` is the type that the dialect itself declares; it applies
        if the tool's schema declares none."""
        schema = self._get_schema(key, fallback)
        streaming = bool(schema.types) and schema.types <= {"string", "null"} and "string" in schema.types
        return ParameterWriter(self, key, schema, streaming=streaming and not self._is_ambiguous_key(key))

    def write_text(self, key: str, raw: str, schema: Schema) -> None:
        """Write a member whose complete value is bare text."""
        if self._is_ambiguous_key(key):
            self._deferred_members.append((key, raw, False))
        else:
            value, repairs = text_to_json(raw, schema)
            for repair in repairs:
                self.call.add_repair(repair.kind, f"{key}: {repair.detail}")
            self._write_member(key, value)

    def write_json(self, key: str, raw: str) -> None:
        """Write a member whose complete value is JSON text; repair and coerce it where needed."""
        if self._is_ambiguous_key(key):
            self._deferred_members.append((key, raw, True))
        else:
            self._write_member(key, self._coerce_json(key, raw))

    def read_member(self, source: Source, key: str) -> ParseStep[bool]:
        """Read the JSON value that begins here as a member. Return False if the text ended inside it."""
        first = yield from source.peek()
        if first == '"' and self.can_stream(key):
            source.position += 1
            source.drop_capture()
            self.start_string(key)
            complete = yield from copy_string(source, self.call.write, self.call.add_repair)
            if complete:
                self.call.write('"')
            return complete
        raw = yield from take_json(source, self.call.add_repair)
        if raw is None:
            return False
        self.write_json(key, raw)
        return True

    def can_stream(self, key: str) -> bool:
        """Whether a string value may stream while it is read: it needs no coercion, and its key is certain."""
        types = self._get_schema(key).types
        return (not types or "string" in types) and not self._is_ambiguous_key(key)

    def is_missing(self, key: str) -> bool:
        """Whether the tool declares this parameter and it was not written yet."""
        return key in self.call.schema.properties and key not in self._written_keys

    @property
    def has_all_parameters(self) -> bool:
        """Whether every declared parameter was written and no other: no parameter can be missing."""
        return self._written_keys == self.call.schema.properties.keys()

    def start_string(self, key: str) -> None:
        """Write a member's key and the opening quote of its value."""
        self._write_member(key, '"')

    def close(self) -> None:
        """End the object and the call."""
        for key, raw, is_json in self._deferred_members:
            name = self._resolve_key(key)
            if is_json:
                self._write_member(name, self._coerce_json(name, raw))
            else:
                value, _ = text_to_json(raw, self._get_schema(name))
                self._write_member(name, value)
        self.call.write("}" if self._written_keys else "{}")
        self.call.end()

    def _describe_pending(self) -> str:
        late = (f"{key}: {raw}" for key, raw, _ in self._deferred_members)
        return ", ".join((*late, *(f"{key}: {''.join(parts)}" for key, parts in self.pending_values.items())))

    def _get_schema(self, key: str, fallback: Schema = ANY_SCHEMA) -> Schema:
        schema = self.call.schema.get_member(key)
        return schema if schema.types else fallback

    def _write_member(self, key: str, value: str) -> None:
        before = ", " if self._written_keys else "{"
        self._written_keys.add(key)
        self.call.write(f'{before}"{escape_json(key)}": {value}')

    def _coerce_json(self, key: str, raw: str) -> str:
        """Return JSON text of the type that the schema declares; unchanged if the type was right."""
        repaired = repair_json(raw)
        if repaired is None:
            self.call.add_repair("quoted_value", f"{key}: the value is not JSON and was passed on as a string")
            return f'"{escape_json(raw)}"'
        value, repairs = coerce_value(parse_json(repaired.text), self._get_schema(key), key)
        for repair in (*repaired.repairs, *repairs):
            self.call.add_repair(repair.kind, repair.detail)
        return json.dumps(value, ensure_ascii=False) if repairs else repaired.text

    def _is_ambiguous_key(self, key: str) -> bool:
        """Whether an undeclared key may be a misspelling of a declared parameter that is still missing."""
        declared = self.call.schema.properties
        if key in declared or not declared:
            return False
        return any(is_similar_name(key, name) for name in declared if name not in self._written_keys)

    def _resolve_key(self, key: str) -> str:
        """Return the declared parameter that an ambiguous key means: the only missing one, with a similar name."""
        schema = self.call.schema
        missing = [name for name in schema.properties if name in schema.required and name not in self._written_keys]
        if len(missing) == 1 and is_similar_name(key, missing[0]):
            self.call.add_repair("renamed_parameter", f"{key!r} became {missing[0]!r}, the only missing parameter")
            return missing[0]
        return key


def read_object(source: Source, arguments: ArgumentsWriter) -> ParseStep[bool]:
    """Read the JSON object that begins here as a call's arguments, and close them.

    Return False if the object could not be read to its end: the call stays open and the caller decides what to do with
    it. The source's capture then holds the part of the last member that was read but not written.
    """
    note = arguments.call.add_repair
    source.position += 1
    before = "{"
    while True:
        char = yield from source.skip_space()
        if char == "}":
            source.position += 1
            if before == ",":
                note("trailing_comma", "a comma was written before '}'")
            arguments.close()
            return True
        if char == ",":
            source.position += 1
            before = ","
            continue
        if not before and char:
            note("missing_comma", f"a comma was missing before {char!r}")
        source.start_capture()
        key = yield from take_key(source, note)
        if key is None:
            return False
        if not (yield from arguments.read_member(source, key)):
            return False
        source.drop_capture()
        before = ""
