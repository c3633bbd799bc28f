"""OpenAI's Responses API (`/v1/responses`), which Codex speaks and nothing else, and others too.

`request` reads what a client asks, `encoder` writes what it gets, `conversation` joins one request to the next; `call`
and `reader` do the same towards a server.
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
