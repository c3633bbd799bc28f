"""What a source file may not do, and must have, wherever it stands."""

from __future__ import annotations

import ast

from tests.meta.repository import PACKAGE, Module, at, functions, modules

VAGUE_NAMES = {"common", "helper", "helpers", "manager", "managers", "misc", "util", "utils"}
# (path from the package, function): the outermost frames, where a bug becomes a report and not a crash. Two at most.
# A program's own text pattern may raise anything; what it raised is in `pattern_errors`.
BROAD_EXCEPTS: frozenset[tuple[str, str]] = frozenset({("aggregator.py", "_search_text")})
READS_ENVIRONMENT = ("app.py", "cli/")
IMPORTS_LATE = ("app.py", "cli/")
"""`app.py` loads what each part needs: a gateway loads no agent, and no database unless it records turns."""


def stem(module: Module) -> str:
    parts = module.name.removesuffix(".py").split("/")
    return parts[-2] if parts[-1] == "__init__" and len(parts) > 1 else parts[-1]


def is_broad(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(kind, ast.Name) and kind.id in {"Exception", "BaseException"} for kind in kinds)


def reads_environment(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id="os"), attr="environ" | "environb" | "getenv" | "getenvb"):
            return True
        case ast.ImportFrom(module="os", names=names):
            return any(name.name in {"environ", "environb", "getenv", "getenvb"} for name in names)
        case _:
            return False


def test_no_module_has_a_vague_name() -> None:
    vague = [module.name for module in modules() if stem(module) in VAGUE_NAMES or stem(module).startswith("base_")]
    assert not vague, "name a module for what it does, or put the function beside its only user"


def test_every_public_module_says_what_it_owns() -> None:
    public = [module for module in modules() if not stem(module).startswith("_") or stem(module) == "__init__"]
    assert not [module.name for module in public if not ast.get_docstring(module.tree)]


def test_imports_stand_at_the_top() -> None:
    local = {
        at(module, node)
        for module in modules()
        if not module.name.startswith(IMPORTS_LATE)
        for function in functions(module.tree)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert not local, "an import inside a function hides a cycle; only cli/ and app.py may put one off"


def test_nothing_catches_everything() -> None:
    found = set()
    for module in modules():
        frames: dict[ast.AST, str] = {}
        for function in functions(module.tree):  # outer functions come first, so the innermost name stays
            frames.update(dict.fromkeys(ast.walk(function), function.name))
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ExceptHandler) and is_broad(node):
                found.add((module.name, frames.get(node, "<module>")))
    assert len(BROAD_EXCEPTS) <= 2, "only the two outermost frames may catch everything"
    assert found == BROAD_EXCEPTS


def test_only_the_edge_reads_the_environment() -> None:
    readers = {
        at(module, node)
        for module in modules()
        if not module.name.startswith(READS_ENVIRONMENT)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.expr | ast.stmt) and reads_environment(node)
    }
    assert not readers


def test_the_package_says_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()
