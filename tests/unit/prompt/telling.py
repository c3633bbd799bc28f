"""What a model is told of a chat request: decoded as the gateway does it, mended and prepared as the engine does it."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from callwright.dialects import REGISTRY
from callwright.engine.builtin_templates import load_builtin_templates
from callwright.model import Request, Text
from callwright.prompt.final_answer_tool import add_final_answer_tool
from callwright.prompt.history_repair import repair_history
from callwright.prompt.prompt_templates import PromptTemplates
from callwright.prompt.request_prompt import PreparedRequest, ToolStrategy, prepare_request
from callwright.prompt.settings import PromptSettings
from callwright.wire import SERVER_CODECS

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"Does {name}.",
            "parameters": {
                "type": "object",
                "properties": {"path": {"type": "string"}, "lines": {"type": "integer"}},
                "required": ["path"],
            },
        },
    }
    for name in ("read_file", "edit_file")
]


def decoded(*messages: dict[str, Any], tools: Any = None, **body: Any) -> Request:
    """A request of these messages."""
    whole = {"model": "m", "messages": messages, "tools": TOOLS if tools is None else tools, **body}
    return SERVER_CODECS["openai_chat"].decode_request(json.dumps(whole).encode()).request


def told(
    request: Request,
    *,
    strategy: ToolStrategy = "taught",
    dialect: str = "invoke",
    templates: PromptTemplates | None = None,
    **settings: Any,
) -> PreparedRequest:
    """That request as it is sent."""
    chosen = PromptSettings(**settings)
    messages, repairs = repair_history(request.messages)
    prepared = prepare_request(
        add_final_answer_tool(msgspec.structs.replace(request, messages=messages), chosen),
        chosen,
        REGISTRY[dialect],
        templates or load_builtin_templates(),
        is_first_turn=not any(message.role == "assistant" for message in request.messages),
        strategy=strategy,
    )
    return PreparedRequest(prepared.request, (*repairs, *prepared.warnings))


def said(prepared: PreparedRequest) -> list[tuple[str, str]]:
    """Role and words of each message."""
    return [
        (message.role, "".join(part.text for part in message.parts if isinstance(part, Text)))
        for message in prepared.request.messages
    ]


def kinds(prepared: PreparedRequest) -> list[str]:
    """The kinds of what was noted."""
    return [note.kind for note in prepared.warnings]


def system(text: Any) -> dict[str, Any]:
    return {"role": "system", "content": text}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(text: str | None, *calls: tuple[str, str, str]) -> dict[str, Any]:
    """An answer; calls are id, name and arguments."""
    made = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call_id, name, arguments in calls
    ]
    return {"role": "assistant", "content": text, **({"tool_calls": made} if made else {})}


def result(call_id: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}
