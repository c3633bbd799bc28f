"""A command line taken apart: every simple command in it, with what it reads and where it runs.

`Script` walks the tree as the shell would, keeping track of folders, pipes and redirections. Whatever the walk does
not come by is read in the end, so that no command of the tree is left out. All work is bounded; what goes beyond the
bounds is a `Trouble`, and so is what has no grammar.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from itertools import islice, product
from typing import TYPE_CHECKING

from callwright.agent.policy.command import NOWHERE, Around, Command, Redirection, Trouble
from callwright.agent.policy.outputs import output_of
from callwright.agent.policy.scope import Scope
from callwright.agent.policy.tree import (
    REDIRECTIONS,
    SUBSTITUTIONS,
    every_node,
    height,
    hidden,
    parse,
    statements,
    swallowed,
)
from callwright.agent.policy.values import Tier
from callwright.agent.policy.words import MOST_READINGS, Stream, Word, readings, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["LONGEST_TEXT", "VISIBLY_DANGEROUS", "Script", "read"]

LONGEST_TEXT = 200_000
_DEEPEST = 12
_HIGHEST = 100
_MOST_COMMANDS = 1_000
_MOST_PARTS = 32
# tree-sitter-bash takes time and memory that grow with the square of a pipeline's length, and of what it cannot read:
# a third of a second and 20 MB for this many.
_MOST_PIPES = 1_000
_MOST_SIGNS = 10_000
_PARTS = re.compile(r"[;&|\n(){}!`]+")
_DOWNLOADS = (
    "curl",
    "wget",
    "fetch",
    "aria2c",
    "http",
    "nc",
    "ncat",
    "base64",
    "openssl",
    "xxd",
    "gunzip",
    "zcat",
    "gpg",
)
VISIBLY_DANGEROUS = re.compile(
    r"(?<![\w-])(rm|mkfs\S*|dd|shred|wipefs|fdisk|parted|shutdown|reboot|halt|poweroff|sudo|curl[^|]*\|\s*\w*sh|wget[^|]*\|\s*\w*sh)(?![\w-])"
    r"|/dev/(sd|nvme|hd|disk|tcp)|push\s+(-f|--force)|reset\s+--hard"
)
"""Words that weigh where a text cannot be understood."""
_CONTINUED = re.compile(r"(?<!\\)((?:\\\\)*)\\\n")
_TOO_MUCH = "there is too much in it to be looked through"
_SILENT = Stream("", "nothing")


def read(text: str, around: Around = NOWHERE) -> Script:
    """Take a text apart. With backslashes before line ends it is read with and without them."""
    script = Script(text, around)
    joined = _CONTINUED.sub(r"\1", text)
    if joined != text:
        again = Script(joined, around)
        script.commands += again.commands
        script.troubles += again.troubles
    return script


class Script(Scope):
    """A text and what was found in it: `commands` and `troubles`."""

    def __init__(self, text: str, around: Around) -> None:
        super().__init__(around.parent, around.given, around.alias)
        self.text = text
        self.commands: list[Command] = []
        self.troubles: list[Trouble] = []
        self._place = around.place
        self._depth: int = around.parent._depth + 1 if around.parent else 0
        self._level: int = around.parent._level if around.parent else 0
        self._outer = around.parent
        self._seen: dict[int, Stream] = {}
        self._calling: list[str] = []
        self._piped = 0
        signs = sum(map(text.count, "&;()!<>"))
        fits = len(text) <= LONGEST_TEXT and text.count("|") <= _MOST_PIPES and signs <= _MOST_SIGNS
        fits = fits and self._depth <= _DEEPEST
        root = parse(text) if fits else None
        self._level += height(root) if root else _HIGHEST + 1
        if root is None or self._level > _HIGHEST:
            self.troubles.append(Trouble("high", _TOO_MUCH))
            return
        if root.has_error:
            tier: Tier = "critical" if VISIBLY_DANGEROUS.search(text) else "high"
            self.troubles.append(Trouble(tier, "it cannot be read as a shell command"))
            for part in _PARTS.split(text)[:_MOST_PARTS]:  # each may still show what it is
                if part.strip() and part != text:
                    self._include(read(part, around._replace(parent=self)))
        nodes = list(every_node(root))
        if line_end := next((at for node in nodes if (at := swallowed(node)) is not None), 0):
            written = text.encode("utf-8", "replace")
            for part in (written[:line_end], written[line_end + 1 :]):
                self._include(read(part.decode("utf-8", "replace"), around._replace(parent=self)))
        self.collect(nodes)
        self._run(root, around.stdin)
        for node in nodes:
            if node.type in ("command", *SUBSTITUTIONS, *REDIRECTIONS) and node.id not in self._seen:
                self._run(node, None)
            for unseen in hidden(node) if node.type != "heredoc_body" else ():
                self._include(read(unseen, Around(None, self)))

    @property
    def whole_text(self) -> str:
        """The text of the outermost script, which holds all others."""
        return self._outer.whole_text if self._outer else self.text

    @property
    def downloads(self) -> bool:
        """Something in it, or in the script around it, comes from the network or is decoded."""
        here = any(command.name in _DOWNLOADS for command in self.commands)
        return here or bool(self._outer and self._outer.downloads)

    def output(self, substitution: Node) -> Stream:
        """What the commands of a substitution write; they are read once."""
        if substitution.id not in self._seen or self._calling:
            self._seen[substitution.id] = Stream(None, "itself")
            self._seen[substitution.id] = self._run(substitution, None)
        return self._seen[substitution.id]

    def _run(self, node: Node, stdin: Stream | None) -> Stream:
        """Read a statement; returns what it writes."""
        if len(self._calling) > _DEEPEST or len(self.commands) > _MOST_COMMANDS:
            self.troubles.append(Trouble("high", _TOO_MUCH))
            return Stream(None, "too much")
        self._seen.setdefault(node.id, _SILENT)
        match node.type:
            case "command" | "declaration_command" | "unset_command" | "variable_assignment" | "variable_assignments":
                return self._command(node, (), (), stdin)
            case "redirected_statement" | "file_redirect" | "herestring_redirect" | "heredoc_redirect":
                return self._redirected(node, stdin)
            case "pipeline":
                return self._pipeline(statements(node), stdin)
            case "function_definition" | "comment" | "heredoc_body" | "word" | "string" | "raw_string":
                return _SILENT
            case "subshell" | "command_substitution" | "process_substitution":
                before = self._place
                if node.children and node.children[0].type == ">(":
                    stdin = Stream(None, "the command that writes to it")
                stream = self._each(statements(node), stdin)
                self._place = before
                return stream
            case _:
                return self._each(statements(node), stdin)

    def _each(self, nodes: Sequence[Node], stdin: Stream | None) -> Stream:
        streams = [stream for node in nodes if (stream := self._run(node, stdin)) is not _SILENT]
        texts = [stream.text for stream in streams if stream.text is not None]
        origin = ", ".join(stream.origin for stream in streams) or "nothing"
        return Stream("".join(texts) if len(texts) == len(streams) else None, origin)

    def _pipeline(self, stages: Sequence[Node], stdin: Stream | None) -> Stream:
        stream = stdin
        self._piped += 1
        for stage in stages:
            before = self._place
            stream = self._run(stage, stream)
            self._place = before
        self._piped -= 1
        return stream or _SILENT

    def _redirected(self, node: Node, stdin: Stream | None) -> Stream:
        body = node.child_by_field_name("body")
        redirects = [node] if node.type in REDIRECTIONS else [c for c in node.children if c.type in REDIRECTIONS]
        heredocs = [each for each in redirects if each.type == "heredoc_redirect"]
        inside = [inner for heredoc in heredocs for inner in heredoc.named_children]
        plain = [each for each in (*redirects, *inside) if each.type in ("file_redirect", "herestring_redirect")]
        for each in (*redirects, *plain):
            self._seen.setdefault(each.id, _SILENT)
        fed = [self._heredoc(heredoc) for heredoc in heredocs]
        # Words after a target, or after `<<END`, belong to the command.
        late = [word for each in plain if each.type == "file_redirect" for word in _targets(each)[1:]]
        late += [word for word in inside if word.type in ("word", "string", "raw_string", "concatenation", "number")]
        stream = self._to_last(body, plain, late, (stdin, fed)) if body else self._compound(None, plain, stdin)
        for rest in inside:  # what follows on the line of `<<END` is part of the node
            if rest.type == "pipeline":
                stream = self._pipeline(statements(rest), stream)
            elif rest in statements(node) or rest.type in ("command", "list", "redirected_statement", "subshell"):
                self._run(rest, None)
        return stream

    def _to_last(
        self, body: Node, plain: Sequence[Node], late: Sequence[Node], inputs: tuple[Stream | None, Sequence[Stream]]
    ) -> Stream:
        """Redirections belong to the last command of a list or pipeline; the grammar hangs them on the whole."""
        stdin, fed = inputs
        if body.type in ("list", "pipeline", "negated_command") and (parts := statements(body)):
            *before, last = parts
            self._seen[body.id] = _SILENT
            if body.type == "pipeline":
                return self._to_last(last, plain, late, (self._pipeline(before, stdin), fed))
            self._each(before, stdin)
            return self._to_last(last, plain, late, inputs)
        stdin = fed[-1] if fed else stdin
        is_command = body.type == "command"
        return self._command(body, plain, late, stdin) if is_command else self._compound(body, plain, stdin)

    def _compound(self, body: Node | None, plain: Sequence[Node], stdin: Stream | None) -> Stream:
        found = self._redirections(plain)
        if found:
            self.commands.append(Command((), redirections=found, place=self._place, body=self))
        return self._run(body, _fed(found, stdin)) if body else _SILENT

    def _heredoc(self, heredoc: Node) -> Stream:
        body = next((child for child in heredoc.children if child.type == "heredoc_body"), None)
        start = next((text_of(child) for child in heredoc.children if child.type == "heredoc_start"), "")
        text = text_of(body) if body else ""
        if body and not any(char in start for char in "'\"\\"):
            for unseen in hidden(body):
                self._include(read(unseen, Around(None, self)))
            found = readings(body, self)
            text = found[0][0].text if found and found[0] else text
        return Stream(text, "a here-document")

    def _command(self, node: Node, outer: Sequence[Node], late: Sequence[Node], stdin: Stream | None) -> Stream:
        self._seen[node.id] = _SILENT
        own = [child for child in node.children if child.type in REDIRECTIONS]
        for each in own:
            self._seen[each.id] = _SILENT
        redirections = self._redirections([*own, *outer])
        parts = (
            [node] if node.type == "variable_assignment" else [c for c in node.children if c.type not in REDIRECTIONS]
        )
        assignments = tuple(
            (text_of(name), " ".join(self.values(text_of(name))))
            for part in parts
            if part.type == "variable_assignment" and (name := part.child_by_field_name("name"))
        )
        words = [part for part in parts if part.type not in ("variable_assignment", "=")]
        command = Command((), assignments, redirections, _fed(redirections, stdin), self._place, self)
        if node.type in ("declaration_command", "unset_command"):
            return self._simple(command._replace(argv=tuple(Word(text_of(part)) for part in parts)))
        streams = [
            self._simple(command._replace(argv=tuple(word for one in chosen for word in one)))
            for chosen in islice(product(*(readings(word, self) for word in (*words, *late))), MOST_READINGS)
        ]
        return streams[0] if len(streams) == 1 else Stream(None, "one of several commands")

    def _redirections(self, nodes: Sequence[Node]) -> tuple[Redirection, ...]:
        found: list[Redirection] = []
        for node in nodes:
            operator = next((child.type for child in node.children if not child.is_named), ">")
            for words in [words for target in _targets(node)[:1] for words in readings(target, self)]:
                found += [Redirection(operator, word) for word in words]
        return tuple(found)

    def _simple(self, command: Command) -> Stream:
        name = command.argv[0].text if command.argv else ""
        if body := self.function(name):
            self.commands.append(command._replace(argv=()))
            return self._call(body, command)
        if value := self.alias(name):
            rest = shlex.join(word.text for word in command.argv[1:])
            self._include(read(f"{value} {rest}", Around(self._place, self, stdin=command.stdin, alias=name)))
        self.commands.append(command)
        if name in ("cd", "pushd", "chdir"):
            self._place = _moved(self._place, command.argv[1:])
        elif name == "set" and "--" in (words := [word.text for word in command.argv]):
            self.give(["bash", *words[words.index("--") + 1 :]])
        return Stream(output_of(command.argv, command.stdin), name or "nothing")

    def _call(self, body: Node, command: Command) -> Stream:
        name = command.argv[0].text
        if name in self._calling:
            if self._piped or b"&" in (body.text or b""):
                self.troubles.append(Trouble("critical", f"{name} starts itself again and again: a fork bomb"))
            return _SILENT
        before = self.give([word.text for word in command.argv])
        self._calling.append(name)
        stream = self._run(body, command.stdin)
        self._calling.pop()
        self.give(before)
        return stream

    def _include(self, script: Script) -> None:
        self.commands += script.commands
        self.troubles += script.troubles


def _targets(redirect: Node) -> list[Node]:
    return [child for child in redirect.named_children if child.type != "file_descriptor"]


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
