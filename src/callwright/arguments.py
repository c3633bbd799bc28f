"""A call's arguments, written member by member in the types that its tool declares.

Every dialect writes through `Arguments`: those that carry JSON by `read_object`, those that carry
tags by `parameter`. A value that the schema calls a string goes out while it is written; others
wait for their end, because what they become depends on all of them. A member whose name the tool
does not declare but that resembles one still missing waits for the end of the object, where it can
be known whether it was meant for that one.
"""

from __future__ import annotations

import json

from callwright.schema import ANYTHING, Schema, coerce, from_text, near
from callwright.text.json_stream import copy_string, escape, take_key, take_value
from callwright.text.repair import parse_json, repair_json
from callwright.text.source import Reading, Source
from callwright.turn import Call

__all__ = ["Arguments", "Parameter", "read_object"]

_NULLS = ("null", "None")


class Parameter:
    """One member whose value arrives as text: `write` takes the pieces, `end` closes it."""

    __slots__ = ("_arguments", "_key", "_parts", "_schema", "_streaming")

    def __init__(self, arguments: Arguments, key: str, schema: Schema, *, streaming: bool) -> None:
        self._arguments = arguments
        self._key = key
        self._schema = schema
        self._parts: list[str] | None = [] if not streaming or "null" in schema.types else None
        self._streaming = streaming
        if self._parts is None:
            arguments.begin_string(key)
        else:
            arguments.waiting[key] = self._parts

    def write(self, text: str) -> None:
        """More of the raw value."""
        if self._parts is None:
            self._arguments.call.write(escape(text))
            return
        self._parts.append(text)
        if self._streaming and not self._may_be_null():
            self._arguments.begin_string(self._key)
            held, self._parts = "".join(self._arguments.waiting.pop(self._key)), None
            self._arguments.call.write(escape(held))

    def _may_be_null(self) -> bool:
        so_far = "".join(self._parts or ()).strip()
        return any(null.startswith(so_far) for null in _NULLS)

    def end(self) -> None:
        """The value is whole."""
        if self._parts is None:
            self._arguments.call.write('"')
        else:
            self._arguments.put_text(self._key, "".join(self._arguments.waiting.pop(self._key)), self._schema)


