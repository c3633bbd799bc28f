"""Letters that look like others: what a name written with them pretends to be."""

from __future__ import annotations

import unicodedata

__all__ = ["replace_lookalikes"]

# Letters of other alphabets that most fonts draw as Latin ones; a choice from Unicode's table of confusables (UTS 39).
_LATIN_LOOKALIKES = str.maketrans(
    "аЬсԁеԍһіјкӏмпорԛгѕтцѵԝхуАВСЕНІЈКМОРЅТХαεικνορτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧɑɡıɩᴄᴏᴜᴠᴡᴢոսհօ",
    "abcdeghijklmnopqrstuvwxyABCEHIJKMOPSTXaeikvoptuxABEZHIKMNOPTYXagiicouvwznuho",
)


def replace_lookalikes(name: str) -> str:
    """The name in plain letters; itself when it is written in them."""
    return unicodedata.normalize("NFKC", name).translate(_LATIN_LOOKALIKES)
