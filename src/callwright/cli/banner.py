"""The start message of `callwright serve`: its URL, its models, and settings to paste into clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from callwright import __version__
from callwright.cli.snippets import CLIENT_SNIPPETS, GatewayConnection

if TYPE_CHECKING:
    from rich.console import Console

    from callwright.cli.startup import ConfigLoader
    from callwright.config import Config
    from callwright.engine import ModelListing

__all__ = ["print_banner"]

_MAX_MODELS = 8
"""Models listed by name for each backend; any further ones are only counted."""
_NO_SERVER_NOTICE = "No model server found on this machine (tried Ollama, llama.cpp, LM Studio and vLLM). "
_STAND_IN_NOTICES = {
    "embedded": "Serving a very small embedded model instead, which is only good enough for trying out clients. For a "
    'real model, start a model server, pass --backend URL, or configure a backend with kind = "embedded" and '
    'path = "model.gguf" (callwright config init).',
    "demo": "Serving a demo instead, which replays scripted answers. For a real model, start a model server or pass "
    "--backend URL.",
}


def print_banner(
    console: Console, loader: ConfigLoader, config: Config, models: Sequence[ModelListing], url: str
) -> None:
    """Print the start message."""
    console.print(Text.assemble(("\nCallwright ", "bold"), (f"{__version__}  ", "dim"), (url, "bold green")))
    for each in loader.servers:
        if not each.models:
            _print_indented(console, Text(f"{each.label} at {each.url} has no models yet.", style="yellow"))
    if loader.stand_in:
        _print_indented(console, Text(_NO_SERVER_NOTICE + _STAND_IN_NOTICES[loader.stand_in], style="yellow"))
    for backend in config.backends:
        names = [model.name for model in models if model.backend == backend.name]
        more = f" and {len(names) - _MAX_MODELS} more" if len(names) > _MAX_MODELS else ""
        listed = (
            Text(", ".join(names[:_MAX_MODELS]) + more)
            if names
            else Text("no models; is the server running?", style="red")
        )
        _print_indented(
            console, Text.assemble(listed, (f"  from {backend.name}, {backend.url or backend.kind}", "dim"))
        )
    console.print()
    if models:
        _print_snippets(console, _build_connection(config, models[0], url))
    console.print(Text("Try it: callwright chat    Check it: callwright smoke    Stop it: Ctrl-C\n", style="dim"))


def _print_indented(console: Console, text: Text) -> None:
    console.print(Padding(text, (0, 0, 0, 2)))


def _build_connection(config: Config, model: ModelListing, url: str) -> GatewayConnection:
    key = "YOUR-KEY" if config.keys else "unused"
    return GatewayConnection(url=url, model=model.name, context=model.context, key=key)


def _print_snippets(console: Console, gateway: GatewayConnection) -> None:
    for client in CLIENT_SNIPPETS:
        console.print(Text.assemble((client.name, "bold"), (f"  {client.location}", "dim")))
        console.print(Text(client.render(gateway), style="cyan"), soft_wrap=True)  # copying it gives one line
        console.print()
