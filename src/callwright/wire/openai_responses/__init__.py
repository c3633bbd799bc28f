"""OpenAI's Responses API (`/v1/responses`), the only API of Codex, which other clients use too.

`decode` reads a client's request, `encode` writes the answer, `previous_response` joins one request to the next; `call`
and `read` do the same for a server.
"""

from callwright.wire.openai_responses.call import OpenAIResponsesClientCodec, encode_message_items
from callwright.wire.openai_responses.previous_response import (
    build_stored_messages,
    find_referenced_ids,
    resolve_references,
)
from callwright.wire.openai_responses.serve import OpenAIResponsesServerCodec

__all__ = [
    "OpenAIResponsesClientCodec",
    "OpenAIResponsesServerCodec",
    "build_stored_messages",
    "encode_message_items",
    "find_referenced_ids",
    "resolve_references",
]
