"""What a person sets about what models are told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

__all__ = ["PromptSettings", "TeachForm", "WayToClose", "merged_prompt"]

TeachForm = Literal["full", "short", "code"]
WayToClose = Literal["off", "call", "tag"]

_Count = Annotated[int, msgspec.Meta(ge=0)]


class PromptSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[prompt]` table, and what a model or profile changes of it: what the model is told."""

    system: Literal["native", "fold", "fold_first"] = "native"
    """How system messages are sent: as they are; folded into the first user message, for backends that ignore them; or
    folded on the first request of a conversation only, for backends that ignore them and keep the conversation."""
    redundant_system: bool = False
    """When folding, send a short system message as well, which says where the instructions are."""
    fold_warn_characters: _Count = 10_000
    """Report what is folded when it is longer than this; 0 for never."""
    teach: Literal["auto", "full", "short", "code"] = "auto"
    """How tools are told in words: as JSON schemas, as signatures, or as Python functions. `auto` tells schemas first
    and signatures whenever the tools are told again."""
    reteach_after: _Count = 0
    """Tell the tools again after this many messages; 0 for never."""
    show_results: bool = True
    """Where tools are told in words, show each result with its call, the arguments and whether it succeeded."""
    final_answer: WayToClose = "off"
    """Let the model close with a call of `final_answer` or with a tag of that name; clients get it as text."""
    max_rounds: _Count = 0
    """Tool rounds for one request of the user; one more is refused. 0: any number."""
    house_rules: str = ""
    """Your own rules, told to the model beside the tools."""
    volatile: tuple[str, ...] = ()
    """Lines of system messages that begin so change from request to request: they move to the conversation's end,
    where they do not spoil the backend's prompt cache."""
    templates: str = ""
    """A folder with templates of your own, by the names of `callwright templates list`; what is not there is built
    in."""


def merged_prompt(settings: PromptSettings, changes: Mapping[str, Any]) -> PromptSettings:
    """The settings with some of them changed."""
    return msgspec.convert({**msgspec.structs.asdict(settings), **changes}, PromptSettings) if changes else settings
