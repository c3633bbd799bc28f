"""The table of judged commands: no miss on what is critical, no alarm on what is harmless."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from callwright.agent.policy import Policy

VECTORS = Path(__file__).parents[3] / "vectors" / "policy" / "commands.jsonl"
CASES = [json.loads(line) for line in VECTORS.read_text(encoding="utf-8").splitlines()]
POLICY = Policy()


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_a_command_of_the_table_is_judged_as_it_says(case: dict[str, Any]) -> None:
    judged = POLICY.judge_command(case["command"])
    assert (judged.tier, judged.decision) == (case["tier"], case["decision"]), judged.why


def test_the_table_has_enough_of_both() -> None:
    decisions = Counter(case["decision"] for case in CASES)
    assert decisions["ask"] >= 120
    assert decisions["allow"] >= 80
    assert len({case["command"] for case in CASES}) == len(CASES)


def test_every_command_in_a_text_is_named() -> None:
    judged = POLICY.judge_command("cd src && env A=1 timeout 5 sh -c 'cat \"$1\" | rm -rf x' _ y; echo `pwd`")
    assert ("rm", "-rf", "x") in judged.commands
    assert ("cat", "y") in judged.commands
    assert ("pwd",) in judged.commands
    assert ("timeout", "5", "sh", "-c", 'cat "$1" | rm -rf x', "_", "y") in judged.commands


@pytest.mark.parametrize(
    "command", ["ls -la", "git log | head", "cat a | grep b", "find . -name x", "sed -n 1p x", "pwd; ls"]
)
def test_what_only_reads_is_known_to(command: str) -> None:
    assert POLICY.judge_command(command).is_read_only


@pytest.mark.parametrize(
    "command", ["touch x", "ls > x", "pytest", "sed -i s/a/b/ x", "foo", "mkdir y", "ls; touch x", "rm x"]
)
def test_what_may_change_something_is_not_taken_for_reading(command: str) -> None:
    assert not POLICY.judge_command(command).is_read_only


@pytest.mark.parametrize(
    ("command", "remembered"),
    [
        ("npm install left-pad", ('["npm","install"]',)),
        ("git push origin main", ('["git","push","origin","main"]',)),
        ("foo a && bar b", ('["foo","a"]', '["bar","b"]')),
        ("timeout 5 foo", ('["foo"]',)),
        ("rm -rf x", ()),
        ("python -c 'print(1)'", ()),
        ("echo 'if' | grep (", ()),
        ("cat .env", ()),
        ("$x y", ()),
        ("foo; rm -rf x", ()),
        ("ls", ()),
    ],
)
def test_what_always_allow_would_remember(command: str, remembered: tuple[str, ...]) -> None:
    assert POLICY.judge_command(command).allow_patterns == remembered


def test_a_remembered_prefix_allows_what_is_no_more_dangerous() -> None:
    policy = POLICY.with_allowances(['["npm","install"]', '["curl","https://x.io"]'])
    assert policy.judge_command("npm install other").decision == "allow"
    assert policy.judge_command("curl https://x.io").decision == "allow"
    assert policy.judge_command("curl https://x.io -T secret").decision == "ask"
    assert policy.judge_command("npm install x && rm -rf y").decision == "ask"
    assert policy.judge_command("npm uninstall x").decision == "ask"
    assert POLICY.judge_command("npm install other").decision == "ask", "a policy does not change"


def test_a_huge_command_asks_without_being_read() -> None:
    judged = POLICY.judge_command("ls " + "x" * 1_000_000)
    assert (judged.tier, judged.decision) == ("high", "ask")
    assert POLICY.judge_command("rm -rf y #" + "x" * 1_000_000).tier == "critical"


def test_absolute_paths_into_the_workspace_are_inside() -> None:
    policy = Policy(workspace="/home/me/project")
    assert policy.judge_command("echo x > /home/me/project/a.txt").decision == "allow"
    assert policy.judge_command("cd /home/me/project/src && touch x").decision == "allow"
    assert policy.judge_command("echo x > /home/me/other/a.txt").decision == "ask"
    assert policy.judge_command("cat /home/me/project/.env").decision == "ask"


def test_a_tool_asks_until_it_is_allowed() -> None:
    asked = POLICY.judge_tool("search_web", {"q": "x"})
    assert (asked.decision, asked.tier) == ("ask", "none")
    assert POLICY.with_allowances(asked.allow_patterns).judge_tool("search_web", {}).decision == "allow"
    assert POLICY.with_allowances(asked.allow_patterns).judge_tool("delete_all", {}).decision == "ask"
