"""What `callwright serve` says when it has begun: where it is, what it serves, and what to paste into clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from callwright import __version__
from callwright.cli.snippets import CLIENTS, Gateway

if TYPE_CHECKING:
    from rich.console import Console

    from callwright.cli.start import Start
    from callwright.config import Config
    from callwright.engine import ModelListing

__all__ = ["show"]

_MOST = 8
"""Models of one backend that are named; the others are counted."""
_NONE = "No model server answers on this machine; looked for Ollama, llama.cpp, LM Studio and vLLM. "
_STAND_INS = {
    "embedded": "So this is a very small model, in a process beside this one: enough to try clients with, and no more. "
    'For a real one, start a server, name one with --backend URL, or set path = "model.gguf" of kind = "embedded" '
    "(callwright config init).",
    "demo": "So this is a demo: its model is a script that only plays one. For a real one, start a server, or name one "
    "with --backend URL.",
}


def show(console: Console, began: Start, config: Config, models: Sequence[ModelListing], url: str) -> None:
    """Print it."""
    console.print(Text.assemble(("\nCallwright ", "bold"), (f"{__version__}  ", "dim"), (url, "bold green")))
    for each in began.found:
        if not each.models:
            _tell(console, Text(f"{each.label} at {each.url} has no models yet.", style="yellow"))
    if began.stand_in:
        _tell(console, Text(_NONE + _STAND_INS[began.stand_in], style="yellow"))
    for backend in config.backends:
        names = [model.name for model in models if model.backend == backend.name]
        more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
        listed = Text(", ".join(names[:_MOST]) + more) if names else Text("no models: does it answer?", style="red")
        _tell(console, Text.assemble(listed, (f"  from {backend.name}, {backend.url or backend.kind}", "dim")))
    console.print()
    if models:
        _show_snippets(console, _gateway(config, models[0], url))
    console.print(Text("Try it: callwright chat    Check it: callwright smoke    Stop it: Ctrl-C\n", style="dim"))


def _tell(console: Console, text: Text) -> None:
    console.print(Padding(text, (0, 0, 0, 2)))


def _gateway(config: Config, model: ModelListing, url: str) -> Gateway:
    key = "YOUR-KEY" if config.keys else "unused"
    return Gateway(url=url, model=model.name, context=model.context, key=key)


def _show_snippets(console: Console, gateway: Gateway) -> None:
    for client in CLIENTS:
        console.print(Text.assemble((client.name, "bold"), (f"  {client.where}", "dim")))
        console.print(Text(client.text(gateway), style="cyan"), soft_wrap=True)  # so that it is copied as one line
        console.print()
