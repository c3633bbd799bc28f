"""OpenAI's Responses API (`/v1/responses`), which Codex speaks and nothing else, and others too.

`request` reads what a client asks, `encoder` writes what it gets, `conversation` joins one request to the next; `call`
and `reader` do the same towards a server.
"""

from callwright.wire.openai_responses.call import CalledResponses, items_of
from callwright.wire.openai_responses.conversation import recalls, remembered, resumed
from callwright.wire.openai_responses.serve import ServedResponses

__all__ = ["CalledResponses", "ServedResponses", "items_of", "recalls", "remembered", "resumed"]
