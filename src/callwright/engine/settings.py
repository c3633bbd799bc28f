"""Settings of models and of the treatment of tool calls."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from callwright.engine.strategy import StrategySetting
from callwright.turn import TruncationMode, UnknownToolMode

__all__ = ["ModelSettings", "OutputMode", "ToolRules"]

OutputMode = Literal["openai-json", "obsidian-xml", "kilo-xml"]

_Count = Annotated[int, msgspec.Meta(ge=0)]


class ToolRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[tools]` table, which a model or a profile may override: how tool calls are treated."""

    stop_after_tools: bool = False
    """End the model's generation after calls instead of waiting for its own end."""
    stop_after_tools_mode: Literal["first", "burst"] = "burst"
    """`first`: end after the first call. `burst`: end after consecutive calls, when more than white space follows."""
    suppress_tail_after_tools: bool = False
    """Hide text after a call."""
    tool_block_max: _Count = 0
    """Maximum number of calls in a turn; more end it. 0 = no limit. Applies in every mode."""
    tool_block_dedup: bool = False
    """Drop a call that repeats the name and arguments of another call of the same turn."""
    tool_block_delimiter: str = ""
    """Text between XML blocks, where calls are also written into the text."""
    enable_parallel_tool_calls: bool = True
    """Allow several calls in a turn. Off = at most one, whatever the client requests."""
    output_mode: OutputMode = "openai-json"
    """Whether calls are also written into the text as XML, for clients that read them there."""
    truncated: TruncationMode = "partial"
    """A call that was cut off: send the part that arrived, marked as incomplete; drop it; or close its JSON."""
    unknown_tool: UnknownToolMode = "text"
    """A call of a tool that was not offered: show it as text, or pass it on."""
    malformed: Literal["repair", "retry", "show"] = "repair"
    """An unreadable call. `repair`: repair what can be repaired, retry a call of which nothing was sent, and accept the
    last answer as it is. `retry`: retry every invalid call, its arguments included, so that no call is streamed.
    `show`: show it as text."""
    reasoning_calls: bool = True
    """Recover calls that the model made in its reasoning, when its turn has no other calls."""
    max_retries: _Count = 2
    """Maximum number of retries of an unusable answer in one turn: first with a message about the problem, then with a
    fixed tool_choice, then with other sampling."""


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[models]]` table: a name for clients, and the model behind it."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    """The name that clients use."""
    aliases: tuple[str, ...] = ()
    """Other names for it."""
    backend: str | tuple[str, ...] = ""
    """One backend, or several in the order in which they are tried. Empty = the first backend."""
    model: str = ""
    """The backend's name for the model. Empty = the same name."""
    dialect: str = "auto"
    """The format in which the model writes calls as text: a name from `callwright dialects`, or `auto` to detect it."""
    profile: str = "auto"
    """The client profile for requests to this model. `auto` detects it from the request."""
    tools: StrategySetting = "auto"
    """How the tools are given to the model. `native`: with the backend's own tool support. `constrained`: in the
    prompt, with the answer constrained by a grammar or a schema. `taught`: in the prompt only. `auto` uses the first
    that the backend supports."""
    context: _Count = 0
    """Context window in tokens. 0 = as the backend reports it."""
    vision: bool | None = None
    """Whether the model accepts images. Default: as the backend reports it."""
    prefill: str = ""
    """The beginning of each answer that the server's prompt already contains, such as `<think>`."""
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    """Sampling options for requests that do not set them."""
    rules: dict[str, Any] = msgspec.field(default_factory=dict)
    """Overrides of the `[tools]` table for this model."""
    prompt: dict[str, Any] = msgspec.field(default_factory=dict)
    """Overrides of the `[prompt]` table for this model."""
    history: dict[str, Any] = msgspec.field(default_factory=dict)
    """How earlier messages are repaired and ordered before they are sent."""
    tool_limits: dict[str, Any] = msgspec.field(default_factory=dict)
    """Which tools are offered and how much of their descriptions, and what happens to prompts that are too long."""
    style: dict[str, Any] = msgspec.field(default_factory=dict)
    """Overrides of the client profile's stream format: `arguments`, `begin_tool_calls`, `reasoning_fields`,
    `heartbeat`, `null_content`."""
