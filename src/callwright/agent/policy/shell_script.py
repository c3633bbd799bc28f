"""Parses a command line into its simple commands, with what each reads and where it runs.

`ShellScript` walks the syntax tree as the shell would, tracking folders, pipes and redirections. Nodes that the walk
does not reach are read at the end, so that no command of the tree is missed. All work is bounded; exceeding a bound is
a `ScriptProblem`, and so is text that is not valid shell syntax.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from itertools import islice, product
from typing import TYPE_CHECKING

from callwright.agent.policy.judgement import Tier
from callwright.agent.policy.output_prediction import predict_output
from callwright.agent.policy.shell_command import (
    WORKSPACE_CONTEXT,
    Redirection,
    ScriptContext,
    ScriptProblem,
    ShellCommand,
)
from callwright.agent.policy.shell_scope import ShellScope
from callwright.agent.policy.shell_words import MAX_READINGS, CommandStream, ShellWord, get_node_text, list_readings
from callwright.agent.policy.syntax_tree import (
    REDIRECTION_TYPES,
    SUBSTITUTION_TYPES,
    find_hidden_commands,
    find_merged_command,
    iter_nodes,
    list_statements,
    measure_height,
    parse_tree,
)

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["DANGEROUS_TEXT", "MAX_TEXT_LENGTH", "ShellScript", "parse_script"]

MAX_TEXT_LENGTH = 200_000
_MAX_DEPTH = 12
_MAX_TREE_HEIGHT = 100
_MAX_COMMANDS = 1_000
_MAX_PARTS = 32
# tree-sitter-bash needs time and memory that grow with the square of a pipeline's length, and of the part that it
# cannot parse: a third of a second and 20 MB for this many.
_MAX_PIPES = 1_000
_MAX_OPERATORS = 10_000
_PART_SEPARATOR = re.compile(r"[;&|\n(){}!`]+")
_DOWNLOADERS = (
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
DANGEROUS_TEXT = re.compile(
    r"(?<![\w-])(rm|mkfs\S*|dd|shred|wipefs|fdisk|parted|shutdown|reboot|halt|poweroff|sudo|curl[^|]*\|\s*\w*sh|wget[^|]*\|\s*\w*sh)(?![\w-])"
    r"|/dev/(sd|nvme|hd|disk|tcp)|push\s+(-f|--force)|reset\s+--hard"
)
"""Words that raise the tier of a text that cannot be parsed."""
_LINE_CONTINUATION = re.compile(r"(?<!\\)((?:\\\\)*)\\\n")
_TOO_COMPLEX = "it is too complex to be checked"
_NO_OUTPUT = CommandStream("", "nothing")


def parse_script(text: str, context: ScriptContext = WORKSPACE_CONTEXT) -> ShellScript:
    """Parse a text. If it has backslashes before line ends, it is parsed with and without them."""
    script = ShellScript(text, context)
    joined = _LINE_CONTINUATION.sub(r"\1", text)
    if joined != text:
        again = ShellScript(joined, context)
        script.commands += again.commands
        script.problems += again.problems
    return script


class ShellScript(ShellScope):
    """A text with the `commands` and `problems` found in it."""

    def __init__(self, text: str, context: ScriptContext) -> None:
        super().__init__(context.parent, context.parameters, context.alias)
        self.text = text
        self.commands: list[ShellCommand] = []
        self.problems: list[ScriptProblem] = []
        self._folder = context.folder
        self._depth: int = context.parent._depth + 1 if context.parent else 0
        self._tree_height: int = context.parent._tree_height if context.parent else 0
        self._outer = context.parent
        self._streams: dict[int, CommandStream] = {}
        self._call_stack: list[str] = []
        self._pipe_depth = 0
        signs = sum(map(text.count, "&;()!<>"))
        fits = len(text) <= MAX_TEXT_LENGTH and text.count("|") <= _MAX_PIPES and signs <= _MAX_OPERATORS
        fits = fits and self._depth <= _MAX_DEPTH
        root = parse_tree(text) if fits else None
        self._tree_height += measure_height(root) if root else _MAX_TREE_HEIGHT + 1
        if root is None or self._tree_height > _MAX_TREE_HEIGHT:
            self.problems.append(ScriptProblem("high", _TOO_COMPLEX))
            return
        if root.has_error:
            tier: Tier = "critical" if DANGEROUS_TEXT.search(text) else "high"
            self.problems.append(ScriptProblem(tier, "it is not valid shell syntax"))
            for part in _PART_SEPARATOR.split(text)[:_MAX_PARTS]:  # a single part may still be valid
                if part.strip() and part != text:
                    self._include_script(parse_script(part, context._replace(parent=self)))
        nodes = list(iter_nodes(root))
        if line_end := next((at for node in nodes if (at := find_merged_command(node)) is not None), 0):
            written = text.encode("utf-8", "replace")
            for part in (written[:line_end], written[line_end + 1 :]):
                self._include_script(parse_script(part.decode("utf-8", "replace"), context._replace(parent=self)))
        self.collect_names(nodes)
        self._walk_statement(root, context.stdin)
        for node in nodes:
            if node.type in ("command", *SUBSTITUTION_TYPES, *REDIRECTION_TYPES) and node.id not in self._streams:
                self._walk_statement(node, None)
            for unseen in find_hidden_commands(node) if node.type != "heredoc_body" else ():
                self._include_script(parse_script(unseen, ScriptContext(None, self)))

    @property
    def outermost_text(self) -> str:
        """The text of the outermost script, which contains all others."""
        return self._outer.outermost_text if self._outer else self.text

    @property
    def has_downloads(self) -> bool:
        """Whether anything in this script or the one around it is downloaded or decoded."""
        downloads = any(command.name in _DOWNLOADERS for command in self.commands)
        return downloads or bool(self._outer and self._outer.has_downloads)

    def read_output(self, substitution: Node) -> CommandStream:
        """Return what the commands of a substitution write; they are walked once."""
        if substitution.id not in self._streams or self._call_stack:
            self._streams[substitution.id] = CommandStream(None, "itself")
            self._streams[substitution.id] = self._walk_statement(substitution, None)
        return self._streams[substitution.id]

    def _walk_statement(self, node: Node, stdin: CommandStream | None) -> CommandStream:
        """Walk a statement and return what it writes."""
        if len(self._call_stack) > _MAX_DEPTH or len(self.commands) > _MAX_COMMANDS:
            self.problems.append(ScriptProblem("high", _TOO_COMPLEX))
            return CommandStream(None, "a script that is too complex")
        self._streams.setdefault(node.id, _NO_OUTPUT)
        match node.type:
            case "command" | "declaration_command" | "unset_command" | "variable_assignment" | "variable_assignments":
                return self._walk_command(node, (), (), stdin)
            case "redirected_statement" | "file_redirect" | "herestring_redirect" | "heredoc_redirect":
                return self._walk_redirected(node, stdin)
            case "pipeline":
                return self._walk_pipeline(list_statements(node), stdin)
            case "function_definition" | "comment" | "heredoc_body" | "word" | "string" | "raw_string":
                return _NO_OUTPUT
            case "subshell" | "command_substitution" | "process_substitution":
                before = self._folder
                if node.children and node.children[0].type == ">(":
                    stdin = CommandStream(None, "the command that writes to it")
                stream = self._walk_statements(list_statements(node), stdin)
                self._folder = before
                return stream
            case _:
                return self._walk_statements(list_statements(node), stdin)

    def _walk_statements(self, nodes: Sequence[Node], stdin: CommandStream | None) -> CommandStream:
        streams = [stream for node in nodes if (stream := self._walk_statement(node, stdin)) is not _NO_OUTPUT]
        texts = [stream.text for stream in streams if stream.text is not None]
        origin = ", ".join(stream.origin for stream in streams) or "nothing"
        return CommandStream("".join(texts) if len(texts) == len(streams) else None, origin)

    def _walk_pipeline(self, stages: Sequence[Node], stdin: CommandStream | None) -> CommandStream:
        stream = stdin
        self._pipe_depth += 1
        for stage in stages:
            before = self._folder
            stream = self._walk_statement(stage, stream)
            self._folder = before
        self._pipe_depth -= 1
        return stream or _NO_OUTPUT

    def _walk_redirected(self, node: Node, stdin: CommandStream | None) -> CommandStream:
        body = node.child_by_field_name("body")
        redirects = (
            [node] if node.type in REDIRECTION_TYPES else [c for c in node.children if c.type in REDIRECTION_TYPES]
        )
        heredocs = [each for each in redirects if each.type == "heredoc_redirect"]
        inside = [inner for heredoc in heredocs for inner in heredoc.named_children]
        plain = [each for each in (*redirects, *inside) if each.type in ("file_redirect", "herestring_redirect")]
        for each in (*redirects, *plain):
            self._streams.setdefault(each.id, _NO_OUTPUT)
        heredoc_streams = [self._read_heredoc(heredoc) for heredoc in heredocs]
        # Words after a target, or after `<<END`, belong to the command.
        trailing = [word for each in plain if each.type == "file_redirect" for word in _list_targets(each)[1:]]
        trailing += [
            word for word in inside if word.type in ("word", "string", "raw_string", "concatenation", "number")
        ]
        stream = (
            self._redirect_last(body, plain, trailing, (stdin, heredoc_streams))
            if body
            else self._walk_compound(None, plain, stdin)
        )
        for rest in inside:  # the rest of the line of `<<END` is part of the node
            if rest.type == "pipeline":
                stream = self._walk_pipeline(list_statements(rest), stream)
            elif rest in list_statements(node) or rest.type in ("command", "list", "redirected_statement", "subshell"):
                self._walk_statement(rest, None)
        return stream

    def _redirect_last(
        self,
        body: Node,
        plain: Sequence[Node],
        trailing: Sequence[Node],
        inputs: tuple[CommandStream | None, Sequence[CommandStream]],
    ) -> CommandStream:
        """Apply redirections to the last command of a list or pipeline; the grammar attaches them to the whole."""
        stdin, heredoc_streams = inputs
        if body.type in ("list", "pipeline", "negated_command") and (parts := list_statements(body)):
            *before, last = parts
            self._streams[body.id] = _NO_OUTPUT
            if body.type == "pipeline":
                return self._redirect_last(last, plain, trailing, (self._walk_pipeline(before, stdin), heredoc_streams))
            self._walk_statements(before, stdin)
            return self._redirect_last(last, plain, trailing, inputs)
        stdin = heredoc_streams[-1] if heredoc_streams else stdin
        is_command = body.type == "command"
        return (
            self._walk_command(body, plain, trailing, stdin) if is_command else self._walk_compound(body, plain, stdin)
        )

    def _walk_compound(self, body: Node | None, plain: Sequence[Node], stdin: CommandStream | None) -> CommandStream:
        found = self._read_redirections(plain)
        if found:
            self.commands.append(ShellCommand((), redirections=found, folder=self._folder, script=self))
        return self._walk_statement(body, _find_stdin(found, stdin)) if body else _NO_OUTPUT

    def _read_heredoc(self, heredoc: Node) -> CommandStream:
        body = next((child for child in heredoc.children if child.type == "heredoc_body"), None)
        start = next((get_node_text(child) for child in heredoc.children if child.type == "heredoc_start"), "")
        text = get_node_text(body) if body else ""
        if body and not any(char in start for char in "'\"\\"):
            for unseen in find_hidden_commands(body):
                self._include_script(parse_script(unseen, ScriptContext(None, self)))
            found = list_readings(body, self)
            text = found[0][0].text if found and found[0] else text
        return CommandStream(text, "a here-document")

    def _walk_command(
        self, node: Node, outer: Sequence[Node], trailing: Sequence[Node], stdin: CommandStream | None
    ) -> CommandStream:
        self._streams[node.id] = _NO_OUTPUT
        inner = [child for child in node.children if child.type in REDIRECTION_TYPES]
        for each in inner:
            self._streams[each.id] = _NO_OUTPUT
        redirections = self._read_redirections([*inner, *outer])
        parts = (
            [node]
            if node.type == "variable_assignment"
            else [c for c in node.children if c.type not in REDIRECTION_TYPES]
        )
        assignments = tuple(
            (get_node_text(name), " ".join(self.get_values(get_node_text(name))))
            for part in parts
            if part.type == "variable_assignment" and (name := part.child_by_field_name("name"))
        )
        words = [part for part in parts if part.type not in ("variable_assignment", "=")]
        command = ShellCommand((), assignments, redirections, _find_stdin(redirections, stdin), self._folder, self)
        if node.type in ("declaration_command", "unset_command"):
            return self._add_command(command._replace(argv=tuple(ShellWord(get_node_text(part)) for part in parts)))
        streams = [
            self._add_command(command._replace(argv=tuple(word for one in chosen for word in one)))
            for chosen in islice(product(*(list_readings(word, self) for word in (*words, *trailing))), MAX_READINGS)
        ]
        return streams[0] if len(streams) == 1 else CommandStream(None, "one of several commands")

    def _read_redirections(self, nodes: Sequence[Node]) -> tuple[Redirection, ...]:
        found: list[Redirection] = []
        for node in nodes:
            operator = next((child.type for child in node.children if not child.is_named), ">")
            for words in [words for target in _list_targets(node)[:1] for words in list_readings(target, self)]:
                found += [Redirection(operator, word) for word in words]
        return tuple(found)

    def _add_command(self, command: ShellCommand) -> CommandStream:
        name = command.argv[0].text if command.argv else ""
        if body := self.find_function(name):
            self.commands.append(command._replace(argv=()))
            return self._call_function(body, command)
        if value := self.find_alias(name):
            rest = shlex.join(word.text for word in command.argv[1:])
            self._include_script(
                parse_script(f"{value} {rest}", ScriptContext(self._folder, self, stdin=command.stdin, alias=name))
            )
        self.commands.append(command)
        if name in ("cd", "pushd", "chdir"):
            self._folder = _resolve_cd(self._folder, command.argv[1:])
        elif name == "set" and "--" in (words := [word.text for word in command.argv]):
            self.set_parameters(["bash", *words[words.index("--") + 1 :]])
        return CommandStream(predict_output(command.argv, command.stdin), name or "nothing")

    def _call_function(self, body: Node, command: ShellCommand) -> CommandStream:
        name = command.argv[0].text
        if name in self._call_stack:
            if self._pipe_depth or b"&" in (body.text or b""):
                self.problems.append(ScriptProblem("critical", f"{name} calls itself endlessly (a fork bomb)"))
            return _NO_OUTPUT
        before = self.set_parameters([word.text for word in command.argv])
        self._call_stack.append(name)
        stream = self._walk_statement(body, command.stdin)
        self._call_stack.pop()
        self.set_parameters(before)
        return stream

    def _include_script(self, script: ShellScript) -> None:
        self.commands += script.commands
        self.problems += script.problems


def _list_targets(redirect: Node) -> list[Node]:
    return [child for child in redirect.named_children if child.type != "file_descriptor"]


def _find_stdin(redirections: Sequence[Redirection], stdin: CommandStream | None) -> CommandStream | None:
    """Return what a command reads, after its redirections."""
    for operator, target in redirections:
        if operator == "<<<":
            stdin = CommandStream(f"{target.text}\n", "a here-string")
        elif operator == "<":
            stdin = target.stream or CommandStream(None, f"the file {target.text}")
    return stdin


def _resolve_cd(folder: str | None, operands: Sequence[ShellWord]) -> str | None:
    """Return the folder that `cd` changes to; None for `cd -`, whose target is unknown."""
    words = [word for word in operands if word.text not in ("-P", "-L", "-e", "-@", "--")]
    if not words:
        return "~"
    target = words[0]
    if not target.is_known or target.has_glob or target.text == "-":
        return None
    if target.text.startswith(("/", "~")):
        return target.text
    return None if folder is None else f"{folder}/{target.text}"
