"""Frames come out of bytes the same way wherever the bytes were cut."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.errors import WireError
from callwright.wire.framing import (
    SSE_DATA,
    SSE_DONE,
    SSE_END,
    LineReader,
    SseReader,
    encode_comment,
    encode_json_string,
)
from tests.support.streams import places, sliced

CASES = {
    "plain": (b"data: a\n\n", [(b"", b"a")]),
    "no space after the colon": (b"data:a\n\n", [(b"", b"a")]),
    "only one space is cut": (b"data:  a\n\n", [(b"", b" a")]),
    "CRLF": (b"data: a\r\n\r\ndata: b\r\n\r\n", [(b"", b"a"), (b"", b"b")]),
    "CR alone": (b"data: a\r\rdata: b\r\r", [(b"", b"a"), (b"", b"b")]),
    "several lines of data": (b"data: a\ndata: b\n\n", [(b"", b"a\nb")]),
    "comments": (b": hi\n\ndata: a\n: in between\n\n: bye\n\n", [(b"", b"a")]),
    "names": (b"event: error\ndata: a\n\ndata: b\n\n", [(b"error", b"a"), (b"", b"b")]),
    "a name without data is no event": (b"event: ping\n\ndata: a\n\n", [(b"", b"a")]),
    "other fields": (b"id: 7\nretry: 10\ndata: a\nwhat\n\n", [(b"", b"a")]),
    "no last newlines": (b"data: a\n\ndata: b", [(b"", b"a"), (b"", b"b")]),
    "no last empty line": (b"data: a\n", [(b"", b"a")]),
    "llama.cpp's error field": (b'data: a\n\nerror: {"code":500}\n\n', [(b"", b"a"), (b"error", b' {"code":500}')]),
    "empty": (b"", []),
    "empty lines": (b"\n\n\r\n\n", []),
    "other line ends are data": ("data: a\u2028b\x85c\n\n".encode(), [(b"", "a\u2028b\x85c".encode())]),
}


def read(chunks: list[bytes]) -> list[tuple[bytes, bytes]]:
    reader = SseReader()
    return [frame for chunk in chunks for frame in reader.feed(chunk)] + reader.close()


@pytest.mark.parametrize(("data", "frames"), CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_an_event_is_read_in_any_form(data: bytes, frames: list[tuple[bytes, bytes]], size: int) -> None:
    assert read([data[at : at + size] for at in range(0, len(data), size)]) == frames


SOUP = st.lists(
    st.sampled_from(
        [b"data: ", b"data:", b"event: x", b":", b"\n", b"\r\n", b"\r", b"\n\n", b"{}", "é☃😀".encode(), b"z"]
    ),
    max_size=40,
).map(b"".join)


@given(SOUP, places)
def test_cutting_bytes_changes_no_frame(data: bytes, cuts: list[int]) -> None:
    assert read(sliced(data, cuts)) == read([data])


@given(SOUP, places)
def test_cutting_bytes_changes_no_line(data: bytes, cuts: list[int]) -> None:
    reader = LineReader()
    lines = [line for chunk in sliced(data, cuts) for line in reader.feed(chunk)] + reader.close()
    assert lines == data.splitlines()


@given(st.lists(st.text()), places)
def test_what_is_written_is_read_back(texts: list[str], cuts: list[int]) -> None:
    data = b"".join(SSE_DATA + encode_json_string(text) + SSE_END + encode_comment(text) for text in texts) + SSE_DONE
    frames = read(sliced(data, cuts))
    assert [json.loads(payload) for _, payload in frames[:-1]] == texts
    assert frames[-1] == (b"", b"[DONE]")


@given(st.text(st.characters(codec=None)))
def test_a_quoted_text_has_no_line_end_and_is_json(text: str) -> None:
    raw = encode_json_string(text)
    assert len(raw.decode().splitlines()) == 1
    assert msgspec.json.decode(raw) == text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def test_a_comment_stays_one_line() -> None:
    assert encode_comment("a\ndata: b\r\n c") == b": a data: b c\n\n"


@pytest.mark.parametrize(
    "data",
    [
        b"data: " + b"x" * 101 + b"\n\n",
        b"data: " + b"x" * 60 + b"\ndata: " + b"x" * 60 + b"\n\n",
        b": " + b"x" * 200,
    ],
    ids=["one line", "many lines", "no line end"],
)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_an_event_beyond_the_limit_is_an_error(data: bytes, size: int) -> None:
    reader = SseReader(limit=100)
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    with pytest.raises(WireError, match="longer than 100 bytes"):
        list(map(reader.feed, chunks))


def test_many_events_in_one_read_may_be_longer_than_the_limit_together() -> None:
    assert len(SseReader(limit=100).feed(b"data: 12345678\n\n" * 100)) == 100
