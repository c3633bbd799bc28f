"""The OpenAPI 3.1 description of every route, built from one table.

Body schemas name the fields that are read and allow all others, since clients send many. Every error has the format of
its API.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import msgspec

import callwright

__all__ = ["OPERATIONS", "ApiOperation", "build_openapi_document"]

Schema = dict[str, Any]


class ApiOperation(msgspec.Struct, frozen=True):
    """One route: its purpose, its body and its response."""

    method: Literal["get", "post"]
    path: str
    summary: str
    tag: str
    body_schema: str = ""
    """Name of the body's schema."""
    content_type: str = "application/json"
    stream_content_type: str = ""
    """Content type of the response when the body requests a stream."""
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
    "by", "Columns to group by: day, key, model, client. Empty for one total.", "key,model"
)
_SINCE_PARAMETER = _build_query_parameter("since", "First day to include.", "2026-01-31")

OPERATIONS: tuple[ApiOperation, ...] = (
    ApiOperation(
        "post", "/v1/chat/completions", "Create a chat completion.", "OpenAI", "Chat", stream_content_type=_SSE
    ),
    ApiOperation(
        "post", "/chat/completions", "Alias of /v1/chat/completions.", "OpenAI", "Chat", stream_content_type=_SSE
    ),
    ApiOperation("post", "/v1/responses", "Create a response.", "OpenAI", "Responses", stream_content_type=_SSE),
    ApiOperation("get", "/v1/models", "List the models, in OpenAI's and Anthropic's format.", "OpenAI"),
    ApiOperation("get", "/v1/models/{id}", "Get a model.", "OpenAI", parameters=(_MODEL_ID_PARAMETER,)),
    ApiOperation("post", "/v1/completions", "Create a completion. Forwarded to the backend.", "OpenAI", "Forward"),
    ApiOperation("post", "/v1/embeddings", "Create embeddings. Forwarded to the backend.", "OpenAI", "Forward"),
    ApiOperation("post", "/v1/messages", "Create a message.", "Anthropic", "Messages", stream_content_type=_SSE),
    ApiOperation("post", "/v1/messages/count_tokens", "Estimate the tokens of a prompt.", "Anthropic", "Messages"),
    ApiOperation(
        "post", "/api/chat", "Create the next message of a chat.", "Ollama", "OllamaChat", stream_content_type=_NDJSON
    ),
    ApiOperation(
        "post", "/api/generate", "Generate an answer to a prompt.", "Ollama", "Generate", stream_content_type=_NDJSON
    ),
    ApiOperation("get", "/api/version", "Get the version of Ollama's API.", "Ollama"),
    ApiOperation("get", "/api/tags", "List the models.", "Ollama"),
    ApiOperation("post", "/api/show", "Get the capabilities and context window of a model.", "Ollama", "Show"),
    ApiOperation("get", "/api/ps", "List the models that are ready.", "Ollama"),
    ApiOperation("post", "/api/embed", "Create embeddings. Forwarded to the backend.", "Ollama", "Forward"),
    ApiOperation("post", "/api/embeddings", "Create an embedding. Forwarded to the backend.", "Ollama", "Forward"),
    ApiOperation("get", "/api/hello", "Connection check for Claude Code.", "Service", is_public=True),
    ApiOperation("get", "/", "Name and version.", "Service", content_type="text/plain", is_public=True),
    ApiOperation("get", "/health", "Check that the process is running.", "Service", is_public=True),
    ApiOperation("get", "/healthz", "Alias of /health.", "Service", is_public=True),
    ApiOperation("get", "/readyz", "Check the backends; 503 when none is reachable.", "Service", is_public=True),
    ApiOperation("get", "/metrics", "Metrics in Prometheus's text format.", "Service", content_type="text/plain"),
    ApiOperation(
        "get",
        "/v1/usage",
        "Get totals of requests and tokens.",
        "Service",
        parameters=(_BY_PARAMETER, _SINCE_PARAMETER),
    ),
    ApiOperation("get", "/openapi.json", "This description.", "Service"),
    ApiOperation("get", "/docs", "This description as a page.", "Service", content_type="text/html"),
    ApiOperation(
        "get", "/bridge/client.js", "Script for bridge pages.", "Bridge", content_type="text/javascript", is_public=True
    ),
    ApiOperation("get", "/bridge/example", "Example bridge page.", "Bridge", content_type="text/html", is_public=True),
)

_MODEL_NAME_SCHEMA: Schema = {
    "type": "string",
    "minLength": 1,
    "description": "Name or alias of a model, or `model@profile`.",
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
    """Build the whole document."""
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
            "200": {"description": "Success.", "content": contents},
            "default": {
                "description": "Error. The message says who failed and what to do.",
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
