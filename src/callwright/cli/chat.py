"""`callwright chat`: chat with a model in the terminal. The model has one harmless tool, `get_time`.

With `--url` a running gateway answers, otherwise the engine in this process. Both produce the same events.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    aclosing,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from zoneinfo import ZoneInfo

import msgspec
from rich.console import Console
from rich.text import Text

from callwright.cli.gateway_client import add_key_option, fetch_models, normalize_url
from callwright.errors import BackendError, RequestError
from callwright.events import CallDelta, CallEnd, CallStart, Event, Malformed, ReasoningDelta, TextDelta
from callwright.model import Message, Request, ToolCall, ToolResult, ToolSpec
from callwright.model import Text as TextPart
from callwright.turn import Collected, collect

if TYPE_CHECKING:
    from callwright.backends.base import EventStream
    from callwright.config import Config

__all__ = ["add_command", "run_chat", "run_tool"]

_EXAMPLES = """\
examples:
  callwright chat                                use the first model found
  callwright chat qwen3:8b                       use this model
  callwright chat "What time is it in Lisbon?"   ask one question and exit
  callwright chat --url http://10.0.0.7:8787     use a running gateway
"""
_TIME_TOOL = ToolSpec(
    "get_time",
    "Get the current date and time in a time zone such as Europe/Lisbon (default: UTC).",
    {"type": "object", "properties": {"timezone": {"type": "string"}}},
)
_MAX_ROUNDS = 5
"""Rounds of tool calls after which a question is given up."""


class ChatConnection(NamedTuple):
    """The models, and the function that runs a turn with one of them."""

    models: Sequence[str]
    run_turn: Callable[[Request], EventStream]


def add_command(commands: Any) -> None:
    """Add the command to the command line."""
    from callwright.cli.config import add_journal_flag
    from callwright.cli.startup import add_model_options

    parser = commands.add_parser(
        "chat",
        help="chat with a model in the terminal",
        description="Chat with a model. It can call one tool, get_time, and each call is shown.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("words", nargs="*", metavar="[MODEL] [QUESTION]", help="a model name, a question, or both")
    parser.add_argument("--url", type=normalize_url, metavar="URL", help="use a running gateway at URL")
    add_key_option(parser)
    add_model_options(parser)
    add_journal_flag(parser)
    parser.set_defaults(run=run_chat)


def run_chat(arguments: argparse.Namespace) -> int:
    """Chat until the user exits."""
    from callwright.cli.startup import build_config_loader, check_url_flags

    if arguments.url:
        check_url_flags(arguments)
        return _run_conversation(_connect_gateway(arguments.url, arguments.key), arguments.words)
    return _run_conversation(_connect_engine(build_config_loader(arguments).load()), arguments.words)


@asynccontextmanager
async def _connect_gateway(url: str, key: str) -> AsyncIterator[ChatConnection]:
    from callwright.backends import open_backend
    from callwright.backends.settings import BackendSettings
    from callwright.cli.http_client import HttpClient

    async with HttpClient(url, key=key, seconds=10) as gateway:
        models = [entry["id"] for entry in await fetch_models(gateway)]
    backend = open_backend(BackendSettings(name="gateway", url=f"{url}/v1", key=key))
    try:
        yield ChatConnection(models, lambda request: backend.stream_response(request, {}))
    finally:
        await backend.close()


@asynccontextmanager
async def _connect_engine(config: Config) -> AsyncIterator[ChatConnection]:
    from callwright.app import open_engine

    async with open_engine(config, client="chat", environment=os.environ) as engine:
        yield ChatConnection([model.name for model in engine.models], engine.stream_turn)


def _run_conversation(connecting: AbstractAsyncContextManager[ChatConnection], words: list[str]) -> int:
    console = Console(highlight=False)
    with asyncio.Runner() as runner, _keep_open(runner, connecting) as connection:
        model = words.pop(0) if words and words[0] in connection.models else connection.models[0]
        session = _ChatSession(console, connection, model)
        if words:
            runner.run(session.send_question(" ".join(words)))
            return 0
        console.print(Text.assemble((model, "bold green"), ("  Ctrl-C stops an answer, an empty line exits", "dim")))
        while question := _read_line():
            try:
                runner.run(session.send_question(question))
            except KeyboardInterrupt:
                console.print(Text("\nstopped", style="yellow"))
            except (BackendError, RequestError) as problem:
                console.print(Text(str(problem), style="red"))
    return 0


@contextmanager
def _keep_open(
    runner: asyncio.Runner, connecting: AbstractAsyncContextManager[ChatConnection]
) -> Iterator[ChatConnection]:
    """Keep the connection open between runs of the event loop. Input is read outside the loop, so that Ctrl-C works."""
    stack = AsyncExitStack()
    try:
        yield runner.run(stack.enter_async_context(connecting))
    finally:
        runner.run(stack.aclose())


def _read_line() -> str:
    """Read a line from the user; empty at the end of input."""
    with suppress(ImportError):  # not available on Windows
        import readline  # noqa: F401 - importing it makes input() edit lines
    try:
        return input("› " if sys.stdin.isatty() else "").strip()
    except (EOFError, KeyboardInterrupt):
        print()
        return ""


class _ChatSession:
    """A conversation with one model."""

    def __init__(self, console: Console, connection: ChatConnection, model: str) -> None:
        self._console = console
        self._connection = connection
        self._model = model
        self._messages: tuple[Message, ...] = ()
        self._printed = "\n"

    async def send_question(self, question: str) -> None:
        """Send a question and run the tool calls until the model answers. A failed question leaves no history."""
        messages = (*self._messages, Message("user", (TextPart(question),)))
        for _ in range(_MAX_ROUNDS):
            turn = await self._run_round(messages)
            messages += (_build_assistant_message(turn),)
            if not turn.tool_calls:
                self._messages = messages
                return
            for call in turn.tool_calls:
                result = run_tool(call)
                self._print_text(f"  {result.content}\n", "red" if result.is_error else "dim")
                messages += (Message("tool", (result,)),)
        self._print_text(f"Stopped: the model called tools {_MAX_ROUNDS} times without answering.\n", "yellow")

    async def _run_round(self, messages: tuple[Message, ...]) -> Collected:
        events: list[Event] = []
        request = Request(self._model, messages, (_TIME_TOOL,))
        async with aclosing(self._connection.run_turn(request)) as stream:
            async for batch in stream:
                for event in batch:
                    self._print_event(event, events[-1] if events else event)
                    events.append(event)
        self._start_line()
        return collect(events)

    def _print_event(self, event: Event, before: Event) -> None:
        if type(before) is not type(event) and not isinstance(event, CallDelta | CallEnd):
            self._start_line()
        match event:
            case TextDelta():
                self._print_text(event.text, "")
            case ReasoningDelta():
                self._print_text(event.text, "dim italic")
            case CallStart():
                self._print_text(f"→ {event.name} ", "bold green")
            case CallDelta():
                self._print_text(event.text, "green")
            case CallEnd() if not event.complete:
                self._print_text(" (cut off)", "red")
            case Malformed() if not event.shown:
                self._print_text(f"not a call, {event.reason}: {event.raw}", "red")
            case _:
                pass

    def _start_line(self) -> None:
        if not self._printed.endswith("\n"):
            self._print_text("\n", "")

    def _print_text(self, text: str, style: str) -> None:
        self._console.print(Text(text, style=style), end="", soft_wrap=True)
        self._printed = text


def _build_assistant_message(turn: Collected) -> Message:
    text = (TextPart(turn.text),) if turn.text else ()
    return Message("assistant", (*turn.thoughts, *text, *turn.tool_calls))


def run_tool(call: ToolCall) -> ToolResult:
    """Run the tool. An error becomes a result for the model."""
    try:
        arguments = msgspec.json.decode(call.arguments, type=dict[str, Any])
        zone = ZoneInfo(str(arguments["timezone"])) if arguments.get("timezone") else UTC
    except (msgspec.DecodeError, ValueError, OSError, LookupError) as problem:
        return ToolResult(call.id, f"Error: {problem}", call.name, is_error=True)
    if call.name != _TIME_TOOL.name:
        return ToolResult(call.id, f"Error: unknown tool {call.name}", call.name, is_error=True)
    return ToolResult(call.id, datetime.now(zone).isoformat(timespec="seconds"), call.name)
