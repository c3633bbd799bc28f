"""Pages on the bridge: who is asked, and what becomes of an answer when connections come and go."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.backends.conversation.frames import (
    BridgeCloseCode,
    CreateFrame,
    DoneFrame,
    ErrorFrame,
    HelloFrame,
    OpenedFrame,
    StopFrame,
    TextFrame,
    WelcomeFrame,
    decode_frame,
)
from callwright.backends.conversation.page_registry import BridgePage, PageRegistry, PageRequest
from callwright.errors import BackendError, WireError


def pages() -> PageRegistry:
    return PageRegistry(lambda: BackendError("gone"))


def join(hub: PageRegistry, name: str, sent: list[Any] | None = None, slots: int = 1) -> BridgePage:
    return hub.add_connection(HelloFrame("token", name, slots), (sent if sent is not None else []).append).page


def create(name: str) -> CreateFrame:
    return CreateFrame(name, "prompt", "m", "")


def heard(serving: PageRequest) -> str:
    async def read() -> str:
        words = []
        while text := await serving.read():
            words.append(text)
        return "".join(words)

    return asyncio.run(read())


_BREAKS = st.lists(st.tuples(st.integers(0, 9), st.booleans(), st.integers(0, 9)), max_size=5)
"""Frames that arrive before each, whether it is noticed before the page is back, frames that come twice after it."""


@given(st.lists(st.text(max_size=3), max_size=8), _BREAKS)
def test_an_answer_arrives_once_and_whole_wherever_connections_break(
    words: list[str], breaks: list[tuple[int, bool, int]]
) -> None:
    said = [TextFrame("r", n, word) for n, word in enumerate(words, 1)]
    frames = [OpenedFrame("r", 0, "c"), *said, DoneFrame("r", len(words) + 1)]
    hub = pages()
    page = join(hub, "p")
    serving = hub.start_request(page, create("r"))
    at = 0
    for arrive, noticed, again in [*breaks, (len(frames), True, 0)]:
        link, sent = page.connection, list[Any]()
        assert link
        for frame in frames[at : at + arrive]:
            link.receive_frame(frame)
        if noticed:
            assert hub.remove_connection(link)
        assert join(hub, "p", sent) is page
        missing = sent[0].requests["r"]
        assert (create("r") in sent) == (missing == 0)
        at = max(0, missing - again)
    for frame in frames[at:]:
        serving.receive_frame(frame)
    assert heard(serving) == "".join(words)
    assert (serving.conversation, serving.is_complete) == ("c", True)


def test_a_frame_that_is_missing_fails_the_answer_after_what_came() -> None:
    serving = PageRequest(create("r"))
    serving.receive_frame(TextFrame("r", 0, "a"))
    serving.receive_frame(TextFrame("r", 2, "c"))
    serving.receive_frame(TextFrame("r", 1, "b"))
    with pytest.raises(BackendError, match="skipped frame 1"):
        heard(serving)


def test_what_was_said_before_a_failure_is_read_before_it() -> None:
    async def main() -> None:
        serving = PageRequest(create("r"))
        serving.receive_frame(TextFrame("r", 0, "half"))
        serving.receive_frame(ErrorFrame("r", 1, "no more"))
        assert await serving.read() == "half"
        with pytest.raises(BackendError, match="no more"):
            await serving.read()

    asyncio.run(main())


def test_an_answer_that_nobody_reads_is_bounded() -> None:
    serving = PageRequest(create("r"))
    for n in range(5):
        serving.receive_frame(TextFrame("r", n, "x" * 1_000_000))
    with pytest.raises(BackendError, match="faster than they were read"):
        heard(serving)


def test_the_page_with_least_to_do_is_asked_and_the_owner_before_all() -> None:
    hub = pages()
    one, two = join(hub, "one", slots=2), join(hub, "two", slots=2)
    assert hub.find_free_page("") is one
    hub.start_request(one, create("a"))
    assert hub.find_free_page("") is two
    assert hub.find_free_page("one") is one
    second = hub.start_request(one, create("b"))
    assert hub.find_free_page("one") is None, "its conversation waits for it"
    hub.end_request(one, second)
    assert hub.find_free_page("one") is one
    assert one.connection
    hub.remove_connection(one.connection)
    assert hub.find_free_page("one") is two, "any other may know it"
    assert two.connection
    hub.remove_connection(two.connection)
    assert hub.find_free_page("") is None


def test_a_page_that_will_not_come_back_fails_what_it_was_asked() -> None:
    hub = pages()
    page = join(hub, "p")
    serving = hub.start_request(page, create("r"))
    hub.remove_page(page)
    assert page.connection
    hub.remove_connection(page.connection)
    hub.remove_page(page)
    with pytest.raises(BackendError, match="gone"):
        heard(serving)
    assert join(hub, "p") is not page


def test_a_page_that_connects_again_gives_up_its_first_connection() -> None:
    hub = pages()
    first: list[Any] = []
    page = join(hub, "p", first)
    old = page.connection
    assert old
    join(hub, "p", second := [])
    assert first[-1] is BridgeCloseCode.REPLACED
    assert isinstance(second[0], WelcomeFrame)
    assert not hub.remove_connection(old), "the page is still there"
    assert list(hub) == [page]


@pytest.mark.parametrize(
    ("ending", "stopped"), [(None, True), (DoneFrame("r", 0), False), (ErrorFrame("r", 0, "x"), False)]
)
def test_a_page_is_told_to_stop_unless_it_has_ended(ending: DoneFrame | ErrorFrame | None, stopped: bool) -> None:
    hub = pages()
    sent: list[Any] = []
    page = join(hub, "p", sent)
    serving = hub.start_request(page, create("r"))
    if ending:
        serving.receive_frame(ending)
    hub.end_request(page, serving)
    hub.end_request(page, serving)
    assert sent.count(StopFrame("r")) == stopped
    assert page.connection
    page.connection.receive_frame(TextFrame("r", 0, "late"))
    assert page.has_free_slot()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "{}",
        '{"type": "welcome"}',
        '{"type": "hello", "token": "secret", "page": "a b"}',
        '{"type": "hello", "token": "secret", "page": "p", "slots": 0}',
        '{"type": "hello", "token": "secret"}',
        '{"type": "text", "id": "r", "n": -1, "text": "secret"}',
        '{"type": "opened", "id": "r", "n": 0, "conversation": ""}',
        "[" * 100_000,
    ],
)
def test_a_frame_that_is_none_is_refused_without_a_quotation(text: str) -> None:
    with pytest.raises(WireError) as refusal:
        decode_frame(text)
    assert "secret" not in str(refusal.value)


def test_a_hello_does_not_show_its_token() -> None:
    assert "secret" not in repr(HelloFrame("secret", "p"))
