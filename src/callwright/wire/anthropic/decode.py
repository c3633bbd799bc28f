"""Anthropic Messages, what clients send: a body of `/v1/messages` or `/v1/messages/count_tokens` as an `Ask`.

    {"model": …, "system": …, "messages": [{"role": "user", "content": [{"type": "tool_result", …}, …]}], "tools": […]}

Content is a string or a list of blocks. What a block says reaches the model or is refused by name; `cache_control` and
other marks on blocks change nothing of what is said and are dropped. Fields of the body that only this API knows go to
`extra`, as do tools that only its own servers run.
"""

from __future__ import annotations

from typing import Any

from callwright.errors import RequestError
from callwright.model import Image, Message, Part, Reasoning, Request, Text, ToolCall, ToolResult, ToolSpec
from callwright.wire.base import Ask
from callwright.wire.fields import Fields, parse
from callwright.wire.orphans import check_results
from callwright.wire.shapes import arguments_of, texts_of

__all__ = ["OUR_SIGNATURE", "decode"]

OUR_SIGNATURE = "Y2FsbHdyaWdodA=="
"""On thinking that we wrote. Clients send signatures back; no server of Anthropic's would take this one."""

_NUMBERS = ("max_tokens", "temperature", "top_p", "top_k")
_KNOWN = frozenset({"model", "messages", "system", "tools", "tool_choice", "stream", "stop_sequences", *_NUMBERS})
_CHOICES = {"": "auto", "auto": "auto", "any": "required", "none": "none"}


def decode(body: bytes) -> Ask:
    """Read a request; `RequestError` names the field that is wrong."""
    try:
        return _ask(parse(body))
    except (RecursionError, UnicodeDecodeError) as problem:
        raise RequestError(f"the body cannot be read: {problem}") from problem


def _ask(fields: Fields) -> Ask:
    history = _History()
    history.instruct(fields, "system")
    for message in fields.objects("messages"):
        history.add(message)
    if history.orphan:
        check_results(history.messages, history.orphan)
    extra = {key: value for key, value in fields.values.items() if key not in _KNOWN and value is not None}
    tools, hosted = _tools(fields, history.loaded)
    if hosted:
        extra["tools"] = hosted
    choice = fields.nested("tool_choice")
    request = Request(
        model=fields.need("model"),
        messages=tuple(history.messages),
        tools=tuple(tools),
        tool_choice=_tool_choice(choice) if choice else "auto",
        parallel_tool_calls=not (choice and choice.get("disable_parallel_tool_use", bool)),
        options=_options(fields),
    )
    return Ask(request=request, stream=fields.get("stream", bool) or False, include_usage=True, extra=extra)


def _options(fields: Fields) -> dict[str, Any]:
    options: dict[str, Any] = {name: fields.get(name, int, float) for name in _NUMBERS}
    options["stop"] = texts_of(fields, "stop_sequences")
    if config := fields.nested("output_config"):
        options["reasoning_effort"] = config.text("effort")
        wanted = config.nested("format")
        if wanted and (schema := wanted.nested("schema")):
            options["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": schema.values},
            }
    return {name: value for name, value in options.items() if value not in (None, "", [])}


def _tool_choice(choice: Fields) -> str:
    wanted = choice.text("type")
    if wanted == "tool":
        return choice.need("name")
    if wanted not in _CHOICES:
        raise _refused(choice, "type", "must be auto, any, tool or none")
    return _CHOICES[wanted]


def _refused(fields: Fields, key: str, why: str) -> RequestError:
    return RequestError(f"{fields.at(key)} {why}", param=fields.at(key))


def _tools(fields: Fields, loaded: set[str]) -> tuple[list[ToolSpec], list[dict[str, Any]]]:
    """The tools that the client runs, and those that it expects of Anthropic's servers.

    A tool with `defer_loading` is shown to the model once a search has named it: Claude Code 2.1 sends a placeholder
    so marked, and searches by a tool of its own. Where the search would be the server's, all are shown.
    """
    own: list[Fields] = []
    hosted: list[Fields] = []
    for tool in fields.objects("tools"):
        (own if tool.text("type") in ("", "custom") or tool.nested("input_schema") else hosted).append(tool)
    searched = any(tool.text("type").startswith("tool_search_tool") for tool in hosted)
    shown = [tool for tool in own if searched or tool.text("name") in loaded or not tool.get("defer_loading", bool)]
    return [_tool(tool) for tool in shown], [dict(tool.values) for tool in hosted]


def _tool(tool: Fields) -> ToolSpec:
    schema = tool.nested("input_schema")
    return ToolSpec(tool.need("name"), tool.text("description"), dict(schema.values) if schema else {})


