"""An answer in the Responses API: a list of items, and the response that contains them.

Each kind of item has events that open it, an event that adds text, and events that close it. Text is quoted once, when
its item is done; the closing events and the response use the quoted text.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import msgspec

from callwright.model import Usage
from callwright.wire.base import ClientRequest, ResponseHead, ToolOrigin
from callwright.wire.framing import encode_json_string
from callwright.wire.openai_responses.decode import RESPONSE_ID_PREFIX
from callwright.wire.openai_responses.freeform_input import FreeformInputReader

__all__ = [
    "CustomCallItem",
    "FunctionCallItem",
    "ItemEvent",
    "ItemStatus",
    "MessageItem",
    "OutputItem",
    "ReasoningItem",
    "ResponseObject",
]

ItemStatus = Literal["in_progress", "completed", "incomplete"]
ItemEvent = tuple[str, dict[str, Any]]
"""An event's type, and its fields besides its position."""

_IN_PROGRESS_FIELDS: dict[str, Any] = {"status": "in_progress", "error": None, "incomplete_details": None}
_IN_PROGRESS_FIELDS |= {"output": [], "usage": None}
_EMPTY_TEXT = msgspec.Raw(b'""')


class OutputItem(ABC):
    """One item of the output."""

    prefix = ""
    delta_event = ""
    """The type of the event that adds text."""
    location: ClassVar[dict[str, Any]] = {}
    """The position of the text in the item, as that event and the closing events contain it."""

    def __init__(self, item_id: str, index: int) -> None:
        self.id = item_id
        self.index = index
        self.status: ItemStatus = "in_progress"
        self.parts: list[str] = []
        self.text = _EMPTY_TEXT

    def close(self, status: ItemStatus) -> None:
        """Complete the item with this status."""
        self.status = status
        self.text = msgspec.Raw(encode_json_string("".join(self.parts)))

    def iter_opening_events(self) -> Iterator[ItemEvent]:
        """Yield the events between the one that adds the item and its first delta."""
        yield from ()

    @abstractmethod
    def iter_closing_events(self) -> Iterator[ItemEvent]:
        """Yield the events between the last delta and the one that completes the item."""

    @abstractmethod
    def build_body(self) -> dict[str, Any]:
        """Return the item so far."""


class MessageItem(OutputItem):
    """A message of the assistant."""

    prefix = "msg"
    delta_event = "response.output_text.delta"
    location: ClassVar[dict[str, Any]] = {"content_index": 0, "logprobs": []}

    def iter_opening_events(self) -> Iterator[ItemEvent]:
        yield "response.content_part.added", {"content_index": 0, "part": self._build_part()}

    def iter_closing_events(self) -> Iterator[ItemEvent]:
        yield "response.output_text.done", {**self.location, "text": self.text}
        yield "response.content_part.done", {"content_index": 0, "part": self._build_part()}

    def build_body(self) -> dict[str, Any]:
        content = [] if self.status == "in_progress" else [self._build_part()]
        return {"type": "message", "id": self.id, "status": self.status, "role": "assistant", "content": content}

    def _build_part(self) -> dict[str, Any]:
        return {"type": "output_text", "text": self.text, "annotations": [], "logprobs": []}


class ReasoningItem(OutputItem):
    """Reasoning, sent as its summary, which every client shows."""

    prefix = "rs"
    delta_event = "response.reasoning_summary_text.delta"
    location: ClassVar[dict[str, Any]] = {"summary_index": 0}
    encrypted = ""
    """The encrypted form that the server behind us expects back."""

    def iter_opening_events(self) -> Iterator[ItemEvent]:
        yield "response.reasoning_summary_part.added", {**self.location, "part": self._build_part()}

    def iter_closing_events(self) -> Iterator[ItemEvent]:
        yield "response.reasoning_summary_text.done", {**self.location, "text": self.text}
        yield "response.reasoning_summary_part.done", {**self.location, "part": self._build_part()}

    def build_body(self) -> dict[str, Any]:
        summary = [] if self.status == "in_progress" else [self._build_part()]
        body = {"type": "reasoning", "id": self.id, "status": self.status, "summary": summary}
        return body | ({"encrypted_content": msgspec.Raw(encode_json_string(self.encrypted))} if self.encrypted else {})

    def _build_part(self) -> dict[str, Any]:
        return {"type": "summary_text", "text": self.text}


