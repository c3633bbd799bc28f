"""Calls that wait for a result."""

from __future__ import annotations

from callwright.wire.open_calls import OpenCalls
from tests.support.effort import count_calls


def test_the_oldest_call_comes_first_by_name_by_id_and_in_order() -> None:
    calls = OpenCalls()
    for call_id, name in (("a", "f"), ("b", "g"), ("c", "f"), ("a", "g")):
        calls.add_call(call_id, name)
    assert calls.close_next("g") == "b"
    calls.close_call("a")
    assert calls.close_next("") == "c"
    assert calls.close_next("f") == ""
    assert calls.close_next("unknown") == ""
    assert calls.close_next("") == "a"
    calls.close_call("a")
    calls.close_call("unknown")
    assert calls.close_next("") == ""


def close_all(count: int) -> None:
    calls = OpenCalls()
    for at in range(count):
        calls.add_call(str(at), f"t{at}")
    for at in reversed(range(count // 2)):
        calls.close_call(str(at))
    for _ in range(count // 2):
        assert calls.close_next("")


def test_the_work_grows_with_the_number_of_calls() -> None:
    assert count_calls(lambda: close_all(800)) < 2.1 * count_calls(lambda: close_all(400))
