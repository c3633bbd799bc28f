"""What must hold between tables, and what a type cannot say: names that agree, addresses, keys for open doors."""

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
"""Kinds whose address is that of the whole server, and the path that each adds itself."""

_KIND_SETTINGS: dict[str, tuple[BackendKind, ...]] = {
    "script": ("scripted",),
    "path": ("embedded", "codex"),
    "home": ("codex",),
    "plugin": ("plugin",),
    "plugin_options": ("plugin",),
}
"""Settings that only some kinds have, and those kinds."""
_SERVERLESS_KINDS: tuple[BackendKind, ...] = ("scripted", "embedded", "plugin")


_MIN_TOKEN_LENGTH = 16
"""Characters of a token that nobody guesses."""


def check_config(config: Config, tables: RawTables, profiles: Collection[str] | None, report: MistakeReport) -> None:
    """Report what does not fit together. `profiles` are the names of client profiles; None takes any name."""
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
                report.add_value_mistake(table, key, f'is set, but its kind is "{backend.kind}"', f"write {remedy}")
        _check_plugin(table, backend, report)
    for table in tables["prompt"]:
        _check_templates(config.prompt.templates, partial(report.add_value_mistake, table, "templates"))
    for table, model in _pair_tables(config, tables, "models"):
        named = model.prompt.get("templates")
        _check_templates(named if isinstance(named, str) else "", partial(report.add_value_mistake, table, "prompt"))
        _check_model(config, table, model, profiles, report)
    for table, server in _pair_tables(config, tables, "mcp"):
        if server.problem:
            report.add_value_mistake(
                table, "url" if server.url else "command", server.problem, 'such as command = ["my-server"]'
            )
    for table, job in _pair_tables(config, tables, "jobs"):
        _check_job(config, table, job, report)
    for table in tables["store"]:
        for key, what, remedy in store_mistakes(config.store):
            report.add_value_mistake(table, key, what, remedy)


def _check_plugin(table: RawTable, backend: BackendSettings, report: MistakeReport) -> None:
    known = list_backend_plugins()
    if backend.kind == "plugin" and backend.plugin not in known:
        what = f'is "{backend.plugin}", and no installed package has a backend of that name'
        remedy = _format_suggestion(backend.plugin, known, "callwright plugins lists them")
        report.add_value_mistake(table, "plugin", what, remedy)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _pair_tables(config: Config, tables: RawTables, name: str) -> Iterable[tuple[RawTable, Any]]:
    return zip(tables[name], getattr(config, name), strict=True)


def _check_unique(named: Iterable[tuple[RawTable, str, str]], report: MistakeReport) -> None:
    first: dict[str, RawTable] = {}
    for table, key, name in named:
        if name and (other := first.setdefault(name, table)) is not table:
            where = f" ({other.origin})" if other.origin.line else ""
            report.add_value_mistake(
                table, key, f'is "{name}", which {other.label} is called already{where}', "give it another"
            )


def _check_access(config: Config, tables: RawTables, report: MistakeReport) -> None:
    """A service that others can reach needs a key, and each key belongs to one person."""
    if not is_loopback(config.server.host) and not config.keys:
        remedy = "add a [[keys]] table, set CALLWRIGHT_API_KEY, or listen on 127.0.0.1"
        report.add_value_mistake(tables["server"][0], "host", "can be reached by others, and there is no key", remedy)
    owners: dict[str, RawTable] = {}
    for table, key in _pair_tables(config, tables, "keys"):
        if key.key and (other := owners.setdefault(key.key, table)) is not table:
            report.add_value_mistake(table, "key", f"is the same secret as that of {other.label}", "give each its own")


def _check_url(backend: BackendSettings, report: Callable[[str, str], None]) -> None:
    kind, shown = backend.kind, mask_url(backend.url)
    if kind in _SERVERLESS_KINDS:
        if backend.url:
            report(f'is set, but the kind "{kind}" has no server', "take it out, or name the server's kind")
        return
    if backend.is_bridged:
        return
    if kind == "codex" and not (backend.url or backend.key or backend.headers):
        return  # it asks with its own account
    if not backend.url:
        report("is missing", 'say where the server is, such as url = "http://127.0.0.1:8000/v1"')
        return
    url = _split_url(backend.url)
    if url is None:
        # Not quoted: it may be a key that was put here by mistake.
        report("is no address of a server", "it must look like http://127.0.0.1:8000/v1")
        return
    path = url.path.rstrip("/")
    endpoint = next((each for each in _ENDPOINT_PATHS if path.endswith(each)), None)
    if url.query or url.fragment:
        report(
            "has a part after ? or #", "leave it out, since paths are added to the address; a key has its own setting"
        )
    elif endpoint:
        report(f'is "{shown}", the address of one endpoint', f"leave out {endpoint}")
    elif kind in _API_PREFIXES:
        if path.endswith(("/v1", "/api")):
            report(
                f'is "{shown}"',
                f'leave out {path[path.rindex("/") :]}: the kind "{kind}" adds {_API_PREFIXES[kind]} itself',
            )
    elif not path and url.scheme == "http" and kind not in ("harmony", "conversation"):
        # Public services have TLS and some have their API at the root; servers of one's own have it at /v1, but for
        # the raw completions of llama.cpp and TGI.
        report(f'is "{shown}", without a path', f"such servers have this API at {shown.rstrip('/')}/v1")


