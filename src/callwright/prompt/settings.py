"""Settings for prompts: instructions, tools in the prompt, history repair and tool limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

__all__ = [
    "FinalAnswerMode",
    "HistorySettings",
    "PromptSettings",
    "TeachForm",
    "ToolLimitSettings",
    "merge_prompt_settings",
]

TeachForm = Literal["full", "short", "code"]
FinalAnswerMode = Literal["off", "call", "tag"]

_NonNegativeInt = Annotated[int, msgspec.Meta(ge=0)]


class PromptSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[prompt]` table, and what a model or profile changes of it: what the prompt contains."""

    system: Literal["native", "fold", "fold_first"] = "native"
    """How system messages are sent: unchanged; folded into the first user message, for backends that ignore them; or
    folded on the first request of a conversation only, for backends that ignore them and keep the conversation."""
    redundant_system: bool = False
    """When folding, also send a short system message that says where the instructions are."""
    fold_warn_characters: _NonNegativeInt = 10_000
    """Warn if folded instructions are longer than this; 0 = never."""
    teach: Literal["auto", "full", "short", "code"] = "auto"
    """How tools are described as text: as JSON schemas, as signatures, or as Python functions. `auto` uses schemas
    first and signatures whenever the tools are repeated."""
    reteach_after: _NonNegativeInt = 0
    """Repeat the tools after this many messages; 0 = never."""
    show_results: bool = True
    """Where tools are described as text, show each result with its call, the arguments and its status."""
    final_answer: FinalAnswerMode = "off"
    """Let the model end with a call of `final_answer` or with a tag of that name; clients get it as text."""
    max_rounds: _NonNegativeInt = 0
    """Maximum tool rounds for one request of the user; one more is refused. 0 = no limit."""
    house_rules: str = ""
    """Your own rules, added to the prompt next to the tools."""
    volatile: tuple[str, ...] = ()
    """Prefixes of lines in system messages that change from request to request: these lines move to the end of the
    conversation, where they do not invalidate the backend's prompt cache."""
    templates: str = ""
    """A folder with your own templates, named as in `callwright templates list`; the built-in ones are used for the
    others."""


class HistorySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `history` table of a model: how earlier messages are changed before they are sent."""

    repair: bool = True
    """Give every call one result and every result its call, unique ids, and arguments that are JSON objects."""
    leaks: bool = True
    """Convert calls of known tools in the text of earlier answers to calls: left as text, they teach a model to
    leak."""
    roles: Literal["as-sent", "strict"] = "as-sent"
    """`strict`: instructions first, in one message, and neighbours of one role merged, as many templates require."""
    reasoning: Literal["keep", "restore", "drop"] = "keep"
    """Whether the server gets the reasoning of earlier turns; some require it and some refuse it. `keep` sends what the
    client sends, and restores what it omitted if that is signed or the model is known to require it; `restore` restores
    everything."""
    result_images: Literal["auto", "keep", "move"] = "auto"
    """Images in tool results stay there or move to a user message; `auto` moves them where the API has no field."""


class ToolLimitSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `tool_limits` table of a model: which tools it gets, how they are shortened, and how long prompts are
    handled."""

    allow: tuple[str, ...] = ()
    """Tools to offer, by name or pattern such as `read_*`. Empty = all."""
    deny: tuple[str, ...] = ()
    """Tools not to offer; takes precedence over `allow`."""
    max_tools: _NonNegativeInt = 0
    """Maximum number of tools: those that the user names or whose words match best. Tools that were already called, and
    a required tool, are always offered. 0 = no limit."""
    max_description: _NonNegativeInt = 0
    """Maximum length of a description; a longer one is truncated after a sentence. 0 = no limit."""
    trim_schemas: bool = False
    """Remove from schemas what only people read: titles, examples, comments."""
    inline_refs: bool = True
    """Replace each `$ref` by its target; some services refuse schemas with references."""
    drop_null: bool = False
    """Do not show that a parameter may be null."""
    terse: bool = False
    """One call at a time, strings of at most 120 characters and lists of at most 4 items, for tiny models that repeat
    themselves without end. By default it is on for models that are known to need it."""
    alias_names: bool = True
    """Offer tools whose names are longer than 64 characters or contain other characters under a name that services
    accept."""
    overflow: Literal["refuse", "condense", "send"] = "refuse"
    """A prompt that does not fit the window: refused with the numbers, shortened at its oldest part, or sent as is."""
    reserve: _NonNegativeInt = 1024
    """Tokens of the window that are reserved for the answer."""


def merge_prompt_settings(settings: PromptSettings, changes: Mapping[str, Any]) -> PromptSettings:
    """Return the settings with these changes."""
    return msgspec.convert({**msgspec.structs.asdict(settings), **changes}, PromptSettings) if changes else settings
