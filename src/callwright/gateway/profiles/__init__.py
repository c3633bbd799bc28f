"""Client profiles: what is known about each client, and how a request is matched with one.

An explicit choice wins: the header `x-callwright-profile`, then a suffix of the model's name (`coder@obsidian`), then
the model's `profile` setting. Otherwise the strongest evidence decides, from the user agent down to the prompt; among
equals the order of the table decides. The reason is always returned, for the journal and the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, get_args

from callwright.engine.settings import OutputMode
from callwright.errors import MisuseError, RequestError
from callwright.gateway.profiles.base import ClientEvidence, Profile
from callwright.gateway.profiles.claude_code import CLAUDE_CODE
from callwright.gateway.profiles.cline import CLINE
from callwright.gateway.profiles.codex import CODEX
from callwright.gateway.profiles.continue_dev import CONTINUE_DEV
from callwright.gateway.profiles.copilot import COPILOT
from callwright.gateway.profiles.kilocode import KILOCODE, KILOCODE_XML
from callwright.gateway.profiles.obsidian import OBSIDIAN, OBSIDIAN_XML
from callwright.gateway.profiles.open_webui import OPEN_WEBUI
from callwright.gateway.profiles.openai import OPENAI
from callwright.gateway.profiles.opencode import OPENCODE
from callwright.gateway.profiles.qwen_code import QWEN_CODE
from callwright.model import Text
from callwright.wire.base import ClientRequest

__all__ = [
    "OUTPUT_MODE_HEADER",
    "PROFILES",
    "PROFILE_HEADER",
    "ClientEvidence",
    "Profile",
    "choose_profile",
    "collect_evidence",
    "get_rule_changes",
    "register_profile",
    "split_model_name",
]

PROFILE_HEADER = "x-callwright-profile"
OUTPUT_MODE_HEADER = "x-proxy-output-mode"
OUTPUT_MODES: tuple[str, ...] = get_args(OutputMode)

# A fork comes before its original: Kilo Code sends opencode's headers too.
PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        COPILOT,
        OBSIDIAN,
        OBSIDIAN_XML,
        KILOCODE,
        KILOCODE_XML,
        CODEX,
        CLAUDE_CODE,
        CLINE,
        CONTINUE_DEV,
        OPENCODE,
        QWEN_CODE,
        OPEN_WEBUI,
        OPENAI,
    )
}


def split_model_name(model: str) -> tuple[str, str]:
    """Split a model's name from the suffix that selects a profile. Any other `@` is part of the name."""
    name, _, profile = model.rpartition("@")
    return (name, profile) if name and profile in PROFILES else (model, "")


def collect_evidence(client_request: ClientRequest, headers: Mapping[str, str]) -> ClientEvidence:
    """Collect what a request reveals about its client."""
    system = next(
        (message for message in client_request.request.messages if message.role in ("system", "developer")), None
    )
    prompt = "".join(part.text for part in system.parts if isinstance(part, Text)) if system else ""
    return ClientEvidence(
        headers=headers, tools=frozenset(tool.name for tool in client_request.request.tools), prompt=prompt
    )


def choose_profile(evidence: ClientEvidence, *, suffix: str = "", setting: str = "auto") -> tuple[Profile, str]:
    """Choose the profile of a request, with the reason. Raises `RequestError` when a header names an unknown one."""
    named = (
        (evidence.headers.get(PROFILE_HEADER, ""), f"the header {PROFILE_HEADER}"),
        (suffix, "the suffix of the model's name"),
        (setting, "the model's setting"),
    )
    for name, source in named:
        if name not in ("", "auto"):
            return _get_named_profile(name, source), f"{source} selects it"
    return next(_match_profiles(evidence), (OPENAI, "nothing in the request identifies another client"))


def get_rule_changes(profile: Profile, headers: Mapping[str, str]) -> dict[str, Any]:
    """Return the changes to the `[tools]` table that the profile and then the request's own header make."""
    mode = headers.get(OUTPUT_MODE_HEADER, "")
    if not mode:
        return profile.rules
    if mode not in OUTPUT_MODES:
        raise RequestError(
            f"{OUTPUT_MODE_HEADER} must be {' or '.join(OUTPUT_MODES)}, not {mode!r}.",
            param=OUTPUT_MODE_HEADER,
        )
    return {**profile.rules, "output_mode": mode}


def _get_named_profile(name: str, source: str) -> Profile:
    if name in PROFILES:
        return PROFILES[name]
    near = get_close_matches(name, PROFILES, 1, 0)[0]
    raise RequestError(
        f"{source} selects the profile {name!r}, which does not exist. Did you mean {near!r}? "
        f"Available profiles: {', '.join(PROFILES)}."
    )


def _match_profiles(evidence: ClientEvidence) -> Iterator[tuple[Profile, str]]:
    """Yield the profiles that match a request, the strongest evidence first."""
    if agent := evidence.headers.get("user-agent", "").lower():
        yield from (
            (profile, f"its user agent contains {part!r}")
            for part, profile in _evidence_index.user_agents
            if part in agent
        )
    sent = evidence.headers
    for (name, start), profile in _evidence_index.headers:
        if name in sent and sent[name].startswith(start):
            yield profile, f"it sent {name}"
    if evidence.tools & _evidence_index.tool_names:
        yield from (
            (profile, f"it offers the tool {name!r}")
            for name, profile in _evidence_index.tools
            if name in evidence.tools
        )
    if prompt := evidence.prompt:
        yield from (
            (profile, f"its system prompt contains {part!r}")
            for part, profile in _evidence_index.prompt_phrases
            if part in prompt
        )


class _EvidenceIndex:
    """Each piece of evidence with its profile, in the order of the table, so that a request is searched once."""

    def __init__(self, profiles: Iterable[Profile]) -> None:
        self.rebuild(profiles)

    def rebuild(self, profiles: Iterable[Profile]) -> None:
        """Index these profiles, and no others."""
        table = tuple(profiles)
        self.user_agents = [(part, profile) for profile in table for part in profile.user_agents]
        self.headers = [(header, profile) for profile in table for header in profile.headers.items()]
        self.tools = [(name, profile) for profile in table for name in sorted(profile.tools)]
        self.tool_names = frozenset(name for name, _ in self.tools)
        self.prompt_phrases = [(part, profile) for profile in table for part in profile.prompt_phrases]


_evidence_index = _EvidenceIndex(PROFILES.values())


def register_profile(profile: Profile) -> None:
    """Add the profile of another client. It comes before the others, so that a fork is found before its origin.

    Raises `MisuseError` when its name is taken.
    """
    if profile.name in PROFILES:
        raise MisuseError(f"the profile {profile.name!r} cannot be registered: the name is taken")
    others = dict(PROFILES)
    PROFILES.clear()
    PROFILES.update({profile.name: profile} | others)
    _evidence_index.rebuild(PROFILES.values())
