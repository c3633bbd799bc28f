"""Rule files: what they may say, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from callwright.agent.policy import Policy, load_default_rules, load_policy
from callwright.agent.policy.policy_rules import CommandRule
from callwright.agent.policy.program_facts import get_program_facts
from callwright.errors import PolicyError

EXAMPLES = [
    (rule, example, wanted)
    for rule in load_default_rules().rule
    for examples, wanted in ((rule.match, True), (rule.not_match, False))
    for example in examples
]


def written(folder: Path, text: str, name: str = "policy.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(("rule", "example", "wanted"), EXAMPLES)
def test_the_examples_of_our_own_rules_hold(rule: CommandRule, example: str, wanted: bool) -> None:
    commands = [command for command in Policy()._judge.list_commands(example) if command.argv]
    assert any(rule.matches(one, get_program_facts(one.name).parse_argv(one.argv)) for one in commands) == wanted


def test_a_rule_of_mine_allows_denies_and_asks(tmp_path: Path) -> None:
    mine = written(
        tmp_path,
        """
        [[rule]]
        pattern = ["deploy-tool", ["plan", "show"]]
        decision = "allow"
        match = ["deploy-tool plan x"]
        not_match = ["deploy-tool apply"]

        [[rule]]
        pattern = ["git", "push"]
        decision = "deny"
        why = "nobody pushes from here"

        [[rule]]
        pattern = ["ls"]
        flags = ["-R", ["-a", "-l"]]
        decision = "ask"
        tier = "medium"
        """,
    )
    policy = load_policy(mine, None)
    assert policy.judge_command("deploy-tool plan x").decision == "allow"
    assert policy.judge_command("deploy-tool apply").decision == "ask"
    denied = policy.judge_command("git -C sub push")
    assert denied.decision == "deny"
    assert "nobody pushes" in denied.why
    assert policy.judge_command("sudo git push").decision == "deny"
    assert [policy.judge_command(f"ls {flags}").decision for flags in ("-R", "-la", "-l")] == ["ask", "ask", "allow"]
    assert policy.with_allowances(['["git","push"]']).judge_command("git push").decision == "deny"


def test_mine_may_allow_what_is_high_but_never_what_is_critical(tmp_path: Path) -> None:
    mine = written(
        tmp_path, '[[rule]]\npattern = ["git"]\ndecision = "allow"\n[[rule]]\npattern = ["rm"]\ndecision = "allow"\n'
    )
    policy = load_policy(mine, None)
    assert policy.judge_command("git push").decision == "allow"
    assert policy.judge_command("git push -f").decision == "ask"
    assert policy.judge_command("rm x").decision == "allow"
    assert policy.judge_command("rm -rf x").decision == "ask"


def test_project_code_can_be_made_to_ask(tmp_path: Path) -> None:
    asks = written(tmp_path, 'project_code = "ask"\n')
    for policy in (load_policy(asks, None), load_policy(None, asks)):
        assert policy.judge_command("pytest").decision == "ask"
        assert policy.judge_command("python x.py").decision == "ask"
        assert policy.judge_command("./run.sh").decision == "ask"
        assert policy.judge_command("ls").decision == "allow"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[[rule]\n", "line 1"),
        ('\n\n[[rule]]\npattern = ["x"]\n', "line 3: the rule has no effect"),
        (
            '[[rule]]\npattern = ["a"]\ndecision = "deny"\n[[rule]]\npattern = []\ndecision = "deny"\n',
            "line 4: the pattern is empty",
        ),
        ('[[rule]]\npattern = ["x"]\ndecision = "maybe"\n', "line 1"),
        ('[[rule]]\npattern = ["x"]\ndecission = "deny"\n', "line 1"),
        ('[rule]\npattern = ["x"]\n', "two brackets"),
        ('[[rule]]\npattern = ["python"]\ndecision = "allow"\n', "python runs any code"),
        ('[[rule]]\npattern = ["node", "x.js"]\ndecision = "allow"\n', "node runs any code"),
        ('[[rule]]\npattern = [["ls", "npx"]]\ndecision = "allow"\n', "npx runs any code"),
        ('[[rule]]\npattern = ["sh"]\ndecision = "allow"\n', "sh runs any code"),
        ('[[rule]]\npattern = ["*"]\ndecision = "allow"\n', "runs any code"),
        ('[[rule]]\npattern = ["x"]\ndecision = "allow"\ntier = "critical"\n', "always need approval"),
        ('[[rule]]\npattern = ["x"]\ndecision = "deny"\nmatch = ["y"]\n', "does not match its example 'y'"),
        (
            '\n[[rule]]\npattern = ["x"]\ndecision = "deny"\nnot_match = ["sudo x"]\n',
            "line 2: the rule for `x` matches",
        ),
        ('[[file]]\npattern = "x"\nedit = true\n', "line 1"),
    ],
)
def test_a_mistake_is_told_with_its_file_and_line(tmp_path: Path, text: str, problem: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(PolicyError) as raised:
        load_policy(path, None)
    assert problem in str(raised.value)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        '[[rule]]\npattern = ["x"]\ndecision = "allow"\n',
        '[[tool]]\nname = "x"\ndecision = "allow"\n',
        'project_code = "allow"\n',
        '[[rule]]\npattern = ["x"]\nruns_project_code = true\n',
    ],
)
def test_a_project_cannot_allow(tmp_path: Path, text: str) -> None:
    with pytest.raises(PolicyError, match="cannot allow anything"):
        load_policy(None, written(tmp_path, text))


def test_files_that_are_not_there_say_nothing(tmp_path: Path) -> None:
    assert load_policy(tmp_path / "a", tmp_path / "b").judge_command("ls").decision == "allow"


def test_a_file_that_is_no_text_is_a_mistake(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(PolicyError, match="UTF-8"):
        load_policy(path, None)
    with pytest.raises(PolicyError, match="cannot be read"):
        load_policy(tmp_path, None)


def test_rules_about_tools(tmp_path: Path) -> None:
    mine = written(
        tmp_path, '[[tool]]\nname = "github_*"\ndecision = "allow"\n[[tool]]\nname = "*_delete"\ndecision = "deny"\n'
    )
    policy = load_policy(mine, None)
    assert policy.judge_tool("github_list", {}).decision == "allow"
    assert policy.judge_tool("github_delete", {}).decision == "deny"
    assert policy.judge_tool("other", {}).decision == "ask"


def test_a_pattern_that_is_no_toml_is_refused() -> None:
    with pytest.raises(PolicyError, match="invalid pattern"):
        Policy().with_allowances(["npm install"])
