"""What a terminal would show, as lines; and the beginning and the end of them."""

from __future__ import annotations

import tracemalloc

import pytest

from callwright.agent.shell.output_excerpt import OutputExcerpt
from callwright.agent.shell.terminal_emulator import OutputLine, TerminalEmulator

ESC = "\x1b"


def shown(data: bytes | str, *, rows: int = 40, line_limit: int = 2000) -> list[OutputLine]:
    lines: list[OutputLine] = []
    screen = TerminalEmulator(lines.append, rows=rows, line_limit=line_limit)
    screen.feed(data.encode() if isinstance(data, str) else data)
    screen.close()
    return lines


def texts(data: bytes | str, **options: int) -> list[str]:
    return [line.text for line in shown(data, **options)]


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        ("", []),
        ("\n", []),
        ("one\ntwo\n", ["one", "two"]),
        ("one\r\ntwo\r\n", ["one", "two"]),
        ("no newline", ["no newline"]),
        ("\n\nlast", ["", "", "last"]),
        ("trailing  \n\ttab\tbed\n", ["trailing  ", "\ttab\tbed"]),
        # progress
        (" 10%\r 50%\r100%\n", ["100%"]),
        ("downloading\rdone\n", ["doneloading"]),
        (f"downloading\r{ESC}[Kdone\n", ["done"]),
        (f"downloading\r{ESC}[2Kdone\n", ["done"]),
        ("downloading\rdone       \n", ["done"]),
        ("|\b/\b-\b\\\bok\n", ["ok"]),
        ("\b\bx", ["x"]),
        (f"a{ESC}[3Cb", ["a   b"]),
        (f"abcdef{ESC}[3D{ESC}[1K", ["    ef"]),
        (f"abc{ESC}[2GX", ["aXc"]),
        # several lines redrawn
        (f"one\ntwo\n{ESC}[2A{ESC}[2K1\n{ESC}[2K2\nend", ["1", "2", "end"]),
        (f"one\ntwo\n{ESC}[2F{ESC}[Jnew\n", ["new"]),
        (f"kept\n{ESC}[2J{ESC}[Hpage", ["kept", "", "page"]),
        (f"x{ESC}[99Ay{ESC}[99Bz", ["xyz"]),
        # colours and modes
        (f"{ESC}[31mred{ESC}[0m {ESC}[1;38;5;9mbold{ESC}[m", ["red bold"]),
        (f"{ESC}[38:2:10:20:30mtrue{ESC}[4:3mcurly", ["truecurly"]),
        (f"{ESC}[?2004h{ESC}[?25lx{ESC}[?25h{ESC}[?2004l", ["x"]),
        (f"{ESC}[>4;1m{ESC}[ q{ESC}[!px", ["x"]),
        (f"{ESC}(B{ESC})0{ESC}=x{ESC}>{ESC}7{ESC}8{ESC}#8{ESC}%G", ["x"]),
        # strings
        (f"{ESC}]0;title\x07x", ["x"]),
        (f"{ESC}]2;títle{ESC}\\x", ["x"]),
        (f"{ESC}]8;;https://example.com{ESC}\\link{ESC}]8;;{ESC}\\", ["link"]),
        (f"a{ESC}P1$r0m{ESC}\\b{ESC}_Gf=24;AAAA{ESC}\\c{ESC}^note{ESC}\\d{ESC}Xs{ESC}\\e", ["abcde"]),
        ("a\x9b31mb\x9d0;title\x9cc\x90q\x9cd", ["abcd"]),
        # what is no sequence
        (f"{ESC}", []),
        (f"a{ESC}", ["a"]),
        (f"a{ESC}[3", ["a"]),
        (f"a{ESC}]0;never ends", ["a"]),
        (f"a{ESC}]0;title\nb", ["a]0;title", "b"]),
        (f"a{ESC}[3\x01b", ["a[3b"]),
        (f"{ESC}{ESC}[31mx", ["x"]),
        ("bell\x07 \x0e\x0fend\x7f", ["bell end"]),
        # text
        ("größe 中文 👩‍💻\n", ["größe 中文 👩‍💻"]),
        (b"na\xefve text\n", ["na\ufffdve text"]),
    ],
)
def test_what_is_shown(data: bytes | str, lines: list[str]) -> None:
    assert texts(data) == lines


