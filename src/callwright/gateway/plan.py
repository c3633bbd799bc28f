"""Plan: what a request means here: which model it asks, for which client, under which rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from callwright.engine import Route, merged_rules
from callwright.engine.settings import ToolRules
from callwright.errors import RequestError
from callwright.gateway import profiles
from callwright.gateway.exchange import Exchange
from callwright.gateway.keys import check_use
from callwright.gateway.limits import check_ask
from callwright.gateway.profiles import Profile
from callwright.wire.base import ClientRequest, StreamStyle

__all__ = ["Plan", "planned"]


class Plan(NamedTuple):
    """A request that can be asked of its model."""

    ask: ClientRequest
    route: Route
    rules: ToolRules
    profile: Profile
    why: str
    """The reason for the profile."""
    style: StreamStyle

    @property
    def known(self) -> dict[str, Any]:
        """What the record of a turn says of it."""
        return {
            "model": self.route.settings.name,
            "client": self.profile.name,
            "why": self.why,
            "stop_after_tools_mode": self.rules.stop_after_tools_mode,
            "output_mode": self.rules.output_mode,
        }


async def planned(ask: ClientRequest, opened: Exchange, *, may_be_empty: bool) -> Plan:
    """The plan for a request. `RequestError` when there is no such model, or this caller may not ask for that."""
    check_ask(ask, opened.state.server)
    if not ask.request.messages and not may_be_empty:
        raise RequestError("messages must hold at least one message", param="messages")
    name, suffix = profiles.split(ask.request.model)
    route = await opened.state.engine.find(name)
    check_use(opened.key, route.settings.name)
    evidence = profiles.evidence(ask, opened.headers)
    profile, why = profiles.choose(evidence, suffix=suffix, setting=route.settings.profile)
    route = route.told(profile.prompt)
    rules = merged_rules(route.rules, profiles.rules(profile, opened.headers))
    return Plan(ask, route, rules, profile, why, _restyled(profile.style, route.settings.style))


def _restyled(style: StreamStyle, changes: Mapping[str, Any]) -> StreamStyle:
    """A profile's style with what a model's settings change of it."""
    return msgspec.convert({**msgspec.structs.asdict(style), **changes}, StreamStyle) if changes else style