def _check_bridge(config: Config, table: RawTable, backend: BackendSettings, report: MistakeReport) -> None:
    """Pages are told apart by their token, and by nothing else from strangers."""
    if not backend.is_bridged:
        if backend.origins:
            report.add_value_mistake(
                table, "origins", "is set, but no pages connect to it", 'only kind = "conversation" has them'
            )
        return
    others = [each for each in config.backends if each.is_bridged and each is not backend and each.key == backend.key]
    if len(backend.key) < _MIN_TOKEN_LENGTH:
        report.add_value_mistake(
            table,
            "key",
            f"is the token of its pages, and must have {_MIN_TOKEN_LENGTH} characters or more",
            "take a long random text, or name the service's url",
        )
    elif others:
        report.add_value_mistake(table, "key", f"is the token of {others[0].name!r} too", "give each its own")
    for origin in backend.origins:
        if not (url := _split_url(origin)) or url.path or url.query or url.fragment:
            report.add_value_mistake(
                table, "origins", f"has {origin!r}, which is no origin", "write https://host or http://host:port"
            )


def _split_url(url: str) -> SplitResult | None:
    """The parts of an address that HTTP can reach."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    fits = parts.scheme in {"http", "https"} and parts.hostname and port != 0 and not any(map(str.isspace, url))
    return parts if fits else None


def _check_templates(folder: str, report: Callable[[str, str], None]) -> None:
    """Templates are tried before they are needed: a mistake in one must not wait for the first turn."""
    try:
        if folder:
            PromptTemplates(read_template_sources(Path(folder)))
    except ConfigError as problem:
        for mistake in problem.mistakes:
            report(f"names templates with a mistake: {mistake}", f"callwright templates check {folder} tries them")


def _check_model(
    config: Config, table: RawTable, model: Any, profiles: Collection[str] | None, report: MistakeReport
) -> None:
    known = [backend.name for backend in config.backends if backend.name]
    wanted = [model.backend] if isinstance(model.backend, str) else list(model.backend)
    if not config.backends:
        report.add_value_mistake(
            table, "backend", "has nothing to name: there is no backend", "add a [[backends]] table"
        )
    elif not wanted:
        report.add_value_mistake(
            table, "backend", "is an empty list", "name a backend, or leave it out for the first one"
        )
    for name in wanted:
        if known and name and name not in known:
            report.add_value_mistake(
                table,
                "backend",
                f'is "{name}", and no [[backends]] table has that name',
                _format_suggestion(name, known),
            )
    try:
        get_dialect(model.dialect)
    except MisuseError:
        remedy = _format_suggestion(model.dialect, REGISTRY, "callwright dialects lists them")
        report.add_value_mistake(table, "dialect", f'is "{model.dialect}", which is no dialect', remedy)
    raw = {backend.name for backend in config.backends if backend.kind == "harmony"}
    if raw.intersection(name or known[0] for name in wanted if known) and model.dialect not in ("auto", "harmony"):
        what = f'is "{model.dialect}", but a backend of the kind "harmony" has models that write Harmony'
        report.add_value_mistake(table, "dialect", what, 'leave it out, or write kind = "completions" in the backend')
    if profiles is not None and model.profile not in {"auto", *profiles}:
        what = f'is "{model.profile}", which is no client profile'
        report.add_value_mistake(table, "profile", what, _format_suggestion(model.profile, ["auto", *profiles]))


def _check_job(config: Config, table: RawTable, job: JobSettings, report: MistakeReport) -> None:
    known = [name for model in config.models for name in (model.name, *model.aliases)]
    if known and job.model and not any(fnmatchcase(job.model, name) for name in known):
        what = f'is "{job.model}", and no [[models]] table has that name'
        report.add_value_mistake(table, "model", what, _format_suggestion(job.model, known))
    if not job.keywords and not job.max_tokens:
        remedy = 'write keywords = ["…"], max_tokens, or both'
        report.add_value_mistake(
            table, "keywords", "is empty and there is no max_tokens: the rule takes nothing", remedy
        )


def _format_suggestion(name: str, known: Collection[str], otherwise: str = "") -> str:
    close = find_closest_name(name, known)
    return f'did you mean "{close}"?' if close else otherwise or f"the names are {', '.join(known)}"
