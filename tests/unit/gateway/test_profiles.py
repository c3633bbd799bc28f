"""A request finds its client's profile, and the reason is told."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.engine.settings import ToolRules
from callwright.errors import RequestError
from callwright.gateway.profiles import PROFILES, ClientEvidence, choose_profile, get_rule_changes, split_model_name
from callwright.prompt.settings import PromptSettings, merge_prompt_settings

AGENTS = [
    ("GitHubCopilotChat/0.42.1", "copilot"),
    ("codex_cli_rs/0.166.0 (Ubuntu 24.04; x86_64) xterm", "codex"),
    ("codex_exec/0.166.0 (Debian)", "codex"),
    ("codex-tui/0.150.0", "codex"),
    ("Codex Desktop/0.140 (Windows)", "codex"),
    ("claude-cli/2.1.325 (external, cli)", "claude-code"),
    ("claude-cli/2.1.105 (external, sdk-py, agent-sdk/0.1.59)", "claude-code"),
    ("claude-code/2.1.45", "claude-code"),
    ("Kilo-Code/5.10.4", "kilocode"),
    ("opencode/1.18.33 ai-sdk/provider-utils/4.0.1", "opencode"),
    ("QwenCode/0.24.4 (linux; x64)", "qwen-code"),
    ("Continue-CLI/1.5.47", "continue"),
    ("Continue/1.2.0 (vscode; vscode)", "continue"),
    ("Cline/3.82.0", "cline"),
    ("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 obsidian/1.8.9 Chrome/132 Electron/34", "obsidian"),
    ("OpenAI/Python 3.49.0", "openai"),
    ("curl/8.5.0", "openai"),
    ("", "openai"),
]  # fmt: skip


def evidence(**headers: str) -> ClientEvidence:
    return ClientEvidence(headers={name.replace("_", "-"): value for name, value in headers.items()})


@pytest.mark.parametrize(("agent", "name"), AGENTS)
def test_a_client_is_known_by_its_user_agent(agent: str, name: str) -> None:
    profile, why = choose_profile(evidence(user_agent=agent))
    assert profile.name == name
    assert ("user agent" in why) == (name != "openai")


@pytest.mark.parametrize(
    ("headers", "name"),
    [
        ({"originator": "codex_vscode"}, "codex"),
        ({"x-app": "cli", "user-agent": "node"}, "claude-code"),
        ({"origin": "app://obsidian.md"}, "obsidian"),
        ({"x-kilocode-version": "5.1", "x-session-affinity": "ses_1"}, "kilocode"),
        ({"x-session-affinity": "ses_1"}, "opencode"),
        ({"x-openwebui-user-id": "7"}, "open-webui"),
        ({"x-title": "Cline"}, "cline"),
        ({"x-title": "Something else"}, "openai"),
    ],
)
def test_a_client_is_known_by_headers_of_its_own(headers: dict[str, str], name: str) -> None:
    assert choose_profile(ClientEvidence(headers=headers))[0].name == name


def test_a_client_is_known_by_its_tools_and_then_by_its_prompt() -> None:
    tools = ClientEvidence(headers={}, tools=frozenset({"read_file", "insert_edit_into_file"}))
    prompt = ClientEvidence(headers={}, prompt="You are Claude Code, Anthropic's official CLI for Claude.")
    assert choose_profile(tools)[0].name == "copilot"
    assert choose_profile(prompt) == (PROFILES["claude-code"], choose_profile(prompt)[1])


# Seen on the wire: these clients send only the user agent of the library that they are built on.
@pytest.mark.parametrize(
    ("agent", "prompt", "name"),
    [
        ("ls/JS 5.23.2", "You are an agent in the Continue CLI. Given the user's prompt, you should …", "continue"),
        ("ai-sdk/openai-compatible/3.0.37", "You are Cline, an AI coding agent. Your primary goal is …", "cline"),
    ],
)
def test_a_client_without_a_user_agent_of_its_own_is_known_by_its_prompt(agent: str, prompt: str, name: str) -> None:
    assert choose_profile(ClientEvidence(headers={"user-agent": agent}, prompt=prompt))[0].name == name


def test_strong_evidence_beats_weak_evidence_of_a_profile_that_stands_earlier() -> None:
    mixed = ClientEvidence(headers={"user-agent": "QwenCode/1"}, prompt="working with a user in the VS Code editor")
    assert choose_profile(mixed)[0].name == "qwen-code"


def test_a_name_beats_evidence_header_first_then_suffix_then_setting() -> None:
    copilot = {"user-agent": "GitHubCopilotChat/0.66"}
    asked = ClientEvidence(headers={**copilot, "x-callwright-profile": "cline"})
    assert choose_profile(asked, suffix="codex", setting="opencode")[0].name == "cline"
    plain = ClientEvidence(headers=copilot)
    assert choose_profile(plain, suffix="codex", setting="opencode")[0].name == "codex"
    assert choose_profile(plain, setting="opencode")[0].name == "opencode"
    assert choose_profile(plain, setting="auto")[0].name == "copilot"
    auto = ClientEvidence(headers={**copilot, "x-callwright-profile": "auto"})
    assert choose_profile(auto)[0].name == "copilot"


def test_an_unknown_profile_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(RequestError, match=r"'obsidien'.*Did you mean 'obsidian'") as caught:
        choose_profile(ClientEvidence(headers={"x-callwright-profile": "obsidien"}))
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("model", "parts"),
    [
        ("coder@obsidian", ("coder", "obsidian")),
        ("coder@obsidian-xml", ("coder", "obsidian-xml")),
        ("@cf/meta/llama@kilocode-xml", ("@cf/meta/llama", "kilocode-xml")),
        ("coder", ("coder", "")),
        ("coder@v2", ("coder@v2", "")),
        ("@obsidian", ("@obsidian", "")),
        ("coder@", ("coder@", "")),
    ],
)
def test_a_suffix_counts_only_when_it_is_a_profile(model: str, parts: tuple[str, str]) -> None:
    assert split_model_name(model) == parts


def test_the_output_mode_header_beats_the_profile() -> None:
    xml = PROFILES["obsidian-xml"]
    assert get_rule_changes(xml, {})["output_mode"] == "obsidian-xml"
    assert get_rule_changes(xml, {"x-proxy-output-mode": "openai-json"})["output_mode"] == "openai-json"
    assert get_rule_changes(PROFILES["openai"], {"x-proxy-output-mode": "obsidian-xml"}) == {
        "output_mode": "obsidian-xml"
    }
    with pytest.raises(RequestError, match="openai-json or obsidian-xml"):
        get_rule_changes(xml, {"x-proxy-output-mode": "xml"})


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_what_a_profile_changes_are_settings_that_exist(profile) -> None:
    msgspec.convert(profile.rules, ToolRules)
    assert profile.description
    assert all(name == name.lower() for name in profile.headers)
    assert all(agent == agent.lower() for agent in profile.user_agents)


@given(
    st.dictionaries(st.text(max_size=20), st.text(max_size=40), max_size=4),
    st.frozensets(st.text(max_size=10), max_size=3),
    st.text(max_size=200),
)
def test_any_request_has_a_profile_and_a_reason(headers: dict[str, str], tools: frozenset[str], prompt: str) -> None:
    headers.pop("x-callwright-profile", None)
    profile, why = choose_profile(ClientEvidence(headers=headers, tools=tools, prompt=prompt))
    assert profile.name in PROFILES
    assert why


@pytest.mark.parametrize("name", PROFILES)
def test_what_a_profile_changes_of_the_prompt_is_a_setting(name: str) -> None:
    merge_prompt_settings(PromptSettings(), PROFILES[name].prompt)
