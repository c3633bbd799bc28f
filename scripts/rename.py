"""Rename modules, classes, functions, fields and parameters from checked-in tables, in the package, tests and scripts.

    python3.12 scripts/rename.py scripts/renames/*.tsv --check     # what would change, and what cannot be resolved
    python3.12 scripts/rename.py scripts/renames/engine.tsv        # change it

A table has one rename a line, separated by tabs; full names on the left are the old ones:

    M  package.engine.telling              package.engine.backend_request    a module moves
    S  package.engine.telling.Way.reads    answer_dialect                    a class, function, field, constant
    P  package.engine.again.asked_again    said  answer_text                 a parameter

mypy resolves every reference (so a method is renamed only where its own class is used), libcst edits the files.
Methods are linked through the class hierarchy. What mypy cannot resolve is printed with its place. Python 3.12 or later
is needed, because older versions give wrong positions inside f-strings.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from inspect import isgetsetdescriptor
from pathlib import Path
from tempfile import NamedTemporaryFile

import libcst as cst
from libcst.metadata import GlobalScope, MetadataWrapper, PositionProvider, ScopeProvider
from mypy import build, nodes, types
from mypy.find_sources import create_source_list
from mypy.fscache import FileSystemCache
from mypy.main import process_options
from mypy.patterns import ClassPattern

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "tests", "scripts", "examples")
_BY_NAME = {"getattr", "setattr", "hasattr", "delattr"}
_HEAVY = (
    "anthropic",
    "langchain_openai",
    "langchain_core",
    "openai",
    "pydantic_ai",
    "pydantic",
    "schemathesis",
    "mcp",
    "playwright",
    "acp",
    "transformers",
    "numpy",
    "hypothesis_jsonschema",
    "rich",
    "prompt_toolkit",
    "aiohttp",
    "sqlalchemy",
)
"""Packages whose types are not needed, and take long to read."""
_DOTTED = re.compile(r"\b(?:callwright|tests)(?:\.[A-Za-z_]\w*)+")


@dataclass
class Table:
    """The renames of a run."""

    modules: dict[str, str] = field(default_factory=dict)
    symbols: dict[str, str] = field(default_factory=dict)
    parameters: dict[tuple[str, str], str] = field(default_factory=dict)

    def read(self, path: Path) -> None:
        for line in path.read_text().splitlines():
            match line.split("\t"):
                case ["M", old, new]:
                    self.modules[old] = new
                case ["S", old, new]:
                    self.symbols[old] = new
                case ["P", function, old, new]:
                    self.parameters[function, old] = new
                case [text] if not text or text.startswith("#"):
                    pass
                case _:
                    raise SystemExit(f"{path}: not a rename: {line!r}")


def load_program() -> build.BuildResult:
    arguments = [str(ROOT / name) for name in FOLDERS if (ROOT / name).is_dir()]
    with NamedTemporaryFile("w", suffix=".ini") as settings:
        settings.write("[mypy]\nmypy_path = src,.\nexplicit_package_bases = True\ncheck_untyped_defs = True\n")
        settings.write("exclude = tests/vectors|node_modules\nignore_errors = True\n")
        for package in _HEAVY:
            settings.write(f"[mypy-{package}.*]\nfollow_imports = skip\nfollow_imports_for_stubs = True\n")
        settings.flush()
        cache = FileSystemCache()
        _, options = process_options(["--config-file", settings.name, *arguments], fscache=cache)
    options.export_types = options.preserve_asts = True
    options.incremental = False
    sources = create_source_list(arguments, options, cache)
    return build.build(sources, options=options, fscache=cache)


class Names:
    """Resolves members and links those that override each other."""

    def __init__(self, program: build.BuildResult, table: Table) -> None:
        self.files = program.files
        self.types = program.types
        self.table = table
        self.symbols = dict(table.symbols)
        self.parameters = dict(table.parameters)
        self.problems: list[str] = []
        self.classes = list(self._find_classes())
        self._link_overrides()
        self.attributes: dict[str, set[str]] = defaultdict(set)
        defined: dict[str, set[str]] = defaultdict(set)
        for info in self.classes:
            for name in info.names:
                defined[name].add(self.symbols.get(f"{info.fullname}.{name}", name))
        # An attribute of an unknown type is renamed only where every class of ours renames it to the same.
        common = {name for kind in (str, bytes, dict, list, set, Path) for name in dir(kind)} | {
            "refresh",
            "set",
            "where",
        }
        self.unique = {
            name: next(iter(new))
            for name, new in defined.items()
            if len(new) == 1 and name not in new and name not in common
        }

    def _find_classes(self) -> Iterator[nodes.TypeInfo]:
        for file in self.files.values():
            if not is_ours(file.fullname):
                continue
            stack = [file.names]
            while stack:
                for symbol in stack.pop().values():
                    node = symbol.node
                    if isinstance(node, nodes.TypeInfo) and is_ours(node.module_name):
                        if symbol.node.fullname.startswith(file.fullname):
                            yield node
                            stack.append(node.names)

    def _link_overrides(self) -> None:
        groups: dict[str, str] = {}

        def find(name: str) -> str:
            while groups.setdefault(name, name) != name:
                name = groups[name]
            return name

        members = defaultdict(set)
        outside = set()
        for info in self.classes:
            for name in info.names:
                if name.startswith("__"):
                    continue
                own = f"{info.fullname}.{name}"
                find(own)
                for base in info.mro[1:]:
                    if name in base.names:
                        if is_ours(base.module_name):
                            groups[find(own)] = find(f"{base.fullname}.{name}")
                        elif base.fullname != "builtins.object":
                            outside.add(own)
        for name in groups:
            members[find(name)].add(name)
        for group in members.values():
            new = {self.symbols[name] for name in group if name in self.symbols}
            if not new:
                continue
            if len(new) > 1:
                self.problems.append(f"linked members with different names: {sorted(group)}: {sorted(new)}")
                continue
            if group & outside:
                self.problems.append(f"overrides something outside: {sorted(group & outside)}")
            for name in group:
                self.symbols[name] = next(iter(new))
        for (function, old), new in list(self.parameters.items()):
            for name in members.get(find(function), ()):
                self.parameters.setdefault((name, old), new)

    def rename_member(self, kind: types.Type | None, name: str) -> str | None:
        """The new name of an attribute of a value of this type."""
        for owner in self.find_owners(kind):
            for base in owner.mro:
                if name in base.names:
                    return self.symbols.get(f"{base.fullname}.{name}")
        return None

    def is_known(self, kind: types.Type | None, name: str) -> bool:
        return any(name in base.names for owner in self.find_owners(kind) for base in owner.mro)

    def find_owners(self, kind: types.Type | None) -> Iterator[nodes.TypeInfo]:
        if kind is None:
            return
        kind = types.get_proper_type(kind)
        match kind:
            case types.Instance():
                yield kind.type
            case types.UnionType():
                for item in kind.items:
                    yield from self.find_owners(item)
            case types.FunctionLike() if kind.is_type_obj():
                yield kind.type_object()
            case types.TypeType():
                yield from self.find_owners(kind.item)
            case types.TupleType():
                yield kind.partial_fallback.type
            case types.TypeVarType():
                yield from self.find_owners(kind.upper_bound)
                for value in kind.values:
                    yield from self.find_owners(value)
            case types.LiteralType():
                yield kind.fallback.type

    def rename_path(self, path: str) -> str:
        """A dotted path to a module or symbol, as it is after the renames; unchanged when it is not known."""
        parts = path.split(".")
        for length in range(len(parts), 0, -1):
            module = ".".join(parts[:length])
            if module not in self.files:
                continue
            new = [self.table.modules.get(module, module)]
            scope, names = module, self.files[module].names
            for part in parts[length:]:
                node = names[part].node if names and part in names else None
                full = getattr(node, "fullname", None) or f"{scope}.{part}"
                new.append(self.symbols.get(full, part))
                scope, names = full, getattr(node, "names", None) if isinstance(node, nodes.TypeInfo) else None
            return ".".join(new)
        return path


def is_ours(module: str) -> bool:
    return module.split(".")[0] in {"callwright", "tests", "scripts"}


@dataclass
class Edits:
    """What changes in one file. Columns count bytes, as mypy's do."""

    ends: dict[tuple[int, int], tuple[str, str]] = field(default_factory=dict)
    """An identifier, by where it ends."""
    keywords: dict[tuple[int, int], dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    """Keywords of calls and patterns, by where their values begin."""
    strings: dict[tuple[int, int], tuple[str, str]] = field(default_factory=dict)
    unresolved: list[str] = field(default_factory=list)


_ELSEWHERE = {
    "node",
    "info",
    "type",
    "unanalyzed_type",
    "names",
    "analyzed",
    "original_def",
    "def_frame",
    "line",
    "column",
}
"""Attributes of mypy's nodes that lead out of the tree."""


@cache
def child_attributes(kind: type) -> tuple[str, ...]:
    names = (name for base in kind.__mro__ for name, value in vars(base).items() if isgetsetdescriptor(value))
    return tuple(dict.fromkeys(name for name in names if name not in _ELSEWHERE and not name.startswith("_")))


def iter_nodes(root: nodes.Node) -> Iterator[nodes.Node]:
    """Every node of a tree, parents first. mypy's own visitors are compiled and cannot be subclassed here."""
    seen: set[int] = set()
    stack: list[object] = [root]
    while stack:
        item = stack.pop()
        if isinstance(item, list | tuple):
            stack.extend(item)
        elif isinstance(item, nodes.Node) and id(item) not in seen:
            seen.add(id(item))
            yield item
            stack.extend(getattr(item, name, None) for name in child_attributes(type(item)))


class Collector:
    """Finds every reference of one file that is renamed."""

    def __init__(self, names: Names, file: nodes.MypyFile) -> None:
        self.names = names
        self.file = file
        self.edits = Edits()
        self.variables: dict[nodes.Var, str] = {}

    def collect(self) -> Edits:
        found = [node for statement in self.file.defs for node in iter_nodes(statement)]
        for node in found:
            if isinstance(node, nodes.FuncDef):
                self.visit_func_def(node)
        for node in found:
            match node:
                case nodes.NameExpr():
                    self.visit_name_expr(node)
                case nodes.MemberExpr():
                    self.visit_member_expr(node)
                case nodes.SuperExpr():
                    self.visit_super_expr(node)
                case nodes.CallExpr():
                    self.visit_call_expr(node)
                case ClassPattern():
                    self.visit_class_pattern(node)
        return self.edits

    def visit_func_def(self, o: nodes.FuncDef) -> None:
        for argument in o.arguments:
            new = self.names.parameters.get((o.fullname, argument.variable.name))
            if new:
                self.variables[argument.variable] = new

    def visit_name_expr(self, o: nodes.NameExpr) -> None:
        node = o.node
        if isinstance(node, nodes.Var) and node in self.variables:
            self._end(o, o.name, self.variables[node])
        elif isinstance(node, nodes.MypyFile):
            new = self.names.table.modules.get(node.fullname)
            if new and o.name == node.fullname.rpartition(".")[2]:
                self._end(o, o.name, new.rpartition(".")[2])
        elif node is not None:
            full = node.fullname
            if full in self.names.symbols and full.rpartition(".")[2] == o.name:
                self._end(o, o.name, self.names.symbols[full])

    def visit_member_expr(self, o: nodes.MemberExpr) -> None:
        new = None
        base = o.expr
        if isinstance(base, nodes.RefExpr) and isinstance(base.node, nodes.MypyFile):
            target = base.node.names.get(o.name)
            if isinstance(o.node, nodes.MypyFile):
                moved = self.names.table.modules.get(o.node.fullname)
                new = moved.rpartition(".")[2] if moved else None
            elif target and target.node is not None:
                new = self.names.symbols.get(target.node.fullname)
        elif isinstance(base, nodes.RefExpr) and isinstance(base.node, nodes.TypeInfo):
            for owner in base.node.mro:
                if o.name in owner.names:
                    new = self.names.symbols.get(f"{owner.fullname}.{o.name}")
                    break
        else:
            kind = self.names.types.get(base)
            new = self.names.rename_member(kind, o.name)
            if new is None and not self.names.is_known(kind, o.name):
                proper = types.get_proper_type(kind) if kind is not None else None
                if proper is None or isinstance(proper, types.AnyType):
                    if o.name in self.names.unique:
                        new = self.names.unique[o.name]
                        self.edits.unresolved.append(f"{self.file.path}:{o.line}: .{o.name} → {new} (by name alone)")
                    elif any(key.endswith(f".{o.name}") for key in self.names.table.symbols):
                        self.edits.unresolved.append(f"{self.file.path}:{o.line}: .{o.name} of an unknown type")
        if new:
            self._end(o, o.name, new)

    def visit_super_expr(self, o: nodes.SuperExpr) -> None:
        if o.info is not None:
            for base in o.info.mro[1:]:
                if o.name in base.names:
                    new = self.names.symbols.get(f"{base.fullname}.{o.name}")
                    if new:
                        self._end(o, o.name, new)
                    break

    def visit_call_expr(self, o: nodes.CallExpr) -> None:
        if any(o.arg_names):
            self._keywords(o)
        callee = o.callee
        by_name = isinstance(callee, nodes.NameExpr) and callee.name in _BY_NAME
        patched = isinstance(callee, nodes.MemberExpr) and callee.name in {"setattr", "delattr", "object"}
        if (by_name or patched) and len(o.args) > 1 and isinstance(o.args[1], nodes.StrExpr):
            self._string(o.args[0], o.args[1])

    def visit_class_pattern(self, o: ClassPattern) -> None:
        if isinstance(o.class_ref.node, nodes.TypeInfo):
            for name, value in zip(o.keyword_keys, o.keyword_values, strict=True):
                for owner in o.class_ref.node.mro:
                    if name in owner.names:
                        if new := self.names.symbols.get(f"{owner.fullname}.{name}"):
                            self.edits.keywords[value.line, value.column][name] = new
                        break

    def _keywords(self, o: nodes.CallExpr) -> None:
        callee, kind = o.callee, self.names.types.get(o.callee)
        owners: list[nodes.TypeInfo] = []
        functions: list[str] = []
        name = callee.name if isinstance(callee, nodes.NameExpr | nodes.MemberExpr) else ""
        if name in {"replace", "_replace"}:
            subject = o.args[0] if name == "replace" and o.args else getattr(callee, "expr", None)
            owners += self.names.find_owners(self.names.types.get(subject)) if subject else []
        if isinstance(callee, nodes.RefExpr) and isinstance(callee.node, nodes.TypeInfo):
            owners.append(callee.node)
        elif kind is not None:
            proper = types.get_proper_type(kind)
            if isinstance(proper, types.FunctionLike) and proper.is_type_obj():
                owners.append(proper.type_object())
        if isinstance(callee, nodes.RefExpr) and callee.node is not None and not owners:
            functions.append(callee.node.fullname)
        if isinstance(callee, nodes.MemberExpr):
            for owner in self.names.find_owners(self.names.types.get(callee.expr)):
                functions += [f"{base.fullname}.{callee.name}" for base in owner.mro if callee.name in base.names][:1]
        for info in owners:
            functions += [f"{base.fullname}.__init__" for base in info.mro]
        for keyword, value in zip(o.arg_names, o.args, strict=True):
            if keyword is None:
                continue
            for info in owners:
                for base in info.mro:
                    if keyword in base.names and (new := self.names.symbols.get(f"{base.fullname}.{keyword}")):
                        self.edits.keywords[value.line, value.column][keyword] = new
            for function in functions:
                if new := self.names.parameters.get((function, keyword)):
                    self.edits.keywords[value.line, value.column][keyword] = new

    def _string(self, subject: nodes.Expression, text: nodes.StrExpr) -> None:
        new = None
        if isinstance(subject, nodes.RefExpr) and isinstance(subject.node, nodes.MypyFile):
            target = subject.node.names.get(text.value)
            new = self.names.symbols.get(target.node.fullname) if target and target.node else None
        else:
            new = self.names.rename_member(self.names.types.get(subject), text.value)
            if new is None and isinstance(subject, nodes.RefExpr) and isinstance(subject.node, nodes.TypeInfo):
                new = self.names.symbols.get(f"{subject.node.fullname}.{text.value}")
        if new:
            self.edits.strings[text.line, text.column] = (text.value, new)

    def _end(self, o: nodes.Expression, old: str, new: str) -> None:
        if o.end_line is not None and o.end_column is not None and old != new:
            self.edits.ends[o.end_line, o.end_column] = (old, new)


class Editor(cst.CSTTransformer):
    """Applies the edits of one file, and renames its definitions, imports, `__all__` and dotted strings."""

    METADATA_DEPENDENCIES = (PositionProvider, ScopeProvider)

    def __init__(self, names: Names, module: str, edits: Edits, text: str) -> None:
        super().__init__()
        self.names, self.module, self.edits = names, module, edits
        self.lines = [line.encode() for line in text.split("\n")]
        self.scope = [module]
        self.kinds = ["module"]
        self.skipped: set[int] = set()
        self.in_slots = False
        file = names.files[module]
        self.globals = {
            name: names.symbols[symbol.node.fullname]
            for name, symbol in file.names.items()
            if symbol.node is not None
            and symbol.node.fullname in names.symbols
            and symbol.node.fullname.rpartition(".")[2] == name
        }

    def is_needed(self, text: str) -> bool:
        """Whether anything in the file may change; reading a file with libcst takes long."""
        edits, module = self.edits, self.module
        if edits.ends or edits.keywords or edits.strings or self.globals:
            return True
        modules = self.names.table.modules
        prefix = f"{module}."
        if any(name.startswith(prefix) for name in self.names.symbols):
            return True
        if any(function.startswith(prefix) for function, _ in self.names.parameters):
            return True
        paths = {match[0] for match in _DOTTED.finditer(text)}
        return any(self.names.rename_path(path) != path for path in paths) or any(
            module in paths or module.rpartition(".")[0] in paths for module in modules
        )

    def _bytes(self, line: int, column: int) -> tuple[int, int]:
        return line, len(self.lines[line - 1].decode()[:column].encode())

    def _start(self, node: cst.CSTNode) -> tuple[int, int]:
        if isinstance(node, cst.Tuple | cst.GeneratorExp) and node.lpar:
            node = node.lpar[0]  # to mypy, the parentheses belong to a tuple
        start = self.get_metadata(PositionProvider, node).start
        return self._bytes(start.line, start.column)

    def _own(self, name: str) -> str | None:
        if self.kinds[-1] == "function":
            return None
        return self.names.symbols.get(f"{self.scope[-1]}.{name}")

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self.skipped.add(id(node.name))
        self.scope.append(f"{self.scope[-1]}.{node.name.value}")
        self.kinds.append("class")

    def leave_ClassDef(self, original_node: cst.ClassDef, updated_node: cst.ClassDef) -> cst.ClassDef:
        self.scope.pop()
        self.kinds.pop()
        new = self._own(original_node.name.value)
        return updated_node.with_changes(name=cst.Name(new)) if new else updated_node

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.skipped.add(id(node.name))
        self.scope.append(f"{self.scope[-1]}.{node.name.value}")
        self.kinds.append("function")

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        self.scope.pop()
        self.kinds.pop()
        new = self._own(original_node.name.value)
        return updated_node.with_changes(name=cst.Name(new)) if new else updated_node

    def leave_Param(self, original_node: cst.Param, updated_node: cst.Param) -> cst.Param:
        new = self.names.parameters.get((self.scope[-1], original_node.name.value))
        return updated_node.with_changes(name=cst.Name(new)) if new else updated_node

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        end = self.get_metadata(PositionProvider, original_node).end
        found = self.edits.ends.get(self._bytes(end.line, end.column))
        if found and found[0] == original_node.value:
            return updated_node.with_changes(value=found[1])
        new = self.globals.get(original_node.value)  # annotations, which mypy does not keep as expressions
        if new and id(original_node) not in self.skipped and self._is_global(original_node):
            return updated_node.with_changes(value=new)
        return updated_node

    def _is_global(self, node: cst.Name) -> bool:
        scope = self.get_metadata(ScopeProvider, node, None)
        return scope is not None and any(isinstance(found.scope, GlobalScope) for found in scope[node.value])

    def visit_Attribute(self, node: cst.Attribute) -> None:
        self.skipped.add(id(node.attr))

    def visit_Arg(self, node: cst.Arg) -> None:
        self.skipped.add(id(node.keyword))

    def visit_Param(self, node: cst.Param) -> None:
        self.skipped.add(id(node.name))

    def visit_MatchKeywordElement(self, node: cst.MatchKeywordElement) -> None:
        self.skipped.add(id(node.key))

    def leave_AnnAssign(self, original_node: cst.AnnAssign, updated_node: cst.AnnAssign) -> cst.AnnAssign:
        if isinstance(original_node.target, cst.Name) and (new := self._own(original_node.target.value)):
            return updated_node.with_changes(target=cst.Name(new))
        return updated_node

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        if original_node.keyword is not None:
            new = self.edits.keywords.get(self._start(original_node.value), {}).get(original_node.keyword.value)
            return updated_node.with_changes(keyword=cst.Name(new or original_node.keyword.value))
        return updated_node

    def leave_MatchKeywordElement(
        self, original_node: cst.MatchKeywordElement, updated_node: cst.MatchKeywordElement
    ) -> cst.MatchKeywordElement:
        new = self.edits.keywords.get(self._start(original_node.pattern), {}).get(original_node.key.value)
        return updated_node.with_changes(key=cst.Name(new)) if new else updated_node

    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> cst.SimpleString:
        value = original_node.value
        if self.in_slots and (new := self._own(original_node.raw_value)):
            return updated_node.with_changes(value=f'"{new}"')
        found = self.edits.strings.get(self._start(original_node))
        if found and found[0] in value:
            value = value.replace(found[0], found[1])
        value = _DOTTED.sub(lambda match: self.names.rename_path(match[0]), value)
        return updated_node.with_changes(value=value)

    def visit_Assign(self, node: cst.Assign) -> None:
        target = node.targets[0].target
        self.in_slots = isinstance(target, cst.Name) and target.value == "__slots__"

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        self.in_slots = False
        target = original_node.targets[0].target
        if isinstance(target, cst.Name) and target.value == "__all__" and isinstance(updated_node.value, cst.List):
            entries = [
                element.with_changes(value=cst.SimpleString(f'"{self._exported(element.value.raw_value)}"'))
                for element in updated_node.value.elements
                if isinstance(element.value, cst.SimpleString)
            ]
            ordered = sorted(entries, key=lambda element: element.value.raw_value)
            placed = [
                element.with_changes(value=new.value)
                for element, new in zip(updated_node.value.elements, ordered, strict=True)
            ]
            return updated_node.with_changes(value=updated_node.value.with_changes(elements=placed))
        return updated_node

    def _exported(self, name: str) -> str:
        file = self.names.files.get(self.module)
        symbol = file.names.get(name) if file else None
        if symbol is None or symbol.node is None:
            return name
        if isinstance(symbol.node, nodes.MypyFile):
            return self.names.table.modules.get(symbol.node.fullname, name).rpartition(".")[2]
        return self.names.symbols.get(symbol.node.fullname, name)

    def leave_Import(self, original_node: cst.Import, updated_node: cst.Import) -> cst.Import:
        aliases = []
        for alias in updated_node.names:
            name = dotted(alias.name)
            new = self.names.table.modules.get(name, name)
            aliases.append(alias.with_changes(name=cst.parse_expression(new)))
        return updated_node.with_changes(names=aliases)

    def leave_ImportFrom(
        self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom
    ) -> cst.ImportFrom | cst.FlattenSentinel[cst.ImportFrom]:
        if original_node.module is None or original_node.relative or isinstance(original_node.names, cst.ImportStar):
            return updated_node
        module = dotted(original_node.module)
        if not is_ours(module):
            return updated_node
        groups: dict[str, list[cst.ImportAlias]] = defaultdict(list)
        for alias in original_node.names:
            name = dotted(alias.name)
            inner = f"{module}.{name}"
            if inner in self.names.files and not self._is_symbol(module, name):
                parent, _, stem = self.names.table.modules.get(inner, inner).rpartition(".")
                groups[parent].append(alias.with_changes(name=cst.Name(stem), comma=cst.MaybeSentinel.DEFAULT))
                continue
            file = self.names.files.get(module)
            symbol = file.names.get(name) if file else None
            full = symbol.node.fullname if symbol and symbol.node else inner
            new = self.names.symbols.get(full, name) if full.rpartition(".")[2] == name else name
            home = self.names.table.modules.get(module, module)
            groups[home].append(alias.with_changes(name=cst.Name(new), comma=cst.MaybeSentinel.DEFAULT))
        statements = [
            updated_node.with_changes(module=cst.parse_expression(home), names=aliases)
            for home, aliases in groups.items()
        ]
        return statements[0] if len(statements) == 1 else cst.FlattenSentinel(statements)

    def _is_symbol(self, module: str, name: str) -> bool:
        file = self.names.files.get(module)
        symbol = file.names.get(name) if file else None
        return bool(symbol and symbol.node is not None and not isinstance(symbol.node, nodes.MypyFile))


def dotted(node: cst.BaseExpression) -> str:
    return cst.Module([]).code_for_node(node)


def change_file(names: Names, file: nodes.MypyFile, problems: list[str]) -> str | None:
    collector = Collector(names, file)
    collector.collect()
    problems += collector.edits.unresolved
    text = Path(file.path).read_text()
    editor = Editor(names, file.fullname, collector.edits, text)
    if not editor.is_needed(text):
        return None
    changed = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True).visit(editor)
    return changed.code if changed.code != text else None


