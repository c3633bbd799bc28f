"""Names say what things are: one class name for one meaning, one stem for one module, verbs for functions.

`scripts/name_metrics.py` measures the same over any tree; docs/decisions/0030-plain-names.md has the reasons.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.meta.repository import Function, Module, modules

FAMILIES = {
    "__init__": "every package has one",
    "__main__": "Python's name",
    "base": "what a package's family of modules has in common",
    "settings": "one for each layer that has settings",
    "errors": "one for each layer that has errors of its own",
    "app": "an ASGI application, or the composition of all",
    "decode": "one for each wire",
    "encode": "one for each wire",
    "read": "one for each wire",
    "serve": "one for each wire, and the command",
    "call": "one for each wire",
    "agent": "the package, and the command",
    "codex": "the backend, the client's profile, and the command",
    "config": "the package, and the command",
    "dialects": "the package, and the command",
    "journal": "the store's table, and the command",
    "ollama": "the wire, and the backend that speaks it",
    "plugins": "the module, and the command",
    "policy": "the package, and the command",
    "workspace": "the package, and the class that it is about",
}
"""Stems that may occur more than once, each with the reason."""

VERBS = frozenset(
    """
    accept acquire adapt add admit advance alias allow answer append apply ascend attach begin bind bound build
    call cancel capture check choose classify clear close coerce collect compare compile compute configure
    connect continue convert copy count create decide decode delete descend describe disable disconnect discover
    drain drop emit encode end ensure enter erase escape estimate exchange expect extract fail feed fetch fill
    find finish fit flatten flush follow format forward gather get handle hash identify ignore ingest inline
    inspect install issue iter join judge keep lease limit list load main make map mark mask match measure merge
    move new normalize notify open pair parse peek plan play post predict prepare prepend print process prompt
    put query queue quote raise read receive record recover redact refresh refuse register reject release reload
    remember remove rename render repair replace replay report request require reserve reset resolve restore
    resume retire revert review rewind run sanitize save scan seal search send serve set shorten show shutdown
    skip snapshot split start startup stop store stream strip submit subscribe suggest sum summarize take tick
    track trim truncate try undo unwrap update use validate visit wait walk wrap write
    """.split()
)
"""What an exported function may begin with. Add a verb where one is missing; a participle or a noun is none."""
PREDICATES = frozenset("is has can should needs matches starts accepts".split())
CONVERSIONS = frozenset("to from as with on".split())
"""`to_x`, `from_x`, `as_x`, `with_x` convert; `on_x` is called back. `x_to_y` converts too."""

FIXED = {
    "grammar": "fixed by the design: how a dialect reads",
    "connection_lost": "an error by what happened, of BackendErrors",
    "lifespan": "the word of ASGI, and the parameter that Starlette and FastAPI take it as",
    "text_pattern": "the library's front door: a pattern for the aggregator",
    "unsent_messages": "reads as a value where it is used",
    "reported": "an error by what happened, of BackendErrors",
    "timed_out": "an error by what happened, of BackendErrors",
    "circuit_open": "an error by what happened, of BackendErrors",
    "invalid_bytes": "an error by what happened, of BackendErrors",
    "unexpected_redirect": "an error by what happened, of BackendErrors",
}
"""Exported functions that begin otherwise, each with the reason."""

OLD_WORDS = frozenset(
    """
    told telling retold said unsaid says heard hear unheard asked asking way ways place held kept begun room desk tongue
    aloud scribe shelf tape mend mended mending guest guests workshop halt face faces diet dieted
    """.split()
)
"""The private vocabulary that no exported name holds."""
OLD_WORDS_IN_USE = {
    "ChangesKept": "keep and undo are the two words that people use for changes",
    "has_kept_changes": "keep and undo are the two words that people use for changes",
    "three_way_merge": "the algorithm's name",
}


class Definition(NamedTuple):
    """A class or function that other modules can use."""

    where: str
    name: str
    node: ast.ClassDef | Function
    is_property: bool = False


def is_property(function: Function) -> bool:
    names = {getattr(one, "id", getattr(one, "attr", "")) for one in function.decorator_list}
    return bool(names & {"property", "cached_property", "setter"})


def exported(module: Module) -> Iterator[Definition]:
    def visit(body: list[ast.stmt], prefix: str) -> Iterator[Definition]:
        for node in body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("_"):
                continue
            if isinstance(node, ast.ClassDef):
                yield Definition(f"{module.name}:{prefix}{node.name}", node.name, node)
                yield from visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield Definition(f"{module.name}:{prefix}{node.name}", node.name, node, is_property(node))

    return visit(module.tree.body, "")


def definitions() -> list[Definition]:
    return [found for module in modules() for found in exported(module)]


def stem(module: Module) -> str:
    parts = module.name.removesuffix(".py").split("/")
    return parts[-2] if parts[-1] == "__init__" and len(parts) > 1 else parts[-1]


def begins_with_a_verb(name: str) -> bool:
    first = name.split("_")[0]
    return first in VERBS | PREDICATES | CONVERSIONS or "_to_" in name or name in FIXED


def words(name: str) -> set[str]:
    return set(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().split("_"))


def test_no_public_class_name_has_two_meanings() -> None:
    places = defaultdict(list)
    for found in definitions():
        if isinstance(found.node, ast.ClassDef):
            places[found.name].append(found.where)
    assert not {name: where for name, where in places.items() if len(where) > 1}


def test_a_module_stem_occurs_once_or_is_a_family() -> None:
    places = defaultdict(list)
    for module in modules():
        places[stem(module)].append(module.name)
    twice = {name: where for name, where in places.items() if len(where) > 1}
    assert not {name: where for name, where in twice.items() if name not in FAMILIES}, "name a module for what it holds"
    assert not set(FAMILIES) - set(twice) - {"__init__", "__main__"}, "an exception that nothing needs"


def test_exported_functions_begin_with_a_verb() -> None:
    functions = [found for found in definitions() if not isinstance(found.node, ast.ClassDef) and not found.is_property]
    assert not [found.where for found in functions if not begins_with_a_verb(found.name)], "a verb and its object"


def test_every_verb_and_exception_is_used() -> None:
    names = {found.name for found in definitions()}
    firsts = {name.split("_")[0] for name in names}
    assert not [name for name in FIXED if name not in names]
    assert not [verb for verb in PREDICATES if verb not in firsts]


def test_the_old_vocabulary_is_not_exported() -> None:
    stems = {stem(module): module.name for module in modules()}
    names = {found.name: found.where for found in definitions()} | stems
    assert not {where for name, where in names.items() if words(name) & OLD_WORDS and name not in OLD_WORDS_IN_USE}


@pytest.mark.parametrize("name", ["told", "mended_request", "place", "size", "strict", "tool_limits", "heard"])
def test_a_participle_or_a_noun_is_no_verb(name: str) -> None:
    assert not begins_with_a_verb(name)
