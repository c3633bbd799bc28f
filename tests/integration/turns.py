"""What a model server says in these tests: chat completions, as bytes for `tests/support/upstream.py`."""

from __future__ import annotations

from typing import Any

from tests.support.upstream import DONE, Step, answer, sse

__all__ = ["CALL_BEGUN", "CALL_ENDED", "call", "delta", "finish", "said", "spoken", "text", "usage"]


def delta(**fields: Any) -> bytes:
    """A chunk with one delta."""
    return sse({"choices": [{"index": 0, "delta": fields}]})


def call(index: int, arguments: str, **first: str) -> bytes:
    """A piece of a call's arguments; with `id` and `name` its first."""
    function = {"arguments": arguments} | ({"name": first["name"]} if first else {})
    about = {"id": first["id"], "type": "function"} if first else {}
    return delta(tool_calls=[{"index": index, **about, "function": function}])


def finish(reason: str) -> bytes:
    """The chunk that ends the choice."""
    return sse({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})


def usage(prompt: int, completion: int) -> bytes:
    """The chunk that counts."""
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return sse({"choices": [], "usage": counts})


def text(words: str, size: int = 7) -> list[bytes]:
    """Words in small pieces."""
    return [sse(words[at : at + size]) for at in range(0, len(words), size)]


def said(*pieces: Step, reason: str = "stop") -> list[Step]:
    """A whole answer, properly ended."""
    return answer(*pieces, finish(reason), DONE)


def spoken(words: str) -> list[Step]:
    """A whole answer that is only text."""
    return said(*text(words))


CALL_BEGUN = [call(0, "", id="call_a", name="get_weather"), call(0, '{"city": "Pa')]
CALL_ENDED = [call(0, 'ris", "days": 3}')]
