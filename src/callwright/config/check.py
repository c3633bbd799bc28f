"""Checks that types cannot express: names that must match between tables, URLs, and keys for public servers."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Collection, Iterable
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from callwright.backends import list_backend_plugins
from callwright.backends.settings import BackendKind, BackendSettings
from callwright.config.mistakes import MistakeReport, RawTable, find_closest_name
from callwright.config.secrets import mask_url
from callwright.config.settings import Config
from callwright.config.sources import RawTables
from callwright.config.template_files import read_template_sources
from callwright.dialects import REGISTRY, get_dialect
from callwright.engine.jobs import JobSettings
from callwright.errors import ConfigError, MisuseError
from callwright.prompt.prompt_templates import PromptTemplates
from callwright.store.settings import find_mistakes as store_mistakes

__all__ = ["check_config", "is_loopback"]

_ENDPOINT_PATHS = (
    "/chat/completions",
    "/completions",
    "/completion",
    "/generate_stream",
    "/responses",
    "/messages",
    "/api/chat",
    "/api/generate",
    "/models",
    "/conversations",
)
_API_PREFIXES = {"anthropic": "/v1", "ollama": "/api"}
"""Kinds whose URL is that of the whole server, and the path that each adds itself."""

_KIND_SETTINGS: dict[str, tuple[BackendKind, ...]] = {
    "script": ("scripted",),
    "path": ("embedded", "codex"),
    "home": ("codex",),
    "plugin": ("plugin",),
    "plugin_options": ("plugin",),
}
"""Settings that only some kinds use, and those kinds."""
_SERVERLESS_KINDS: tuple[BackendKind, ...] = ("scripted", "embedded", "plugin")


_MIN_TOKEN_LENGTH = 16
"""Minimum length of a token that cannot be guessed."""


def check_config(config: Config, tables: RawTables, profiles: Collection[str] | None, report: MistakeReport) -> None:
    """Report what does not fit together. `profiles` are the names of client profiles; None accepts any name."""
    for name in ("keys", "backends", "jobs", "mcp"):
        _check_unique(((table, "name", each.name) for table, each in _pair_tables(config, tables, name)), report)
    _check_unique(
        (
            (table, key, name)
            for table, model in _pair_tables(config, tables, "models")
            for key, names in (("name", [model.name]), ("aliases", model.aliases))
            for name in names
        ),
        report,
    )
    _check_access(config, tables, report)
    for table, backend in _pair_tables(config, tables, "backends"):
        _check_url(backend, partial(report.add_value_mistake, table, "url"))
        _check_bridge(config, table, backend, report)
        for key, kinds in _KIND_SETTINGS.items():
            if getattr(backend, key) and backend.kind not in kinds:
                remedy = " or ".join(f'kind = "{kind}"' for kind in kinds)
                report.add_value_mistake(table, key, f'is set, but kind is "{backend.kind}"', f"set {remedy}")
        _check_plugin(table, backend, report)
    for table in tables["prompt"]:
        _check_templates(config.prompt.templates, partial(report.add_value_mistake, table, "templates"))
    for table, model in _pair_tables(config, tables, "models"):
        folder = model.prompt.get("templates")
        _check_templates(folder if isinstance(folder, str) else "", partial(report.add_value_mistake, table, "prompt"))
        _check_model(config, table, model, profiles, report)
    for table, server in _pair_tables(config, tables, "mcp"):
        if server.problem:
            report.add_value_mistake(
                table, "url" if server.url else "command", server.problem, 'e.g. command = ["my-server"]'
            )
    for table, job in _pair_tables(config, tables, "jobs"):
        _check_job(config, table, job, report)
    for table in tables["store"]:
        for key, what, remedy in store_mistakes(config.store):
            report.add_value_mistake(table, key, what, remedy)


def _check_plugin(table: RawTable, backend: BackendSettings, report: MistakeReport) -> None:
    known = list_backend_plugins()
    if backend.kind == "plugin" and backend.plugin not in known:
        what = f'is "{backend.plugin}", but no installed package has a backend of that name'
        remedy = _format_suggestion(backend.plugin, known, "callwright plugins lists all plugins")
        report.add_value_mistake(table, "plugin", what, remedy)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _pair_tables(config: Config, tables: RawTables, name: str) -> Iterable[tuple[RawTable, Any]]:
    return zip(tables[name], getattr(config, name), strict=True)


def _check_unique(names: Iterable[tuple[RawTable, str, str]], report: MistakeReport) -> None:
    first: dict[str, RawTable] = {}
    for table, key, name in names:
        if name and (other := first.setdefault(name, table)) is not table:
            where = f" ({other.origin})" if other.origin.line else ""
            report.add_value_mistake(
                table, key, f'is "{name}", which {other.label} already uses{where}', "choose another name"
            )


def _check_access(config: Config, tables: RawTables, report: MistakeReport) -> None:
    """Check that a server that other machines can reach has a key, and that no two keys are the same."""
    if not is_loopback(config.server.host) and not config.keys:
        remedy = "add a [[keys]] table, set CALLWRIGHT_API_KEY, or listen on 127.0.0.1"
        what = "is reachable from other machines, but no key is configured"
        report.add_value_mistake(tables["server"][0], "host", what, remedy)
    owners: dict[str, RawTable] = {}
    for table, key in _pair_tables(config, tables, "keys"):
        if key.key and (other := owners.setdefault(key.key, table)) is not table:
            report.add_value_mistake(
                table, "key", f"is the same secret as that of {other.label}", "use a different one for each key"
            )


def _check_url(backend: BackendSettings, report: Callable[[str, str], None]) -> None:
    kind, shown = backend.kind, mask_url(backend.url)
    if kind in _SERVERLESS_KINDS:
        if backend.url:
            report(f'is set, but kind "{kind}" has no server', "remove it, or change the kind")
        return
    if backend.is_bridged:
        return
    if kind == "codex" and not (backend.url or backend.key or backend.headers):
        return  # Codex uses its own account
    if not backend.url:
        report("is missing", 'set the URL of the server, e.g. url = "http://127.0.0.1:8000/v1"')
        return
    url = _split_url(backend.url)
    if url is None:
        # The value is not quoted: it may be a key that was put here by mistake.
        report("is not a server URL", "it must look like http://127.0.0.1:8000/v1")
        return
    path = url.path.rstrip("/")
    endpoint = next((each for each in _ENDPOINT_PATHS if path.endswith(each)), None)
    if url.query or url.fragment:
        report("has a query or a fragment", "remove it: paths are appended to the URL, and key is a separate setting")
    elif endpoint:
        report(f'is "{shown}", the URL of one endpoint', f"remove {endpoint}")
    elif kind in _API_PREFIXES:
        if path.endswith(("/v1", "/api")):
            report(
                f'is "{shown}"',
                f'remove {path[path.rindex("/") :]}: kind "{kind}" adds {_API_PREFIXES[kind]} itself',
            )
    elif not path and url.scheme == "http" and kind not in ("harmony", "conversation"):
        # Public services use TLS, and some have their API at the root. Local servers have it at /v1, except for the
        # raw completions of llama.cpp and TGI.
        report(f'is "{shown}", without a path', f"the API of such servers is at {shown.rstrip('/')}/v1")


def _check_bridge(config: Config, table: RawTable, backend: BackendSettings, report: MistakeReport) -> None:
    """Check that each bridge has a token of its own: it is all that identifies and authenticates a page."""
    if not backend.is_bridged:
        if backend.origins:
            report.add_value_mistake(table, "origins", "is set, but no pages connect to this backend", "remove it")
        return
    others = [each for each in config.backends if each.is_bridged and each is not backend and each.key == backend.key]
    if len(backend.key) < _MIN_TOKEN_LENGTH:
        report.add_value_mistake(
            table,
            "key",
            f"is the token of its web pages and must have at least {_MIN_TOKEN_LENGTH} characters",
            "use a long random string, or set the url of the service",
        )
    elif others:
        report.add_value_mistake(
            table, "key", f"is also the token of {others[0].name!r}", "use a different one for each backend"
        )
    for origin in backend.origins:
        if not (url := _split_url(origin)) or url.path or url.query or url.fragment:
            report.add_value_mistake(
                table,
                "origins",
                f"contains {origin!r}, which is not an origin",
                "write https://host or http://host:port",
            )


def _split_url(url: str) -> SplitResult | None:
    """Split an HTTP or HTTPS URL; None if it is not one."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    fits = parts.scheme in {"http", "https"} and parts.hostname and port != 0 and not any(map(str.isspace, url))
    return parts if fits else None


