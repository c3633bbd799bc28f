"""The laws of the policy: nothing that is wrapped becomes less dangerous, and the strictest word always wins."""

from __future__ import annotations

import base64
import json
import re
import shlex
from pathlib import Path

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from callwright.agent.policy import Policy, load_default_rules
from callwright.agent.policy.judgement import DECISIONS, TIERS
from callwright.agent.policy.policy_rules import CommandRule, RuleFile

VECTORS = Path(__file__).parents[1] / "vectors" / "policy" / "commands.jsonl"
CASES = [json.loads(line) for line in VECTORS.read_text(encoding="utf-8").splitlines()]
POLICY = Policy()
DANGEROUS = [case["command"] for case in CASES if case["tier"] == "critical"]
HARMLESS = [case["command"] for case in CASES if case["decision"] == "allow"]
SIMPLE = [command for command in DANGEROUS if re.fullmatch(r"[a-z/][\w ./:+@~-]*", command)]
PLAIN = [command for command in HARMLESS if re.fullmatch(r"[a-z][\w ./:+@-]*", command)]


def encoded(command: str) -> str:
    return base64.b64encode(command.encode()).decode()


QUOTING = [
    lambda text: f"sh -c {shlex.quote(text)}",
    lambda text: f"bash -lc {shlex.quote(text)}",
    lambda text: f"eval {shlex.quote(text)}",
    lambda text: f"sudo sh -c {shlex.quote(text)}",
    lambda text: f"su -c {shlex.quote(text)}",
    lambda text: f"ssh host {shlex.quote(text)}",
    lambda text: f"echo {encoded(text)} | base64 -d | sh",
    lambda text: f"bash <<< {shlex.quote(text)}",
    lambda text: f"timeout 9 env A=1 sh -c {shlex.quote(text)}",
    lambda text: f'x={shlex.quote(text)}; eval "$x"',
    lambda text: f"trap {shlex.quote(text)} EXIT",
    lambda text: f"find . -exec sh -c {shlex.quote(text.replace('{}', 'y'))} \\;",
    lambda text: f"ls | xargs sh -c {shlex.quote(text)}",
]
EMBEDDING = [
    "( {}\n)",
    "{{ {}\n}}",
    "true\n{}",
    "ls && ls\n{}\nls",
    "if true; then {}\nfi",
    "for i in 1 2; do {}\ndone",
    "while false; do {}\ndone",
    "f() {{ {}\n}}; f",
    "echo $( {}\n)",
    'echo "$( {}\n)"',
    "cat <( {}\n)",
]
PREFIXES = [
    "sudo",
    "env",
    "env A=1",
    "nohup",
    "nice -n 5",
    "timeout 5",
    "time",
    "stdbuf -o0",
    "setsid",
    "command",
    "exec",
]
PREFIXES += [
    "X=1",
    "!",
    "busybox",
    "doas",
    "ionice -c 3",
    "docker exec web",
    "uv run",
    "xargs",
    "strace",
    "2>/dev/null",
    "npx",
]


def quoted_somehow(word: str, how: int) -> str:
    return (
        f"'{word}'",
        f'"{word}"',
        f"{word[:1]}''{word[1:]}",
        f"\\{word}",
        "$'" + "".join(f"\\x{ord(c):02x}" for c in word) + "'",
    )[how]


def _place(word: str) -> int:
    """`!` stands first, then what the shell itself reads, then programs."""
    return 0 if word == "!" else 1 if word in ("X=1", "2>/dev/null") else 2


def rank(command: str, policy: Policy = POLICY) -> int:
    return TIERS.index(policy.judge_command(command).tier)


@given(st.sampled_from(DANGEROUS), st.lists(st.sampled_from([*QUOTING, *EMBEDDING]), max_size=3))
def test_what_is_wrapped_is_no_less_dangerous(command: str, wrappers: list[object]) -> None:
    wrapped = command
    for wrap in wrappers:
        wrapped = wrap.format(wrapped) if isinstance(wrap, str) else wrap(wrapped)  # type: ignore[operator]
    judged = POLICY.judge_command(wrapped)
    assert judged.tier == "critical", wrapped
    assert judged.decision != "allow"
    assert judged.allow_patterns == ()


@given(st.sampled_from(SIMPLE), st.lists(st.sampled_from(PREFIXES), max_size=3))
def test_a_wrapper_before_a_command_hides_nothing(command: str, prefixes: list[str]) -> None:
    wrapped = " ".join([*sorted(prefixes, key=_place), command])
    assert rank(wrapped) == 3, wrapped


@given(st.sampled_from(SIMPLE), st.integers(0, 4))
def test_quotes_around_a_program_hide_nothing(command: str, how: int) -> None:
    program, _, rest = command.partition(" ")
    assert rank(f"{quoted_somehow(program, how)} {rest}") == 3


@given(
    st.lists(st.sampled_from(PLAIN), min_size=1, max_size=4),
    st.sampled_from([" && ", "; ", " || ", " | ", "\n", " & "]),
)
def test_harmless_commands_together_do_not_ask(commands: list[str], between: str) -> None:
    text = between.join(commands)
    for whole in (text, f"({text})", f"{{ {text}; }}", f"if true; then {text}; fi", f'echo "$({text})"'):
        judged = POLICY.judge_command(whole)
        assert (judged.tier, judged.decision) == ("none", "allow"), (whole, judged.why)


