"""Anthropic Messages, server side: decode `/v1/messages` and `/v1/messages/count_tokens` as a `ClientRequest`.

    {"model": …, "system": …, "messages": [{"role": "user", "content": [{"type": "tool_result", …}, …]}], "tools": […]}

Content is a string or a list of blocks. The content of a block reaches the model or is refused by name; `cache_control`
and other marks on blocks do not change the content and are dropped. Fields of the body that only this API has go to
`extra`, as do tools that only Anthropic's servers run.
"""

from __future__ import annotations

from typing import Any

from callwright.errors import RequestError
from callwright.model import Image, Message, Part, Reasoning, Request, Text, ToolCall, ToolResult, ToolSpec
from callwright.wire.argument_json import read_arguments, read_strings
from callwright.wire.base import ClientRequest
from callwright.wire.orphan_results import check_orphan_results
from callwright.wire.request_fields import RequestFields, parse_body

__all__ = ["GATEWAY_SIGNATURE", "decode_request"]

GATEWAY_SIGNATURE = "Y2FsbHdyaWdodA=="
"""The signature on reasoning that this gateway wrote. Clients send signatures back; Anthropic would reject this one."""

_NUMBER_OPTIONS = ("max_tokens", "temperature", "top_p", "top_k")
_KNOWN_FIELDS = frozenset(
    {"model", "messages", "system", "tools", "tool_choice", "stream", "stop_sequences", *_NUMBER_OPTIONS}
)
_TOOL_CHOICES = {"": "auto", "auto": "auto", "any": "required", "none": "none"}


def decode_request(body: bytes) -> ClientRequest:
    """Decode a request; `RequestError` names the field that is wrong."""
    fields = parse_body(body)
    history = _HistoryDecoder()
    history.add_instructions(fields, "system")
    for message in fields.iter_objects("messages"):
        history.add_message(message)
    if history.orphan_path:
        check_orphan_results(history.messages, history.orphan_path)
    extra = {key: value for key, value in fields.values.items() if key not in _KNOWN_FIELDS and value is not None}
    tools, hosted = _decode_tools(fields, history.loaded_tools)
    if hosted:
        extra["tools"] = hosted
    choice = fields.get_object("tool_choice")
    request = Request(
        model=fields.require_text("model"),
        messages=tuple(history.messages),
        tools=tuple(tools),
        tool_choice=_decode_tool_choice(choice) if choice else "auto",
        parallel_tool_calls=not (choice and choice.get("disable_parallel_tool_use", bool)),
        options=_decode_options(fields),
    )
    return ClientRequest(request=request, stream=fields.get("stream", bool) or False, include_usage=True, extra=extra)


def _decode_options(fields: RequestFields) -> dict[str, Any]:
    options: dict[str, Any] = {name: fields.get(name, int, float) for name in _NUMBER_OPTIONS}
    options["stop"] = read_strings(fields, "stop_sequences")
    if config := fields.get_object("output_config"):
        options["reasoning_effort"] = config.get_text("effort")
        output_format = config.get_object("format")
        if output_format and (schema := output_format.get_object("schema")):
            options["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": schema.values},
            }
    return {name: value for name, value in options.items() if value not in (None, "", [])}


def _decode_tool_choice(choice: RequestFields) -> str:
    kind = choice.get_text("type")
    if kind == "tool":
        return choice.require_text("name")
    if kind not in _TOOL_CHOICES:
        raise _build_error(choice, "type", "must be auto, any, tool or none")
    return _TOOL_CHOICES[kind]


def _build_error(fields: RequestFields, key: str, why: str) -> RequestError:
    return RequestError(f"{fields.format_path(key)} {why}", param=fields.format_path(key))


def _decode_tools(fields: RequestFields, loaded: set[str]) -> tuple[list[ToolSpec], list[dict[str, Any]]]:
    """Return the tools that the client runs, and those that it expects Anthropic's servers to run.

    A tool with `defer_loading` is shown to the model once a search has named it: Claude Code 2.1 sends such a
    placeholder and searches with a tool of its own. If the server would have to search, all tools are shown.
    """
    own: list[RequestFields] = []
    hosted: list[RequestFields] = []
    for tool in fields.iter_objects("tools"):
        (own if tool.get_text("type") in ("", "custom") or tool.get_object("input_schema") else hosted).append(tool)
    searched = any(tool.get_text("type").startswith("tool_search_tool") for tool in hosted)
    shown = [tool for tool in own if searched or tool.get_text("name") in loaded or not tool.get("defer_loading", bool)]
    return [_decode_tool(tool) for tool in shown], [dict(tool.values) for tool in hosted]


def _decode_tool(tool: RequestFields) -> ToolSpec:
    schema = tool.get_object("input_schema")
    return ToolSpec(tool.require_text("name"), tool.get_text("description"), dict(schema.values) if schema else {})


