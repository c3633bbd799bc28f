"""Replaces letters that look like others, to show which name a word imitates."""

from __future__ import annotations

import unicodedata

__all__ = ["replace_lookalikes"]

# Letters of other alphabets that most fonts draw as Latin ones; a selection from Unicode's confusables (UTS 39).
_LATIN_LOOKALIKES = str.maketrans(
    "аЬсԁеԍһіјкӏмпорԛгѕтцѵԝхуАВСЕНІЈКМОРЅТХαεικνορτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧɑɡıɩᴄᴏᴜᴠᴡᴢոսհօ",
    "abcdeghijklmnopqrstuvwxyABCEHIJKMOPSTXaeikvoptuxABEZHIKMNOPTYXagiicouvwznuho",
)


def replace_lookalikes(name: str) -> str:
    """Return the name in plain letters; unchanged if it is already written in them."""
    return unicodedata.normalize("NFKC", name).translate(_LATIN_LOOKALIKES)