class FunctionCallItem(OutputItem):
    """A call of a function."""

    prefix = "fc"
    delta_event = "response.function_call_arguments.delta"
    kind, field, done = "function_call", "arguments", "response.function_call_arguments.done"

    def __init__(self, item_id: str, index: int, call_id: str, origin: ToolOrigin) -> None:
        super().__init__(item_id, index)
        self.call_id = call_id
        self.origin = origin

    def read_fragment(self, fragment: str) -> str:
        """Return the client's text for a fragment of the arguments."""
        return fragment

    def take_rest(self) -> str:
        """Return the rest of the text when the arguments are complete."""
        return ""

    def iter_closing_events(self) -> Iterator[ItemEvent]:
        yield self.done, {self.field: self.text}

    def build_body(self) -> dict[str, Any]:
        origin = self.origin
        named = {"name": origin.name} | ({"namespace": origin.namespace} if origin.namespace else {})
        body = {"type": self.kind, "id": self.id, "status": self.status, "call_id": self.call_id}
        return body | named | {self.field: self.text}


class CustomCallItem(FunctionCallItem):
    """A call of a tool that takes free text."""

    prefix = "ctc"
    delta_event = "response.custom_tool_call_input.delta"
    kind, field, done = "custom_tool_call", "input", "response.custom_tool_call_input.done"

    def __init__(self, item_id: str, index: int, call_id: str, origin: ToolOrigin) -> None:
        super().__init__(item_id, index, call_id, origin)
        self._freeform = FreeformInputReader()

    def read_fragment(self, fragment: str) -> str:
        return self._freeform.feed(fragment)

    def take_rest(self) -> str:
        return self._freeform.close()


class ResponseObject:
    """The response: its own fields, those of the request, its items, and how it ended."""

    def __init__(self, client_request: ClientRequest, head: ResponseHead) -> None:
        self.items: list[OutputItem] = []
        """The completed items."""
        self.usage = Usage()
        """Zeros if the backend did not count: without usage, opencode (1.18) retries without end."""
        self._ending: dict[str, Any] = {}
        self._head = head
        self._request = _build_request_fields(client_request)

    def end_response(self, status: str, *, incomplete: str = "", code: str = "", message: str = "") -> None:
        """End the response."""
        error = {"code": code, "message": msgspec.Raw(encode_json_string(message))} if code else None
        details = {"reason": incomplete} if incomplete else None
        self._ending = {"status": status, "error": error, "incomplete_details": details}

    @property
    def id(self) -> str:
        """The response's id."""
        return RESPONSE_ID_PREFIX + self._head.id

    def build_body(self) -> dict[str, Any]:
        """Return the response so far. While it is in progress, its items are only in events."""
        head = {"id": self.id, "object": "response", "created_at": self._head.created, "model": self._head.model}
        if not self._ending:
            return head | _IN_PROGRESS_FIELDS | self._request
        output = {"output": [item.build_body() for item in self.items], "usage": _build_usage(self.usage)}
        return head | self._ending | output | self._request


def _build_usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }


def _build_request_fields(client_request: ClientRequest) -> dict[str, Any]:
    """Return the fields of the request that the response repeats. Unlike OpenAI's, it omits tools and instructions:
    they may be tens of kilobytes, would be sent three times and with every heartbeat, and no known client reads
    them."""
    request, extra = client_request.request, client_request.extra
    options, choice = request.options, request.tool_choice
    if choice not in ("auto", "none", "required"):
        origin = client_request.origins.get(choice, ToolOrigin(choice))
        choice = {"type": origin.kind, "name": origin.name}  # type: ignore[assignment]
    return {
        "background": False,
        "instructions": None,
        "max_output_tokens": options.get("max_tokens"),
        "metadata": extra.get("metadata") or {},
        "parallel_tool_calls": request.parallel_tool_calls,
        "previous_response_id": RESPONSE_ID_PREFIX + client_request.previous if client_request.previous else None,
        "reasoning": {"effort": options.get("reasoning_effort"), "summary": None},
        "store": extra.get("store", True),
        "temperature": options.get("temperature"),
        "tool_choice": choice,
        "tools": [],
        "top_p": options.get("top_p"),
        "truncation": "disabled",
    }
