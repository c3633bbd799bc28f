"""An answer as the Responses API tells it: a list of items, and the response that holds them.

Each kind of item knows the events that open it, the event that lets it grow and those that close it. Text is quoted
once, when its item is done, and stands in the closing events and in the response as it was quoted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import msgspec

from callwright.model import Usage
from callwright.wire.base import Ask, Head, Origin
from callwright.wire.framing import quoted
from callwright.wire.openai_responses.freeform import Freeform
from callwright.wire.openai_responses.request import PREFIX

__all__ = ["Answer", "Call", "CustomCall", "Item", "Status", "Thinking", "Told", "Words"]

Status = Literal["in_progress", "completed", "incomplete"]
Told = tuple[str, dict[str, Any]]
"""An event's type and what it says besides its place."""

_RUNNING: dict[str, Any] = {"status": "in_progress", "error": None, "incomplete_details": None}
_RUNNING |= {"output": [], "usage": None}
_NOTHING = msgspec.Raw(b'""')


class Item(ABC):
    """One item of the output while it grows, and what it came to."""

    prefix = ""
    delta = ""
    """The type of the event that brings more of it."""
    place: ClassVar[dict[str, Any]] = {}
    """Where in the item its text stands, as that event and those around it say it."""

    def __init__(self, item_id: str, index: int) -> None:
        self.id = item_id
        self.index = index
        self.status: Status = "in_progress"
        self.parts: list[str] = []
        self.text = _NOTHING

    def close(self, status: Status) -> None:
        """No more of it comes."""
        self.status = status
        self.text = msgspec.Raw(quoted("".join(self.parts)))

    def opening(self) -> Iterator[Told]:
        """The events between the one that adds it and its first delta."""
        yield from ()

    @abstractmethod
    def closing(self) -> Iterator[Told]:
        """The events between its last delta and the one that says it is done."""

    @abstractmethod
    def body(self) -> dict[str, Any]:
        """The item as it stands."""


class Words(Item):
    """A message of the assistant."""

    prefix = "msg"
    delta = "response.output_text.delta"
    place: ClassVar[dict[str, Any]] = {"content_index": 0, "logprobs": []}

    def opening(self) -> Iterator[Told]:
        yield "response.content_part.added", {"content_index": 0, "part": self._part()}

    def closing(self) -> Iterator[Told]:
        yield "response.output_text.done", {**self.place, "text": self.text}
        yield "response.content_part.done", {"content_index": 0, "part": self._part()}

    def body(self) -> dict[str, Any]:
        content = [] if self.status == "in_progress" else [self._part()]
        return {"type": "message", "id": self.id, "status": self.status, "role": "assistant", "content": content}

    def _part(self) -> dict[str, Any]:
        return {"type": "output_text", "text": self.text, "annotations": [], "logprobs": []}


class Thinking(Item):
    """Reasoning, told as its summary: the part of it that every client shows."""

    prefix = "rs"
    delta = "response.reasoning_summary_text.delta"
    place: ClassVar[dict[str, Any]] = {"summary_index": 0}
    encrypted = ""
    """What the server behind us wants to see again."""

    def opening(self) -> Iterator[Told]:
        yield "response.reasoning_summary_part.added", {**self.place, "part": self._part()}

    def closing(self) -> Iterator[Told]:
        yield "response.reasoning_summary_text.done", {**self.place, "text": self.text}
        yield "response.reasoning_summary_part.done", {**self.place, "part": self._part()}

    def body(self) -> dict[str, Any]:
        summary = [] if self.status == "in_progress" else [self._part()]
        body = {"type": "reasoning", "id": self.id, "status": self.status, "summary": summary}
        return body | ({"encrypted_content": msgspec.Raw(quoted(self.encrypted))} if self.encrypted else {})

    def _part(self) -> dict[str, Any]:
        return {"type": "summary_text", "text": self.text}


class Call(Item):
    """A call of a function."""

    prefix = "fc"
    delta = "response.function_call_arguments.delta"
    kind, field, done = "function_call", "arguments", "response.function_call_arguments.done"

    def __init__(self, item_id: str, index: int, call_id: str, origin: Origin) -> None:
        super().__init__(item_id, index)
        self.call_id = call_id
        self.origin = origin

    def read(self, fragment: str) -> str:
        """What a fragment of the arguments is to the client."""
        return fragment

    def rest(self) -> str:
        """What is left to tell when the arguments are over."""
        return ""

    def closing(self) -> Iterator[Told]:
        yield self.done, {self.field: self.text}

    def body(self) -> dict[str, Any]:
        origin = self.origin
        named = {"name": origin.name} | ({"namespace": origin.namespace} if origin.namespace else {})
        body = {"type": self.kind, "id": self.id, "status": self.status, "call_id": self.call_id}
        return body | named | {self.field: self.text}


class CustomCall(Call):
    """A call of a tool that takes free text."""

    prefix = "ctc"
    delta = "response.custom_tool_call_input.delta"
    kind, field, done = "custom_tool_call", "input", "response.custom_tool_call_input.done"

    def __init__(self, item_id: str, index: int, call_id: str, origin: Origin) -> None:
        super().__init__(item_id, index, call_id, origin)
        self._freeform = Freeform()

    def read(self, fragment: str) -> str:
        return self._freeform.feed(fragment)

    def rest(self) -> str:
        return self._freeform.close()


class Answer:
    """The response: what it says of itself and of the request, its items, and how it ended."""

    def __init__(self, ask: Ask, head: Head) -> None:
        self.items: list[Item] = []
        """Those that are done."""
        self.usage = Usage()
        """Zeros where nobody counted: without it opencode (1.18) asks again without end."""
        self._ended: dict[str, Any] = {}
        self._head = head
        self._request = _request(ask)

    def end(self, status: str, *, incomplete: str = "", code: str = "", message: str = "") -> None:
        """The answer is over."""
        error = {"code": code, "message": msgspec.Raw(quoted(message))} if code else None
        details = {"reason": incomplete} if incomplete else None
        self._ended = {"status": status, "error": error, "incomplete_details": details}

    @property
    def id(self) -> str:
        """The response's id."""
        return PREFIX + self._head.id

    def body(self) -> dict[str, Any]:
        """The response as it stands. While it goes on its items are told in events only."""
        head = {"id": self.id, "object": "response", "created_at": self._head.created, "model": self._head.model}
        if not self._ended:
            return head | _RUNNING | self._request
        output = {"output": [item.body() for item in self.items], "usage": _usage(self.usage)}
        return head | self._ended | output | self._request


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }


def _request(ask: Ask) -> dict[str, Any]:
    """What the response repeats of the request. Not its tools and instructions, though the API does: they may be tens
    of kilobytes, are sent three times and with every sign of life, and no client that we know reads them there."""
    request, extra = ask.request, ask.extra
    options, choice = request.options, request.tool_choice
    if choice not in ("auto", "none", "required"):
        origin = ask.origins.get(choice, Origin(choice))
        choice = {"type": origin.kind, "name": origin.name}  # type: ignore[assignment]
    return {
        "background": False,
        "instructions": None,
        "max_output_tokens": options.get("max_tokens"),
        "metadata": extra.get("metadata") or {},
        "parallel_tool_calls": request.parallel_tool_calls,
        "previous_response_id": PREFIX + ask.previous if ask.previous else None,
        "reasoning": {"effort": options.get("reasoning_effort"), "summary": None},
        "store": extra.get("store", True),
        "temperature": options.get("temperature"),
        "tool_choice": choice,
        "tools": [],
        "top_p": options.get("top_p"),
        "truncation": "disabled",
    }
