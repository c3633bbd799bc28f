"""What a person sets about models and about how calls are treated."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from callwright.engine.strategy import StrategySetting
from callwright.turn import TruncationMode, UnknownToolMode

__all__ = ["ModelSettings", "OutputMode", "ToolRules"]

OutputMode = Literal["openai-json", "obsidian-xml", "kilo-xml"]

_Count = Annotated[int, msgspec.Meta(ge=0)]


class ToolRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[tools]` table, and what a model or profile changes of it: how calls are treated."""

    stop_after_tools: bool = False
    """End the model's generation after calls instead of waiting for its own end."""
    stop_after_tools_mode: Literal["first", "burst"] = "burst"
    """After the first call, or after the last of a run of calls: when anything else but white space follows."""
    suppress_tail_after_tools: bool = False
    """Text after a call is not shown."""
    tool_block_max: _Count = 0
    """Calls in one turn; more end it. 0: any number. Holds in every mode."""
    tool_block_dedup: bool = False
    """Drop a call that repeats one of the same turn, name and arguments alike."""
    tool_block_delimiter: str = ""
    """Between XML blocks where calls are also written into the text."""
    enable_parallel_tool_calls: bool = True
    """Off: at most one call in a turn, whatever the client asks for."""
    output_mode: OutputMode = "openai-json"
    """Whether calls are also written into the text as XML, for clients that read it there."""
    truncated: TruncationMode = "partial"
    """A call that the output was cut in: hand on what came, marked as cut; drop it; or close its JSON."""
    unknown_tool: UnknownToolMode = "text"
    """A call of a tool that was not offered: show it as text, or pass it on."""
    malformed: Literal["repair", "retry", "show"] = "repair"
    """A call that cannot be read: mend what can be mended, and ask again for one of which nothing was sent, taking the
    last answer as it is; ask again for every call that is not right, its arguments too, so that none streams; or show
    it as text."""
    reasoning_calls: bool = True
    """Recover calls that the model made while thinking, when its turn has no other."""
    max_retries: _Count = 2
    """How often in one turn an answer that will not do is asked for again: with a word on what was wrong, then with a
    pinned tool_choice, then with other sampling."""


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[models]]` table: a name that clients ask for, and what stands behind it."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    """What clients ask for."""
    aliases: tuple[str, ...] = ()
    """Other names for it."""
    backend: str | tuple[str, ...] = ""
    """One backend, or several in the order in which they are tried. Empty: the first one."""
    model: str = ""
    """What the backend calls it; empty for the same name."""
    dialect: str = "auto"
    """How the model writes calls as text: a name from `callwright dialects`; `auto` finds out."""
    profile: str = "auto"
    """The client profile for requests of this name; `auto` looks at the request."""
    tools: StrategySetting = "auto"
    """How the model gets its tools: by the backend's own means; told in the prompt, with the answer held to a grammar
    or a schema; or told in the prompt alone. `auto` takes the first that the backend can do."""
    context: _Count = 0
    """The window in tokens; 0 asks the backend."""
    vision: bool | None = None
    """Whether the model sees images; left out, the backend is asked."""
    prefill: str = ""
    """What the server's prompt already wrote of each answer, such as `<think>`."""
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    """Sampling options for requests that do not set them."""
    rules: dict[str, Any] = msgspec.field(default_factory=dict)
    """What is different for this model of the `[tools]` table."""
    prompt: dict[str, Any] = msgspec.field(default_factory=dict)
    """What is different for this model of the `[prompt]` table."""
    history: dict[str, Any] = msgspec.field(default_factory=dict)
    """How earlier messages are mended and ordered before they are sent."""
    tool_limits: dict[str, Any] = msgspec.field(default_factory=dict)
    """Which tools are offered to it and how briefly, and what becomes of prompts that are too long."""
    style: dict[str, Any] = msgspec.field(default_factory=dict)
    """How answers are written, where that is not the client's profile: `arguments`, `begin_tool_calls`,
    `reasoning_fields`, `heartbeat`, `null_content`."""
