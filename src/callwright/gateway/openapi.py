"""The description of every route, OpenAPI 3.1, built from one table.

It promises no more than is kept: bodies name the fields that are looked at and allow all others, since clients send
many, and every error has its API's shape.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import msgspec

import callwright

__all__ = ["OPERATIONS", "ApiOperation", "build_openapi_document"]

Schema = dict[str, Any]


class ApiOperation(msgspec.Struct, frozen=True):
    """One route: what it is for, what it takes and what it gives."""

    method: Literal["get", "post"]
    path: str
    summary: str
    tag: str
    body_schema: str = ""
    """A schema's name."""
    content_type: str = "application/json"
    stream_content_type: str = ""
    """The content type of the answer when the body asks for a stream."""
    parameters: tuple[Schema, ...] = ()
    is_public: bool = False


def _build_query_parameter(name: str, description: str, example: str) -> Schema:
    return {"name": name, "in": "query", "description": description, "schema": {"type": "string"}, "example": example}


_SSE = "text/event-stream"
_NDJSON = "application/x-ndjson"
_MODEL_ID_PARAMETER: Schema = {
    "name": "id",
    "in": "path",
    "required": True,
    "schema": {"type": "string"},
    "example": "coder",
}
_BY_PARAMETER = _build_query_parameter(
    "by", "Columns to add up by: day, key, model, client. Empty for one sum.", "key,model"
)
_SINCE_PARAMETER = _build_query_parameter("since", "The first day that counts.", "2026-01-31")

OPERATIONS: tuple[ApiOperation, ...] = (
    ApiOperation(
        "post", "/v1/chat/completions", "A turn, OpenAI's chat API.", "OpenAI", "Chat", stream_content_type=_SSE
    ),
    ApiOperation(
        "post", "/chat/completions", "The same without the prefix.", "OpenAI", "Chat", stream_content_type=_SSE
    ),
    ApiOperation(
        "post", "/v1/responses", "A turn, OpenAI's Responses API.", "OpenAI", "Responses", stream_content_type=_SSE
    ),
    ApiOperation("get", "/v1/models", "The models; also for Anthropic's clients.", "OpenAI"),
    ApiOperation("get", "/v1/models/{id}", "One model.", "OpenAI", parameters=(_MODEL_ID_PARAMETER,)),
    ApiOperation("post", "/v1/completions", "Passed on to a backend that has it.", "OpenAI", "Forward"),
    ApiOperation("post", "/v1/embeddings", "Passed on to a backend that has it.", "OpenAI", "Forward"),
    ApiOperation("post", "/v1/messages", "A turn, Anthropic's API.", "Anthropic", "Messages", stream_content_type=_SSE),
    ApiOperation("post", "/v1/messages/count_tokens", "How long a prompt is, roughly.", "Anthropic", "Messages"),
    ApiOperation(
        "post", "/api/chat", "A turn, Ollama's chat API.", "Ollama", "OllamaChat", stream_content_type=_NDJSON
    ),
    ApiOperation(
        "post", "/api/generate", "A turn from a bare prompt.", "Ollama", "Generate", stream_content_type=_NDJSON
    ),
    ApiOperation("get", "/api/version", "The version of Ollama's API.", "Ollama"),
    ApiOperation("get", "/api/tags", "The models.", "Ollama"),
    ApiOperation("post", "/api/show", "One model: capabilities and window.", "Ollama", "Show"),
    ApiOperation("get", "/api/ps", "The models that are ready.", "Ollama"),
    ApiOperation("post", "/api/embed", "Passed on to a backend that has it.", "Ollama", "Forward"),
    ApiOperation("post", "/api/embeddings", "Passed on to a backend that has it.", "Ollama", "Forward"),
    ApiOperation("get", "/api/hello", "Says hello, for Claude Code.", "Service", is_public=True),
    ApiOperation("get", "/", "Says that it is running.", "Service", content_type="text/plain", is_public=True),
    ApiOperation("get", "/health", "Whether the process lives.", "Service", is_public=True),
    ApiOperation("get", "/healthz", "The same.", "Service", is_public=True),
    ApiOperation("get", "/readyz", "Whether a backend can be reached; 503 when none.", "Service", is_public=True),
    ApiOperation("get", "/metrics", "For Prometheus.", "Service", content_type="text/plain"),
    ApiOperation(
        "get", "/v1/usage", "Requests and tokens, added up.", "Service", parameters=(_BY_PARAMETER, _SINCE_PARAMETER)
    ),
    ApiOperation("get", "/openapi.json", "This description.", "Service"),
    ApiOperation("get", "/docs", "It as a page.", "Service", content_type="text/html"),
    ApiOperation(
        "get", "/bridge/client.js", "For pages on the bridge.", "Bridge", content_type="text/javascript", is_public=True
    ),
    ApiOperation("get", "/bridge/example", "A page that uses it.", "Bridge", content_type="text/html", is_public=True),
)

