"""What a person sets about what models are told: the words, how a history is mended, and what a model is spared."""

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
    """The `[prompt]` table, and what a model or profile changes of it: what the model is told."""

    system: Literal["native", "fold", "fold_first"] = "native"
    """How system messages are sent: as they are; folded into the first user message, for backends that ignore them; or
    folded on the first request of a conversation only, for backends that ignore them and keep the conversation."""
    redundant_system: bool = False
    """When folding, send a short system message as well, which says where the instructions are."""
    fold_warn_characters: _NonNegativeInt = 10_000
    """Report what is folded when it is longer than this; 0 for never."""
    teach: Literal["auto", "full", "short", "code"] = "auto"
    """How tools are told in words: as JSON schemas, as signatures, or as Python functions. `auto` tells schemas first
    and signatures whenever the tools are told again."""
    reteach_after: _NonNegativeInt = 0
    """Tell the tools again after this many messages; 0 for never."""
    show_results: bool = True
    """Where tools are told in words, show each result with its call, the arguments and whether it succeeded."""
    final_answer: FinalAnswerMode = "off"
    """Let the model close with a call of `final_answer` or with a tag of that name; clients get it as text."""
    max_rounds: _NonNegativeInt = 0
    """Tool rounds for one request of the user; one more is refused. 0: any number."""
    house_rules: str = ""
    """Your own rules, told to the model beside the tools."""
    volatile: tuple[str, ...] = ()
    """Lines of system messages that begin so change from request to request: they move to the conversation's end,
    where they do not spoil the backend's prompt cache."""
    templates: str = ""
    """A folder with templates of your own, by the names of `callwright templates list`; what is not there is built
    in."""


class HistorySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `history` table inside a model's: what becomes of earlier messages before they are sent."""

    repair: bool = True
    """Give every call its one result and every result its call, unique ids, and arguments that are JSON objects."""
    leaks: bool = True
    """Turn calls of offered tools that stand in the text of earlier answers into calls: they teach a model to leak."""
    roles: Literal["as-sent", "strict"] = "as-sent"
    """`strict`: instructions first, in one message, and neighbours of one role joined, as many templates demand."""
    reasoning: Literal["keep", "restore", "drop"] = "keep"
    """Whether a server gets to see what was thought in earlier turns; some demand it and some refuse it. `keep` sends
    what the client sends, and puts back what it left out if that is signed or the model is known to demand it;
    `restore` puts everything back."""
    result_images: Literal["auto", "keep", "move"] = "auto"
    """Pictures in tool results stay there or move to a user's message; `auto` moves them where the API has no place."""


class ToolLimitSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `tool_limits` table of a model: which tools it is offered, how briefly, and what becomes of long prompts."""

    allow: tuple[str, ...] = ()
    """Tools that are offered, by name or pattern such as `read_*`. Empty: all."""
    deny: tuple[str, ...] = ()
    """Tools that are not; this comes before `allow`."""
    max_tools: _NonNegativeInt = 0
    """How many are offered: those that are named or fit the user's words best. Those that were called already, and the
    one that must be called, always are. 0: any number."""
    max_description: _NonNegativeInt = 0
    """Characters of a description; a longer one is cut after a sentence. 0: any number."""
    trim_schemas: bool = False
    """Leave out of schemas what only people read: titles, examples, comments."""
    inline_refs: bool = True
    """Put the target of each `$ref` in its place; some services refuse schemas with references."""
    drop_null: bool = False
    """Do not tell that a parameter may be null."""
    terse: bool = False
    """One call at a time, strings of at most 120 characters and lists of 4 items: a tiny model that begins to repeat
    itself finds no end. Left out, models that are known for it are treated so."""
    alias_names: bool = True
    """Tell tools whose names are over 64 characters long, or have odd ones, under another name that services take."""
    overflow: Literal["refuse", "condense", "send"] = "refuse"
    """A prompt that does not fit the window: refused with the numbers, shortened at its oldest part, or sent as is."""
    reserve: _NonNegativeInt = 1024
    """Tokens of the window that are kept for the answer."""


def merge_prompt_settings(settings: PromptSettings, changes: Mapping[str, Any]) -> PromptSettings:
    """The settings with some of them changed."""
    return msgspec.convert({**msgspec.structs.asdict(settings), **changes}, PromptSettings) if changes else settings
