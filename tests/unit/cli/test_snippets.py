"""What people paste is well-formed, whatever the model is called, and says where the gateway is."""

from __future__ import annotations

import json
import shlex
import tomllib
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from callwright.cli.snippets import CLIENT_SNIPPETS, ClientSnippet, GatewayConnection

BY_NAME = {client.name: client for client in CLIENT_SNIPPETS}
HERE = GatewayConnection(url="http://127.0.0.1:8787", model="qwen3:8b", context=32768)
names = st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), min_size=1)


@pytest.mark.parametrize("client", CLIENT_SNIPPETS, ids=lambda client: client.name)
def test_every_client_is_told_the_address_in_one_line(client: ClientSnippet) -> None:
    text = client.render(HERE)
    assert HERE.url in text
    assert "\n" not in text


@given(names, names)
def test_shell_lines_carry_any_name_and_key(model: str, key: str) -> None:
    gateway = GatewayConnection(url=HERE.url, model=model, key=key)
    codex = shlex.split(BY_NAME["Codex"].render(gateway))
    assert codex[:4] == [f"CALLWRIGHT_API_KEY={key}", "codex", "-m", model]
    claude = shlex.split(BY_NAME["Claude Code"].render(gateway))
    assert f"ANTHROPIC_API_KEY={key}" in claude
    assert claude[-2:] == ["--model", model]


def test_codex_gets_a_provider_on_responses() -> None:
    settings = [word for word in shlex.split(BY_NAME["Codex"].render(HERE)) if word.startswith("model_provider")]
    read = tomllib.loads("\n".join(settings).replace("=callwright\n", '="callwright"\n'))
    assert read["model_provider"] == "callwright"
    provider = read["model_providers"]["callwright"]
    assert (provider["wire_api"], provider["base_url"]) == ("responses", f"{HERE.url}/v1")
    assert f"{provider['env_key']}=unused" in BY_NAME["Codex"].render(HERE)


@given(names)
def test_json_and_yaml_carry_any_name(model: str) -> None:
    gateway = GatewayConnection(url=HERE.url, model=model)
    (group,) = json.loads(BY_NAME["VS Code Copilot Chat"].render(gateway))
    assert group["models"][0]["id"] == model
    provider: dict[str, Any] = json.loads(BY_NAME["Kilo, opencode"].render(gateway))["provider"]["callwright"]
    assert list(provider["models"]) == [model]
    (entry,) = yaml.safe_load(BY_NAME["Continue"].render(gateway))["models"]
    assert entry["model"] == model


def test_copilot_chat_gets_every_field_that_it_requires() -> None:
    (group,) = json.loads(BY_NAME["VS Code Copilot Chat"].render(HERE))
    (model,) = group["models"]
    assert set(model) >= {"id", "name", "url", "toolCalling", "vision", "maxInputTokens", "maxOutputTokens"}
    assert model["toolCalling"] is True, "without it the model is not offered in agent mode"
    assert model["url"].endswith("/chat/completions")
    assert model["maxInputTokens"] + model["maxOutputTokens"] == 32768
    assert model["maxInputTokens"] > 0


def test_an_unknown_window_is_told_as_one_that_agents_fit_into() -> None:
    (group,) = json.loads(BY_NAME["VS Code Copilot Chat"].render(GatewayConnection(url=HERE.url, model="m")))
    assert group["models"][0]["maxInputTokens"] > 64_000
