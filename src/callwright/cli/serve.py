"""`callwright serve`: run the gateway, with or without a configuration."""

from __future__ import annotations

import argparse
import asyncio
import errno
import os
import sys
from typing import TYPE_CHECKING, Any

from rich.console import Console

from callwright.cli import banner
from callwright.errors import ConfigError

if TYPE_CHECKING:
    import socket

    from callwright.cli.startup import ConfigLoader
    from callwright.gateway.server import GatewayServer
    from callwright.gateway.service import GatewayService, GatewayState

__all__ = ["add_command", "create_gateway", "run_serve"]

_EXAMPLES = """\
examples:
  callwright serve                            serve the models on this machine
  callwright serve --backend http://gpu:8000  serve the models of another server
  callwright serve --backend http://gpu:8000 --model qwen2.5 --dialect hermes
  callwright serve --config callwright.toml   use a configuration file

On this machine it finds Ollama, llama.cpp, LM Studio and vLLM. If there is no
model server, it serves a small embedded model or a scripted demo.
"""
_MODELS_TIMEOUT = 3.0
"""Seconds that the start message waits for model lists. A slower backend is served, but not listed there."""
_LOADING_TIMEOUT = 20.0
"""The same where a model must be loaded first."""


def add_command(commands: Any) -> None:
    """Add the command to the command line."""
    from callwright.cli.config import add_config_flags
    from callwright.cli.startup import add_model_options

    parser = commands.add_parser(
        "serve",
        help="run the gateway",
        description="Serve models over the OpenAI (Chat Completions and Responses), Anthropic and\nOllama APIs.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_model_options(parser)
    add_config_flags(parser)
    parser.set_defaults(run=run_serve)


def run_serve(arguments: argparse.Namespace) -> int:
    """Serve until interrupted."""
    from callwright.cli.startup import build_config_loader
    from callwright.gateway import server

    loader = build_config_loader(arguments)
    config = loader.load()
    listener = _open_socket(config.server.host, config.server.port)
    tasks: set[asyncio.Task[Any]] = set()

    async def print_when_ready(service: GatewayService, listings: set[asyncio.Task[Any]]) -> None:
        loads = any(backend.kind == "embedded" for backend in config.backends)
        await asyncio.wait(listings, timeout=_LOADING_TIMEOUT if loads else _MODELS_TIMEOUT)
        console = Console(highlight=False)
        banner.print_banner(console, loader, config, service.state.engine.models, _format_url(listener))

    def on_started(service: GatewayService) -> None:
        tasks.add(asyncio.ensure_future(print_when_ready(service, set(tasks))))

    server.run_gateway(create_gateway(loader, tasks, debug=config.server.debug), listener, on_started=on_started)
    return 0


def create_gateway(loader: ConfigLoader, tasks: set[asyncio.Task[Any]], *, debug: bool = False) -> GatewayServer:
    """Create the gateway and its server. The configuration is reloaded when its file changes.

    `tasks` receives the background tasks: after each load, one that fetches the model lists of the backends.
    """
    from callwright.app import build_gateway_state, create_server
    from callwright.gateway import json_logging
    from callwright.redaction import Redactor

    def load_state() -> GatewayState:
        state = build_gateway_state(loader.load(), environment=os.environ)
        listing = asyncio.ensure_future(state.engine.refresh_models())
        tasks.add(listing)
        listing.add_done_callback(tasks.discard)
        return state

    redactor = Redactor()
    json_logging.configure_logging(sys.stderr, redactor, debug=debug)
    return create_server(load_state, watch=[loader.path] if loader.path else [], redactor=redactor)


def _open_socket(host: str, port: int) -> socket.socket:
    from callwright.gateway.server import open_listener

    try:
        return open_listener(host, port)
    except OSError as problem:
        raise ConfigError([_describe_listen_error(host, port, problem)]) from None


def _describe_listen_error(host: str, port: int, problem: OSError) -> str:
    match problem.errno:
        case errno.EADDRINUSE:
            return f"port {port} is already in use; stop the other program, or pass --port {port + 1} or --port 0"
        case errno.EACCES:
            return f"permission denied for port {port}; use a port above 1023, e.g. --port 8787"
        case _:
            reason = (problem.strerror or str(problem)).lower()
            return f"cannot listen on {host} port {port}: {reason}; --host must be an address of this machine"


def _format_url(listener: socket.socket) -> str:
    """Return the URL for clients on this machine."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104 - read
    return f"http://{host}:{port}"
