"""Prompts for approvals. A key pressed before the prompt is shown is not an answer to it."""

from __future__ import annotations

from collections.abc import Mapping

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app_session
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from callwright.agent.session_api import ApprovalReply
from callwright.agent.session_events import ApprovalRequested

__all__ = ["build_newline_keys", "prompt_for_approval", "prompt_for_choice"]


async def prompt_for_approval(approval: ApprovalRequested) -> ApprovalReply:
    """Prompt the user and return the answer."""
    choices = {"y": "once", "a": "always", "e": "edit", "n": "no", "s": "stop"}
    if not approval.remember:
        del choices["a"]
    if not approval.command:
        del choices["e"]
    while True:
        match await prompt_for_choice("Allow it?", choices, otherwise="s"):
            case "y":
                return ApprovalReply(verdict="once")
            case "a":
                return ApprovalReply(verdict="always")
            case "e":
                command = await _prompt_for_line("$ ", approval.command)
                if command is not None and command.strip():
                    return ApprovalReply(verdict="once", command="" if command == approval.command else command)
            case "n":
                words = await _prompt_for_line("Message to the model (Enter for none): ")
                if words is not None:
                    return ApprovalReply(verdict="deny", words=words.strip())
            case _:
                return ApprovalReply(verdict="stop")


async def prompt_for_choice(question: str, choices: Mapping[str, str], *, otherwise: str) -> str:
    """Return the pressed key, one of the choices; `otherwise` for Ctrl-C and Ctrl-D."""
    bindings = KeyBindings()

    @bindings.add(Keys.Any)
    @bindings.add(Keys.Enter)
    def ignore(_: KeyPressEvent) -> None:
        pass

    @bindings.add(Keys.ControlC)
    @bindings.add(Keys.ControlD)
    def leave(event: KeyPressEvent) -> None:
        event.app.exit(result=otherwise)

    for key in choices:

        @bindings.add(key)
        @bindings.add(key.upper())
        def choose_it(event: KeyPressEvent, key: str = key) -> None:
            event.app.exit(result=key)

    parts = [("bold", f"{question} ")]
    for number, (key, word) in enumerate(choices.items()):
        parts += [("", " · " if number else " "), ("bold ansicyan", key), ("", f" {word}")]
    clear_typeahead(get_app_session().input)
    prompt: PromptSession[str] = PromptSession(erase_when_done=True)
    return await prompt.prompt_async(FormattedText([*parts, ("", " ")]), key_bindings=bindings)


def build_newline_keys() -> KeyBindings:
    """Build key bindings for a prompt of several lines: Enter submits, Alt-Enter inserts a new line."""
    bindings = KeyBindings()

    @bindings.add(Keys.Enter)
    def end(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @bindings.add(Keys.Escape, Keys.Enter)
    def begin_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return bindings


async def _prompt_for_line(message: str, default: str = "") -> str | None:
    """Prompt for a line; None if it is cancelled with Ctrl-C or Ctrl-D."""
    prompt: PromptSession[str] = PromptSession(erase_when_done=True)
    try:
        return await prompt.prompt_async(
            FormattedText([("bold", message)]), default=default, multiline=True, key_bindings=build_newline_keys()
        )
    except (KeyboardInterrupt, EOFError):
        return None
