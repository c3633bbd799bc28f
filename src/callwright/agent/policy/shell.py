"""A command line taken apart: every simple command in it, with what it reads and where it runs.

tree-sitter-bash reads the text; `Script` walks the tree as the shell would, keeping track of folders, pipes,
functions, aliases and variables. Variables are looked at without regard to order: a variable may have any value that
is assigned to it anywhere in the text. Whatever the walk does not come by is read in the end, so that no command of
the tree is left out. All work is bounded; what goes beyond the bounds is a `Trouble`, and so is what has no grammar.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import NamedTuple

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from callwright.agent.policy.outputs import output_of
from callwright.agent.policy.values import Tier
from callwright.agent.policy.words import MOST_READINGS, UNKNOWN, Stream, Word, readings, text_of

__all__ = ["LONGEST_TEXT", "Command", "Redirection", "Script", "Trouble", "read"]

LONGEST_TEXT = 200_000
_DEEPEST = 12
_HIGHEST = 100
_MOST_COMMANDS = 1_000
_LANGUAGE = Language(tree_sitter_bash.language())
_SUBSTITUTIONS = ("command_substitution", "process_substitution")
_DECLARES = ("declaration_command", "unset_command")
_REDIRECTIONS = ("file_redirect", "herestring_redirect", "heredoc_redirect")
_OWN_SHELL = ("subshell", *_SUBSTITUTIONS)
_NO_STATEMENTS = ("variable_name", "heredoc_start", "heredoc_body", "heredoc_end")
_NO_ITEMS = ("variable_name", "do_group", "compound_statement")
_DOWNLOADS = ("curl", "wget", "fetch", "aria2c", "http", "nc", "ncat", "base64", "openssl", "xxd", "gunzip", "zcat", "gpg")
_NEVER_SEEN = re.compile(r"(?<!\\)(?:`|\$\()")
_CONTINUED = re.compile(r"(?<!\\)((?:\\\\)*)\\\n")
_TOO_MUCH = "there is too much in it to be looked through"
_SILENT = Stream("", "nothing")


class Redirection(NamedTuple):
    """`> target`, `2>> target`, `< target`; a target that is a number is another descriptor."""

    operator: str
    target: Word

    @property
    def writes(self) -> bool:
        """It may change its target."""
        return ">" in self.operator and not (self.operator.endswith("&") and self.target.text.isdigit())


class Command(NamedTuple):
    """One simple command, as far as the text tells."""

    argv: tuple[Word, ...]
    assignments: tuple[tuple[str, str], ...] = ()
    redirections: tuple[Redirection, ...] = ()
    stdin: Stream | None = None
    place: str | None = "."
    """Where it runs: relative to the workspace, absolute, below `~`, or None if that is unknown."""
    body: Script | None = None
    """The script that it stands in: whose variables and functions a script of its own sees."""

    @property
    def name(self) -> str:
        """The program, without its folder."""
        return self.argv[0].bare.rpartition("/")[2] if self.argv else ""

    def running(self, argv: Sequence[Word]) -> Command:
        """The same surroundings with another program, for what a wrapper runs."""
        return self._replace(argv=tuple(argv), assignments=(), redirections=())


class Trouble(NamedTuple):
    """Why a text cannot be trusted to be what it looks like."""

    tier: Tier
    why: str


def read(
    text: str,
    *,
    place: str | None = ".",
    parent: Script | None = None,
    given: Sequence[str] = (),
    alias: str = "",
) -> Script:
    """Take a text apart. With backslashes before line ends it is read with and without them.

    `given` are its positional parameters; `alias` is the one that it stands for, which does not hold within itself.
    """
    script = Script(text, place, parent, given, alias)
    joined = _CONTINUED.sub(r"\1", text)
    if joined != text:
        again = Script(joined, place, parent, given, alias)
        script.commands += again.commands
        script.troubles += again.troubles
    return script


class Script:
    """A text and what was found in it: `commands` and `troubles`. What a `Surroundings` promises, it is."""

    def __init__(
        self, text: str, place: str | None, parent: Script | None, given: Sequence[str], alias: str = ""
    ) -> None:
        self.commands: list[Command] = []
        self.troubles: list[Trouble] = []
        self.place = place
        self._depth: int = parent._depth + 1 if parent else 0
        self._level: int = parent._level if parent else 0
        self._parent = parent
        self._given = list(given)
        self._assigned: dict[str, list[Node]] = {}
        self._functions: dict[str, Node] = {}
        self._aliases: dict[str, str] = {}
        self._spent: frozenset[str] = (parent._spent if parent else frozenset()) | {alias}
        self._seen: dict[int, Stream] = {}
        self._working: list[str] = []
        self._calling: list[str] = []
        self._piped = 0
        if len(text) > LONGEST_TEXT or self._depth > _DEEPEST:
            self.troubles.append(Trouble("high", _TOO_MUCH))
            return
        root = Parser(_LANGUAGE).parse(text.encode("utf-8", "replace")).root_node
        if root.has_error:
            self.troubles.append(Trouble("high", "it cannot be read as a shell command"))
        nodes = list(_all(root))
        self._level += _height(root)
        if self._level > _HIGHEST:
            self.troubles.append(Trouble("high", _TOO_MUCH))
            return
        self._collect(nodes)
        self.run(root, None)
        for node in nodes:
            if node.type in ("command", *_SUBSTITUTIONS, *_REDIRECTIONS) and node.id not in self._seen:
                self.run(node, None)

    @property
    def downloads(self) -> bool:
        """Something in it, or in the script around it, comes from the network or is decoded."""
        return any(command.name in _DOWNLOADS for command in self.commands) or bool(
            self._parent and self._parent.downloads
        )

    # What words may refer to.

    def values(self, name: str) -> list[str]:
        """The possible values of a variable."""
        if name in self._working:
            return [UNKNOWN]
        if name not in self._assigned:
            return self._parent.values(name) if self._parent else []
        self._working.append(name)
        found: list[str] = []
        for node in self._assigned[name]:
            if node.type == "variable_assignment":
                value = node.child_by_field_name("value")
                texts = [" ".join(w.text for w in words) for words in readings(value, self)] if value else [""]
                if value and value.type == "array":
                    texts = self.elements(name)[:1]
                appends = any(child.type == "+=" for child in node.children)
                found += [f"{before}{text}" for before in found or [""] for text in texts] if appends else texts
            else:  # a loop: its variable is each of the items
                found += [word.text for item in _items(node) for words in readings(item, self) for word in words]
        self._working.pop()
        return list(dict.fromkeys(found))[-MOST_READINGS:]

    def elements(self, name: str) -> list[str]:
        """The elements of an array; those of `@` are the positional parameters."""
        if name == "@":
            return self._given
        arrays = [value for node in self._assigned.get(name, ()) if (value := node.child_by_field_name("value"))]
        items = [item for array in arrays if array.type == "array" for item in array.named_children]
        return [word.text for item in items for words in readings(item, self)[:1] for word in words]

    def output(self, substitution: Node) -> Stream:
        """What the commands of a substitution write; they are read once."""
        if substitution.id not in self._seen or self._calling:
            self._seen[substitution.id] = Stream(None, "itself")
            self._seen[substitution.id] = self.run(substitution, None)
        return self._seen[substitution.id]

    def function(self, name: str) -> Node | None:
        """The body of a function, from here or from the script around."""
        return self._functions.get(name) or (self._parent.function(name) if self._parent else None)

    def alias(self, name: str) -> str | None:
        """What an alias stands for, here or in the script around."""
        if name in self._spent:
            return None
        return self._aliases.get(name) or (self._parent.alias(name) if self._parent else None)

    # The walk.

    def run(self, node: Node, stdin: Stream | None) -> Stream:
        """Read a statement; returns what it writes."""
        if len(self._calling) > _DEEPEST or len(self.commands) > _MOST_COMMANDS:
            self.troubles.append(Trouble("high", _TOO_MUCH))
            return Stream(None, "too much")
        self._seen.setdefault(node.id, _SILENT)
        match node.type:
            case "command" | "declaration_command" | "unset_command" | "variable_assignment" | "variable_assignments":
                return self._command(node, (), stdin)
            case "redirected_statement" | "file_redirect" | "herestring_redirect" | "heredoc_redirect":
                return self._redirected(node, stdin)
            case "pipeline":
                return self._pipeline(_statements(node), stdin)
            case "function_definition" | "comment" | "heredoc_body" | "word" | "string" | "raw_string":
                return _SILENT
            case kind if kind in _OWN_SHELL:
                before = self.place
                stream = self._each(_statements(node), stdin)
                self.place = before
                return stream
            case _:
                return self._each(_statements(node), stdin)

    def _each(self, nodes: Sequence[Node], stdin: Stream | None) -> Stream:
        streams = [stream for node in nodes if (stream := self.run(node, stdin)) is not _SILENT]
        texts = [stream.text for stream in streams if stream.text is not None]
        origin = ", ".join(stream.origin for stream in streams) or "nothing"
        return Stream("".join(texts) if len(texts) == len(streams) else None, origin)

    def _pipeline(self, stages: Sequence[Node], stdin: Stream | None) -> Stream:
        stream = stdin
        self._piped += 1
        for stage in stages:
            before = self.place
            stream = self.run(stage, stream)
            self.place = before
        self._piped -= 1
        return stream or _SILENT

    def _redirected(self, node: Node, stdin: Stream | None) -> Stream:
        body = node.child_by_field_name("body")
        redirects = [node] if node.type in _REDIRECTIONS else [c for c in node.children if c.type in _REDIRECTIONS]
        inside = [inner for each in redirects if each.type == "heredoc_redirect" for inner in each.children]
        plain = [each for each in (*redirects, *inside) if each.type in ("file_redirect", "herestring_redirect")]
        for each in (*redirects, *plain):
            self._seen.setdefault(each.id, _SILENT)
        heredocs = [each for each in redirects if each.type == "heredoc_redirect"]
        fed = [self._heredoc(heredoc) for heredoc in heredocs]
        stream = self._fed_by(body, plain, stdin, fed) if body else self._compound(None, plain, stdin)
        for heredoc in heredocs:  # what follows on the line of `<<END` is part of this node
            for rest in heredoc.children:
                if rest.type == "pipeline":
                    stream = self._pipeline(_statements(rest), stream)
                elif rest.type not in _REDIRECTIONS and rest in _statements(heredoc):
                    self.run(rest, None)
        return stream

    def _fed_by(self, body: Node, plain: Sequence[Node], stdin: Stream | None, fed: Sequence[Stream]) -> Stream:
        """Redirections belong to the last command of a list or pipeline; the grammar hangs them on the whole."""
        if body.type in ("list", "pipeline", "negated_command"):
            *before, last = _statements(body)
            self._seen[body.id] = _SILENT
            if body.type == "pipeline":
                return self._fed_by(last, plain, self._pipeline(before, stdin), fed)
            self._each(before, stdin)
            return self._fed_by(last, plain, stdin, fed)
        stdin = fed[-1] if fed else stdin
        return self._command(body, plain, stdin) if body.type == "command" else self._compound(body, plain, stdin)

    def _compound(self, body: Node | None, plain: Sequence[Node], stdin: Stream | None) -> Stream:
        found = self._redirections(plain)
        if found:
            self.commands.append(Command((), redirections=found, place=self.place, body=self))
        return self.run(body, _fed(found, stdin)) if body else _SILENT

    def _heredoc(self, heredoc: Node) -> Stream:
        body = next((child for child in heredoc.children if child.type == "heredoc_body"), None)
        start = next((text_of(child) for child in heredoc.children if child.type == "heredoc_start"), "")
        if body is None:
            return Stream("", "a here-document")
        text = text_of(body)
        if not any(char in start for char in "'\"\\"):
            self._look_for_hidden(body, text)
            found = readings(body, self)
            text = found[0][0].text if found and found[0] else text
        return Stream(text, "a here-document")

    def _look_for_hidden(self, node: Node, text: str) -> None:
        """Substitutions that the grammar did not see are read apart."""
        seen = b"".join(child.text or b"" for child in _all(node) if child.type in _SUBSTITUTIONS)
        if _NEVER_SEEN.search(text) and not seen:
            self.troubles.append(Trouble("high", "a substitution in it cannot be read"))

    def _command(self, node: Node, outer: Sequence[Node], stdin: Stream | None) -> Stream:
        self._seen[node.id] = _SILENT
        parts = [child for child in node.children if child.type not in _REDIRECTIONS]
        redirects = [*outer, *(child for child in node.children if child.type in _REDIRECTIONS)]
        for each in redirects:
            self._seen[each.id] = _SILENT
        found = self._redirections(redirects)
        stdin = _fed(found, stdin)
        assignments = tuple(
            (text_of(name), " ".join(self.values(text_of(name))))
            for part in ([node] if node.type == "variable_assignment" else parts)
            if part.type == "variable_assignment" and (name := part.child_by_field_name("name"))
        )
        words = [part for part in parts if part.type != "variable_assignment" and part.type != "="]
        if node.type == "variable_assignment":
            words = []
        elif node.type in _DECLARES:
            return self._simple((Word(text_of(parts[0])), *map(Word, map(text_of, parts[1:]))), assignments, found, stdin)
        choices = [readings(word, self) for word in words]
        streams = [
            self._simple(tuple(word for one in chosen for word in one), assignments, found, stdin)
            for chosen in islice(product(*choices), MOST_READINGS)
        ]
        return streams[0] if len(streams) == 1 else Stream(None, "one of several commands")

    def _redirections(self, nodes: Sequence[Node]) -> tuple[Redirection, ...]:
        found: list[Redirection] = []
        for node in nodes:
            operator = next((child.type for child in node.children if not child.is_named), ">")
            targets = [child for child in node.named_children if child.type != "file_descriptor"]
            for words in [words for target in targets[:1] for words in readings(target, self)]:
                found += [Redirection(operator, word) for word in words]
        return tuple(found)

    def _simple(
        self,
        argv: tuple[Word, ...],
        assignments: tuple[tuple[str, str], ...],
        redirections: tuple[Redirection, ...],
        stdin: Stream | None,
    ) -> Stream:
        command = Command(argv, assignments, redirections, stdin, self.place, self)
        name = argv[0].text if argv else ""
        if body := self.function(name):
            self.commands.append(command._replace(argv=()))
            return self._call(name, body, argv[1:], stdin)
        if value := self.alias(name):
            rest = shlex.join(word.text for word in argv[1:])
            inner = read(f"{value} {rest}", place=self.place, parent=self, alias=name)
            self.commands += inner.commands
            self.troubles += inner.troubles
        self.commands.append(command)
        if name in ("cd", "pushd", "chdir"):
            self.place = _moved(self.place, argv[1:])
        return Stream(output_of(argv, stdin), name or "nothing")

    def _call(self, name: str, body: Node, arguments: Sequence[Word], stdin: Stream | None) -> Stream:
        if name in self._calling:
            if self._piped or b"&" in (body.text or b""):
                self.troubles.append(Trouble("critical", f"{name} starts itself again and again: a fork bomb"))
            return _SILENT
        before, self._given = self._given, [word.text for word in arguments]
        self._calling.append(name)
        stream = self.run(body, stdin)
        self._calling.pop()
        self._given = before
        return stream

    def _collect(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            name = node.child_by_field_name("name")
            match node.type:
                case "variable_assignment" if name:
                    self._assigned.setdefault(text_of(name).partition("[")[0], []).append(node)
                case "for_statement":
                    variable = node.child_by_field_name("variable")
                    if variable:
                        self._assigned.setdefault(text_of(variable), []).append(node)
                case "function_definition" if name and (body := node.child_by_field_name("body")):
                    self._functions[text_of(name)] = body
                case "command" if name and text_of(name) == "alias":
                    for word in node.children[1:]:
                        alias, _, value = "".join(w.text for w in readings(word, self)[0]).partition("=")
                        self._aliases[alias] = value or " ".join(w.text for w in readings(word, self)[0])
                case _:
                    pass


def _all(root: Node) -> Iterator[Node]:
    """Every node, from the outside to the inside, without recursion."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(node.children)


def _height(root: Node) -> int:
    """How many nodes stand above each other, without recursion."""
    height, level = 0, [root]
    while level:
        height += 1
        level = [child for node in level for child in node.children]
    return height


def _statements(node: Node) -> list[Node]:
    return [child for child in node.named_children if child.type not in _NO_STATEMENTS]


def _items(loop: Node) -> list[Node]:
    return [child for child in loop.named_children if child.type not in _NO_ITEMS]


def _fed(redirections: Sequence[Redirection], stdin: Stream | None) -> Stream | None:
    """What a command reads, after its redirections."""
    for operator, target in redirections:
        if operator == "<<<":
            stdin = Stream(f"{target.text}\n", "a here-string")
        elif operator == "<":
            stdin = target.stream or Stream(None, f"the file {target.text}")
    return stdin


def _moved(place: str | None, operands: Sequence[Word]) -> str | None:
    """Where `cd` leads; `cd -` leads back, and nothing says where to."""
    words = [word for word in operands if word.text not in ("-P", "-L", "-e", "-@", "--")]
    if not words:
        return "~"
    target = words[0]
    if not target.known or target.glob or target.text == "-":
        return None
    if target.text.startswith(("/", "~")):
        return target.text
    return None if place is None else f"{place}/{target.text}"