def _check_templates(folder: str, report: Callable[[str, str], None]) -> None:
    """Load the templates now, so that an error in one is reported before the first turn needs it."""
    try:
        if folder:
            PromptTemplates(read_template_sources(Path(folder)))
    except ConfigError as problem:
        for mistake in problem.mistakes:
            report(f"has a template error: {mistake}", f"run callwright templates check {folder}")


def _check_model(
    config: Config, table: RawTable, model: Any, profiles: Collection[str] | None, report: MistakeReport
) -> None:
    known = [backend.name for backend in config.backends if backend.name]
    names = [model.backend] if isinstance(model.backend, str) else list(model.backend)
    if not config.backends:
        report.add_value_mistake(
            table, "backend", "cannot be resolved: no backend is configured", "add a [[backends]] table"
        )
    elif not names:
        report.add_value_mistake(
            table, "backend", "is an empty list", "name a backend, or remove the key to use the first one"
        )
    for name in names:
        if known and name and name not in known:
            report.add_value_mistake(
                table,
                "backend",
                f'is "{name}", but no [[backends]] table has that name',
                _format_suggestion(name, known),
            )
    try:
        get_dialect(model.dialect)
    except MisuseError:
        remedy = _format_suggestion(model.dialect, REGISTRY, "callwright dialects lists all dialects")
        report.add_value_mistake(table, "dialect", f'is "{model.dialect}", which is not a dialect', remedy)
    raw = {backend.name for backend in config.backends if backend.kind == "harmony"}
    if raw.intersection(name or known[0] for name in names if known) and model.dialect not in ("auto", "harmony"):
        what = f'is "{model.dialect}", but models of backends with kind "harmony" write Harmony'
        report.add_value_mistake(table, "dialect", what, 'remove it, or set kind = "completions" for the backend')
    if profiles is not None and model.profile not in {"auto", *profiles}:
        what = f'is "{model.profile}", which is not a client profile'
        report.add_value_mistake(table, "profile", what, _format_suggestion(model.profile, ["auto", *profiles]))


def _check_job(config: Config, table: RawTable, job: JobSettings, report: MistakeReport) -> None:
    known = [name for model in config.models for name in (model.name, *model.aliases)]
    if known and job.model and not any(fnmatchcase(job.model, name) for name in known):
        what = f'is "{job.model}", but no [[models]] table has that name'
        report.add_value_mistake(table, "model", what, _format_suggestion(job.model, known))
    if not job.keywords and not job.max_tokens:
        remedy = 'set keywords = ["…"], max_tokens, or both'
        report.add_value_mistake(
            table, "keywords", "is empty and max_tokens is not set, so the rule matches nothing", remedy
        )


def _format_suggestion(name: str, known: Collection[str], otherwise: str = "") -> str:
    close = find_closest_name(name, known)
    return f'did you mean "{close}"?' if close else otherwise or f"known names: {', '.join(known)}"
