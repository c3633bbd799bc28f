"""A backend: answers with the last user message. Configure it so:

[[backends]]
name = "echo"
kind = "plugin"
plugin = "acme"
plugin_options = { prefix = "You said: " }
"""

from typing import Any

from callwright.backends.base import EventStream, ForwardedResponse, ModelInfo
from callwright.backends.settings import BackendSettings
from callwright.errors import BackendError
from callwright.events import Finish, TextDelta
from callwright.model import Request, Text


class AcmeBackend:
    """Implements `callwright.backends.base.Backend`."""

    wire = "acme"
    is_available = True
    flavour = None

    def __init__(self, settings: BackendSettings) -> None:
        self.settings = settings

    async def stream_response(self, request: Request, extra: dict[str, Any]) -> EventStream:
        last = next(message for message in reversed(request.messages) if message.role == "user")
        words = "".join(part.text for part in last.parts if isinstance(part, Text))
        yield [TextDelta(self.settings.plugin_options.get("prefix", ""))]
        yield [TextDelta(words), Finish("stop")]

    async def list_models(self) -> tuple[ModelInfo, ...]:
        return (ModelInfo(name="acme-echo", context=8192, tools=False),)

    async def forward_request(self, path: str, body: bytes) -> ForwardedResponse:
        raise BackendError(f"the backend {self.settings.name!r} has no {path}", kind="refused", status=501)

    async def close(self) -> None:
        """Close connections here."""


def open_acme_backend(settings: BackendSettings) -> AcmeBackend:
    """Called once for each `[[backends]]` table that names this plugin."""
    return AcmeBackend(settings)
