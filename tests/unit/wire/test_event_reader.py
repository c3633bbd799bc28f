"""A stream that fails loses nothing that was said before, on any wire and under any cuts."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from callwright.errors import BackendError, WireError
from callwright.events import Event, Finish, TextDelta, merge_deltas
from callwright.wire.base import WireReader
from tests.support.failures import FAILURES, READ, begun
from tests.support.streams import places, sliced, turns

Outcome = tuple[list[Event], str, str]
"""What came, the type of the error after it, its message."""

FAILING = [(name, kind) for name, failures in FAILURES.items() for kind in failures]
every_failure = pytest.mark.parametrize(("name", "kind"), FAILING)
unfinished = turns().map(lambda events: events[:-1])


def outcome(reader: WireReader, pieces: list[bytes], *, checks: bool = True) -> Outcome:
    """Read as `HttpBackend` does, or as somebody who forgets to check, until it fails."""
    events: list[Event] = []

    def read_on() -> None:
        for piece in pieces:
            events.extend(reader.feed(piece))
            if checks:
                reader.raise_pending_error()
        events.extend(reader.close())
        reader.raise_pending_error()

    with pytest.raises((BackendError, WireError)) as failure:
        read_on()
    reader.raise_pending_error()  # the error is raised once
    return merge_deltas(events), failure.type.__name__, str(failure.value)


def alone(name: str, failure: bytes) -> tuple[str, str]:
    """The error of a stream that holds nothing else."""
    with pytest.raises((BackendError, WireError)) as found:
        READ[name].create_reader().feed(failure)
    return found.type.__name__, str(found.value)


def test_every_reader_is_tried() -> None:
    assert FAILURES.keys() == READ.keys()


@every_failure
@given(unfinished, st.sampled_from((b"\n", b"\r\n")), places, st.booleans())
@example([TextDelta("Let me look.")], b"\n", [], True)
def test_what_was_said_comes_and_then_the_failure_whatever_the_cuts(
    name: str, kind: str, events: list[Event], line_end: bytes, cuts: list[int], checks: bool
) -> None:
    failure = FAILURES[name][kind]
    before = begun(name, events)
    expected = merge_deltas(READ[name].create_reader().feed(before))
    # What a server adds to a failure is part of no turn.
    sent = (before + failure + begun(name, [TextDelta("too late")])).replace(b"\n", line_end)
    came, *error = outcome(READ[name].create_reader(), sliced(sent, cuts), checks=checks)
    assert came == expected
    assert tuple(error) == alone(name, failure)


@every_failure
def test_a_failure_is_there_without_another_read(name: str, kind: str) -> None:
    reader = READ[name].create_reader()
    assert reader.feed(begun(name, [TextDelta("Let me look.")]) + FAILURES[name][kind]) == [TextDelta("Let me look.")]
    with pytest.raises((BackendError, WireError)):
        reader.raise_pending_error()


@pytest.mark.parametrize("name", READ)
@given(unfinished, st.integers(0, 1_000_000), st.sampled_from((b"\n", b"\r\n", b"\r")), places)
def test_a_stream_that_breaks_off_anywhere_says_the_same_whatever_the_cuts(
    name: str, events: list[Event], kept: int, line_end: bytes, cuts: list[int]
) -> None:
    sent = begun(name, events).replace(b"\n", line_end)
    sent = sent[: kept % (len(sent) + 1)]
    by_byte = [sent[at : at + 1] for at in range(len(sent))]
    assert outcome(READ[name].create_reader(), sliced(sent, cuts)) == outcome(READ[name].create_reader(), by_byte)


@pytest.mark.parametrize("name", READ)
def test_the_words_of_a_last_line_without_an_end_come_before_the_failure(name: str) -> None:
    sent = begun(name, [TextDelta("Let me "), TextDelta("look.")]).rstrip(b"\n")
    came, kind, _ = outcome(READ[name].create_reader(), [sent])
    assert (came, kind) == ([TextDelta("Let me look.")], "BackendError")


@pytest.mark.parametrize("name", READ)
def test_there_is_nothing_to_check_where_nothing_failed(name: str) -> None:
    reader = READ[name].create_reader()
    reader.raise_pending_error()
    assert reader.feed(begun(name, [TextDelta("Hi")])) == [TextDelta("Hi")]
    reader.raise_pending_error()


@every_failure
def test_a_failure_after_the_end_is_none(name: str, kind: str) -> None:
    reader = READ[name].create_reader()
    came = reader.feed(begun(name, [TextDelta("Hi"), Finish("stop")]) + FAILURES[name][kind]) + reader.close()
    reader.raise_pending_error()
    assert came[-1:] == [Finish("stop")]
