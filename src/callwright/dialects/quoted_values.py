"""Arguments whose values use quotes other than JSON's: Python's, or tokens that represent quotes.

    city='Oslo', tags=('a', "b")        city:<|"|>Oslo<|"|>,tags:[<|"|>a<|"|>]

Strings stream where possible; other values are read to their end.
"""

from __future__ import annotations

from callwright.arguments import ArgumentsWriter
from callwright.text.json_stream import escape_json
from callwright.text.repair import PYTHON_REPAIR_KINDS, repair_json
from callwright.text.source import ParseStep, Source, TextBuffer
from callwright.text.string_notation import ClosingCheck, Notation, Quote

__all__ = ["read_literal_value", "read_string_value"]

_NATIVE_REPAIRS = PYTHON_REPAIR_KINDS | {"quoted_key"}
"""Repairs of `repair_json` that are the normal form of these notations, and are not recorded."""


def read_string_value(
    source: Source, arguments: ArgumentsWriter, key: str, quote: Quote, closes: ClosingCheck
) -> ParseStep[bool]:
    """Read the rest of a string as a member; it streams where possible. Return False if the text ended inside it."""
    call = arguments.call
    if arguments.can_stream(key):
        source.drop_capture()
        arguments.start_string(key)
        complete = yield from quote.copy_string(
            source, lambda text: call.write(escape_json(text)), call.add_repair, closes
        )
        if complete:
            call.write('"')
        return complete
    buffer = TextBuffer(source)
    complete = yield from quote.copy_string(source, buffer.add, call.add_repair, closes)
    if complete:
        arguments.write_json(key, f'"{escape_json(buffer.get_text())}"')
    return complete


def read_literal_value(
    source: Source, arguments: ArgumentsWriter, key: str, notation: Notation, consumed: str = ""
) -> ParseStep[bool]:
    """Read a value that is not a string as a member; `consumed` is its beginning. Return False if the text ended."""
    raw = yield from notation.take_value(source, arguments.call.add_repair, consumed)
    if raw is None:
        return False
    repaired = repair_json(raw)
    native = repaired is not None and all(repair.kind in _NATIVE_REPAIRS for repair in repaired.repairs)
    arguments.write_json(key, repaired.text if repaired and native else raw)
    return True
