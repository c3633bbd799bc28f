"""No client mistakes our pieces for a model that repeats itself, and no character is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.wire.text_batching import MAX_PENDING_CHARACTERS, REPEAT_WINDOW, TextBatcher
from tests.support.sampling import sample_rows

# VS Code Copilot Chat: (how many of the last chunks, the longest pattern that they may not repeat).
CHECKS = ((10, 1), (30, 10), (45, 20), (60, 30), (120, 60))


def is_periodic(chunks: list[str], period: int) -> bool:
    return all(chunks[at] == chunks[at - period] for at in range(period, len(chunks)))


def looks_repetitive(chunks: list[str]) -> bool:
    """What the client asks after each chunk, of all chunks and of those that are not blank."""
    return any(
        len(seen) >= last and any(is_periodic(seen[-last:], period) for period in range(1, longest + 1))
        for seen in (chunks, [chunk for chunk in chunks if chunk.strip()])
        for last, longest in CHECKS
    )


def ever_looks_repetitive(chunks: list[str]) -> bool:
    return any(looks_repetitive(chunks[:end]) for end in range(10, len(chunks) + 1))


def sent(texts: list[str], silences: frozenset[int] = frozenset()) -> list[str]:
    """The pieces of a text; after these positions nothing comes for a moment."""
    pieces = TextBatcher()
    out: list[str] = []
    for at, text in enumerate(texts):
        out.append(pieces.feed(text))
        if at in silences:
            out.append(pieces.flush())
    return [piece for piece in [*out, *pieces.drain()] if piece]


def test_the_check_finds_what_the_client_finds() -> None:
    assert looks_repetitive(["-"] * 10)
    assert not looks_repetitive(["-"] * 9)
    assert looks_repetitive(["a", "b"] * 15)
    assert looks_repetitive(["a", " ", "a", "  "] * 5)
    assert looks_repetitive([str(n) for n in range(60)] * 2)
    assert not looks_repetitive([str(n) for n in range(61)] * 2)


STREAMS = {
    "dashes": ["-"] * 10_000,
    "two letters": list("ab" * 1000),
    "a ruler": ["|", "---"] * 1000,
    "dashes in fives": ["-----"] * 2000,
    "long and alike": ["the same sentence again. "] * 500,
    "huge and alike": ["x" * 5000] * 200,
    "spaces": [" "] * 10_000,
    "empty lines": ["\n\n"] * 1000,
    "spaced": list("x      " * 500),
    "carriage returns": ["\r"] * 2000,
    "CRLF": list("a\r\n" * 500),
    "a sentence in a loop": list("I will now read the file again.\n" * 200),
    "a pattern of sixty": [chr(0x4E00 + n % 60) for n in range(5000)],
}


@pytest.mark.parametrize(("name", "pause"), sample_rows(list(STREAMS), [0, 1, 3]))
def test_no_stream_looks_repetitive(name: str, pause: int) -> None:
    texts = STREAMS[name]
    silences = frozenset(range(0, len(texts), pause)) if pause else frozenset()
    pieces = sent(texts, silences)
    assert "".join(pieces) == "".join(texts)
    assert not ever_looks_repetitive(pieces)


@given(
    st.lists(st.sampled_from("ab- \n"), min_size=1, max_size=8),
    st.integers(1, 300),
    st.frozensets(st.integers(0, 2000), max_size=100),
)
def test_no_repeated_pattern_looks_repetitive(pattern: list[str], times: int, silences: frozenset[int]) -> None:
    pieces = sent(pattern * times, silences)
    assert "".join(pieces) == "".join(pattern * times)
    assert not ever_looks_repetitive(pieces)


@given(st.lists(st.text(max_size=20)), st.frozensets(st.integers(0, 20)))
def test_pieces_join_to_the_text(texts: list[str], silences: frozenset[int]) -> None:
    assert "".join(sent(texts, silences)) == "".join(texts)


def test_the_first_words_go_at_once() -> None:
    assert TextBatcher().feed("H") == "H"


def test_silence_sends_what_is_held() -> None:
    pieces = TextBatcher()
    assert pieces.feed("Hello") == "Hello"
    assert not pieces.has_pending
    assert pieces.feed(" wo") == ""
    assert pieces.has_pending
    assert pieces.flush() == " wo"
    assert not pieces.has_pending
    assert pieces.flush() == ""


def test_silence_sends_no_repetition_and_nothing_blank() -> None:
    pieces = TextBatcher()
    pieces.feed("-")
    for text in ("-", "\n", "a\r"):
        pieces = TextBatcher()
        pieces.feed("-")
        assert pieces.feed(text) == ""
        assert not pieces.has_pending
        assert pieces.flush() == ""
        assert pieces.drain() == (text,)


def test_what_must_go_now_is_cut_rather_than_repeated() -> None:
    pieces = TextBatcher()
    out = []
    for _ in range(10):
        out += [piece for piece in (pieces.feed("Let me look."), *pieces.drain()) if piece]
    assert "".join(out) == "Let me look." * 10
    assert len(set(out)) == len(out)


def test_a_single_character_that_must_go_now_is_repeated() -> None:
    pieces = TextBatcher()
    assert [(pieces.feed("-"), *pieces.drain()) for _ in range(3)] == [("-",), ("", "-"), ("", "-")]


@pytest.mark.parametrize("texts", STREAMS.values(), ids=STREAMS.keys())
def test_little_is_held(texts: list[str]) -> None:
    pieces = TextBatcher()
    total = gone = 0
    for text in texts:
        total += len(text)
        gone += len(pieces.feed(text))
        assert total - gone < MAX_PENDING_CHARACTERS + len(text)


def test_few_pieces_are_remembered() -> None:
    pieces = TextBatcher()
    for n in range(1000):
        pieces.feed(f"piece number {n}")
    assert len(pieces._recent) == REPEAT_WINDOW