class _History:
    """The messages so far, and the calls that results may answer."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.loaded: set[str] = set()
        """Deferred tools that the client's tool search has found."""
        self.orphan = ""
        """Where the first result is that answers no call."""
        self._calls: dict[str, str] = {}

    def add(self, message: Fields) -> None:
        """Take one entry of `messages`."""
        role = message.text("role")
        if role == "user":
            self._user(_blocks(message, "content"))
        elif role == "assistant":
            self._put(Message("assistant", tuple(self._assistant(_blocks(message, "content")))))
        elif role == "system":  # Claude Code 2.1 sends some in the middle of the list.
            self.instruct(message, "content")
        else:
            raise _refused(message, "role", "must be user, assistant or system")

    def instruct(self, owner: Fields, key: str) -> None:
        """Take instructions: a string or text blocks."""
        self._put(Message("system", tuple(Text(block.text("text")) for block in _blocks(owner, key))))

    def _put(self, message: Message) -> None:
        if message.parts:
            self.messages.append(message)

    def _user(self, blocks: list[Fields]) -> None:
        """Results come first, whatever stands before them: that is where this API wants them, and others too."""
        said: list[Part] = []
        for block in blocks:
            if block.text("type") == "tool_result":
                self._put(Message("tool", (self._result(block),)))
            else:
                said.append(_part(block))
        self._put(Message("user", tuple(said)))

    def _result(self, block: Fields) -> ToolResult:
        call_id = block.need("tool_use_id")
        if call_id not in self._calls:
            self.orphan = self.orphan or block.at("tool_use_id")
        parts = [self._found(inner) or _part(inner) for inner in _blocks(block, "content")]
        return ToolResult(
            call_id,
            "\n".join(part.text for part in parts if isinstance(part, Text)),
            self._calls.get(call_id, ""),
            block.get("is_error", bool) or False,
            tuple(part for part in parts if isinstance(part, Image)),
        )

    def _found(self, block: Fields) -> Part | None:
        """A tool that a search of the client's has found; from now on it is shown to the model."""
        if block.text("type") != "tool_reference":
            return None
        self.loaded.add(block.need("tool_name"))
        return Text(f"The tool {block.text('tool_name')} can be called now.")

    def _assistant(self, blocks: list[Fields]) -> list[Part]:
        """What the model said. Blocks about tools of Anthropic's servers are no part of this conversation."""
        parts: list[Part] = []
        for block in blocks:
            match block.text("type"):
                case "text":
                    parts.append(Text(block.text("text")))
                case "thinking":
                    signature = block.text("signature")
                    opaque = {"signature": signature} if signature not in ("", OUR_SIGNATURE) else None
                    parts.append(Reasoning(block.text("thinking"), opaque))
                case "redacted_thinking":
                    parts.append(Reasoning("", {"redacted": block.text("data")}))
                case "tool_use":
                    call = ToolCall(block.need("id"), block.need("name"), arguments_of(block, "input"))
                    self._calls[call.id] = call.name
                    parts.append(call)
                case _:
                    pass
        return parts


def _blocks(owner: Fields, key: str) -> list[Fields]:
    """Content as blocks: a string is one block of text."""
    value = owner.get(key, str, list)
    if isinstance(value, str):
        return [Fields({"type": "text", "text": value}, owner.at(key))] if value else []
    return list(owner.objects(key))


def _part(block: Fields) -> Part:
    """What a block of a user's message or of a result says."""
    match block.text("type"):
        case "text":
            return Text(block.text("text"))
        case "image":
            return _image(_source(block))
        case "document":
            return _document(block)
        case "search_result":
            lines = [block.text("title"), block.text("source")]
            return Text("\n".join(filter(None, lines + [inner.text("text") for inner in _blocks(block, "content")])))
        case other:
            raise _refused(block, "type", f"{other!r} is a kind of content that cannot be passed on")


def _source(block: Fields) -> Fields:
    if (source := block.nested("source")) is None:
        raise block.wrong("source", "an object")
    return source


def _image(source: Fields) -> Image:
    match source.text("type"):
        case "base64":
            media_type = source.need("media_type")
            return Image(f"data:{media_type};base64,{source.text('data')}", media_type)
        case "url":
            return Image(source.need("url"))
        case other:
            raise _refused(source, "type", f"{other!r} is not supported: send the image as base64 or url")


def _document(block: Fields) -> Text:
    source = _source(block)
    match source.text("type"):
        case "text":
            words = [source.text("data")]
        case "content":
            words = [inner.text("text") for inner in _blocks(source, "content")]
        case other:
            raise _refused(source, "type", f"{other!r} documents cannot be passed on: send their text")
    return Text("\n".join(filter(None, [block.text("title"), block.text("context"), *words])))