class _HistoryDecoder:
    """Collects the messages so far, and the calls that results may answer."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.loaded_tools: set[str] = set()
        """Deferred tools that the client's tool search has found."""
        self.orphan_path = ""
        """The path of the first result without a call."""
        self._call_names: dict[str, str] = {}

    def add_message(self, message: RequestFields) -> None:
        """Add one entry of `messages`."""
        role = message.get_text("role")
        if role == "user":
            self._add_user_blocks(_list_blocks(message, "content"))
        elif role == "assistant":
            self._append_message(Message("assistant", tuple(self._decode_assistant(_list_blocks(message, "content")))))
        elif role == "system":  # Claude Code 2.1 sends some in the middle of the list.
            self.add_instructions(message, "content")
        else:
            raise _build_error(message, "role", "must be user, assistant or system")

    def add_instructions(self, owner: RequestFields, key: str) -> None:
        """Add instructions: a string or text blocks."""
        self._append_message(
            Message("system", tuple(Text(block.get_text("text")) for block in _list_blocks(owner, key)))
        )

    def _append_message(self, message: Message) -> None:
        if message.parts:
            self.messages.append(message)

    def _add_user_blocks(self, blocks: list[RequestFields]) -> None:
        """Add the blocks of a user message, with results first: this API and others require that."""
        parts: list[Part] = []
        for block in blocks:
            if block.get_text("type") == "tool_result":
                self._append_message(Message("tool", (self._decode_result(block),)))
            else:
                parts.append(_decode_part(block))
        self._append_message(Message("user", tuple(parts)))

    def _decode_result(self, block: RequestFields) -> ToolResult:
        call_id = block.require_text("tool_use_id")
        if call_id not in self._call_names:
            self.orphan_path = self.orphan_path or block.format_path("tool_use_id")
        parts = [self._load_found_tool(inner) or _decode_part(inner) for inner in _list_blocks(block, "content")]
        return ToolResult(
            call_id,
            "\n".join(part.text for part in parts if isinstance(part, Text)),
            self._call_names.get(call_id, ""),
            block.get("is_error", bool) or False,
            tuple(part for part in parts if isinstance(part, Image)),
        )

    def _load_found_tool(self, block: RequestFields) -> Part | None:
        """Load a tool that the client's search has found; from now on it is shown to the model."""
        if block.get_text("type") != "tool_reference":
            return None
        self.loaded_tools.add(block.require_text("tool_name"))
        return Text(f"The tool {block.get_text('tool_name')} can be called now.")

    def _decode_assistant(self, blocks: list[RequestFields]) -> list[Part]:
        """Decode an assistant message. Blocks about tools of Anthropic's servers are dropped."""
        parts: list[Part] = []
        for block in blocks:
            match block.get_text("type"):
                case "text":
                    parts.append(Text(block.get_text("text")))
                case "thinking":
                    signature = block.get_text("signature")
                    opaque = {"signature": signature} if signature not in ("", GATEWAY_SIGNATURE) else None
                    parts.append(Reasoning(block.get_text("thinking"), opaque))
                case "redacted_thinking":
                    parts.append(Reasoning("", {"redacted": block.get_text("data")}))
                case "tool_use":
                    call = ToolCall(
                        block.require_text("id"), block.require_text("name"), read_arguments(block, "input")
                    )
                    self._call_names[call.id] = call.name
                    parts.append(call)
                case _:
                    pass
        return parts


def _list_blocks(owner: RequestFields, key: str) -> list[RequestFields]:
    """Return content as blocks: a string is one block of text."""
    value = owner.get(key, str, list)
    if isinstance(value, str):
        return [RequestFields({"type": "text", "text": value}, owner.format_path(key))] if value else []
    return list(owner.iter_objects(key))


def _decode_part(block: RequestFields) -> Part:
    """Decode a block of a user message or of a result."""
    match block.get_text("type"):
        case "text":
            return Text(block.get_text("text"))
        case "image":
            return _decode_image(_require_source(block))
        case "document":
            return _decode_document(block)
        case "search_result":
            lines = [block.get_text("title"), block.get_text("source")]
            return Text(
                "\n".join(filter(None, lines + [inner.get_text("text") for inner in _list_blocks(block, "content")]))
            )
        case other:
            raise _build_error(block, "type", f"{other!r} content is not supported")


def _require_source(block: RequestFields) -> RequestFields:
    if (source := block.get_object("source")) is None:
        raise block.build_error("source", "an object")
    return source


def _decode_image(source: RequestFields) -> Image:
    match source.get_text("type"):
        case "base64":
            media_type = source.require_text("media_type")
            return Image(f"data:{media_type};base64,{source.get_text('data')}", media_type)
        case "url":
            return Image(source.require_text("url"))
        case other:
            raise _build_error(source, "type", f"{other!r} is not supported: send the image as base64 or url")


def _decode_document(block: RequestFields) -> Text:
    source = _require_source(block)
    match source.get_text("type"):
        case "text":
            words = [source.get_text("data")]
        case "content":
            words = [inner.get_text("text") for inner in _list_blocks(source, "content")]
        case other:
            raise _build_error(source, "type", f"{other!r} documents are not supported: send their text")
    return Text("\n".join(filter(None, [block.get_text("title"), block.get_text("context"), *words])))
