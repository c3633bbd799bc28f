"""Settings to paste into common clients so that they use a gateway: one entry of `CLIENT_SNIPPETS` each. Pure.

The snippets were tested with the real clients: Codex 0.166, Claude Code 2.1, Copilot Chat 0.66, Continue CLI 1.5,
Kilo 7.7 and opencode 1.18. The one for Obsidian Copilot 4.0 follows its source.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable

import msgspec

__all__ = ["CLIENT_SNIPPETS", "ClientSnippet", "GatewayConnection"]

_DEFAULT_CONTEXT = 128_000
"""The window to state where it is unknown: below about 64k, Copilot Chat refuses its own prompts."""
_MAX_OUTPUT = 8192


class GatewayConnection(msgspec.Struct, frozen=True, kw_only=True):
    """What a client needs to connect."""

    url: str
    """The base URL, without a path."""
    model: str
    context: int = 0
    key: str = "unused"
    """Clients require a key even if the gateway does not."""


class ClientSnippet(msgspec.Struct, frozen=True, kw_only=True):
    """One client: where its settings are, and what to write there."""

    name: str
    location: str
    render: Callable[[GatewayConnection], str]


def _render_codex(gateway: GatewayConnection) -> str:
    base, env = f"{gateway.url}/v1", "CALLWRIGHT_API_KEY"
    provider = f'{{name="Callwright",base_url="{base}",env_key="{env}",wire_api="responses"}}'
    settings = ("model_provider=callwright", f"model_providers.callwright={provider}")
    command = ["codex", "-m", gateway.model, *(word for setting in settings for word in ("-c", setting))]
    return f"{env}={shlex.quote(gateway.key)} {shlex.join(command)}"


def _render_claude_code(gateway: GatewayConnection) -> str:
    settings = {"ANTHROPIC_BASE_URL": gateway.url, "ANTHROPIC_API_KEY": gateway.key}
    # Without the last one it also sends HEAD /api/hello and looks for its maker.
    settings["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] = "1"
    words = [f"{name}={shlex.quote(value)}" for name, value in settings.items()]
    return " ".join([*words, shlex.join(["claude", "--model", gateway.model])])


def _render_copilot_chat(gateway: GatewayConnection) -> str:
    context = gateway.context or _DEFAULT_CONTEXT
    output = min(_MAX_OUTPUT, context // 2)
    model = {
        "id": gateway.model,
        "name": gateway.model,
        "url": f"{gateway.url}/v1/chat/completions",
        "toolCalling": True,
        "vision": False,
        "maxInputTokens": context - output,
        "maxOutputTokens": output,
    }
    group = {"name": "Callwright", "vendor": "customendpoint", "apiKey": gateway.key, "apiType": "chat-completions"}
    return json.dumps([{**group, "models": [model]}], ensure_ascii=False)


def _render_continue(gateway: GatewayConnection) -> str:
    model = {
        "name": gateway.model,
        "provider": "openai",
        "model": gateway.model,
        "apiBase": f"{gateway.url}/v1",
        "apiKey": gateway.key,
        "roles": ["chat", "edit", "apply"],
        "capabilities": ["tool_use"],
    }
    return f"models: {json.dumps([model], ensure_ascii=False)}"  # JSON is YAML, except for surrogate pairs


def _render_opencode(gateway: GatewayConnection) -> str:
    limit = {"context": gateway.context or _DEFAULT_CONTEXT, "output": _MAX_OUTPUT}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Callwright",
        "options": {"baseURL": f"{gateway.url}/v1", "apiKey": gateway.key},
        "models": {gateway.model: {"name": gateway.model, "tool_call": True, "limit": limit}},
    }
    return json.dumps(
        {"model": f"callwright/{gateway.model}", "provider": {"callwright": provider}}, ensure_ascii=False
    )


def _render_obsidian(gateway: GatewayConnection) -> str:
    return f"Base URL {gateway.url}/v1   API key {gateway.key}   Model {gateway.model}"


def _render_ollama(gateway: GatewayConnection) -> str:
    return f"OLLAMA_HOST={gateway.url}"


CLIENT_SNIPPETS = (
    ClientSnippet(name="Codex", location="in a shell", render=_render_codex),
    ClientSnippet(name="Claude Code", location="in a shell", render=_render_claude_code),
    ClientSnippet(name="VS Code Copilot Chat", location="chatLanguageModels.json", render=_render_copilot_chat),
    ClientSnippet(name="Kilo, opencode", location="kilo.json, opencode.json", render=_render_opencode),
    ClientSnippet(name="Continue", location="config.yaml", render=_render_continue),
    ClientSnippet(name="Obsidian Copilot", location="BYOK, Add a custom provider", render=_render_obsidian),
    ClientSnippet(
        name="Ollama clients", location="in the environment, or as the Ollama address", render=_render_ollama
    ),
)
