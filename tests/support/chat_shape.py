"""The one shape of a chat completions stream that every client takes, as a check of bytes."""

from __future__ import annotations

import json
from typing import Any

HEAD = {"id", "object", "created", "model"}
USAGE = {"prompt_tokens", "completion_tokens", "total_tokens"}


def frames(data: bytes) -> list[str]:
    """The events of a stream and its comments, one line each; anything else is no stream of ours."""
    text = data.decode()
    assert text.endswith("\n\n")
    lines = text[:-2].split("\n\n")
    assert all(line.splitlines() == [line] for line in lines), "a client that cuts at any line end must agree"
    assert all(line.startswith(("data: ", ": ")) for line in lines)
    return lines


def check_stream(data: bytes, *, choices: int = 1, usage: bool = False, functions: bool = False) -> list[Any]:
    """Fail at the first chunk that is out of shape; else give back all of them, without comments and `[DONE]`."""
    lines = [line for line in frames(data) if not line.startswith(":")]
    assert lines[-1] == "data: [DONE]"
    assert frames(data)[-1] == "data: [DONE]", "nothing comes after the end"
    bodies = [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]
    chunks = list(bodies)
    failed = "error" in chunks[-1]
    if failed:
        error = chunks.pop()
        assert error.keys() == {"error"}
        assert error["error"].keys() == {"message", "type", "param", "code"}
    elif usage:
        count = chunks.pop()
        assert count["choices"] == []
        assert count.keys() == HEAD | {"choices", "usage"}
        assert count["usage"].keys() >= USAGE
        assert count["usage"]["total_tokens"] == count["usage"]["prompt_tokens"] + count["usage"]["completion_tokens"]
    assert len({tuple(chunk[key] for key in sorted(HEAD)) for chunk in bodies if "error" not in chunk}) == 1
    states = [_Choice(functions=functions) for _ in range(choices)]
    for chunk in chunks:
        assert chunk.keys() == HEAD | {"choices"}
        assert chunk["object"] == "chat.completion.chunk"
        (choice,) = chunk["choices"]
        assert choice.keys() == {"index", "delta", "finish_reason"}
        states[choice["index"]].check(choice["delta"], choice["finish_reason"])
    assert all(state.reason for state in states)
    assert failed or not any(state.reason == "error" for state in states)
    return bodies


class _Choice:
    """What one choice has shown so far."""

    def __init__(self, *, functions: bool) -> None:
        self.functions = functions
        self.began = False
        self.reason: str | None = None
        self.ids: list[str] = []
        self.called = False

    def check(self, delta: dict[str, Any], reason: str | None) -> None:
        assert self.reason is None, "a choice says nothing after its finish"
        if not self.began:
            self.began = True
            assert delta == {"role": "assistant", "content": ""}
            assert reason is None
            return
        assert "role" not in delta
        if reason is not None:
            assert delta == {}
            self.reason = reason
            assert reason in {"stop", "tool_calls", "function_call", "length", "content_filter", "error"}
            assert (reason == "function_call") <= self.functions
            assert reason not in {"tool_calls", "function_call"} or self.called
            return
        if "tool_calls" in delta or "function_call" in delta:
            assert len(delta) == 1, "calls share a chunk with nothing"
            self.call(delta)
        elif "beginToolCalls" in delta:
            assert not self.called
        elif delta:
            assert all(isinstance(value, str) and value for value in delta.values())

    def call(self, delta: dict[str, Any]) -> None:
        self.called = True
        if self.functions:
            function = delta["function_call"]
        else:
            (entry,) = delta["tool_calls"]
            function = entry["function"]
            if "id" in entry:
                assert entry.keys() == {"index", "id", "type", "function"}
                assert entry["type"] == "function"
                assert entry["index"] == len(self.ids)
                assert entry["id"] not in self.ids
                self.ids.append(entry["id"])
            else:
                assert entry.keys() == {"index", "function"}
                assert entry["index"] == len(self.ids) - 1
                assert "name" not in function
        if "name" in function:
            assert function.keys() == {"name", "arguments"}
            assert function["arguments"] == ""
        else:
            assert function.keys() == {"arguments"}
            assert function["arguments"]
