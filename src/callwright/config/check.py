"""What must hold between tables, and what a type cannot say: names that agree, addresses, keys for open doors."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Collection, Iterable
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from callwright.backends.settings import BackendKind, BackendSettings
from callwright.config.mistakes import Report, Table, nearest
from callwright.config.secrets import masked_url
from callwright.config.settings import Config
from callwright.config.sources import Sheet
from callwright.config.templates import template_sources
from callwright.dialects import REGISTRY, get_dialect
from callwright.engine.jobs import JobSettings
from callwright.errors import ConfigError, MisuseError
from callwright.prompt.prompt_templates import PromptTemplates
from callwright.store.settings import find_mistakes as store_mistakes

__all__ = ["check", "is_loopback"]

_ENDPOINTS = (
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
_ROOTED = {"anthropic": "/v1", "ollama": "/api"}
"""Kinds whose address is that of the whole server, and the path that each adds itself."""

_FILES: dict[str, tuple[BackendKind, ...]] = {
    "script": ("scripted",),
    "path": ("embedded", "codex"),
    "home": ("codex",),
}
"""Settings that name a file, and the kinds that have one."""
_SERVERLESS: tuple[BackendKind, ...] = ("scripted", "embedded")


_TOKEN = 16
"""Characters of a token that nobody guesses."""


def check(config: Config, sheet: Sheet, profiles: Collection[str] | None, report: Report) -> None:
    """Report what does not fit together. `profiles` are the names of client profiles; None takes any name."""
    for name in ("keys", "backends", "jobs", "mcp"):
        _check_unique(((table, "name", each.name) for table, each in _pairs(config, sheet, name)), report)
    _check_unique(
        (
            (table, key, name)
            for table, model in _pairs(config, sheet, "models")
            for key, names in (("name", [model.name]), ("aliases", model.aliases))
            for name in names
        ),
        report,
    )
    _check_door(config, sheet, report)
    for table, backend in _pairs(config, sheet, "backends"):
        _check_url(backend, partial(report.value, table, "url"))
        _check_bridge(config, table, backend, report)
        for key, kinds in _FILES.items():
            if getattr(backend, key) and backend.kind not in kinds:
                remedy = " or ".join(f'kind = "{kind}"' for kind in kinds)
                report.value(table, key, f'is set, but its kind is "{backend.kind}"', f"write {remedy}")
    for table in sheet["prompt"]:
        _check_templates(config.prompt.templates, partial(report.value, table, "templates"))
    for table, model in _pairs(config, sheet, "models"):
        named = model.prompt.get("templates")
        _check_templates(named if isinstance(named, str) else "", partial(report.value, table, "prompt"))
        _check_model(config, table, model, profiles, report)
    for table, server in _pairs(config, sheet, "mcp"):
        if server.flaw:
            report.value(table, "url" if server.url else "command", server.flaw, 'such as command = ["my-server"]')
    for table, job in _pairs(config, sheet, "jobs"):
        _check_job(config, table, job, report)
    for table in sheet["store"]:
        for key, what, remedy in store_mistakes(config.store):
            report.value(table, key, what, remedy)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _pairs(config: Config, sheet: Sheet, name: str) -> Iterable[tuple[Table, Any]]:
    return zip(sheet[name], getattr(config, name), strict=True)


def _check_unique(named: Iterable[tuple[Table, str, str]], report: Report) -> None:
    first: dict[str, Table] = {}
    for table, key, name in named:
        if name and (other := first.setdefault(name, table)) is not table:
            where = f" ({other.place})" if other.place.line else ""
            report.value(table, key, f'is "{name}", which {other.label} is called already{where}', "give it another")


def _check_door(config: Config, sheet: Sheet, report: Report) -> None:
    """A service that others can reach needs a key, and each key belongs to one person."""
    if not is_loopback(config.server.host) and not config.keys:
        remedy = "add a [[keys]] table, set CALLWRIGHT_API_KEY, or listen on 127.0.0.1"
        report.value(sheet["server"][0], "host", "can be reached by others, and there is no key", remedy)
    owners: dict[str, Table] = {}
    for table, key in _pairs(config, sheet, "keys"):
        if key.key and (other := owners.setdefault(key.key, table)) is not table:
            report.value(table, "key", f"is the same secret as that of {other.label}", "give each its own")


def _check_url(backend: BackendSettings, report: Callable[[str, str], None]) -> None:
    kind, shown = backend.kind, masked_url(backend.url)
    if kind in _SERVERLESS:
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
    url = _split(backend.url)
    if url is None:
        # Not quoted: it may be a key that was put here by mistake.
        report("is no address of a server", "it must look like http://127.0.0.1:8000/v1")
        return
    path = url.path.rstrip("/")
    endpoint = next((each for each in _ENDPOINTS if path.endswith(each)), None)
    if url.query or url.fragment:
        report(
            "has a part after ? or #", "leave it out, since paths are added to the address; a key has its own setting"
        )
    elif endpoint:
        report(f'is "{shown}", the address of one endpoint', f"leave out {endpoint}")
    elif kind in _ROOTED:
        if path.endswith(("/v1", "/api")):
            report(
                f'is "{shown}"', f'leave out {path[path.rindex("/") :]}: the kind "{kind}" adds {_ROOTED[kind]} itself'
            )
    elif not path and url.scheme == "http" and kind not in ("harmony", "conversation"):
        # Public services have TLS and some have their API at the root; servers of one's own have it at /v1, but for
        # the raw completions of llama.cpp and TGI.
        report(f'is "{shown}", without a path', f"such servers have this API at {shown.rstrip('/')}/v1")


def _check_bridge(config: Config, table: Table, backend: BackendSettings, report: Report) -> None:
    """Pages are told apart by their token, and by nothing else from strangers."""
    if not backend.is_bridged:
        if backend.origins:
            report.value(table, "origins", "is set, but no pages connect to it", 'only kind = "conversation" has them')
        return
    others = [each for each in config.backends if each.is_bridged and each is not backend and each.key == backend.key]
    if len(backend.key) < _TOKEN:
        report.value(
            table,
            "key",
            f"is the token of its pages, and must have {_TOKEN} characters or more",
            "take a long random text, or name the service's url",
        )
    elif others:
        report.value(table, "key", f"is the token of {others[0].name!r} too", "give each its own")
    for origin in backend.origins:
        if not (url := _split(origin)) or url.path or url.query or url.fragment:
            report.value(
                table, "origins", f"has {origin!r}, which is no origin", "write https://host or http://host:port"
            )


def _split(url: str) -> SplitResult | None:
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
            PromptTemplates(template_sources(Path(folder)))
    except ConfigError as problem:
        for mistake in problem.mistakes:
            report(f"names templates with a mistake: {mistake}", f"callwright templates check {folder} tries them")


def _check_model(config: Config, table: Table, model: Any, profiles: Collection[str] | None, report: Report) -> None:
    known = [backend.name for backend in config.backends if backend.name]
    wanted = [model.backend] if isinstance(model.backend, str) else list(model.backend)
    if not config.backends:
        report.value(table, "backend", "has nothing to name: there is no backend", "add a [[backends]] table")
    elif not wanted:
        report.value(table, "backend", "is an empty list", "name a backend, or leave it out for the first one")
    for name in wanted:
        if known and name and name not in known:
            report.value(
                table, "backend", f'is "{name}", and no [[backends]] table has that name', _choice(name, known)
            )
    try:
        get_dialect(model.dialect)
    except MisuseError:
        remedy = _choice(model.dialect, REGISTRY, "callwright dialects lists them")
        report.value(table, "dialect", f'is "{model.dialect}", which is no dialect', remedy)
    raw = {backend.name for backend in config.backends if backend.kind == "harmony"}
    if raw.intersection(name or known[0] for name in wanted if known) and model.dialect not in ("auto", "harmony"):
        what = f'is "{model.dialect}", but a backend of the kind "harmony" has models that write Harmony'
        report.value(table, "dialect", what, 'leave it out, or write kind = "completions" in the backend')
    if profiles is not None and model.profile not in {"auto", *profiles}:
        what = f'is "{model.profile}", which is no client profile'
        report.value(table, "profile", what, _choice(model.profile, ["auto", *profiles]))


def _check_job(config: Config, table: Table, job: JobSettings, report: Report) -> None:
    known = [name for model in config.models for name in (model.name, *model.aliases)]
    if known and job.model and not any(fnmatchcase(job.model, name) for name in known):
        what = f'is "{job.model}", and no [[models]] table has that name'
        report.value(table, "model", what, _choice(job.model, known))
    if not job.keywords and not job.max_tokens:
        remedy = 'write marks = ["…"], max_tokens, or both'
        report.value(table, "marks", "is empty and there is no max_tokens: the rule takes nothing", remedy)


def _choice(name: str, known: Collection[str], otherwise: str = "") -> str:
    close = nearest(name, known)
    return f'did you mean "{close}"?' if close else otherwise or f"the names are {', '.join(known)}"
