"""What to paste into the common clients so that they use a gateway: one entry of `CLIENTS` for each. Pure.

The forms are those that were run with the real clients: Codex 0.166, Claude Code 2.1, Copilot Chat 0.66, Continue
CLI 1.5, Kilo 7.7 and opencode 1.18; Obsidian Copilot 4.0 from its source.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable

import msgspec

__all__ = ["CLIENTS", "Client", "Gateway"]

_CONTEXT = 128_000
"""Told where the window is not known: Copilot Chat refuses its own prompts when it is told less than about 64k."""
_OUTPUT = 8192


class Gateway(msgspec.Struct, frozen=True, kw_only=True):
    """What a client must be told."""

    url: str
    """Without a path."""
    model: str
    context: int = 0
    key: str = "unused"
    """Clients want one even where none is asked for."""


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """One client: where its settings go, and what to write there."""

    name: str
    where: str
    text: Callable[[Gateway], str]


def _codex(gateway: Gateway) -> str:
    base, env = f"{gateway.url}/v1", "CALLWRIGHT_API_KEY"
    provider = f'{{name="Callwright",base_url="{base}",env_key="{env}",wire_api="responses"}}'
    settings = ("model_provider=callwright", f"model_providers.callwright={provider}")
    command = ["codex", "-m", gateway.model, *(word for setting in settings for word in ("-c", setting))]
    return f"{env}={shlex.quote(gateway.key)} {shlex.join(command)}"


def _claude_code(gateway: Gateway) -> str:
    settings = {"ANTHROPIC_BASE_URL": gateway.url, "ANTHROPIC_API_KEY": gateway.key}
    # Without the last one it also sends HEAD /api/hello and looks for its maker.
    settings["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] = "1"
    words = [f"{name}={shlex.quote(value)}" for name, value in settings.items()]
    return " ".join([*words, shlex.join(["claude", "--model", gateway.model])])


def _copilot_chat(gateway: Gateway) -> str:
    context = gateway.context or _CONTEXT
    output = min(_OUTPUT, context // 2)
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


def _continue(gateway: Gateway) -> str:
    model = {
        "name": gateway.model,
        "provider": "openai",
        "model": gateway.model,
        "apiBase": f"{gateway.url}/v1",
        "apiKey": gateway.key,
        "roles": ["chat", "edit", "apply"],
        "capabilities": ["tool_use"],
    }
    return f"models: {json.dumps([model], ensure_ascii=False)}"  # JSON is YAML, but for its pairs of surrogates


def _opencode(gateway: Gateway) -> str:
    limit = {"context": gateway.context or _CONTEXT, "output": _OUTPUT}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Callwright",
        "options": {"baseURL": f"{gateway.url}/v1", "apiKey": gateway.key},
        "models": {gateway.model: {"name": gateway.model, "tool_call": True, "limit": limit}},
    }
    return json.dumps(
        {"model": f"callwright/{gateway.model}", "provider": {"callwright": provider}}, ensure_ascii=False
    )


def _obsidian(gateway: Gateway) -> str:
    return f"Base URL {gateway.url}/v1   API key {gateway.key}   Model {gateway.model}"


def _ollama(gateway: Gateway) -> str:
    return f"OLLAMA_HOST={gateway.url}"


CLIENTS = (
    Client(name="Codex", where="in a shell", text=_codex),
    Client(name="Claude Code", where="in a shell", text=_claude_code),
    Client(name="VS Code Copilot Chat", where="chatLanguageModels.json", text=_copilot_chat),
    Client(name="Kilo, opencode", where="kilo.json, opencode.json", text=_opencode),
    Client(name="Continue", where="config.yaml", text=_continue),
    Client(name="Obsidian Copilot", where="BYOK, Add a custom provider", text=_obsidian),
    Client(name="Ollama's clients", where="in the environment, or as the Ollama address", text=_ollama),
)
