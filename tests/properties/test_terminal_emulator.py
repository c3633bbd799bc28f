"""Laws of the screen: the cutting does not matter, nothing that is not text gets through, plain text is not touched."""

from __future__ import annotations

import ast
import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from callwright.agent.shell.output_excerpt import OutputExcerpt
from callwright.agent.shell.terminal_emulator import OutputLine, TerminalEmulator


def spoken(escaped: str) -> bytes:
    """A piece as it is written below: `\\x1b[K`."""
    return re.sub(r"\\(x..|.)", lambda found: ast.literal_eval(f'"\\{found[1]}"'), escaped).encode()


SEQUENCES = r"""
\n \r \r\n \b \t \x85 \x1b \x1b[ \x1b]0; \x07 \x1b\\ \x1bP \x9b \x9d \x9c m [ 0; é 中 👩‍💻
\x1b[2K \x1b[K \x1b[1K \x1b[1A \x1b[3B \x1b[5C \x1b[2D \x1b[J \x1b[2J \x1b[H \x1b[3;4H
\x1b[31m \x1b[38:2:1:2:3m \x1b[?2004h \x1b(B \x1b#8
"""
PIECES = st.one_of(
    st.sampled_from(SEQUENCES.split()).map(spoken),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6).map(str.encode),
    st.binary(max_size=4),
)
OUTPUT = st.lists(PIECES, max_size=40).map(b"".join)


def lines(pieces: list[bytes], *, rows: int) -> list[OutputLine]:
    found: list[OutputLine] = []
    screen = TerminalEmulator(found.append, rows=rows, line_limit=100)
    for piece in pieces:
        screen.feed(piece)
    screen.close()
    return found


@given(OUTPUT, st.lists(st.integers(0, 200), max_size=8), st.integers(1, 5))
def test_any_cutting_of_the_bytes_shows_the_same(data: bytes, cuts: list[int], rows: int) -> None:
    whole = lines([data], rows=rows)
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    assert lines([data[start:end] for start, end in pairwise(edges)], rows=rows) == whole
    assert lines([data[at : at + 1] for at in range(len(data))], rows=rows) == whole


@given(OUTPUT)
def test_what_is_shown_can_be_shown_anywhere(data: bytes) -> None:
    for line in lines([data], rows=3):
        line.text.encode()
        assert not re.search(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]", line.text)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=30), max_size=12), st.integers(1, 5))
def test_plain_lines_are_shown_as_they_are(texts: list[str], rows: int) -> None:
    shown = [line.text for line in lines([("\n".join([*texts, "end"])).encode()], rows=rows)]
    assert shown == [*texts, "end"]


@given(OUTPUT, st.integers(1, 4), st.integers(1, 4))
def test_every_line_is_shown_or_counted(data: bytes, head: int, tail: int) -> None:
    excerpt = OutputExcerpt(head=head, tail=tail)
    every = OutputExcerpt(head=10_000, tail=1)
    for line in lines([data], rows=3):
        excerpt.add(line)
        every.add(line)
    excerpt.close()
    every.close()
    whole = every.text.split("\n") if every.text else []
    shown = excerpt.text.split("\n") if excerpt.text else []
    if excerpt.omitted_lines:
        assert len(shown) == head + 1 + tail
        assert excerpt.omitted_lines == len(whole) - head - tail
        assert shown[:head] + shown[head + 1 :] == whole[:head] + whole[-tail:]
    else:
        assert shown == whole