@given(st.sampled_from(CASES), st.sampled_from(CASES))
def test_the_strictest_of_two_commands_wins(one: dict[str, str], other: dict[str, str]) -> None:
    judged = POLICY.judge_command(f"{one['command']}\n{other['command']}")
    assert TIERS.index(judged.tier) >= max(TIERS.index(one["tier"]), TIERS.index(other["tier"]))  # type: ignore[arg-type]
    strictest = max(DECISIONS.index(one["decision"]), DECISIONS.index(other["decision"]))  # type: ignore[arg-type]
    assert DECISIONS.index(judged.decision) >= strictest


words = st.sampled_from(["git", "push", "npm", "ls", "rm", "foo", "bar", "run", "-f", "x"])
rules = st.builds(
    CommandRule,
    pattern=st.lists(
        st.sampled_from(["git", "npm", "ls", "rm", "foo", "push", "run", "x"]), min_size=1, max_size=2
    ).map(tuple),
    flags=st.sampled_from([(), ("-f",)]),
    decision=st.sampled_from(["allow", "ask", "deny"]),
    tier=st.sampled_from([None, "none", "medium", "high"]),
)
commands = st.lists(words, min_size=1, max_size=4).map(" ".join)


@given(st.lists(rules, max_size=6), st.randoms(use_true_random=False), commands)
def test_the_order_of_rules_does_not_matter(some: list[CommandRule], random: object, command: str) -> None:
    mixed = list(some)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    one, other = (
        Policy(RuleFile(rule=tuple(some))).judge_command(command),
        Policy(RuleFile(rule=tuple(mixed))).judge_command(command),
    )
    assert (one.tier, one.decision) == (other.tier, other.decision)


@given(st.lists(rules, max_size=4), rules, commands)
def test_a_further_rule_never_relaxes_what_a_rule_decided(
    some: list[CommandRule], further: CommandRule, command: str
) -> None:
    before = Policy(RuleFile(rule=tuple(some)))
    after = Policy(RuleFile(rule=(*some, further)))
    decided = [found for verdict in before.judge_each_command(command) for found in verdict.findings if found.decision]
    if decided or before.judge_command(command).tier == "critical":
        assert DECISIONS.index(after.judge_command(command).decision) >= DECISIONS.index(
            before.judge_command(command).decision
        )
    assert TIERS.index(after.judge_command(command).tier) >= TIERS.index(before.judge_command(command).tier)


@given(st.lists(rules, max_size=4), st.sampled_from([case["command"] for case in CASES]))
def test_a_project_never_relaxes(some: list[CommandRule], command: str) -> None:
    tightening = tuple(
        msgspec.structs.replace(rule, decision="deny" if rule.decision == "allow" else rule.decision) for rule in some
    )
    with_project = Policy(None, RuleFile(rule=tightening, project_code="ask")).judge_command(command)
    without = POLICY.judge_command(command)
    assert DECISIONS.index(with_project.decision) >= DECISIONS.index(without.decision)
    assert TIERS.index(with_project.tier) >= TIERS.index(without.tier)


EVERYTHING_REMEMBERED = POLICY.with_allowances(
    [rule for case in CASES for rule in POLICY.judge_command(case["command"]).allow_patterns]
)


@given(st.sampled_from([case["command"] for case in CASES]))
def test_what_is_remembered_allows_that_and_nothing_critical(command: str) -> None:
    judged = POLICY.judge_command(command)
    if judged.allow_patterns:
        assert POLICY.with_allowances(judged.allow_patterns).judge_command(command).decision == "allow"
    again = EVERYTHING_REMEMBERED.judge_command(command)
    assert again.tier == judged.tier
    assert judged.tier != "critical" or again.decision != "allow"


SHELLISH = st.lists(
    st.sampled_from(
        [
            *"abrm -/.*~$'\"`\\(){}[]<>|&;!#=,\n\t\0",
            "rm",
            "-rf",
            "$(",
            "${",
            "<<EOF\n",
            "EOF\n",
            "if ",
            "then ",
            "fi",
            "((",
            "[[",
            "é",
            "\u202e",
        ]
    ),
    max_size=60,
).map("".join)


@given(st.one_of(st.text(max_size=200), SHELLISH))
@example("(" * 5_000)
@example("$(" * 5_000)
@example("{" * 5_000)
@example("${a:-" * 3_000)
@example("a && " * 3_000 + "a")
@example("a=$a$a; " * 50 + "$a")
@example("f() { f; g; }; g() { f; g; }; f; g")
@example("x" * 1_000_000)
@example("{a,b}" * 15)
@example('"' * 10_001)
@example("sudo " * 5_000 + "ls")
@example("env -i " * 5_000 + "ls")
@example("eval " * 3_000 + "ls")
@example("a|" * 40_000)
@example("!(;" * 20_000)
@example("".join(f"a{n}=$a{n - 1}$a{n - 1};" for n in range(200)) + "$a199")
def test_any_text_is_judged(text: str) -> None:
    judged = POLICY.judge_command(text)
    assert judged.tier in TIERS
    assert judged.decision in DECISIONS
    assert judged.why


@given(st.text(max_size=60))
def test_any_path_is_judged(path: str) -> None:
    assert POLICY.judge_file(path, "write").decision in DECISIONS
    assert DECISIONS.index(POLICY.judge_file(path, "write").decision) >= DECISIONS.index(
        POLICY.judge_file(path.upper(), "write").decision
    ) or (path.upper().lower() != path.lower())


def test_the_table_is_of_use() -> None:
    assert len(SIMPLE) > 60
    assert len(PLAIN) > 60
    assert len(load_default_rules().rule) > 80
