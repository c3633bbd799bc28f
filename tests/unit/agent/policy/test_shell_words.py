"""Words as the shell makes them."""

from __future__ import annotations

import pytest

from callwright.agent.policy.shell_script import parse_script


def argv(text: str) -> list[str]:
    return [word.text.replace("\0", "?") for word in parse_script(text).commands[-1].argv]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (r"r\m 'a b' \"c\"", ["rm", "a b", '"c"']),
        ('"a\\"b" \'c\'"d"e', ['a"b', "cde"]),
        (r"$'\x72\155\u0020\n' x", ["rm \n", "x"]),
        ("x a{b,c}d{1..3}", ["x", "abd1", "abd2", "abd3", "acd1", "acd2", "acd3"]),
        ('x {a,{b,c}} {d} "{e,f}" {g..i}', ["x", "a", "b", "c", "{d}", "{e,f}", "g", "h", "i"]),
        ("rm${IFS}-rf", ["rm", "-rf"]),
        ('a="b c"; x $a "$a"', ["x", "b", "c", "b c"]),
        ("a=(b 'c d'); x \"${a[@]}\" ${a[1]} $a", ["x", "b", "c d", "c d", "b"]),
        ('x $(echo a b) "$(echo a b)" `echo c`', ["x", "a", "b", "a b", "c"]),
        ("x $UNSEEN $(date) $((1+2)) ${a%b}", ["x", "?", "?", "?", "?"]),
        ("x ${UNSEEN:-y}", ["x", "y"]),
        ("x $HOME/a ~/b", ["x", "~/a", "~/b"]),
        ("$(which rm) x", ["rm", "x"]),
    ],
)
def test_a_word_is_what_the_shell_makes_of_it(text: str, words: list[str]) -> None:
    assert argv(text) == words


def test_a_variable_with_several_values_has_several_readings() -> None:
    found = [[word.text for word in command.argv] for command in parse_script("for x in a b; do y $x; done").commands]
    assert ["y", "a"] in found
    assert ["y", "b"] in found


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("echo -n a b", "a b\n"),
        ("printf '%s-%s\\n' a b c", "a-b\nc-\n"),
        ("echo aGk= | base64 -d", "hi"),
        ("echo 6869 | xxd -r -p", "hi"),
        ("echo abc | rev", "cba\n"),
        ("echo abc | tr a-y b-z", "bcd\n"),
        ("cat <<'E'\na $x\nE\n", "a $x\n"),
        ("cat <<< hi", "hi\n"),
        ("(echo a; echo b) | tac", "b\na\n"),
    ],
)
def test_what_a_command_prints_is_known_to_the_next(text: str, printed: str) -> None:
    command = parse_script(
        f"{text} | sh" if "<<'E'" not in text else text.replace("cat <<'E'", "cat <<'E' | sh")
    ).commands[-1]
    assert command.stdin
    assert command.stdin.text == printed


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("cd a; x", "./a"),
        ("(cd a); x", "."),
        ("cd a && cd b && x", "./a/b"),
        ("cd a | x", "."),
        ("cd /etc; x", "/etc"),
        ("cd; x", "~"),
        ("cd $d; x", None),
        ("cd - ; x", None),
    ],
)
def test_where_a_command_runs_is_followed(text: str, place: str | None) -> None:
    assert parse_script(text).commands[-1].folder == place


@pytest.mark.parametrize(
    "text",
    [
        "ls\n\\rm x",
        "echo a= | b | c\nrm x && ls",
        "ls; rm x",
        "ls & rm x",
        "if ls\nthen rm x\nfi",
        "ls <<E && rm x\nhi\nE",
    ],
)
def test_no_command_is_swallowed_by_another(text: str) -> None:
    assert ["rm", "x"] in [[word.text for word in command.argv] for command in parse_script(text).commands]