_MODEL_NAME_SCHEMA: Schema = {
    "type": "string",
    "minLength": 1,
    "description": "A model, an alias of it, or `model@profile`.",
    "examples": ["coder"],
}
_OBJECT_LIST_SCHEMA: Schema = {"type": "array", "items": {"type": "object"}}
_STREAM_SCHEMA: Schema = {"type": "boolean"}


def _build_object_schema(required: tuple[str, ...], **properties: Schema) -> Schema:
    return {"type": "object", "required": list(required), "properties": properties}


def _build_messages_schema(*roles: str) -> Schema:
    message = _build_object_schema(("role",), role={"type": "string", "enum": list(roles)}, content={})
    return {"type": "array", "minItems": 1, "items": message}


_SCHEMAS: dict[str, Schema] = {
    "Chat": _build_object_schema(
        ("model", "messages"),
        model=_MODEL_NAME_SCHEMA,
        messages=_build_messages_schema("user", "assistant", "system", "developer", "tool"),
        stream=_STREAM_SCHEMA,
        tools=_OBJECT_LIST_SCHEMA,
        n={"type": "integer", "minimum": 1},
    ),
    "Responses": _build_object_schema(
        ("model", "input"),
        model=_MODEL_NAME_SCHEMA,
        input={"type": ["string", "array"]},
        stream=_STREAM_SCHEMA,
        tools=_OBJECT_LIST_SCHEMA,
    ),
    "Messages": _build_object_schema(
        ("model", "messages"),
        model=_MODEL_NAME_SCHEMA,
        messages=_build_messages_schema("user", "assistant"),
        stream=_STREAM_SCHEMA,
        tools=_OBJECT_LIST_SCHEMA,
    ),
    "OllamaChat": _build_object_schema(
        ("model", "messages"),
        model=_MODEL_NAME_SCHEMA,
        messages=_build_messages_schema("user", "assistant", "system", "tool"),
        stream={**_STREAM_SCHEMA, "default": True},
        tools=_OBJECT_LIST_SCHEMA,
    ),
    "Generate": _build_object_schema(
        ("model",), model=_MODEL_NAME_SCHEMA, prompt={"type": "string"}, stream={**_STREAM_SCHEMA, "default": True}
    ),
    "Show": _build_object_schema(("model",), model=_MODEL_NAME_SCHEMA),
    "Forward": _build_object_schema(("model",), model=_MODEL_NAME_SCHEMA),
    # OpenAI's and Anthropic's errors are objects, Ollama's are strings.
    "Error": _build_object_schema(("error",), error={"type": ["object", "string"]}),
}


@cache
def build_openapi_document() -> Schema:
    """The whole of it."""
    paths: dict[str, Schema] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _describe_operation(operation)
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


def _describe_operation(operation: ApiOperation) -> Schema:
    contents: Schema = {kind: {} for kind in (operation.content_type, operation.stream_content_type) if kind}
    described: Schema = {
        "summary": operation.summary,
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
    if operation.body_schema:
        schema = {"$ref": f"#/components/schemas/{operation.body_schema}"}
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    if operation.is_public:
        described["security"] = []
    return described
