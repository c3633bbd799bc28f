"""Arguments whose values are written in quotes other than JSON's: Python's, or tokens that stand for quotes.

    city='Oslo', tags=('a', "b")        city:<|"|>Oslo<|"|>,tags:[<|"|>a<|"|>]

Strings stream where they may; other values are taken whole.
"""

from __future__ import annotations

from callwright.arguments import ArgumentsWriter
from callwright.text.json_stream import escape_json
from callwright.text.repair import PYTHON_REPAIR_KINDS, repair_json
from callwright.text.source import ParseStep, Source, TextBuffer
from callwright.text.string_notation import ClosingCheck, Notation, Quote

__all__ = ["read_literal_value", "read_string_value"]

_NATIVE_REPAIRS = PYTHON_REPAIR_KINDS | {"quoted_key"}
"""What `repair` names and these notations write all the time."""


def read_string_value(
    source: Source, arguments: ArgumentsWriter, key: str, quote: Quote, closes: ClosingCheck
) -> ParseStep[bool]:
    """Read the rest of a string as a member; it streams if it may. False: the text ended inside it."""
    call = arguments.call
    if arguments.can_stream(key):
        source.drop_capture()
        arguments.start_string(key)
        whole = yield from quote.copy_string(
            source, lambda text: call.write(escape_json(text)), call.add_repair, closes
        )
        if whole:
            call.write('"')
        return whole
    held = TextBuffer(source)
    whole = yield from quote.copy_string(source, held.add, call.add_repair, closes)
    if whole:
        arguments.write_json(key, f'"{escape_json(held.get_text())}"')
    return whole


def read_literal_value(
    source: Source, arguments: ArgumentsWriter, key: str, notation: Notation, consumed: str = ""
) -> ParseStep[bool]:
    """Read a value that is no string as a member, of which `begun` is consumed. False: the text ended inside it."""
    raw = yield from notation.take_value(source, arguments.call.add_repair, consumed)
    if raw is None:
        return False
    mended = repair_json(raw)
    native = mended is not None and all(repair.kind in _NATIVE_REPAIRS for repair in mended.repairs)
    arguments.write_json(key, mended.text if mended and native else raw)
    return True
