"""Conversations as Harmony: against OpenAI's own renderer and parser, and what no message can break."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import msgspec
import openai_harmony as peer
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright import Parser, collect, get_dialect
from callwright.dialects.harmony import HARMONY
from callwright.model import Image, Message, Reasoning, Request, Text, ToolCall, ToolResult, ToolSpec
from callwright.prompt.harmony_prompt import MARKERS, get_answer_prefix, render_harmony
from tests.support.sampling import sample
from tests.unit.prompt.openai_harmony_peer import load

EFFORTS = {"low": peer.ReasoningEffort.LOW, "medium": peer.ReasoningEffort.MEDIUM, "high": peer.ReasoningEffort.HIGH}
CALL = re.compile(r"<\|start\|>assistant<\|channel\|>commentary to=(\S+) <\|constrain\|>json<\|message\|>")
WORDS = (
    "Oslo",
    "3 °C",
    "{}",
    "to=functions.x",
    "# Tools",
    "analysis",
    "<b>",
    "\n",
    "naïve ☃",
    '"quoted"',
    "<|",
    "|>",
    " ",
)


@pytest.fixture(scope="module")
def encoding(tmp_path_factory: pytest.TempPathFactory) -> peer.HarmonyEncoding:
    return load(tmp_path_factory.mktemp("vocabulary"))


# ── random conversations ─────────────────────────────────────────────────────────────────────────


class Conversations:
    """Draws conversations; one number gives always the same."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def words(self) -> str:
        return " ".join(self._random.choices(WORDS, k=self._random.randint(1, 8))) + "."

    def schema(self, depth: int = 0) -> dict[str, Any]:
        kind = self._random.choice(["string", "integer", "number", "boolean", "enum", "array", "union", "object"])
        if kind == "object" and depth < 2:
            return self.parameters(depth + 1)
        body: dict[str, Any] = {"type": kind if kind in ("string", "integer", "number", "boolean") else "string"}
        if kind == "enum":
            body |= {"enum": ["fast", "slow"]} | ({"default": "fast"} if self._random.random() < 0.5 else {})
        elif kind == "array":
            body = {"type": "array", "items": {"type": self._random.choice(["string", "integer", "boolean"])}}
        elif kind == "union":
            body = {"type": [self._random.choice(["boolean", "string"]), "null"]}
        elif kind == "integer" and self._random.random() < 0.5:
            body["default"] = 3
        if self._random.random() < 0.5:
            body["description"] = f"What it is: {self._random.choice('xyz')}."
        return body

    def parameters(self, depth: int = 0) -> dict[str, Any]:
        names = self._random.sample(["city", "days", "mode", "where", "tags"], self._random.randint(1, 4))
        required = self._random.sample(names, self._random.randint(0, len(names)))
        return {"type": "object", "properties": {name: self.schema(depth) for name in names}, "required": required}

    def tools(self) -> tuple[ToolSpec, ...]:
        names = self._random.sample(["get_weather", "read_file", "a.b-c", "ping"], self._random.randint(0, 3))
        return tuple(ToolSpec(name, f"Does {name}.\nWell.", self.parameters()) for name in names)

    def call(self, number: int, tools: tuple[ToolSpec, ...]) -> ToolCall:
        arguments = {"city": self.words(), "days": self._random.randint(-5, 5), "tags": [self.words()]}
        return ToolCall(f"call_{number}", self._random.choice(tools).name, json.dumps(arguments, ensure_ascii=False))

    def round(self, number: int, tools: tuple[ToolSpec, ...]) -> list[Message]:
        """A thought, a preamble, a call: the first two at random; and the result."""
        call = self.call(number, tools)
        said = [Reasoning(self.words()), Text(self.words())]
        parts = [part for part in said if self._random.random() < 0.6]
        return [Message("assistant", (*parts, call)), Message("tool", (ToolResult(call.id, self.words()),))]

    def request(self) -> Request:
        tools = self.tools()
        messages: list[Message] = []
        if self._random.random() < 0.7:
            messages.append(Message("system", (Text(self.words()),)))
        turns = self._random.randint(1, 3)
        for turn in range(turns):
            messages.append(Message("user", (Text(self.words()),)))
            for number in range(self._random.randint(0, 2) if tools else 0):
                messages += self.round(10 * turn + number, tools)
            if turn < turns - 1:
                messages.append(Message("assistant", (Reasoning(self.words()), Text(self.words()))))
        return Request("m", tuple(messages), tools, options={"reasoning_effort": self._random.choice([*EFFORTS])})


