"""Every vector of every dialect, at several chunk sizes; in the full run at all of them."""

from __future__ import annotations

import pytest

from callwright import collect, get_dialect
from callwright.dialects import REGISTRY
from callwright.events import merge_deltas
from tests.support.harness import SIZES, TOOLS, Vector, drive, pieces, told, vectors
from tests.support.sampling import sample

CASES = [(name, vector) for name in REGISTRY for vector in vectors(name)]


@pytest.mark.parametrize(("name", "vector"), CASES, ids=[f"{name}:{vector.id}" for name, vector in CASES])
def test_vector(name: str, vector: Vector) -> None:
    tools = TOOLS if vector.tools is None else vector.tools
    streams = [
        drive(get_dialect(name), pieces(vector.text, size), tools, prefill=vector.prefill, truncated=vector.truncated)
        for size in sample(SIZES, 4)
    ]
    assert all(merge_deltas(stream) == merge_deltas(streams[0]) for stream in streams[1:])
    turn, expect = collect(streams[0]), vector.expect
    assert turn.text == expect.content
    assert turn.reasoning == expect.reasoning
    whole = expect.complete or [True] * len(turn.tool_calls)
    assert [call.complete for call in turn.tool_calls] == whole
    if all(whole):
        assert told(turn) == [tuple(call) for call in expect.calls]
    else:
        assert [(call.name, call.arguments) for call in turn.tool_calls] == [tuple(call) for call in expect.calls]
    assert turn.finish_reason == expect.finish
    assert [repair.kind for repair in turn.repairs] == expect.repairs
    assert len(turn.malformed) == expect.malformed
    if expect.ids is not None:
        assert [call.id for call in turn.tool_calls] == expect.ids
