"""A client profile: how Acme Notes is recognized, and what it needs to be different."""

from callwright.gateway.profiles.base import Profile
from callwright.wire.base import StreamStyle

ACME_NOTES = Profile(
    name="acme-notes",
    description="Acme Notes, which reads a call's arguments only in one piece.",
    user_agents=("acme-notes/",),
    style=StreamStyle(arguments="whole"),
)
