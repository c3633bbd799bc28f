"""Secrets: taken from the environment where the file refers to it, and never shown.

`resolve` is the only place where a secret enters; `masked` is what may be shown of a configuration.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial

from msgspec.structs import replace

from callwright.config.mistakes import Report, Table
from callwright.config.settings import Config
from callwright.config.sources import Sheet

__all__ = ["MASK", "masked", "masked_url", "resolve"]

MASK = "***"

_REFERENCE = "env:"
_SHELL = re.compile(r"\$\{?([A-Z_][A-Z0-9_]*)\}?")
"""How shells and compose files write a variable."""


def resolve(config: Config, sheet: Sheet, environ: Mapping[str, str], report: Report) -> Config:
    """The configuration with every `env:NAME` replaced by what it stands for."""

    def taken(table: Table, key: str, text: str) -> str:
        return _resolved(text, environ, partial(report.value, table, key))

    keys = [
        replace(key, key=taken(table, "key", key.key)) for table, key in zip(sheet["keys"], config.keys, strict=True)
    ]
    backends = [
        replace(
            backend,
            key=taken(table, "key", backend.key),
            headers={name: taken(table, "headers", value) for name, value in backend.headers.items()},
        )
        for table, backend in zip(sheet["backends"], config.backends, strict=True)
    ]
    store = config.store
    for table in sheet["store"]:
        store = replace(store, address=taken(table, "address", store.address))
    return replace(config, keys=tuple(keys), backends=tuple(backends), store=store)


def _resolved(text: str, environ: Mapping[str, str], report: Callable[[str, str], None]) -> str:
    if shell := _SHELL.fullmatch(text):
        report("is not replaced by a variable when it is written like this", f'write "{_REFERENCE}{shell[1]}"')
    elif text.startswith(_REFERENCE):
        name = text.removeprefix(_REFERENCE)
        if not name:
            report('is "env:" without a name', "write env: and the name of a variable, such as env:TEAM_KEY")
        elif not environ.get(name):
            report(f"is taken from the variable {name}, which is not set", f"set it: export {name}=…")
        text = environ.get(name, "")
    if text != text.strip() or not text.isprintable():
        report("has a space or line break around it, or a control character in it", "take that out")
    return text


def masked(config: Config) -> Config:
    """What may be shown: references stay, secrets become `***`."""
    return replace(
        config,
        keys=tuple(replace(key, key=_masked(key.key)) for key in config.keys),
        backends=tuple(
            replace(
                backend,
                url=masked_url(backend.url),
                key=_masked(backend.key),
                headers={name: _masked(value) for name, value in backend.headers.items()},
            )
            for backend in config.backends
        ),
        store=replace(config.store, address=masked_url(config.store.address)),
        mcp=tuple(
            replace(
                server,
                url=masked_url(server.url),
                env={name: _masked(value) for name, value in server.env.items()},
                headers={name: _masked(value) for name, value in server.headers.items()},
            )
            for server in config.mcp
        ),
    )


def masked_url(url: str) -> str:
    """An address without the password that may stand in it."""
    return re.sub(r"//.*@", f"//{MASK}@", url)


def _masked(text: str) -> str:
    return text if not text or text.startswith(_REFERENCE) else MASK
