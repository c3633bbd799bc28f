"""Arguments written as elements: the tag is the parameter's name, and what stands inside has no escaping.

    <city>Oslo</city>
    <days>2</days>
    <stops><stop>Bergen</stop><stop>Hamar</stop></stops>

Strings go out while they are written. Where the schema wants a list or an object, elements inside a
value are its items or members, and so are several elements of one name; JSON text is taken as well.
Elements that the tool does not declare are parameters too where whole ones stand between others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from callwright.arguments import Arguments
from callwright.schema import Schema, from_text
from callwright.text.json_stream import Note, escape
from callwright.text.source import Emit, Held, Reading, Source, marks
from callwright.text.tags import RawValue

__all__ = ["ElementArguments", "json_of"]

_KEY = re.compile(r"[^\s<>/\"'=]*")
_LONGEST_KEY = 256
_DEEPEST = 32
"""Nesting that is followed; what lies deeper is text."""


class ElementArguments:
    """Reads one call's parameters, an element each.

    `keys` are the parameters that are declared; without any, every element is one. `closes` are the tags that
    close what encloses them, from the inside out. Every tag begins with `prefix`.
    """

    def __init__(
        self,
        arguments: Arguments,
        keys: Iterable[str],
        closes: tuple[str, ...],
        *,
        prefix: str = "",
    ) -> None:
        self._arguments = arguments
        self._prefix = prefix
        self._keys = {f"{prefix}<{key}>": key for key in keys}
        self._opens = tuple(self._keys) or (f"{prefix}<",)
        self._closes = closes

    def read(self, source: Source) -> Reading[bool]:
        """Read up to the closing tag and end the call. False: it did not come, and the call is still open.

        Where an outer closing tag stands in its place that ends the call too; the outer one is left.
        """
        tags = marks(*self._closes, *self._opens)
        while True:
            yield from source.skip_space()
            tag = yield from source.looking_at(tags)
            if tag in self._closes:
                if tag == self._closes[0]:
                    source.position += len(tag)
                else:
                    self._arguments.call.note("missing_close", f"{self._closes[0]} was missing after a call")
                self._end()
                return True
            source.keep()
            if not tag and not (yield from source.accept(marks("<"))):
                return False
            if tag.endswith("<") and source.text.startswith("/", source.position + len(tag)):
                return False
            source.position += len(tag)
            key = self._keys.get(tag) or (yield from _take_key(source))
            if not key:
                return False
            source.settle()
            if not (yield from self._read_value(source, key)):
                return False

    def _end(self) -> None:
        """Say the values that had to wait, and end the call."""
        waiting, self._arguments.waiting = self._arguments.waiting, {}
        for key, raws in waiting.items():
            schema = self._arguments.call.schema.member(key)
            note = self._arguments.call.note
            if len(raws) == 1:
                self._arguments.put_json(key, json_of(raws[0], schema, note, self._prefix))
            else:
                items = (json_of(raw, schema.items, note, self._prefix) for raw in raws)
                self._arguments.put_json(key, f"[{', '.join(items)}]")
        self._arguments.close()

    def _read_value(self, source: Source, key: str) -> Reading[bool]:
        if not _holds_elements(self._arguments.call.schema.member(key), untyped=bool(self._prefix)):
            parameter = self._arguments.parameter(key)
            whole = yield from self._copy(source, key, parameter.write)
            if whole:
                parameter.end()
            return whole
        # Another element of this name makes it a list, so the value waits for the end of the call.
        held = Held(source)
        whole = yield from self._copy(source, key, held.add)
        self._arguments.waiting.setdefault(key, []).append(held.text())
        return whole

    def _copy(self, source: Source, key: str, write: Emit) -> Reading[bool]:
        """Copy a value up to its end; False when it has none that can be relied on."""
        close = f"</{key}>"
        quoted: list[str] = []

        def emit(piece: str) -> None:
            write(piece)
            if piece.endswith(close):
                quoted.append(piece)

        end = _value(key, self._closes, self._opens, self._prefix)
        closed = yield from end.copy(source, emit, self._arguments.misses if self._prefix else None)
        if closed is None:
            return False
        if not closed.endswith(close):
            self._arguments.call.note("missing_close", f"{close} was missing after a value")
            # A closing tag passed for text because something that is no parameter came after it.
            return not quoted
        if not closed.endswith(self._prefix + close):
            self._arguments.call.note("missing_prefix", f"{close} lacked {self._prefix}")
        return True


@lru_cache(maxsize=1024)
def _value(key: str, closes: tuple[str, ...], opens: tuple[str, ...], prefix: str) -> RawValue:
    if prefix:
        # The prefix is a token of its own: a value quotes single tags at most, and what follows one tells.
        return RawValue(f"{prefix}</{key}>", closes, opens, loose=f"</{key}>")
    # The outermost twice: alone on a line it ends a value only where the text ends too.
    begins = (closes[-1].replace("</", "<"),)
    return RawValue(f"</{key}>", (*closes, closes[-1]), opens, begins=begins, own=(f"<{key}>",), others=True)


def _take_key(source: Source) -> Reading[str]:
    key = yield from source.take_while(_KEY, _LONGEST_KEY)
    return key if (yield from source.accept(marks(">"))) else ""


def _holds_elements(schema: Schema, *, untyped: bool) -> bool:
    """Whether elements inside such a value are structure rather than text."""
    types = schema.types
    return bool(types & {"array", "object"}) and "string" not in types if types else untyped


def json_of(raw: str, schema: Schema, note: Note, prefix: str = "", depth: int = 0) -> str:
    """The JSON for a value that is written as elements, as JSON text, or as bare text."""
    children = _children(raw, prefix) if _holds_elements(schema, untyped=True) and depth < _DEEPEST else []
    is_array = "array" in schema.types and "object" not in schema.types
    if not children:
        return _leaf(raw, schema, note, is_array=is_array)
    names = {name for name, _ in children}
    if len(names) == 1:
        name = children[0][0]
        # Where every tag has a prefix, the items of a list are always called so, whatever their members are called.
        is_item = name == "item" and "object" not in schema.types and (bool(prefix) or not is_array)
        if is_item or (is_array and name not in schema.items.properties):
            items = (json_of(inner, schema.items, note, prefix, depth + 1) for _, inner in children)
            return f"[{', '.join(items)}]"
    return (
        f"[{_object(children, schema.items, note, prefix, depth)}]"
        if is_array
        else _object(children, schema, note, prefix, depth)
    )


def _object(children: list[tuple[str, str]], schema: Schema, note: Note, prefix: str, depth: int) -> str:
    """Elements as the members of an object; several of one name as a list."""
    members: dict[str, list[str]] = {}
    for name, inner in children:
        members.setdefault(name, []).append(inner)
    written = []
    for name, raws in members.items():
        inside = schema.member(name)
        if len(raws) == 1:
            value = json_of(raws[0], inside, note, prefix, depth + 1)
        else:
            value = f"[{', '.join(json_of(raw, inside.items, note, prefix, depth + 1) for raw in raws)}]"
        written.append(f'"{escape(name)}": {value}')
    return f"{{{', '.join(written)}}}"


def _leaf(raw: str, schema: Schema, note: Note, *, is_array: bool) -> str:
    """A value without elements. Where a list is wanted, bare text is its only item."""
    if not raw.strip() and schema.types & {"array", "object"}:
        return "[]" if is_array else "{}"
    value, repairs = from_text(raw, schema)
    for repair in repairs:
        note(repair.kind, repair.detail)
    if is_array and not schema.allows(value):
        return f"[{from_text(raw, schema.items)[0]}]"
    return value


def _children(text: str, prefix: str) -> list[tuple[str, str]]:
    """The elements that a text consists of, as names and insides; none when it is anything else."""
    opening = re.compile(rf"\s*{re.escape(prefix)}<({_KEY.pattern})>")
    children = []
    position = 0
    while hit := opening.match(text, position):
        name = hit.group(1)
        opener = f"{prefix}<{name}>"
        closers = (f"{prefix}</{name}>", f"</{name}>")
        ends = ((_end(text, hit.end(), opener, closer), closer) for closer in closers)
        end, closer = next(((end, closer) for end, closer in ends if end >= 0), (-1, ""))
        if end < 0:
            return []
        children.append((name, text[hit.end() : end]))
        position = end + len(closer)
    return [] if text[position:].strip() else children


def _end(text: str, start: int, opener: str, closer: str) -> int:
    """Where the element whose inside starts at `start` closes, those of its own name inside it counted; or -1."""
    depth, position = 1, start
    while True:
        end = text.find(closer, position)
        if end < 0:
            return -1
        depth += text.count(opener, position, end) - 1
        if not depth:
            return end
        position = end + len(closer)
