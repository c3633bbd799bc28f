"""Plans a turn: the model to ask, the client's profile, and the rules that apply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from callwright.engine import ModelRoute, merge_rules
from callwright.engine.settings import ToolRules
from callwright.errors import RequestError
from callwright.gateway import profiles
from callwright.gateway.keys import check_model_access
from callwright.gateway.limits import check_client_request
from callwright.gateway.profiles import Profile
from callwright.gateway.request_context import RequestContext
from callwright.wire.base import ClientRequest, StreamStyle

__all__ = ["TurnPlan", "plan_turn"]


class TurnPlan(NamedTuple):
    """A validated request with its route, rules and profile."""

    client_request: ClientRequest
    route: ModelRoute
    rules: ToolRules
    profile: Profile
    profile_reason: str
    """The reason for choosing the profile."""
    style: StreamStyle

    @property
    def record_fields(self) -> dict[str, Any]:
        """The plan's fields of a `TurnRecord`."""
        return {
            "model": self.route.settings.name,
            "client": self.profile.name,
            "profile_reason": self.profile_reason,
            "stop_after_tools_mode": self.rules.stop_after_tools_mode,
            "output_mode": self.rules.output_mode,
        }


async def plan_turn(client_request: ClientRequest, context: RequestContext, *, may_be_empty: bool) -> TurnPlan:
    """Plan the turn of a request. Raises `RequestError` when the model does not exist or the caller may not use it."""
    check_client_request(client_request, context.state.server)
    if not client_request.request.messages and not may_be_empty:
        raise RequestError("messages must contain at least one message", param="messages")
    name, suffix = profiles.split_model_name(client_request.request.model)
    route = await context.state.engine.find_route(name)
    check_model_access(context.key, route.settings.name)
    evidence = profiles.collect_evidence(client_request, context.headers)
    profile, profile_reason = profiles.choose_profile(evidence, suffix=suffix, setting=route.settings.profile)
    route = route.with_client_prompt(profile.prompt)
    rules = merge_rules(route.rules, profiles.get_rule_changes(profile, context.headers))
    return TurnPlan(
        client_request, route, rules, profile, profile_reason, _merge_style(profile.style, route.settings.style)
    )


def _merge_style(style: StreamStyle, changes: Mapping[str, Any]) -> StreamStyle:
    """Merge the style of a profile with a model's `style` settings."""
    return msgspec.convert({**msgspec.structs.asdict(style), **changes}, StreamStyle) if changes else style