class Arguments:
    """Writes one call's argument object. `close` ends the object and the call."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self._given: set[str] = set()
        self._late: list[tuple[str, str, bool]] = []
        self.waiting: dict[str, list[str]] = {}
        """What was read of values that cannot be written before their end."""
        call.unsaid = self._unsaid

    def parameter(self, key: str, kind: Schema = ANYTHING) -> Parameter:
        """Begin a member whose value is bare text. `kind`: the type that the dialect itself gives, if the tool's
        schema gives none."""
        schema = self._schema(key, kind)
        streaming = bool(schema.types) and schema.types <= {"string", "null"} and "string" in schema.types
        return Parameter(self, key, schema, streaming=streaming and not self._is_doubtful(key))

    def put_text(self, key: str, raw: str, schema: Schema) -> None:
        """A member whose value is bare text, whole."""
        if self._is_doubtful(key):
            self._late.append((key, raw, False))
        else:
            value, repairs = from_text(raw, schema)
            for repair in repairs:
                self.call.note(repair.kind, f"{key}: {repair.detail}")
            self._member(key, value)

    def put_json(self, key: str, raw: str) -> None:
        """A member whose value is JSON text, whole; mended and coerced where needed."""
        if self._is_doubtful(key):
            self._late.append((key, raw, True))
        else:
            self._member(key, self._settle(key, raw))

    def read_member(self, source: Source, key: str) -> Reading[bool]:
        """Read the JSON value that begins here as a member; False when the text ended inside it."""
        first = yield from source.peek()
        if first == '"' and self.streams(key):
            source.position += 1
            source.settle()
            self.begin_string(key)
            whole = yield from copy_string(source, self.call.write, self.call.note)
            if whole:
                self.call.write('"')
            return whole
        raw = yield from take_value(source, self.call.note)
        if raw is None:
            return False
        self.put_json(key, raw)
        return True

    def streams(self, key: str) -> bool:
        """Whether a value that is a string may go out while it is written: it needs no coercing and no other name."""
        types = self._schema(key).types
        return (not types or "string" in types) and not self._is_doubtful(key)

    def misses(self, key: str) -> bool:
        """Whether the tool declares a parameter of that name and it has not come yet."""
        return key in self.call.schema.properties and key not in self._given

    @property
    def are_all(self) -> bool:
        """Whether every parameter that the tool declares has come, and no other: none can be missing."""
        return self._given == self.call.schema.properties.keys()

    def begin_string(self, key: str) -> None:
        """Write a member's key and the opening quote of its value."""
        self._member(key, '"')

    def close(self) -> None:
        """End the object and the call."""
        for key, raw, is_json in self._late:
            name = self._meant(key)
            if is_json:
                self._member(name, self._settle(name, raw))
            else:
                value, _ = from_text(raw, self._schema(name))
                self._member(name, value)
        self.call.write("}" if self._given else "{}")
        self.call.end()

    def _unsaid(self) -> str:
        late = (f"{key}: {raw}" for key, raw, _ in self._late)
        return ", ".join((*late, *(f"{key}: {''.join(parts)}" for key, parts in self.waiting.items())))

    def _schema(self, key: str, fallback: Schema = ANYTHING) -> Schema:
        schema = self.call.schema.member(key)
        return schema if schema.types else fallback

    def _member(self, key: str, value: str) -> None:
        before = ", " if self._given else "{"
        self._given.add(key)
        self.call.write(f'{before}"{escape(key)}": {value}')

    def _settle(self, key: str, raw: str) -> str:
        """JSON text of the type that the schema wants; verbatim when it was right."""
        mended = repair_json(raw)
        if mended is None:
            self.call.note("quoted_value", f"{key}: not JSON, passed on as a string")
            return f'"{escape(raw)}"'
        value, repairs = coerce(parse_json(mended.text), self._schema(key), key)
        for repair in (*mended.repairs, *repairs):
            self.call.note(repair.kind, repair.detail)
        return json.dumps(value, ensure_ascii=False) if repairs else mended.text

    def _is_doubtful(self, key: str) -> bool:
        """Whether a key that the tool does not declare may be meant for a declared one that is still missing."""
        declared = self.call.schema.properties
        if key in declared or not declared:
            return False
        return any(near(key, name) for name in declared if name not in self._given)

    def _meant(self, key: str) -> str:
        """The declared parameter a doubtful key is meant for: the only missing one, under a near name."""
        schema = self.call.schema
        missing = [name for name in schema.properties if name in schema.required and name not in self._given]
        if len(missing) == 1 and near(key, missing[0]):
            self.call.note("renamed_parameter", f"{key!r} became {missing[0]!r}, the only one missing")
            return missing[0]
        return key


def read_object(source: Source, arguments: Arguments) -> Reading[bool]:
    """Read the JSON object that begins here as a call's arguments, and close them.

    False: the object could not be read to its end; the call is still open, and its owner decides. What was read of
    the last member and not said is then kept by the source.
    """
    note = arguments.call.note
    source.position += 1
    before = "{"
    while True:
        char = yield from source.skip_space()
        if char == "}":
            source.position += 1
            if before == ",":
                note("trailing_comma", "a comma stood before '}'")
            arguments.close()
            return True
        if char == ",":
            source.position += 1
            before = ","
            continue
        if not before and char:
            note("missing_comma", f"a comma was missing before {char!r}")
        source.keep()
        key = yield from take_key(source, note)
        if key is None:
            return False
        if not (yield from arguments.read_member(source, key)):
            return False
        source.settle()
        before = ""
