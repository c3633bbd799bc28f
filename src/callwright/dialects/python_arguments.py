"""Read the arguments of a Python call, and format values like Python.

    get_weather("Oslo", days=2)        ping({"text": "hi"})

Keywords may be any word, including reserved ones. A value without a keyword is assigned to the next declared parameter;
a single dictionary is all of the arguments if no parameter accepts one.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial
from typing import Any

from callwright.arguments import ArgumentsWriter, read_object
from callwright.dialects.quoted_values import read_literal_value, read_string_value
from callwright.text.lookahead import Lookahead
from callwright.text.python_stream import PYTHON_NOTATION, take_keyword
from callwright.text.source import ParseStep, Source, compile_markers, ignore
from callwright.text.string_notation import PYTHON_QUOTES, ClosingCheck, Notation, StringEndRule

__all__ = ["format_python_value", "read_python_arguments", "skip_python_arguments"]

_STRING_PREFIX = re.compile(r"[rRbBuUfF]{0,2}")


def read_python_arguments(
    source: Source, arguments: ArgumentsWriter, ends: StringEndRule, *, unescaped_lines: bool = False
) -> ParseStep[bool]:
    """Read arguments up to their closing bracket, and end the call. Return False if the text ended first.

    With `unescaped_lines`, nothing is escaped in strings with raw newlines.
    """
    call = arguments.call
    empty = separated = True
    closes = partial(_is_argument_end, ends, arguments)
    while char := (yield from source.skip_space()):
        if char in ")]}":
            if char == ")":
                source.position += 1
            else:
                call.add_repair("missing_bracket", f"{char!r} was written instead of ')' after a call")
            arguments.close()
            return True
        if char == ",":
            source.position += 1
            separated = True
            continue
        if (source.boundary and (yield from source.boundary.peek(source, on_line=True))) or not (
            separated or (yield from _has_keyword(Lookahead(source), arguments))
        ):
            # The call ends here, so its bracket is missing.
            if not arguments.has_required:
                return False
            call.add_repair("missing_bracket", "')' was missing after a call")
            arguments.close()
            return True
        if not separated:
            call.add_repair("missing_comma", f"a comma was missing before {char!r}")
        if char == "{" and empty and not any("object" in kind.types for kind in call.schema.properties.values()):
            call.add_repair("positional_argument", "all arguments were in one object")
            complete = yield from read_object(source, arguments)
            yield from source.skip_space()
            yield from source.accept(compile_markers(")"))
            return complete
        source.start_capture()
        if not (yield from _read_argument(source, arguments, closes, unescaped_lines)):
            return False
        source.drop_capture()
        empty = separated = False
    return False


def _read_argument(
    source: Source, arguments: ArgumentsWriter, closes: ClosingCheck, unescaped_lines: bool
) -> ParseStep[bool]:
    call = arguments.call
    key, consumed = yield from take_keyword(source, call.add_repair)
    if not key:
        key = next((name for name in call.schema.properties if arguments.is_missing(name)), "argument")
        call.add_repair("positional_argument", f"a value without a keyword became {key!r}")
    consumed += yield from source.take_while(_STRING_PREFIX, 2)
    if _STRING_PREFIX.fullmatch(consumed) and (quote := (yield from PYTHON_NOTATION.accept_quote(source))):
        quote = replace(quote, escapes="r" not in consumed.lower(), unescaped_lines=unescaped_lines)
        return (yield from read_string_value(source, arguments, key, quote, closes))
    return (yield from read_literal_value(source, arguments, key, PYTHON_NOTATION, consumed))


def _is_argument_end(ends: StringEndRule, arguments: ArgumentsWriter, source: Source, size: int) -> ParseStep[bool]:
    """Whether a string ends here: the notation can continue, or only a comma is missing before a missing parameter."""
    if (yield from ends.is_string_end(source, size)):
        return True
    ahead = Lookahead(source, size)
    return (yield from ahead.peek()).isspace() and (yield from _has_keyword(ahead, arguments))


def _has_keyword(ahead: Lookahead, arguments: ArgumentsWriter) -> ParseStep[bool]:
    """Whether the keyword of a missing parameter follows."""
    yield from ahead.skip_space()
    word = yield from ahead.take_word()
    return arguments.is_missing(word) and (yield from ahead.skip_space()) == "="


def skip_python_arguments(source: Source, *after: str) -> ParseStep[None]:
    """Skip the arguments of a call that does not count; one of `after` may follow it."""
    notation = Notation(PYTHON_QUOTES, StringEndRule(")]}", compile_markers(*after, *",)]}"), "=:", allows_colon=True))
    while (yield from notation.take_value(source, ignore)) is not None:
        source.position += 1
        if source.text[source.position - 1] != ",":
            return


def format_python_value(value: Any) -> str:
    """Format a value like Python, with strings in double quotes."""
    match value:
        case dict():
            return (
                "{"
                + ", ".join(f"{format_python_value(key)}: {format_python_value(item)}" for key, item in value.items())
                + "}"
            )
        case list():
            return "[" + ", ".join(map(format_python_value, value)) + "]"
        case str():
            return json.dumps(value, ensure_ascii=False)
        case _:
            return repr(value)
