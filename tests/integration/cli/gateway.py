"""A small gateway made by hand, and servers that are none, for the commands to talk to."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from aiohttp import web

from tests.unit.cli import answers

KEY = "sk-test"
Break = Callable[[str, bool, bytes], bytes]
"""Takes the path, whether a stream was asked for, and the good bytes; returns what is sent."""
USE_TOOL = "<use_tool><name>get_weather</name><city>Oslo</city></use_tool>"


@contextmanager
def serving(app: web.Application) -> Iterator[str]:
    """Serve an application from another thread; gives its address."""
    loop = asyncio.new_event_loop()
    runner = web.AppRunner(app)

    async def begin() -> int:
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port: int = runner.addresses[0][1]
        return port

    port = loop.run_until_complete(begin())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(5)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)
        loop.close()


def pages(replies: dict[str, Any]) -> web.Application:
    """An application that answers each path with that JSON, or with that status when it is a number."""
    app = web.Application()

    def page(reply: Any) -> Callable[[web.Request], Any]:
        async def handle(_: web.Request) -> web.Response:
            return web.Response(status=reply) if isinstance(reply, int) else web.json_response(reply)

        return handle

    for path, reply in replies.items():
        app.router.add_get(path, page(reply))
    return app


def gateway(change: Break = lambda _path, _stream, body: body, *, key: str = "") -> web.Application:
    """A gateway whose one model calls get_weather once and then says what it got."""
    app = web.Application(middlewares=[_guard(key)])
    model = {"id": "m", "object": "model", "created": 1, "owned_by": "callwright"}
    shown = {"capabilities": ["completion", "tools"]}
    shown["model_info"] = {"general.architecture": "x", "x.context_length": 32768}  # type: ignore[assignment]
    for path, page in {
        "/v1/models": {"object": "list", "data": [model]},
        "/v1/models/m": model,
        "/api/version": {"version": "0.13.0"},
        "/api/tags": {"models": [{"name": "m", "model": "m"}]},
    }.items():
        app.router.add_get(path, _page(path, page, change))
    app.router.add_post("/api/show", _page("/api/show", shown, change))
    for path in ("/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/chat"):
        app.router.add_post(path, _turn(path, change))
    return app


def _guard(key: str) -> Any:
    @web.middleware
    async def guard(request: web.Request, handler: Any) -> web.StreamResponse:
        if key and request.headers.get("authorization") != f"Bearer {key}":
            return web.json_response({"error": {"message": "no key", "type": "auth"}}, status=401)
        response: web.StreamResponse = await handler(request)
        return response

    return guard


def _page(path: str, page: Any, change: Break) -> Callable[[web.Request], Any]:
    async def handle(_: web.Request) -> web.Response:
        body = change(path, False, json.dumps(page).encode())
        return web.Response(body=body, content_type="application/json")

    return handle


def _turn(path: str, change: Break) -> Callable[[web.Request], Any]:
    async def handle(request: web.Request) -> web.Response:
        body = await request.json()
        if body["model"] != "m":
            return web.json_response(_problem(path, f"no model {body['model']}"), status=404)
        call = bool(body.get("tools")) and "celsius" not in json.dumps(body)
        text = USE_TOOL if request.headers.get("x-proxy-output-mode") else "" if call else "Rain."
        stream = bool(body["stream"])
        made = _stream(path, text, call=call) if stream else _whole(path, text, call=call)
        kind = "application/x-ndjson" if path == "/api/chat" else "text/event-stream"
        return web.Response(body=change(path, stream, made), content_type=kind if stream else "application/json")

    return handle


def _problem(path: str, message: str) -> Any:
    if path == "/api/chat":
        return {"error": message}
    error = {"message": message, "type": "not_found_error"}
    return {"type": "error", "error": error} if path == "/v1/messages" else {"error": error}


def _stream(path: str, text: str, *, call: bool) -> bytes:
    match path:
        case "/v1/chat/completions":
            return answers.chat_bytes(answers.chat_frames(text, call=call))
        case "/v1/responses":
            return answers.named_bytes(answers.responses_frames(text, call=call))
        case "/v1/messages":
            return answers.named_bytes(answers.messages_frames(text, call=call))
        case _:
            return answers.ollama_bytes(answers.ollama_frames(text, call=call))


def _whole(path: str, text: str, *, call: bool) -> bytes:
    made = {
        "/v1/chat/completions": answers.chat_whole,
        "/v1/responses": answers.responses_whole,
        "/v1/messages": answers.messages_whole,
        "/api/chat": answers.ollama_whole,
    }[path]
    return json.dumps(made(text, call=call)).encode()
