"""Arguments written as elements: the tag is the parameter's name, and its content is not escaped.

    <city>Oslo</city>
    <days>2</days>
    <stops><stop>Bergen</stop><stop>Hamar</stop></stops>

Strings stream while they are read. Where the schema declares a list or an object, elements inside a value are its items
or members, and so are several elements of one name; JSON text is accepted as well. Elements that the tool does not
declare are parameters too if they are complete and stand between others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from callwright.arguments import ArgumentsWriter
from callwright.schema import Schema, text_to_json
from callwright.text.json_stream import RepairSink, escape_json
from callwright.text.raw_values import RawValueRule
from callwright.text.source import ParseStep, Source, TextBuffer, TextSink, compile_markers

__all__ = ["ElementArguments", "elements_to_json"]

_KEY = re.compile(r"[^\s<>/\"'=]*")
_MAX_KEY_LENGTH = 256
_MAX_DEPTH = 32
"""How deep nested elements are read; what is deeper is text."""


class ElementArguments:
    """Reads the parameters of one call, each an element.

    `keys` are the declared parameters; without any, every element is one. `closes` are the tags that close the
    enclosing elements, from the inside out. `calls` are the tags that open a call. Every tag begins with `prefix`.
    """

    def __init__(
        self,
        arguments: ArgumentsWriter,
        keys: Iterable[str],
        closes: tuple[str, ...],
        *,
        prefix: str = "",
        calls: tuple[str, ...] = (),
    ) -> None:
        self._arguments = arguments
        self._calls = calls
        self._prefix = prefix
        self._keys = {f"{prefix}<{key}>": key for key in keys}
        self._opens = tuple(self._keys) or (f"{prefix}<",)
        self._closes = closes

    def read_elements(self, source: Source) -> ParseStep[bool]:
        """Read up to the closing tag and end the call. Return False if the tag is missing: the call is still open.

        An outer closing tag in its place ends the call too, and is not consumed.
        """
        tags = compile_markers(*self._closes, *self._opens)
        while True:
            yield from source.skip_space()
            tag = yield from source.peek_marker(tags)
            if tag in self._closes:
                if tag == self._closes[0]:
                    source.position += len(tag)
                else:
                    self._arguments.call.add_repair("missing_close", f"{self._closes[0]} was missing after a call")
                self._finish_call()
                return True
            if not tag and source.is_truncated_at(tags):
                return False
            if self._calls and not tag and (yield from source.peek_marker(compile_markers(*self._calls))):
                # Another call begins, so the end of this one is missing.
                self._arguments.end_early(source, self._closes[0])
                return True
            source.start_capture()
            if not tag and not (yield from source.accept(compile_markers("<"))):
                return False
            if tag.endswith("<") and source.text.startswith("/", source.position + len(tag)):
                return False
            source.position += len(tag)
            key = self._keys.get(tag) or (yield from _take_key(source))
            if not key:
                return False
            source.drop_capture()
            if not (yield from self._read_value(source, key)):
                return False

    def _finish_call(self) -> None:
        """Write the values that had to wait, and end the call."""
        waiting, self._arguments.pending_values = self._arguments.pending_values, {}
        for key, raws in waiting.items():
            schema = self._arguments.call.schema.get_member(key)
            note = self._arguments.call.add_repair
            if len(raws) == 1:
                self._arguments.write_json(key, elements_to_json(raws[0], schema, note, self._prefix))
            else:
                items = (elements_to_json(raw, schema.items, note, self._prefix) for raw in raws)
                self._arguments.write_json(key, f"[{', '.join(items)}]")
        self._arguments.close()

    def _read_value(self, source: Source, key: str) -> ParseStep[bool]:
        if not _can_hold_elements(self._arguments.call.schema.get_member(key), untyped=bool(self._prefix)):
            parameter = self._arguments.start_parameter(key)
            complete = yield from self._copy_value(source, key, parameter.write)
            if complete:
                parameter.end()
            return complete
        # Another element of this name makes it a list, so the value waits for the end of the call.
        buffer = TextBuffer(source)
        complete = yield from self._copy_value(source, key, buffer.add)
        self._arguments.pending_values.setdefault(key, []).append(buffer.get_text())
        return complete

    def _copy_value(self, source: Source, key: str, write: TextSink) -> ParseStep[bool]:
        """Copy a value up to its end; return False if no end is certain."""
        close = f"</{key}>"
        quoted: list[str] = []

        def emit(piece: str) -> None:
            write(piece)
            if piece.endswith(close) or self._keys.get(piece.strip()):
                quoted.append(piece)

        end = _build_value_rule(key, self._closes, self._opens, self._prefix, self._calls)
        expects = self._arguments.is_missing if self._prefix else None
        closed = yield from end.copy_value(source, emit, expects, self._arguments.call.has_tool)
        if closed is None:
            return False
        if not closed.endswith(close):
            self._arguments.call.add_repair("missing_close", f"{close} was missing after a value")
            # A tag of a parameter was read as text: who knows where the value ended.
            return not quoted
        if not closed.endswith(self._prefix + close):
            self._arguments.call.add_repair("missing_prefix", f"{close} was written without {self._prefix}")
        return True


@lru_cache(maxsize=1024)
def _build_value_rule(
    key: str, closes: tuple[str, ...], opens: tuple[str, ...], prefix: str, calls: tuple[str, ...]
) -> RawValueRule:
    if prefix:
        # The prefix is a token of its own: a value quotes single tags at most, and the text after a tag decides.
        own = (f"{prefix}<{key}>",)
        return RawValueRule(
            f"{prefix}</{key}>",
            closes,
            opens,
            loose_close_tag=f"</{key}>",
            call_tags=calls,
            own_value_tags=own,
            names_parameters=True,
        )
    # The outermost tag twice: alone on a line it ends a value only where the text ends too.
    call_tags = calls or (closes[-1].replace("</", "<"),)
    return RawValueRule(
        f"</{key}>",
        (*closes, closes[-1]),
        opens,
        call_tags=call_tags,
        own_value_tags=(f"<{key}>",),
        allows_other_elements=True,
        names_parameters=True,
    )


def _take_key(source: Source) -> ParseStep[str]:
    key = yield from source.take_while(_KEY, _MAX_KEY_LENGTH)
    return key if (yield from source.accept(compile_markers(">"))) else ""


def _can_hold_elements(schema: Schema, *, untyped: bool) -> bool:
    """Whether elements inside such a value are structure rather than text."""
    types = schema.types
    return bool(types & {"array", "object"}) and "string" not in types if types else untyped


def elements_to_json(raw: str, schema: Schema, note: RepairSink, prefix: str = "", depth: int = 0) -> str:
    """Return the JSON for a value that is written as elements, as JSON text, or as bare text."""
    children = _parse_children(raw, prefix) if _can_hold_elements(schema, untyped=True) and depth < _MAX_DEPTH else []
    is_array = "array" in schema.types and "object" not in schema.types
    if not children:
        return _leaf_to_json(raw, schema, note, is_array=is_array)
    names = {name for name, _ in children}
    if len(names) == 1:
        name = children[0][0]
        # Where every tag has a prefix, the items of a list always have this name.
        is_item = name == "item" and "object" not in schema.types and (bool(prefix) or not is_array)
        if is_item or (is_array and name not in schema.items.properties):
            items = (elements_to_json(inner, schema.items, note, prefix, depth + 1) for _, inner in children)
            return f"[{', '.join(items)}]"
    return (
        f"[{_object_to_json(children, schema.items, note, prefix, depth)}]"
        if is_array
        else _object_to_json(children, schema, note, prefix, depth)
    )


def _object_to_json(children: list[tuple[str, str]], schema: Schema, note: RepairSink, prefix: str, depth: int) -> str:
    """Convert elements to the members of an object; several of one name become a list."""
    members: dict[str, list[str]] = {}
    for name, inner in children:
        members.setdefault(name, []).append(inner)
    rendered: list[str] = []
    for name, raws in members.items():
        inside = schema.get_member(name)
        if len(raws) == 1:
            value = elements_to_json(raws[0], inside, note, prefix, depth + 1)
        else:
            value = f"[{', '.join(elements_to_json(raw, inside.items, note, prefix, depth + 1) for raw in raws)}]"
        rendered.append(f'"{escape_json(name)}": {value}')
    return f"{{{', '.join(rendered)}}}"


def _leaf_to_json(raw: str, schema: Schema, note: RepairSink, *, is_array: bool) -> str:
    """Convert a value without elements. Where a list is declared, bare text is its only item."""
    if not raw.strip() and schema.types & {"array", "object"}:
        return "[]" if is_array else "{}"
    value, repairs = text_to_json(raw, schema)
    for repair in repairs:
        note(repair.kind, repair.detail)
    if is_array and not schema.matches_type(value):
        return f"[{text_to_json(raw, schema.items)[0]}]"
    return value


def _parse_children(text: str, prefix: str) -> list[tuple[str, str]]:
    """Return the elements that a text consists of, as names and contents; none if it contains anything else."""
    opening = re.compile(rf"\s*{re.escape(prefix)}<({_KEY.pattern})>")
    children = []
    position = 0
    while match := opening.match(text, position):
        name = match.group(1)
        opener = f"{prefix}<{name}>"
        closers = (f"{prefix}</{name}>", f"</{name}>")
        ends = ((_find_element_end(text, match.end(), opener, closer), closer) for closer in closers)
        end, closer = next(((end, closer) for end, closer in ends if end >= 0), (-1, ""))
        if end < 0:
            return []
        children.append((name, text[match.end() : end]))
        position = end + len(closer)
    return [] if text[position:].strip() else children


def _find_element_end(text: str, start: int, opener: str, closer: str) -> int:
    """Return the position of the closing tag for the content at `start`, counting nested elements of that name; or
    -1."""
    depth, position = 1, start
    while True:
        end = text.find(closer, position)
        if end < 0:
            return -1
        depth += text.count(opener, position, end) - 1
        if not depth:
            return end
        position = end + len(closer)