def theirs(request: Request) -> peer.Conversation:
    """The same conversation in OpenAI's own classes, without the thoughts that a final answer has settled."""
    system = peer.SystemContent.new().with_reasoning_effort(EFFORTS[request.options["reasoning_effort"]])
    messages = [peer.Message.from_role_and_content(peer.Role.SYSTEM, system)]
    rest = list(request.messages)
    developer = peer.DeveloperContent.new()
    if rest[0].role == "system":
        developer = developer.with_instructions(rest.pop(0).parts[0].text)  # type: ignore[union-attr]
    if request.tools:
        declared = [peer.ToolDescription.new(tool.name, tool.description, tool.parameters) for tool in request.tools]
        developer = developer.with_function_tools(declared)
    if len(rest) < len(request.messages) or request.tools:
        messages.append(peer.Message.from_role_and_content(peer.Role.DEVELOPER, developer))
    finals = [at for at, message in enumerate(rest) if message.role == "assistant" and not _calls(message)]
    for at, message in enumerate(rest):
        messages += _theirs(message, rest[at - 1], settled=at <= max(finals, default=-1))
    return peer.Conversation.from_messages(messages)


def _calls(message: Message) -> list[ToolCall]:
    return [part for part in message.parts if isinstance(part, ToolCall)]


def _theirs(message: Message, before: Message, *, settled: bool) -> list[peer.Message]:
    made = []
    for part in message.parts:
        match part:
            case Reasoning() if not settled:
                made.append(_from_assistant(part.text, "analysis"))
            case Text() if message.role == "user":
                made.append(peer.Message.from_role_and_content(peer.Role.USER, part.text))
            case Text():
                made.append(_from_assistant(part.text, "commentary" if _calls(message) else "final"))
            case ToolCall():
                said = _from_assistant(part.arguments, "commentary").with_recipient(f"functions.{part.name}")
                made.append(said.with_content_type("<|constrain|>json"))
            case ToolResult():
                author = peer.Author.new(peer.Role.TOOL, f"functions.{_calls(before)[0].name}")
                result = peer.Message.from_author_and_content(author, part.content)
                made.append(result.with_channel("commentary").with_recipient("assistant"))
            case _:
                pass
    return made


def _from_assistant(text: str, channel: str) -> peer.Message:
    return peer.Message.from_role_and_content(peer.Role.ASSISTANT, text).with_channel(channel)


@pytest.mark.parametrize("block", sample(range(10), 2))
def test_a_thousand_conversations_are_written_as_openai_writes_them(encoding: peer.HarmonyEncoding, block: int) -> None:
    whole = peer.RenderConversationConfig(auto_drop_analysis=False)
    for seed in range(100 * block, 100 * (block + 1)):
        request = Conversations(seed).request()
        tokens = encoding.render_conversation_for_completion(theirs(request), peer.Role.ASSISTANT, whole)
        ours = CALL.sub(
            r"<|start|>assistant to=\1<|channel|>commentary <|constrain|>json<|message|>", render_harmony(request)
        )
        assert ours == encoding.decode_utf8(tokens), seed
        assert encoding.encode(ours, allowed_special="all") == tokens, "what is special is, and nothing else"


@pytest.mark.parametrize("block", sample(range(10), 2))
def test_a_thousand_turns_go_to_openais_parser_and_come_back_from_its_renderer(
    encoding: peer.HarmonyEncoding, block: int
) -> None:
    for seed in range(100 * block, 100 * (block + 1)):
        drawn = Conversations(seed)
        tools = tuple(ToolSpec(tool.name) for tool in drawn.tools()) or (ToolSpec("ping"),)  # no schema to mend by
        message = drawn.round(0, tools)[0]
        expected = _theirs(message, message, settled=False)
        turn = render_harmony(Request("m", (Message("user", (Text("Hi"),)), message))).removesuffix(
            "<|start|>assistant"
        )
        written = turn.partition("Hi<|end|><|start|>assistant")[2]
        parsed = encoding.parse_messages_from_completion_tokens(
            encoding.encode(written, allowed_special="all"), peer.Role.ASSISTANT
        )
        assert [each.to_dict() for each in parsed] == [each.to_dict() for each in expected], seed
        rendered = "".join(encoding.decode_utf8(encoding.render(each)) for each in expected)
        parser = Parser(HARMONY, tools, prefill="<|start|>assistant")
        heard = collect([*parser.feed(rendered.removeprefix("<|start|>assistant")), *parser.close()])
        (call,) = _calls(message)
        assert [(each.name, json.loads(each.arguments)) for each in heard.tool_calls] == [
            (call.name, json.loads(call.arguments))
        ], seed
        assert heard.text == "".join(part.text for part in message.parts if isinstance(part, Text))
        assert heard.reasoning == "".join(part.text for part in message.parts if isinstance(part, Reasoning))


# ── what no message can break ────────────────────────────────────────────────────────────────────

nasty = st.lists(st.sampled_from([*MARKERS, "<|endoftext|>", "<|", "|>", "start", "assistant", "x", '"', "\\"])).map(
    "".join
)


