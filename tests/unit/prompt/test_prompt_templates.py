"""Templates: a mistake is found before the first turn, with its file and line, and no template can lose a message."""

from __future__ import annotations

from pathlib import Path

import pytest

from callwright.cli import main
from callwright.config import read_config
from callwright.config.template_files import read_template_sources
from callwright.engine.builtin_templates import load_builtin_sources, load_builtin_templates
from callwright.errors import ConfigError
from callwright.model import Image, Text
from callwright.prompt.prompt_templates import (
    TEMPLATE_NAMES,
    TEMPLATE_VARIABLES,
    PromptTemplates,
    TemplateSource,
    find_template_errors,
)
from tests.unit.prompt.telling import decoded, said, system, told, user


def with_own(**texts: str) -> PromptTemplates:
    return PromptTemplates(
        load_builtin_sources() | {name: TemplateSource(text, f"{name}.j2") for name, text in texts.items()}
    )


@pytest.mark.parametrize("name", TEMPLATE_NAMES)
def test_the_built_in_ones_are_right(name: str) -> None:
    assert list(find_template_errors(name, load_builtin_sources()[name])) == []


@pytest.mark.parametrize(
    ("name", "text", "mistake"),
    {
        "a name that is not there": (
            "first",
            "a\n{{ absent }}{{ message }}",
            "line 2: unknown variable 'absent'",
        ),
        "hidden in a branch": (
            "first",
            "{% if tag == 'q' %}\n{{ no }}{% endif %}{{ message }}",
            "line 2: unknown variable",
        ),
        "of another template": ("plain", "{{ tools }}{{ message }}", "line 1: unknown variable 'tools'"),
        "an attribute": ("results", "\n{% for r in results %}{{ r.nme }}{% endfor %}", "line 2: 'dict object' has no"),
        "syntax": ("rules", "\n\n{% if %}", "line 3: Expected an expression"),
        "no message": ("first", "{{ tag }}", "{{ message }} must occur exactly once"),
        "two messages": ("plain", "{{ message }}{{ message }}", "{{ message }} must occur exactly once"),
        "a changed message": ("plain", "{{ message | upper }}", "{{ message }} must occur exactly once"),
        "sometimes no message": ("plain", "{% if context %}{{ message }}{% endif %}", "exactly once"),
        "another file": ("rules", "{% include 'x' %}", "line 1: a template cannot include another file"),
        "a sum that cannot be": ("rules", "{{ 1 // 0 }}", "line 1: "),
        "out of the sandbox": ("rules", "{{ house_rules.__class__.__mro__ }}", "line 1: access to attribute"),
    }.values(),
)
def test_a_mistake_has_its_file_and_line(name: str, text: str, mistake: str) -> None:
    (found,) = find_template_errors(name, TemplateSource(text, "mine.j2"))
    assert found.startswith("mine.j2")
    assert mistake in found


def test_names_that_a_template_makes_itself_are_known() -> None:
    made = "{% set x = 1 %}{% macro m(a) %}{{ a }}{% endmacro %}"
    loop = "{% for s in system %}{{ loop.index }}{{ m(s.text) }}{% endfor %}"
    assert (
        list(
            find_template_errors(
                "first", TemplateSource(made + loop + "{{ x }}{{ range(2) | list }}{{ message }}", "m.j2")
            )
        )
        == []
    )


def test_every_mistake_of_every_template_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        with_own(first="{{ a }}{{ b }}", plain="{{ c }}")
    assert len(caught.value.mistakes) == 3


def test_the_parts_of_a_message_stand_where_the_template_wants_them() -> None:
    templates = with_own(plain="Task: {{ message }}\n\nAnswer briefly.\n")
    message = templates.render_message("plain", (Text("look"), Image("data:x"), Text("here")))
    assert message.parts == (Text("Task: look"), Image("data:x"), Text("here\n\nAnswer briefly."))


def test_no_text_can_pass_for_the_place_of_the_message() -> None:
    message = with_own(plain="{{ context }}|{{ message }}").render_message(
        "plain", (Text("x"),), context="{{ message }}"
    )
    assert message.parts == (Text("{{ message }}|x"),)