def move_modules(table: Table) -> None:
    for old, new in table.modules.items():
        source = find_file(old)
        package = source.name == "__init__.py"
        base = ROOT / ("src" if old.startswith("callwright") else "")
        target = base / Path(*new.split("."))
        target = target / "__init__.py" if package else target.with_suffix(".py")
        for parent in reversed(target.relative_to(ROOT).parents):
            folder = ROOT / parent
            inside = (parent.parts[:1] == ("src",) and len(parent.parts) > 1) or parent.parts[:2] == (
                "tests",
                "support",
            )
            if inside and not (folder / "__init__.py").is_file() and folder / "__init__.py" != target:
                folder.mkdir(parents=True, exist_ok=True)
                if parent.parts[0] == "src":
                    (folder / "__init__.py").write_text(f'"""{folder.name}."""\n')
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "-C", str(ROOT), "mv", "-k", str(source), str(target)], check=True)


def find_file(module: str) -> Path:
    base = (ROOT / "src" if module.startswith("callwright") else ROOT) / Path(*module.split("."))
    return base.with_suffix(".py") if base.with_suffix(".py").is_file() else base / "__init__.py"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--check", action="store_true", help="change nothing")
    arguments = parser.parse_args()
    table = Table()
    for path in arguments.tables:
        table.read(path)
    program = load_program()
    names = Names(program, table)
    problems = names.problems
    changes: dict[Path, str] = {}
    for module, file in program.files.items():
        if is_ours(module) and Path(file.path).is_file() and Path(file.path) != Path(__file__):
            if (text := change_file(names, file, problems)) is not None:
                changes[Path(file.path)] = text
    for problem in problems:
        print(problem)
    print(f"{len(changes)} files change, {len(table.modules)} modules move, {len(problems)} places to look at")
    if not arguments.check:
        for path, text in changes.items():
            path.write_text(text)
        move_modules(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