@given(words=nasty, name=nasty.filter(bool))
def test_no_words_begin_or_end_a_message(words: str, name: str) -> None:
    """Every marker of the prompt is one that we wrote."""

    def prompt(words: str, name: str) -> str:
        arguments = json.dumps({"key": words})
        tool = ToolSpec(name, words, {"type": "object", "properties": {name: {"type": "string", "description": words}}})
        messages = (
            Message("system", (Text(words + "."),)),
            Message("user", (Text(words + "."),)),
            Message("assistant", (Reasoning(words + "."), Text(words + "."), ToolCall("a", name, arguments))),
            Message("tool", (ToolResult("a", words),)),
            Message("developer", (Text(words + "."),)),
        )
        form = {"type": "json_schema", "json_schema": {"name": name, "schema": {"title": words}}}
        return render_harmony(Request("m", messages, (tool,), name, options={"response_format": form}))

    marks = re.compile("|".join(map(re.escape, (*MARKERS, "<|endoftext|>"))))
    assert marks.findall(prompt(words, name)) == marks.findall(prompt("x", "x"))


@given(nasty)
def test_arguments_are_the_same_to_the_model_whatever_they_hold(words: str) -> None:
    call = ToolCall("a", "ping", json.dumps({"key": words}))
    written = render_harmony(Request("m", (Message("assistant", (call,)),), (ToolSpec("ping"),)))
    told = written.partition("to=functions.ping <|constrain|>json<|message|>")[2].partition("<|call|>")[0]
    assert json.loads(told) == {"key": words}


# ── the rest of the format ───────────────────────────────────────────────────────────────────────


def ask(*messages: Message, **more: Any) -> Request:
    return Request("m", messages or (Message("user", (Text("Hi"),)),), **more)


@pytest.mark.parametrize(
    ("said", "told"),
    [(None, "medium"), ("minimal", "low"), ("high", "high"), ("xhigh", "high"), (3, "medium"), ("odd", "medium")],
)
def test_the_effort_is_one_that_the_model_was_trained_on(said: object, told: str) -> None:
    assert f"\n\nReasoning: {told}\n\n" in render_harmony(ask(options={"reasoning_effort": said}))


def test_a_form_of_the_answer_has_a_section_of_its_own() -> None:
    form = {"name": "trip", "description": "A trip.", "schema": {"type": "object"}}
    told = render_harmony(ask(options={"response_format": {"type": "json_schema", "json_schema": form}}))
    assert '<|message|># Response Formats\n\n## trip\n\n// A trip.\n{"type":"object"}<|end|>' in told
    anything = render_harmony(ask(options={"response_format": {"type": "json_object"}}))
    assert '## answer\n\n// One JSON object.\n{"type":"object"}<|end|>' in anything
    assert "developer" not in render_harmony(ask(options={"response_format": {"type": "text"}}))


def test_instructions_stand_where_the_client_put_them() -> None:
    told = render_harmony(
        ask(
            Message("system", (Text("One."),)),
            Message("developer", (Text("Two."),)),
            Message("user", (Text("Hi"), Image("data:,"))),
            Message("system", (Text("Three."),)),
        )
    )
    assert "<|start|>developer<|message|># Instructions\n\nOne.\n\nTwo.<|end|><|start|>user" in told
    assert "<|start|>user<|message|>Hi\n\n[an image that this model cannot see]<|end|>" in told
    assert told.endswith("<|start|>developer<|message|># Instructions\n\nThree.<|end|><|start|>assistant")


def test_a_result_is_from_the_tool_whose_call_it_answers() -> None:
    call = ToolCall("a", "ping", "{}")
    result = Message("tool", (ToolResult("a", "pong", "other"), ToolResult("b", "?", "lost")))
    told = render_harmony(ask(Message("assistant", (call,)), result))
    assert "<|start|>functions.ping to=assistant<|channel|>commentary<|message|>pong<|end|>" in told
    assert "<|start|>functions.lost to=assistant<|channel|>commentary<|message|>?<|end|>" in told


@pytest.mark.parametrize(
    ("choice", "names", "expected"),
    [
        ("auto", "ab", ""),
        ("none", "ab", ""),
        ("required", "ab", "<|channel|>commentary to=functions"),
        ("required", "a", "<|channel|>commentary to=functions.a <|constrain|>json<|message|>"),
        ("b", "ab", "<|channel|>commentary to=functions.b <|constrain|>json<|message|>"),
        ("required", "", ""),
    ],
)
def test_a_call_that_must_come_is_begun(choice: str, names: str, expected: str) -> None:
    request = ask(tools=tuple(map(ToolSpec, names)), tool_choice=choice)
    assert get_answer_prefix(request) == expected
    assert render_harmony(request).endswith(f"<|start|>assistant{expected}")


def test_a_conversation_that_grows_keeps_its_beginning() -> None:
    request = next(each for seed in range(99) if (each := Conversations(seed).request()).messages[-1].role == "tool")
    before = render_harmony(msgspec.structs.replace(request, messages=request.messages[:-2]))
    assert render_harmony(request).startswith(before)


def test_reading_starts_where_the_prompt_ends() -> None:
    tools = (ToolSpec("ping"), ToolSpec("pong"))
    parser = Parser(get_dialect("harmony"), tools)
    said = get_answer_prefix(ask(tools=tools, tool_choice="required")) + ".pong <|constrain|>json<|message|>{}"
    assert [call.name for call in collect([*parser.feed(said), *parser.close()]).tool_calls] == ["pong"]
