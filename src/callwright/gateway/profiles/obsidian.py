"""Obsidian Copilot. From 3.2.0 on it reads native calls only; before that it read XML in the text."""

from __future__ import annotations

from callwright.gateway.profiles.base import Profile

# 4.0.2 joins the name pieces of a call and merges calls without an index: the default style never repeats a name and
# numbers every call. Electron puts the application's name into its user agent; the origins are the desktop's and, on
# Obsidian 1.x, no other application's.
OBSIDIAN = Profile(
    name="obsidian",
    description="Obsidian Copilot 3.2.0 and later: native calls.",
    user_agents=("obsidian/",),
    headers={"origin": "app://obsidian.md"},
)

# 3.1.x finds calls only by `<use_tool>` in the text. Old and new versions look alike on the wire, so this profile must
# be selected by name: with the header, a suffix of the model's name, or the model's `profile`.
OBSIDIAN_XML = Profile(
    name="obsidian-xml",
    description="Obsidian Copilot before 3.2.0: calls also as <use_tool> in the text. Select it by name.",
    rules={"output_mode": "obsidian-xml"},
)
