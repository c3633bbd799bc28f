"""Pages on the bridge: who is asked, and what becomes of an answer when connections come and go."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.backends.conversation.frames import (
    Code,
    Create,
    Done,
    Failed,
    Hello,
    Opened,
    Said,
    Stop,
    Welcome,
    decode,
)
from callwright.backends.conversation.pages import Page, Pages, Serving
from callwright.errors import BackendError, WireError


def pages() -> Pages:
    return Pages(lambda: BackendError("gone"))


def join(hub: Pages, name: str, sent: list[Any] | None = None, room: int = 1) -> Page:
    return hub.join(Hello("token", name, room), (sent if sent is not None else []).append).page


def create(name: str) -> Create:
    return Create(name, "prompt", "m", "")


def heard(serving: Serving) -> str:
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
    said = [Said("r", n, word) for n, word in enumerate(words, 1)]
    frames = [Opened("r", 0, "c"), *said, Done("r", len(words) + 1)]
    hub = pages()
    page = join(hub, "p")
    serving = hub.ask(page, create("r"))
    at = 0
    for arrive, noticed, again in [*breaks, (len(frames), True, 0)]:
        link, sent = page.link, list[Any]()
        assert link
        for frame in frames[at : at + arrive]:
            link.take(frame)
        if noticed:
            assert hub.leave(link)
        assert join(hub, "p", sent) is page
        missing = sent[0].requests["r"]
        assert (create("r") in sent) == (missing == 0)
        at = max(0, missing - again)
    for frame in frames[at:]:
        serving.take(frame)
    assert heard(serving) == "".join(words)
    assert (serving.conversation, serving.over) == ("c", True)


def test_a_frame_that_is_missing_fails_the_answer_after_what_came() -> None:
    serving = Serving(create("r"))
    serving.take(Said("r", 0, "a"))
    serving.take(Said("r", 2, "c"))
    serving.take(Said("r", 1, "b"))
    with pytest.raises(BackendError, match="skipped frame 1"):
        heard(serving)


def test_what_was_said_before_a_failure_is_read_before_it() -> None:
    async def main() -> None:
        serving = Serving(create("r"))
        serving.take(Said("r", 0, "half"))
        serving.take(Failed("r", 1, "no more"))
        assert await serving.read() == "half"
        with pytest.raises(BackendError, match="no more"):
            await serving.read()

    asyncio.run(main())


def test_an_answer_that_nobody_reads_is_bounded() -> None:
    serving = Serving(create("r"))
    for n in range(5):
        serving.take(Said("r", n, "x" * 1_000_000))
    with pytest.raises(BackendError, match="faster than they were read"):
        heard(serving)


def test_the_page_with_least_to_do_is_asked_and_the_owner_before_all() -> None:
    hub = pages()
    one, two = join(hub, "one", room=2), join(hub, "two", room=2)
    assert hub.free("") is one
    hub.ask(one, create("a"))
    assert hub.free("") is two
    assert hub.free("one") is one
    second = hub.ask(one, create("b"))
    assert hub.free("one") is None, "its conversation waits for it"
    hub.end(one, second)
    assert hub.free("one") is one
    assert one.link
    hub.leave(one.link)
    assert hub.free("one") is two, "any other may know it"
    assert two.link
    hub.leave(two.link)
    assert hub.free("") is None


def test_a_page_that_will_not_come_back_fails_what_it_was_asked() -> None:
    hub = pages()
    page = join(hub, "p")
    serving = hub.ask(page, create("r"))
    hub.forget(page)
    assert page.link
    hub.leave(page.link)
    hub.forget(page)
    with pytest.raises(BackendError, match="gone"):
        heard(serving)
    assert join(hub, "p") is not page


def test_a_page_that_connects_again_gives_up_its_first_connection() -> None:
    hub = pages()
    first: list[Any] = []
    page = join(hub, "p", first)
    old = page.link
    assert old
    join(hub, "p", second := [])
    assert first[-1] is Code.REPLACED
    assert isinstance(second[0], Welcome)
    assert not hub.leave(old), "the page is still there"
    assert list(hub) == [page]


@pytest.mark.parametrize(("ending", "stopped"), [(None, True), (Done("r", 0), False), (Failed("r", 0, "x"), False)])
def test_a_page_is_told_to_stop_unless_it_has_ended(ending: Done | Failed | None, stopped: bool) -> None:
    hub = pages()
    sent: list[Any] = []
    page = join(hub, "p", sent)
    serving = hub.ask(page, create("r"))
    if ending:
        serving.take(ending)
    hub.end(page, serving)
    hub.end(page, serving)
    assert sent.count(Stop("r")) == stopped
    assert page.link
    page.link.take(Said("r", 0, "late"))
    assert page.has_room()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "{}",
        '{"type": "welcome"}',
        '{"type": "hello", "token": "secret", "page": "a b"}',
        '{"type": "hello", "token": "secret", "page": "p", "room": 0}',
        '{"type": "hello", "token": "secret"}',
        '{"type": "text", "id": "r", "n": -1, "text": "secret"}',
        '{"type": "opened", "id": "r", "n": 0, "conversation": ""}',
        "[" * 100_000,
    ],
)
def test_a_frame_that_is_none_is_refused_without_a_quotation(text: str) -> None:
    with pytest.raises(WireError) as refusal:
        decode(text)
    assert "secret" not in str(refusal.value)


def test_a_hello_does_not_show_its_token() -> None:
    assert "secret" not in repr(Hello("secret", "p"))
