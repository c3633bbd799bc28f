"""ATEM, the format of Muse: messages addressed to self, to the user or to a tool; calls as invoke tags.

     to=get_weather<|message|><atem:function_calls>
    <atem:invoke name="get_weather">
    <atem:parameter name="city">Oslo</atem:parameter>
    </atem:invoke>
    </atem:function_calls><|eot|>

The first `<|start|>assistant` is in the prompt. Defined by the chat template of Muse-Glimmer-30B; the damaged forms are
those reported in vllm-project/vllm#51655 and by users of oMLX. A call that is quoted in a message to self or to the
user is text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from callwright.arguments import ArgumentsWriter
from callwright.dialects.base import Dialect, open_call, truncate_call
from callwright.dialects.framed_messages import FramedDialect
from callwright.dialects.message_header import ANALYSIS, MESSAGE, START, MessageHeader
from callwright.dialects.named_parameters import NamedParameters, read_name_attribute
from callwright.model import ToolCall
from callwright.text.source import ParseStep, Source, compile_markers
from callwright.turn import Turn

__all__ = ["DIALECTS", "Atem"]

EOM = "<|eom|>"
EOT = "<|eot|>"


def _build_parameters(prefix: str) -> NamedParameters:
    around = (f"</{prefix}invoke>", f"</{prefix}function_calls>", EOM, EOT)
    return NamedParameters(prefix, around, (f"<{prefix}invoke name=", f"{START}assistant"))


_INVOKE_TAGS = {f"<{prefix}invoke name=": _build_parameters(prefix) for prefix in ("atem:", "")}
"""The tags of a call; the model sometimes omits their prefix."""


@dataclass(frozen=True, kw_only=True)
class Atem(FramedDialect):
    """Framed messages whose recipient is the channel."""

    raw_values: ClassVar[bool] = True
    non_tool_recipients: ClassVar[Mapping[str, str]] = MappingProxyType({"self": ANALYSIS, "user": "final"})

    call_end_markers: tuple[str, ...] = (EOM, EOT)
    text_end_markers: tuple[str, ...] = (EOM, EOT)
    unframed_openers: tuple[str, ...] = ("<atem:function_calls>", "<atem:invoke name=")
    tokens: frozenset[str] = frozenset({START, MESSAGE, EOM, EOT})

    @property
    def body_starts(self) -> tuple[str, ...]:
        return ("assistant to=", "<atem:invoke name=")

    @property
    def markers(self) -> tuple[str, ...]:
        tags = _INVOKE_TAGS[self.unframed_openers[1]]
        return (*self.message_markers, *self.unframed_openers, *tags.enclosing_tags[:2], tags.open, tags.close)

    def find_recipient_tool(self, turn: Turn, recipient: str) -> str:
        """Return the recipient, or the part before its dot: the prompt lists recipients as `read.*`."""
        name = recipient.partition("<")[0]
        head = name.partition(".")[0]
        if head in turn.tools and name not in turn.tools:
            return head
        return name if turn.can_call(name) else ""

    def read_body(self, source: Source, turn: Turn, header: MessageHeader) -> ParseStep[str]:
        wrapper = yield from source.accept_next(compile_markers("<atem:function_calls>", "<function_calls>"))
        read = False
        while not (read and turn.is_truncated):
            opener = yield from source.accept_next(compile_markers(*_INVOKE_TAGS))
            if not opener:
                break
            notes: dict[str, str] = {}
            written_name = yield from read_name_attribute(source, notes.__setitem__)
            if written_name is None:
                return "the tag of a call is not closed"
            problem = yield from self._read_invoke(source, turn, header, written_name, _INVOKE_TAGS[opener], notes)
            if problem:
                yield from _INVOKE_TAGS[opener].skip_parameters(source)
                yield from source.accept(compile_markers(_INVOKE_TAGS[opener].enclosing_tags[0]))
                raw = source.end_capture()
                turn.add_text(raw)
                turn.add_malformed(raw, problem, shown=True)
            read = True
            source.start_capture()
        if not read:
            return "no call follows"
        if not wrapper:
            turn.add_repair("missing_open", f"{self.unframed_openers[0]} was missing before a call")
        elif not (yield from source.accept_next(compile_markers(f"</{wrapper[1:]}"))) and not turn.is_truncated:
            turn.add_repair("missing_close", f"</{wrapper[1:]} was missing after a call")
        return ""

    def _read_invoke(
        self,
        source: Source,
        turn: Turn,
        header: MessageHeader,
        written_name: str,
        tags: NamedParameters,
        notes: dict[str, str],
    ) -> ParseStep[str]:
        name = self.find_recipient_tool(turn, written_name)
        if not name:
            return f"unknown tool {written_name!r}"
        arguments = open_call(source, turn, name)
        is_known = header.recipient in (header.tool, written_name, *self.unframed_openers)
        if header.oddities or not is_known:
            arguments.call.add_repair(
                "odd_header", ", ".join((*header.oddities, *(() if is_known else (header.recipient,))))
            )
        if name != written_name:
            arguments.call.add_repair("renamed_tool", f"{written_name!r} became {name!r}")
        for kind, detail in notes.items():
            arguments.call.add_repair(kind, detail)
        if notes.get("dropped_attribute", "").strip() == "/":
            # The tag closes itself; some models close it once more.
            yield from source.accept_next(compile_markers(tags.enclosing_tags[0]))
            arguments.close_empty()
            return ""
        if not tags.prefix:
            arguments.call.add_repair("missing_prefix", f"{tags.open} was written without its atem prefix")
        complete = yield from self._read_swallowed_parameter(
            source, arguments, tags, written_name.removeprefix(f"{name}.")
        )
        if (
            complete
            and (yield from tags.read_parameters(source, arguments))
            and (yield from source.accept(compile_markers(tags.enclosing_tags[0])))
        ):
            arguments.close()
        else:
            yield from truncate_call(source, turn, arguments)
        return ""

    def _read_swallowed_parameter(
        self, source: Source, arguments: ArgumentsWriter, tags: NamedParameters, key: str
    ) -> ParseStep[bool]:
        """Read a first parameter whose opening tag became part of the call's name: `read.path`, then the path."""
        if not arguments.is_missing(key) or (
            yield from source.peek_marker(compile_markers(tags.open, tags.enclosing_tags[0]))
        ):
            return True
        arguments.call.add_repair("missing_open", f"the opening tag of {key!r} was missing")
        return (yield from tags.read_value(source, arguments, key))

    def render_call(self, *calls: ToolCall) -> str:
        return EOM.join(self._render_one_call(call) for call in calls) + EOT

    def _render_one_call(self, call: ToolCall) -> str:
        tags = _INVOKE_TAGS[self.unframed_openers[1]]
        inside = "".join(f"{parameter}\n" for parameter in tags.render_parameters(call.arguments))
        return (
            f"{START}assistant to={call.name}{MESSAGE}{self.unframed_openers[0]}\n"
            f'{self.unframed_openers[1]}"{call.name}">\n{inside}{tags.enclosing_tags[0]}\n{tags.enclosing_tags[1]}'
        )

    def render_text(self, text: str) -> str:
        return f"{START}assistant to=user{MESSAGE}{text}{EOM}" if text else ""


ATEM = Atem(
    name="atem",
    shape="X3",
    models="Muse Spark, Muse Glimmer",
    source="chat template of meta-models/Muse-Glimmer-30B",
    result_template=f'{START}tool {{name}}{MESSAGE}<tool_output name="{{name}}">\n{{content}}\n</tool_output>{EOT}',
    parsers=("muse_glimmer",),
    patterns=("*muse-glimmer*", "*muse-spark*", "*muse_glimmer*", "*muse_spark*"),
)

DIALECTS: Sequence[Dialect] = (ATEM,)
