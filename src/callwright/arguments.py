"""Write a call's arguments member by member, in the types that the tool's schema declares.

Every dialect writes through `ArgumentsWriter`: dialects with JSON bodies use `read_object`, dialects with tags use
`start_parameter`. A value that the schema declares as a string streams while it is read. Other values wait for their
end, because their type depends on the whole text. A member that the tool does not declare, but whose name resembles
a missing parameter, waits for the end of the object, where it is known whether that parameter was meant.
"""

from __future__ import annotations

import json

from callwright.input_limits import MAX_NAME_COMPARISONS
from callwright.schema import ANY_SCHEMA, MAX_MEMBER_DEPTH, Schema, coerce_value, is_similar_name, text_to_json
from callwright.text.json_stream import copy_string, escape_json, take_json, take_key
from callwright.text.nesting import describe_unreadable
from callwright.text.repair import parse_json, repair_json
from callwright.text.source import ParseStep, Source, compile_markers, ignore
from callwright.turn import CallWriter

__all__ = ["ArgumentsWriter", "ParameterWriter", "read_object"]

_NULL_WORDS = ("null", "None")
_WRAPPER_KEYS = frozenset({"name", "function", "tool", "tool_name"})
_WRAPPED_KEYS = frozenset({"arguments", "parameters", "args", "input"})


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
        self._similar_names: dict[str, tuple[str, ...]] = {}
        self._comparison_count = 0
        self._deferred_members: list[tuple[str, str, bool]] = []
        self._is_doubtful = False
        """Whether a value has markup where its type allows none: a fault swallowed something."""
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
            if "<" in raw and schema.types and "string" not in schema.types and not schema.matches_type(value):
                self.call.add_repair("markup_in_value", f"{key}: the value is no {' or '.join(sorted(schema.types))}")
                self._is_doubtful = True
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

    def close_empty(self) -> None:
        """End a call without arguments. It is incomplete if the tool requires any."""
        if self.has_required:
            self.close()
        else:
            self.call.end_broken()

    def end_early(self, source: Source, what: str) -> None:
        """End a call whose own end is missing. It is complete if it has every required parameter, unless the output
        may have been cut off inside it."""
        if source.may_be_cut:
            self.call.end_truncated()
        elif self.has_required:
            self.call.add_repair("missing_close", f"{what} was missing after a call")
            self.close()
        else:
            self.call.end_broken()

    @property
    def has_required(self) -> bool:
        """Whether every required parameter was written, or waits to be written."""
        waiting = {self._resolve_key(key) for key, _, _ in self._deferred_members}
        return self.call.schema.required <= self._written_keys | self.pending_values.keys() | waiting

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
        if self._is_doubtful:
            self.call.end_broken()
            return
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
        repaired = repair_json(raw, MAX_MEMBER_DEPTH)
        if repaired is None:
            reason = f"the value is {describe_unreadable(raw)} and was passed on as a string"
            self.call.add_repair("quoted_value", f"{key}: {reason}")
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
        return any(name not in self._written_keys for name in self._find_similar_names(key))

    def _find_similar_names(self, key: str) -> tuple[str, ...]:
        """Return the declared parameters that an undeclared key resembles; none after too many comparisons."""
        if key not in self._similar_names and self._comparison_count < MAX_NAME_COMPARISONS:
            declared = self.call.schema.properties
            self._comparison_count += len(declared)
            self._similar_names[key] = tuple(name for name in declared if is_similar_name(key, name))
        return self._similar_names.get(key, ())

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
    wrapper = ""
    while True:
        source.start_hold()
        char = yield from source.skip_space()
        # Something that is no JSON may begin on a new line: the object has ended then.
        is_odd = bool(source.boundary) and char not in ("", '"', "'", ":", "}", ",") and source.has_pending_newline
        if not is_odd:
            source.end_hold()
        if char == "}":
            source.position += 1
            if before.startswith(","):
                note("trailing_comma", "a comma was written before '}'")
            if wrapper:
                arguments.write_json(wrapper, f'"{escape_json(arguments.call.name)}"')
            arguments.close()
            return True
        if char == ",":
            source.position += 1
            before = ",," if before else ","
            continue
        if (yield from _is_call_end(source, char)):
            source.end_hold()
            return _close_without_brace(arguments)
        if not before and char and not is_odd:
            note("missing_comma", f"a comma was missing before {char!r}")
        source.start_capture()
        key = yield from (_take_odd_key(source, arguments) if is_odd else take_key(source, note))
        if key is None:
            return is_odd and not source.may_be_cut and _close_without_brace(arguments)
        if before == ",,":
            note("extra_comma", f"more than one comma was written before {key!r}")
        if wrapper and key in _WRAPPED_KEYS and (yield from source.peek()) == "{":
            note("unwrapped_arguments", "the arguments contained the call again, with its arguments")
            return (yield from _read_wrapped_object(source, arguments))
        if before == "{" and (yield from _names_itself(source, arguments, key)):
            wrapper, before = key, ""
            continue
        if not (yield from arguments.read_member(source, key)):
            return False
        source.drop_capture()
        before = ""


def _is_call_end(source: Source, char: str) -> ParseStep[bool]:
    """Whether the call ends here, although its arguments have no closing brace yet."""
    if source.boundary is None or char == '"':
        return False
    return char == "]" or bool((yield from source.boundary.peek(source, on_line=True)))


def _close_without_brace(arguments: ArgumentsWriter) -> bool:
    """Close arguments whose closing brace is missing, if every required parameter is there."""
    if arguments.has_required:
        arguments.call.add_repair("missing_brace", "'}' was missing after the arguments")
        arguments.close()
        return True
    return False


def _take_odd_key(source: Source, arguments: ArgumentsWriter) -> ParseStep[str | None]:
    """Take a key without quotes on a new line. If it is none, and the arguments may end before it, go back there."""
    key = yield from take_key(source, ignore)
    if key is None and arguments.has_required and not source.may_be_cut:
        source.rewind(is_long=False)
        source.drop_capture()
        return None
    source.end_hold()
    if key is not None:
        arguments.call.add_repair("quoted_key", f"the key {key!r} was not in double quotes")
    return key


def _names_itself(source: Source, arguments: ArgumentsWriter, key: str) -> ParseStep[bool]:
    """Consume the member if it is the name of the tool that is called, which is no argument of it."""
    if key not in _WRAPPER_KEYS or key in arguments.call.schema.properties:
        return False
    return bool((yield from source.accept(compile_markers(f'"{escape_json(arguments.call.name)}"'))))


def _read_wrapped_object(source: Source, arguments: ArgumentsWriter) -> ParseStep[bool]:
    """Read the arguments inside a wrapper, and the end of the wrapper."""
    source.drop_capture()
    if not (yield from read_object(source, arguments)):
        return False
    if not (yield from source.accept_next(compile_markers("}"))):
        arguments.call.add_repair("missing_brace", "'}' was missing after the arguments")
    return True
