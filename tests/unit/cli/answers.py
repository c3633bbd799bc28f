"""Well-formed answers of all four wires, as lists of frames, so that a test can break one of them."""

from __future__ import annotations

import json
from typing import Any

ARGUMENTS = '{"city": "Oslo"}'
PIECES = ('{"city"', ': "Os', 'lo"}')
ID = "call_0123456789abcdefghijklmn"
Frames = list[dict[str, Any]]


def chat_frames(text: str, *, call: bool) -> Frames:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    made = [chunk({"role": "assistant", "content": ""})]
    made += [chunk({"content": piece}) for piece in text.split(" ") if piece]
    if call:
        first = {"index": 0, "id": ID, "type": "function", "function": {"name": "get_weather", "arguments": ""}}
        made.append(chunk({"tool_calls": [first]}))
        made += [chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}) for piece in PIECES]
    made.append(chunk({}, "tool_calls" if call else "stop"))
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    return [*made, {**head, "choices": [], "usage": usage}]


def chat_bytes(frames: Frames, *, end: str = "data: [DONE]\n\n") -> bytes:
    return (": hello\n\n" + "".join(f"data: {json.dumps(frame)}\n\n" for frame in frames) + end).encode()


def chat_whole(text: str, *, call: bool) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if call:
        function = {"name": "get_weather", "arguments": ARGUMENTS}
        message["tool_calls"] = [{"id": ID, "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if call else "stop"}
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    return {
        "id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage
    }  # fmt: skip


def _items(text: str, *, call: bool) -> Frames:
    items: Frames = []
    if text:
        part = {"type": "output_text", "text": text, "annotations": []}
        items.append({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]})
    if call:
        item = {"type": "function_call", "id": "fc_1", "call_id": ID, "name": "get_weather", "status": "completed"}
        items.append({**item, "arguments": ARGUMENTS})
    return items


def responses_whole(text: str, *, call: bool) -> dict[str, Any]:
    usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed"}
    return {**head, "output": _items(text, call=call), "usage": usage}


def responses_frames(text: str, *, call: bool) -> Frames:
    whole = responses_whole(text, call=call)
    early = {**whole, "status": "in_progress", "output": [], "usage": None}
    made: Frames = [{"type": f"response.{step}", "response": early} for step in ("created", "in_progress")]
    for index, item in enumerate(whole["output"]):
        at = {"item_id": item["id"], "output_index": index}
        empty = {**item, "status": "in_progress", **({"content": []} if "content" in item else {"arguments": ""})}
        made.append({"type": "response.output_item.added", "output_index": index, "item": empty})
        if item["type"] == "message":
            part = item["content"][0]
            inside = {**at, "content_index": 0}
            made.append({"type": "response.content_part.added", **inside, "part": {**part, "text": ""}})
            made += [{"type": "response.output_text.delta", **inside, "delta": text[n]} for n in range(len(text))]
            made.append({"type": "response.output_text.done", **inside, "text": text})
            made.append({"type": "response.content_part.done", **inside, "part": part})
        else:
            made += [{"type": "response.function_call_arguments.delta", **at, "delta": piece} for piece in PIECES]
            made.append({"type": "response.function_call_arguments.done", **at, "arguments": ARGUMENTS})
        made.append({"type": "response.output_item.done", "output_index": index, "item": item})
    made.append({"type": "response.completed", "response": whole})
    return [{**frame, "sequence_number": number} for number, frame in enumerate(made)]


def named_bytes(frames: Frames, *, end: str = "") -> bytes:
    return ("".join(f"event: {frame['type']}\ndata: {json.dumps(frame)}\n\n" for frame in frames) + end).encode()


def messages_whole(text: str, *, call: bool) -> dict[str, Any]:
    content: Frames = [{"type": "text", "text": text}] if text else []
    if call:
        content.append({"type": "tool_use", "id": ID, "name": "get_weather", "input": json.loads(ARGUMENTS)})
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content}
    reason = "tool_use" if call else "end_turn"
    return {**head, "stop_reason": reason, "usage": {"input_tokens": 3, "output_tokens": 4}}


def messages_frames(text: str, *, call: bool) -> Frames:
    whole = messages_whole(text, call=call)
    start = {**whole, "content": [], "stop_reason": None}
    made: Frames = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            empty, deltas = {**block, "text": ""}, [{"type": "text_delta", "text": piece} for piece in text]
        else:
            empty = {**block, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in PIECES]
        made.append({"type": "content_block_start", "index": index, "content_block": empty})
        made += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        made.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    made.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 4}})
    return [*made, {"type": "message_stop"}]


def ollama_frames(text: str, *, call: bool) -> Frames:
    head = {"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": False}
    made: Frames = [{**head, "message": {"role": "assistant", "content": piece}} for piece in text]
    if call:
        function = {"name": "get_weather", "arguments": json.loads(ARGUMENTS)}
        made.append({**head, "message": {"role": "assistant", "content": "", "tool_calls": [{"function": function}]}})
    counted = {"total_duration": 1, "prompt_eval_count": 3, "eval_count": 4, "done_reason": "stop"}
    return [*made, {**head, "done": True, "message": {"role": "assistant", "content": ""}, **counted}]


def ollama_bytes(frames: Frames) -> bytes:
    return "".join(f"{json.dumps(frame)}\n" for frame in frames).encode()


def ollama_whole(text: str, *, call: bool) -> dict[str, Any]:
    last = ollama_frames("", call=False)[-1]
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if call:
        message["tool_calls"] = ollama_frames("", call=True)[0]["message"]["tool_calls"]
    return {**last, "message": message}
