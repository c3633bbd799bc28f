"""The files of the agent's page: every event is folded, and nothing turns text into HTML or reaches outside."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import get_args

import pytest

import callwright
from callwright.agent.session_events import SessionEvent

STATIC = files(callwright).joinpath("agent", "ui", "web", "static")
FILES = {file.name: file.read_text(encoding="utf-8") for file in STATIC.iterdir()}
FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|createContextualFragment|setHTML|document\.write|srcdoc|DOMParser"
    r"|\beval\b|new Function|\son\w+=[\"']|<style|style=\"|javascript:|localStorage|sessionStorage"
)
ELSEWHERE = re.compile(r"[\"'(](?:https?:)?//(?!www\.w3\.org/2000/svg)")


def test_every_event_has_its_place_in_the_fold() -> None:
    handled = set(re.findall(r"(?m)^  (\w+)\(", FILES["fold.js"].partition("const EVENTS = {")[2]))
    assert handled == {kind.__struct_config__.tag for kind in get_args(SessionEvent)}


@pytest.mark.parametrize("name", sorted(FILES))
def test_no_file_makes_html_of_text_or_fetches_from_elsewhere(name: str) -> None:
    assert not FORBIDDEN.findall(FILES[name])
    assert not ELSEWHERE.findall(FILES[name])


@pytest.mark.parametrize("name", sorted(FILES))
def test_files_of_the_page_are_short(name: str) -> None:
    assert FILES[name].count("\n") <= 300


def test_every_import_leads_to_a_file() -> None:
    for text in FILES.values():
        assert {*re.findall(r'from "\./([\w.]+)"', text), *re.findall(r'"/static/([\w.]+)"', text)} <= FILES.keys()
