"""Secrets: resolved from the environment, and masked wherever a configuration is shown.

Only `resolve_secrets` reads secrets; `mask_config` returns what may be shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial

from msgspec.structs import replace

from callwright.config.mistakes import MistakeReport, RawTable
from callwright.config.settings import Config
from callwright.config.sources import RawTables

__all__ = ["MASK", "mask_config", "mask_url", "resolve_secrets"]

MASK = "***"

_REFERENCE_PREFIX = "env:"
_SHELL_VARIABLE = re.compile(r"\$\{?([A-Z_][A-Z0-9_]*)\}?")
"""A variable as written in shells and compose files."""


def resolve_secrets(config: Config, tables: RawTables, environ: Mapping[str, str], report: MistakeReport) -> Config:
    """Return the configuration with every `env:NAME` replaced by the value of the variable."""

    def resolve(table: RawTable, key: str, text: str) -> str:
        return _resolve_reference(text, environ, partial(report.add_value_mistake, table, key))

    keys = [
        replace(key, key=resolve(table, "key", key.key)) for table, key in zip(tables["keys"], config.keys, strict=True)
    ]
    backends = [
        replace(
            backend,
            key=resolve(table, "key", backend.key),
            headers={name: resolve(table, "headers", value) for name, value in backend.headers.items()},
        )
        for table, backend in zip(tables["backends"], config.backends, strict=True)
    ]
    store = config.store
    for table in tables["store"]:
        store = replace(store, address=resolve(table, "address", store.address))
    return replace(config, keys=tuple(keys), backends=tuple(backends), store=store)


def _resolve_reference(text: str, environ: Mapping[str, str], report: Callable[[str, str], None]) -> str:
    if shell := _SHELL_VARIABLE.fullmatch(text):
        report("refers to a variable in shell syntax", f'write "{_REFERENCE_PREFIX}{shell[1]}"')
    elif text.startswith(_REFERENCE_PREFIX):
        name = text.removeprefix(_REFERENCE_PREFIX)
        if not name:
            report('is "env:" without a name', "write env: and the name of a variable, e.g. env:TEAM_KEY")
        elif not environ.get(name):
            report(f"refers to the environment variable {name}, which is not set", f"set it: export {name}=…")
        text = environ.get(name, "")
    if text != text.strip() or not text.isprintable():
        report("has surrounding whitespace or a control character", "remove it")
    return text


def mask_config(config: Config) -> Config:
    """Return the configuration with secrets replaced by `***`. References stay."""
    return replace(
        config,
        keys=tuple(replace(key, key=_mask_value(key.key)) for key in config.keys),
        backends=tuple(
            replace(
                backend,
                url=mask_url(backend.url),
                key=_mask_value(backend.key),
                headers={name: _mask_value(value) for name, value in backend.headers.items()},
            )
            for backend in config.backends
        ),
        store=replace(config.store, address=mask_url(config.store.address)),
        mcp=tuple(
            replace(
                server,
                url=mask_url(server.url),
                env={name: _mask_value(value) for name, value in server.env.items()},
                headers={name: _mask_value(value) for name, value in server.headers.items()},
            )
            for server in config.mcp
        ),
    )


def mask_url(url: str) -> str:
    """Replace the credentials in a URL by `***`."""
    return re.sub(r"//.*@", f"//{MASK}@", url)


def _mask_value(text: str) -> str:
    return text if not text or text.startswith(_REFERENCE_PREFIX) else MASK