def test_lines_that_scrolled_off_can_no_longer_be_redrawn() -> None:
    assert texts(f"1\n2\n3\n4\n5{ESC}[9A\rX", rows=3) == ["1", "2", "X", "4", "5"]


def test_a_long_line_is_cut_and_says_so() -> None:
    assert texts("x" * 130 + "\nshort", line_limit=100) == ["x" * 100 + " [… 30 characters omitted …]", "short"]
    assert texts("x" * 130 + "\r" + "y" * 5 + f"{ESC}[K\n", line_limit=100) == ["yyyyy"]


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"plain", "text"),
        ("größe".encode(), "text"),
        (b"r\xe9sum\xe9 of a text", "mixed"),
        (b"\x89PNG\xff\xd8\xfe\xff", "binary"),
        (b"name\0name", "binary"),
        ("utf-16".encode("utf-16"), "binary"),
    ],
)
def test_binary_data_is_told_from_text(data: bytes, kind: str) -> None:
    assert [line.kind for line in shown(data)] == [kind]


def test_those_who_watch_see_a_line_when_the_next_one_begins() -> None:
    seen: list[str] = []
    screen = TerminalEmulator(lambda line: None, on_preview=seen.append)
    screen.feed(b"one\ntwo")
    assert seen == ["one"]
    screen.close()
    assert seen == ["one", "two"]


@pytest.mark.parametrize(
    "data", [b"y\n", b"no newline ", b"\r progress", b"\x1b]0;title", b"\x1b[9C", b"\x00\xff", b"\x1b[1"]
)
def test_memory_does_not_grow_with_the_output(data: bytes) -> None:
    excerpt = OutputExcerpt(head=15, tail=85)
    screen = TerminalEmulator(excerpt.add)
    chunk = data * (4096 // len(data))
    for _ in range(20):
        screen.feed(chunk)
    tracemalloc.start()
    for _ in range(20):
        screen.feed(chunk)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 20_000, "of 80,000 bytes that came, none stay but those of the last lines"


def excerpt(lines: list[OutputLine], *, head: int = 2, tail: int = 3) -> OutputExcerpt:
    made = OutputExcerpt(head=head, tail=tail)
    for line in lines:
        made.add(line)
    made.close()
    return made


def test_a_short_output_is_whole() -> None:
    made = excerpt([OutputLine(str(number), 2) for number in range(5)])
    assert (made.text, made.omitted_lines) == ("0\n1\n2\n3\n4", 0)


def test_a_long_output_keeps_its_beginning_and_its_end() -> None:
    made = excerpt([OutputLine(str(number), 2) for number in range(1005)])
    assert made.text.split("\n") == ["0", "1", "[… 1,000 lines omitted …]", "1002", "1003", "1004"]
    assert made.omitted_lines == 1000


def test_a_run_of_binary_lines_is_one_line_that_says_how_much_it_was() -> None:
    noise = [
        OutputLine("�", 400_000, "binary"),
        OutputLine("ok", 3),
        OutputLine("�x", 100, "mixed"),
        OutputLine("", 1),
        OutputLine("�", 21_000, "binary"),
    ]
    made = excerpt(
        [OutputLine("before", 7), *noise, OutputLine("a", 2), OutputLine("b", 2), OutputLine("c", 2)], head=9, tail=9
    )
    assert made.text == "before\n[411 KiB of binary output omitted]\na\nb\nc"


def test_what_follows_binary_data_at_the_end_is_shown() -> None:
    made = excerpt([OutputLine("�", 100, "binary"), OutputLine("done", 5)])
    assert made.text == "[100 bytes of binary output omitted]\ndone"
