"""Arguments whose values are written in quotes other than JSON's: Python's, or tokens that stand for quotes.

    city='Oslo', tags=('a', "b")        city:<|"|>Oslo<|"|>,tags:[<|"|>a<|"|>]

Strings stream where they may; other values are taken whole.
"""

from __future__ import annotations

from callwright.arguments import Arguments
from callwright.text.json_stream import escape
from callwright.text.quoted import Closes, Notation, Quote
from callwright.text.repair import PYTHON_KINDS, repair_json
from callwright.text.source import Held, Reading, Source

__all__ = ["read_string", "read_value"]

_NATIVE = PYTHON_KINDS | {"quoted_key"}
"""What `repair` names and these notations write all the time."""


def read_string(source: Source, arguments: Arguments, key: str, quote: Quote, closes: Closes) -> Reading[bool]:
    """Read the rest of a string as a member; it streams if it may. False: the text ended inside it."""
    call = arguments.call
    if arguments.streams(key):
        source.settle()
        arguments.begin_string(key)
        whole = yield from quote.copy(source, lambda text: call.write(escape(text)), call.note, closes)
        if whole:
            call.write('"')
        return whole
    held = Held(source)
    whole = yield from quote.copy(source, held.add, call.note, closes)
    if whole:
        arguments.put_json(key, f'"{escape(held.text())}"')
    return whole


def read_value(source: Source, arguments: Arguments, key: str, notation: Notation, begun: str = "") -> Reading[bool]:
    """Read a value that is no string as a member, of which `begun` is consumed. False: the text ended inside it."""
    raw = yield from notation.take(source, arguments.call.note, begun)
    if raw is None:
        return False
    mended = repair_json(raw)
    native = mended is not None and all(repair.kind in _NATIVE for repair in mended.repairs)
    arguments.put_json(key, mended.text if mended and native else raw)
    return True
