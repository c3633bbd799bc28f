"""Parser: what it says to a program that uses it wrongly."""

from __future__ import annotations

from typing import Any

import pytest

from callwright import Parser, dialect
from callwright.errors import MisuseError


def test_wrong_uses_are_named() -> None:
    name: Any = "hermes"
    with pytest.raises(MisuseError, match=r"a parser needs a dialect, not 'hermes'; dialect\(NAME\) gives one"):
        Parser(name)
    parser = Parser(dialect("hermes"))
    chunk: Any = b"bytes"
    with pytest.raises(MisuseError, match="a chunk is a string, not bytes"):
        parser.feed(chunk)
    parser.close()
    with pytest.raises(MisuseError, match="the parser is closed"):
        parser.feed("more")
    assert parser.close() == []
