"""`callwright` exports exactly what its `__init__` brings in, in order."""

from __future__ import annotations

import ast
import importlib
from importlib.metadata import version

from tests.meta.repository import modules, project


def bound_names(tree: ast.Module) -> set[str]:
    """Every public name that a module binds at its top level."""
    names = set()
    for node in tree.body:
        match node:
            case ast.ImportFrom(module="__future__"):
                pass
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names |= {alias.asname or alias.name.partition(".")[0] for alias in aliases}
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign(targets=targets):
                names |= {target.id for target in targets if isinstance(target, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case _:
                pass
    return {name for name in names if not name.startswith("_")}


def rank(name: str) -> tuple[int, str]:
    """CONSTANTS, then Classes, then the rest: the order that the linter keeps too."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


def test_all_is_sorted_and_complete() -> None:
    facade = importlib.import_module("callwright")
    exported = list(facade.__all__)
    tree = next(module.tree for module in modules() if module.name == "__init__.py")
    assert exported == sorted(exported, key=rank)
    assert {name for name in exported if not name.startswith("_")} == bound_names(tree)


def test_every_exported_name_is_there() -> None:
    facade = importlib.import_module("callwright")
    assert len(set(facade.__all__)) == len(facade.__all__)
    assert not [name for name in facade.__all__ if not hasattr(facade, name)]


def test_the_contract_is_exported() -> None:
    facade = importlib.import_module("callwright")
    contract = {"Parser", "ToolCallAggregator", "check_events", "collect", "events", "get_dialect", "model"}
    assert contract <= set(facade.__all__)


def test_there_is_one_version() -> None:
    stated = project()["project"]["version"]
    assert version("callwright") == stated, "the installed metadata is old: make setup"
    facade = importlib.import_module("callwright")
    assert getattr(facade, "__version__", stated) == stated
