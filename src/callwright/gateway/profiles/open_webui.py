"""Open WebUI, in its native tool mode (the default since 0.10)."""

from __future__ import annotations

from callwright.gateway.profiles.base import Profile

# It identifies itself only when ENABLE_FORWARD_USER_INFO_HEADERS is set there; select the profile by name otherwise.
OPEN_WEBUI = Profile(
    name="open-webui",
    description="Open WebUI.",
    headers={"x-openwebui-user-id": "", "x-openwebui-user-name": "", "x-openwebui-chat-id": ""},
)
