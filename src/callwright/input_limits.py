"""Limits on input from outside: how deep, how long and how often it may be what it is.

Models, clients and servers write JSON and schemas that nobody reads before us. Each limit is far above what real
requests contain and low enough that the work stays small, because one process serves all clients. What is beyond a
limit is refused with a sentence (requests), passed on as text under a named repair (model output), or left
unconstrained and checked afterwards (grammars). `make bench-limits` measures the effect.
"""

from __future__ import annotations

__all__ = [
    "MAX_BODY_DEPTH",
    "MAX_CALL_OBJECT_DEPTH",
    "MAX_CLOSING_TAGS",
    "MAX_COMPARED_NAME_LENGTH",
    "MAX_EXCLUDED_NAME_LENGTH",
    "MAX_GRAMMAR_WORK",
    "MAX_INLINED_CHARACTERS",
    "MAX_INLINED_GROWTH",
    "MAX_JSON_DEPTH",
    "MAX_MERGED_ALTERNATIVES",
    "MAX_NAME_COMPARISONS",
    "MAX_NUMBER_LENGTH",
    "MAX_PATTERN_DEPTH",
    "MAX_PATTERN_LENGTH",
    "MAX_RENDERED_TYPES",
    "MAX_RULE_HINT_LENGTH",
    "MAX_SCHEMA_CHECKS",
    "MAX_SPACE_LENGTH",
    "WorkBudget",
]

# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────

MAX_JSON_DEPTH = 100
"""Nested brackets in a model's arguments. Deeper than any that were seen, and shallow enough for readers that recurse:
Python's stack has 1,000 frames, and the slowest reader needs four for a level."""
MAX_BODY_DEPTH = 128
"""Nested brackets in the body of a request. More than `MAX_JSON_DEPTH`, so that a client can send back, inside its
messages, all arguments that a model was allowed to write."""
MAX_NUMBER_LENGTH = 4_300
"""Characters of a number. Python refuses to convert a longer integer, because the time grows with its square."""
MAX_SPACE_LENGTH = 256
"""White space before a marker or after a quote. What follows more than that was not meant to belong to it; without a
limit, each chunk of a model that writes only spaces would be searched from the start."""
MAX_CLOSING_TAGS = 32
"""Closing tags in a row that are looked at to judge the first of them. A call ends with three or four; without a limit,
each tag of a model that writes only closing tags would be judged by all that follow."""
MAX_CALL_OBJECT_DEPTH = 8
"""Call objects inside each other, as in `{"function": {"name": …}}`. Two levels were seen."""

# ── names of arguments ───────────────────────────────────────────────────────────────────────────

MAX_NAME_COMPARISONS = 4_000
"""Comparisons of unknown argument names with declared ones, for one call. A tool has some ten parameters, and a model
misspells one or two; a model that writes 8,000 other names misspells none."""
MAX_COMPARED_NAME_LENGTH = 64
"""Characters of names that are compared letter by letter: the longest name that OpenAI's API accepts."""

# ── schemas ──────────────────────────────────────────────────────────────────────────────────────

MAX_INLINED_CHARACTERS = 10_000
"""Characters that a schema may gain when its references are replaced by their targets, and …"""
MAX_INLINED_GROWTH = 8
"""… how many times its own size more. Definitions that are used some times stay below; definitions that refer to each
other twice would double the schema with every definition. A schema that would gain more keeps its references."""
MAX_GRAMMAR_WORK = 2_000_000
"""Characters of schemas that are resolved, merged and compared for the grammar of one answer, each time anew. 44 tools
with 22,000 tokens need a tenth. What is left then allows any value."""
MAX_MERGED_ALTERNATIVES = 256
"""Alternatives of a schema that result from merging `anyOf` with `anyOf`: each pair is one. Beyond it, the alternatives
of one side are left out of the grammar."""
MAX_RENDERED_TYPES = 5_000
"""Members and values that are written out when a tool is described to a model. Beyond it an object is only called an
object, and a choice a string: no model reads a description that long."""
MAX_SCHEMA_CHECKS = 2_000
"""Schemas that are applied when the arguments of one call are checked. Branches that contain each other multiply with
every level of the value, and each check of one that fails takes 0.1 ms. Arguments that would need more are not
checked."""
MAX_PATTERN_LENGTH = 1_000
"""Characters of a `pattern` that becomes a grammar rule. A longer one does not constrain the model."""
MAX_PATTERN_DEPTH = 20
"""Groups inside each other in such a pattern."""
MAX_EXCLUDED_NAME_LENGTH = 64
"""Characters of a declared name that the grammar keeps apart from undeclared ones: one rule each."""
MAX_RULE_HINT_LENGTH = 64
"""Characters of the name of a grammar rule, which contains the names of all members above it."""


class WorkBudget:
    """Counts work that may multiply, up to a limit."""

    __slots__ = ("_left",)

    def __init__(self, limit: int) -> None:
        self._left = limit

    def take_amount(self, amount: int = 1) -> bool:
        """Take an amount; return False if the budget was used up before."""
        self._left -= amount
        return self._left >= 0