def test_nothing_is_escaped_and_values_are_no_templates() -> None:
    nasty = "<b>&amp; \"'{{ tag }}{% raw %}"
    ((_, text),) = said(told(decoded(system(nasty), user(nasty), tools=[]), system="fold"))
    assert text.count(nasty) == 2


def test_one_template_is_replaced_and_the_others_stay(tmp_path: Path) -> None:
    (tmp_path / "plain_first.j2").write_text("{% for each in system %}[{{ each.text }}] {% endfor %}{{ message }}")
    templates = PromptTemplates(read_template_sources(tmp_path))
    request = decoded(system("S"), user("Hi"), tools=[])
    assert said(told(request, system="fold", templates=templates)) == [("user", "[S] Hi")]
    with_tools = decoded(system("S"), user("Hi"))
    assert told(with_tools, system="fold", templates=templates) == told(with_tools, system="fold")


def test_a_file_that_is_no_template_is_told_with_the_names_that_are(tmp_path: Path) -> None:
    (tmp_path / "primo.j2").write_text("")
    with pytest.raises(ConfigError, match=r"primo\.j2 is not a known template; known names: first, continuing"):
        read_template_sources(tmp_path)


def test_a_wrong_template_is_a_mistake_of_the_configuration(tmp_path: Path) -> None:
    folder = tmp_path / "prompts"
    folder.mkdir()
    (folder / "rules.j2").write_text("\n{{ nothing }}")
    file = tmp_path / "callwright.toml"
    file.write_text(f'[prompt]\ntemplates = "{folder}"\n')
    (mistake,) = read_config(file, {}).mistakes
    assert "rules.j2, line 2: unknown variable 'nothing'" in str(mistake)
    file.write_text('[prompt]\ntemplates = "nowhere"\n')
    (mistake,) = read_config(file, {}).mistakes
    assert "cannot read the templates in nowhere" in str(mistake)


def test_compiled_once() -> None:
    assert load_builtin_templates() is load_builtin_templates()


# ── the command ──────────────────────────────────────────────────────────────────────────────────


def test_ejected_templates_are_listed_and_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "prompts")
    assert main(["templates", "eject", folder, "first", "rules"]) == 0
    assert sorted(path.name for path in Path(folder).iterdir()) == ["first.j2", "rules.j2"]
    assert main(["templates", "list", folder]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in TEMPLATE_NAMES)
    assert str(Path(folder) / "first.j2") in listed
    assert main(["templates", "check", folder]) == 0
    assert "6 templates, 2 custom" in capsys.readouterr().out
    assert main(["templates", "eject", folder]) == 2
    assert "already exists" in capsys.readouterr().err


def test_a_shown_template_can_be_saved_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in TEMPLATE_NAMES:
        assert main(["templates", "show", name, str(tmp_path)]) == 0
        shown = capsys.readouterr().out
        assert list(find_template_errors(name, TemplateSource(shown, "x"))) == []
        assert all(variable in shown for variable in TEMPLATE_VARIABLES[name])


def test_check_lists_mistakes_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "plain.j2").write_text("{{ oops }}")
    assert main(["templates", "check", str(tmp_path)]) == 1
    assert "plain.j2, line 1: unknown variable 'oops'" in capsys.readouterr().out


def test_a_name_that_is_no_template_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["templates", "eject", str(tmp_path), "primo"]) == 2
    assert "unknown template 'primo'" in capsys.readouterr().err


def test_a_template_that_fails_on_real_data_says_where() -> None:
    templates = with_own(rules="{% if house_rules == 'three' %}\n{{ house_rules + 1 }}{% endif %}")
    with pytest.raises(ConfigError, match=r"rules\.j2, line 2 cannot be rendered: can only concatenate"):
        templates.render_text("rules", house_rules="three")


def test_a_template_that_is_no_text_is_told(tmp_path: Path) -> None:
    (tmp_path / "rules.j2").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8"):
        read_template_sources(tmp_path)


def test_without_a_folder_the_settings_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rules.j2").write_text("Mine.")
    (tmp_path / "callwright.toml").write_text(f'[prompt]\ntemplates = "{tmp_path}"\n')
    monkeypatch.setenv("CALLWRIGHT_CONFIG", str(tmp_path / "callwright.toml"))
    assert main(["templates", "show", "rules"]) == 0
    assert capsys.readouterr().out.endswith("Mine.")
