"""The description of every route, OpenAPI 3.1, built from one table.

It promises no more than is kept: bodies name the fields that are looked at and allow all others, since clients send
many, and every error has its API's shape.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import msgspec

import callwright

__all__ = ["OPERATIONS", "Operation", "description"]

Schema = dict[str, Any]


class Operation(msgspec.Struct, frozen=True):
    """One route: what it is for, what it takes and what it gives."""

    method: Literal["get", "post"]
    path: str
    about: str
    tag: str
    body: str = ""
    """A schema's name."""
    answer: str = "application/json"
    stream: str = ""
    """The content type of the answer when the body asks for a stream."""
    parameters: tuple[Schema, ...] = ()
    public: bool = False


def _query(name: str, about: str, example: str) -> Schema:
    return {"name": name, "in": "query", "description": about, "schema": {"type": "string"}, "example": example}


_SSE = "text/event-stream"
_NDJSON = "application/x-ndjson"
_MODEL_ID: Schema = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}, "example": "coder"}
_BY = _query("by", "Columns to add up by: day, key, model, client. Empty for one sum.", "key,model")
_SINCE = _query("since", "The first day that counts.", "2026-01-31")

OPERATIONS: tuple[Operation, ...] = (
    Operation("post", "/v1/chat/completions", "A turn, OpenAI's chat API.", "OpenAI", "Chat", stream=_SSE),
    Operation("post", "/chat/completions", "The same without the prefix.", "OpenAI", "Chat", stream=_SSE),
    Operation("post", "/v1/responses", "A turn, OpenAI's Responses API.", "OpenAI", "Responses", stream=_SSE),
    Operation("get", "/v1/models", "The models; also for Anthropic's clients.", "OpenAI"),
    Operation("get", "/v1/models/{id}", "One model.", "OpenAI", parameters=(_MODEL_ID,)),
    Operation("post", "/v1/completions", "Passed on to a backend that has it.", "OpenAI", "Forward"),
    Operation("post", "/v1/embeddings", "Passed on to a backend that has it.", "OpenAI", "Forward"),
    Operation("post", "/v1/messages", "A turn, Anthropic's API.", "Anthropic", "Messages", stream=_SSE),
    Operation("post", "/v1/messages/count_tokens", "How long a prompt is, roughly.", "Anthropic", "Messages"),
    Operation("post", "/api/chat", "A turn, Ollama's chat API.", "Ollama", "OllamaChat", stream=_NDJSON),
    Operation("post", "/api/generate", "A turn from a bare prompt.", "Ollama", "Generate", stream=_NDJSON),
    Operation("get", "/api/version", "The version of Ollama's API.", "Ollama"),
    Operation("get", "/api/tags", "The models.", "Ollama"),
    Operation("post", "/api/show", "One model: capabilities and window.", "Ollama", "Show"),
    Operation("get", "/api/ps", "The models that are ready.", "Ollama"),
    Operation("post", "/api/embed", "Passed on to a backend that has it.", "Ollama", "Forward"),
    Operation("post", "/api/embeddings", "Passed on to a backend that has it.", "Ollama", "Forward"),
    Operation("get", "/api/hello", "Says hello, for Claude Code.", "Service", public=True),
    Operation("get", "/", "Says that it is running.", "Service", answer="text/plain", public=True),
    Operation("get", "/health", "Whether the process lives.", "Service", public=True),
    Operation("get", "/healthz", "The same.", "Service", public=True),
    Operation("get", "/readyz", "Whether a backend can be reached; 503 when none.", "Service", public=True),
    Operation("get", "/metrics", "For Prometheus.", "Service", answer="text/plain"),
    Operation("get", "/v1/usage", "Requests and tokens, added up.", "Service", parameters=(_BY, _SINCE)),
    Operation("get", "/openapi.json", "This description.", "Service"),
    Operation("get", "/docs", "It as a page.", "Service", answer="text/html"),
    Operation("get", "/bridge/client.js", "For pages on the bridge.", "Bridge", answer="text/javascript", public=True),
    Operation("get", "/bridge/example", "A page that uses it.", "Bridge", answer="text/html", public=True),
)

_NAME: Schema = {
    "type": "string",
    "minLength": 1,
    "description": "A model, an alias of it, or `model@profile`.",
    "examples": ["coder"],
}
_OBJECTS: Schema = {"type": "array", "items": {"type": "object"}}
_STREAM: Schema = {"type": "boolean"}


def _object(required: tuple[str, ...], **properties: Schema) -> Schema:
    return {"type": "object", "required": list(required), "properties": properties}


def _messages(*roles: str) -> Schema:
    message = _object(("role",), role={"type": "string", "enum": list(roles)}, content={})
    return {"type": "array", "minItems": 1, "items": message}


_SCHEMAS: dict[str, Schema] = {
    "Chat": _object(
        ("model", "messages"),
        model=_NAME,
        messages=_messages("user", "assistant", "system", "developer", "tool"),
        stream=_STREAM,
        tools=_OBJECTS,
        n={"type": "integer", "minimum": 1},
    ),
    "Responses": _object(
        ("model", "input"), model=_NAME, input={"type": ["string", "array"]}, stream=_STREAM, tools=_OBJECTS
    ),
    "Messages": _object(
        ("model", "messages"), model=_NAME, messages=_messages("user", "assistant"), stream=_STREAM, tools=_OBJECTS
    ),
    "OllamaChat": _object(
        ("model", "messages"),
        model=_NAME,
        messages=_messages("user", "assistant", "system", "tool"),
        stream={**_STREAM, "default": True},
        tools=_OBJECTS,
    ),
    "Generate": _object(("model",), model=_NAME, prompt={"type": "string"}, stream={**_STREAM, "default": True}),
    "Show": _object(("model",), model=_NAME),
    "Forward": _object(("model",), model=_NAME),
    # OpenAI's and Anthropic's errors are objects, Ollama's are strings.
    "Error": _object(("error",), error={"type": ["object", "string"]}),
}


@cache
def description() -> Schema:
    """The whole of it."""
    paths: dict[str, Schema] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _describe(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Callwright",
            "version": callwright.__version__,
            "description": "Tool calls that work between any chat client and any model.",
        },
        "security": [{"bearer": []}, {"key": []}, {}],
        "paths": paths,
        "components": {
            "schemas": _SCHEMAS,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
        },
    }


def _describe(operation: Operation) -> Schema:
    contents: Schema = {kind: {} for kind in (operation.answer, operation.stream) if kind}
    described: Schema = {
        "summary": operation.about,
        "tags": [operation.tag],
        "operationId": f"{operation.method}{operation.path}".translate(str.maketrans("/.{", "___", "}")).rstrip("_"),
        "responses": {
            "200": {"description": "Done.", "content": contents},
            "default": {
                "description": "Refused or failed; the message says by whom and what to do.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
            },
        },
    }
    if operation.path == "/readyz":
        described["responses"]["503"] = {"description": "Not ready.", "content": contents}
    if operation.parameters:
        described["parameters"] = list(operation.parameters)
    if operation.body:
        schema = {"$ref": f"#/components/schemas/{operation.body}"}
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    if operation.public:
        described["security"] = []
    return described
