"""A model that is hard to use: its server has no tools, and it hears nothing that is said in system messages.

It writes calls as `<invoke>` text, as the model of seed S0 does. What it writes depends only on what it hears, which is
to say on the messages of users and assistants: the last of them decides what it wants to say, and it calls a tool only
if it was taught that tool and how to call it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tests.integration.turns import spoken
from tests.support.upstream import Script, Seen, Upstream, refused, whole

__all__ = ["Deaf"]


class Deaf:
    """The model. `thoughts`: what it says when the last message that it hears holds these words; the first counts."""

    def __init__(self, thoughts: Mapping[str, str]) -> None:
        self._thoughts = thoughts
        self.prompts: list[list[dict[str, Any]]] = []
        """The messages of every request that it answered."""

    def play_on(self, server: Upstream) -> None:
        """Answer that server's requests from now on."""
        server.play(self._answer)

    def _answer(self, seen: Seen) -> Script:
        if not seen.body:
            return whole(b'{"object": "list", "data": []}')
        if "tools" in seen.json:
            return refused(400, f"{seen.json['model']} does not support tools")
        self.prompts.append(seen.json["messages"])
        return spoken(self._says([each["content"] for each in self.prompts[-1] if each["role"] != "system"]))

    def _says(self, heard: list[str]) -> str:
        said = next((said for words, said in self._thoughts.items() if words in heard[-1]), "I do not understand.")
        unknown = [name for name in re.findall('<invoke name="(.+?)">', said) if not _is_taught(name, heard[0])]
        return f"I have no tool {unknown[0]}." if unknown else said


def _is_taught(tool: str, words: str) -> bool:
    return f'"name": "{tool}"' in words and '<invoke name="' in words and "<parameter name=" in words
