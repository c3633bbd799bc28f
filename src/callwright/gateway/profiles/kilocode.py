"""Kilo Code. 7.x is built on opencode and reads native calls only; 5.x resumed old tasks with XML in the text."""

from __future__ import annotations

from callwright.gateway.profiles.base import Profile

# 7.7.7 shows XML as prose and reports an error on an empty turn, so it needs nothing but native calls.
KILOCODE = Profile(
    name="kilocode",
    description="Kilo Code 7: native calls.",
    user_agents=("kilo-code/", "kilocode", "kilo/"),
    headers={"x-kilocode-version": "", "x-kilocode-taskid": "", "x-kilocode-editorname": ""},
    prompt_phrases=("You are Kilo Code",),
)

# 5.10.4 runs one tool per message (`didAlreadyUseTool`) and in XML mode drops the native calls beside the text. Text
# that gpt-oss writes after a call ("The task is now in progress") would stand between the call and its result.
KILOCODE_XML = Profile(
    name="kilocode-xml",
    description="Kilo Code 5 and earlier: one call per turn, also as the tool's XML in the text. Select it by name.",
    rules={"output_mode": "kilo-xml", "enable_parallel_tool_calls": False, "suppress_tail_after_tools": True},
)
