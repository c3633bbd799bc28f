"""A call under construction: its ids and positions, and its arguments, from increments or from text that is resent.

Some upstreams send increments, others resend everything so far. The mode is a property of the stream and is decided
once: a fragment that does not start with the previous text proves increments; a sum that cannot be JSON proves
resending. Until then, text that would differ between the two modes is held back. Text that is not JSON from its start,
such as the input of a freeform tool, proves nothing: there, repeated fragments are data.

Of resent text only the last version is stored, so that a call costs the memory of its arguments, and time in proportion
to what was received.
"""

from __future__ import annotations

from callwright.call_entries import CallEntry
from callwright.text.json_progress import JsonProgress
from callwright.text.surrogates import has_open_half, join_halves

__all__ = ["NO_ARGUMENTS", "CallBuilder", "StreamMode"]

NO_ARGUMENTS = ("", "null", "None", "[]", '""')
"""What upstreams send as the arguments of a call that has none."""
_LONGEST_EMPTY = 64
"""Longer text is not compared with `NO_ARGUMENTS`."""


class StreamMode:
    """Whether the stream resends everything; None while that is undecided."""

    __slots__ = ("is_cumulative",)

    def __init__(self) -> None:
        self.is_cumulative: bool | None = None


class CallBuilder:
    """One call. `add_fragment` and `set_arguments` read, `take_new_arguments` returns what can be passed on."""

    def __init__(self, call_id: str, mode: StreamMode) -> None:
        self.id = call_id
        self.name = ""
        self.index = -1
        """The number of the call; negative until it has a name."""
        self.ids: set[str] = set()
        self.positions: set[str] = set()
        self.is_freeform = False
        self.is_final = False
        self.is_from_text = False
        self.is_from_message = False
        self.allows_no_arguments = False
        """Whether null and other forms of no arguments are an empty object."""
        self._mode = mode
        self._pieces: list[str] = []
        self._length = 0
        self._resent: list[str] = []
        """Fragments after the first that are increments, or the whole text again."""
        self._resent_length = 0
        self._unsent: list[str] = []
        self._sent_length = 0
        self._progress = JsonProgress()
        self._unchecked: list[str] = []
        """Text that `_progress` has not read yet."""
        self._sum_progress: JsonProgress | None = None
        """Follows the sum of the fragments while the mode is undecided."""
        self._is_plain_text: bool | None = None
        """Whether the text is not JSON from its start, and no object that only has mistakes; None if not checked."""

    @property
    def size(self) -> int:
        """How many characters are stored."""
        return self._length + self._resent_length

    @property
    def is_started(self) -> bool:
        """Whether the call has a name and a number."""
        return self.index >= 0

    def add_entry(self, entry: CallEntry) -> None:
        """Learn the names that an entry has for the call."""
        self.name = self.name or entry.name
        self.ids.update(entry.ids)
        self.is_freeform = self.is_freeform or entry.is_freeform
        if entry.position:
            self.positions.add(entry.position)

    # ── the text ───────────────────────────────────────────────────────────────────────────────────

    @property
    def arguments(self) -> str:
        """The arguments so far. While the mode is undecided, the reading that is JSON."""
        self._settle()
        if self._resent and self._is_resent_likelier():
            return join_halves(self._resent[-1])
        return join_halves(self._join_pieces() + "".join(self._resent))

    def is_complete_object(self) -> bool:
        """Whether the arguments are one complete JSON object so far."""
        self._settle()
        if self._sum_progress is not None:
            return self._sum_progress.is_complete_object
        self._check_text()
        return self._progress.is_complete_object

    def add_fragment(self, fragment: str) -> None:
        """Append a fragment, and decide the mode of the stream if it is still undecided."""
        if not fragment or self.is_final:
            return
        fragment = join_halves(fragment)
        self._decide_mode(fragment)
        self._settle()
        if self._mode.is_cumulative:
            self._extend_text(fragment)
        elif self._sum_progress is not None:
            self._resent.append(fragment)
            self._resent_length += len(fragment)
        else:
            self._append_text(fragment)

    def set_arguments(self, arguments: str) -> None:
        """Set the complete arguments. If they contradict what was already returned, keep what was returned."""
        if self.is_final:
            return
        arguments = join_halves(arguments)
        sent = self.arguments[: self._sent_length]
        if self.allows_no_arguments and not sent.strip() and arguments.strip() in NO_ARGUMENTS:
            arguments = sent + "{}"
        if arguments.startswith(sent):
            self._take_resent()
            self._replace_text(arguments)
            self._unsent = [arguments[len(sent) :]]
            self.is_final = True

    def finish(self) -> None:
        """End the call: what is undecided is decided, and no fragment follows."""
        self.set_arguments(self.arguments)

    def take_new_arguments(self) -> str:
        """Return the arguments that are decided and were not returned before."""
        self._settle()
        if not self._unsent:
            return ""
        text = join_halves("".join(self._unsent))
        self._unsent = []
        if not self.is_final:
            if self._can_be_empty(text):
                self._unsent = [text]
                return ""
            if has_open_half(text):
                self._unsent = [text[-1]]
                text = text[:-1]
        self._sent_length += len(text)
        return text

    # ── private ────────────────────────────────────────────────────────────────────────────────────

    def _can_be_empty(self, text: str) -> bool:
        """Whether text that is not sent yet may turn out to be one of the forms of no arguments."""
        if not self.allows_no_arguments or self._sent_length or len(text) > _LONGEST_EMPTY:
            return False
        return any(word.startswith(text.strip()) for word in NO_ARGUMENTS)

    def _has_plain_text(self) -> bool:
        if self.is_freeform:
            return True
        if self._is_plain_text is None:
            self._check_text()
            starts_object = self._join_pieces().lstrip().startswith("{")
            self._is_plain_text = not starts_object and not self._progress.is_possible
        return self._is_plain_text

    def _decide_mode(self, fragment: str) -> None:
        """Decide the mode from the second fragment of a call on."""
        if self._mode.is_cumulative is not None or not self._pieces or self._has_plain_text():
            return
        last = self._resent[-1] if self._resent else self._join_pieces()
        if not fragment.startswith(_drop_open_half(last)):
            self._mode.is_cumulative = False
            return
        if self._sum_progress is None:
            self._sum_progress = JsonProgress()
            self._sum_progress.feed(last)
        self._sum_progress.feed(fragment)
        if not self._sum_progress.is_possible:
            self._mode.is_cumulative = True

    def _settle(self) -> None:
        """Apply a mode that was decided after fragments of this call were held back."""
        if self._mode.is_cumulative is None or self._sum_progress is None:
            return
        resent = self._take_resent()
        for fragment in resent[-1:] if self._mode.is_cumulative else resent:
            (self._extend_text if self._mode.is_cumulative else self._append_text)(fragment)

    def _is_resent_likelier(self) -> bool:
        """Whether the last fragment alone is the better reading, while both are possible."""
        if self._sum_progress is None or self._sum_progress.is_complete_object:
            return False
        last = JsonProgress()
        last.feed(self._resent[-1])
        return last.is_complete or not self._sum_progress.is_complete

    def _take_resent(self) -> list[str]:
        """Return the fragments that were held back, and hold none any more."""
        resent, self._resent = self._resent, []
        self._resent_length = 0
        self._sum_progress = None
        return resent

    def _extend_text(self, fragment: str) -> None:
        """Read a fragment of a stream that resends everything. What does not contain the text so far is appended."""
        if len(fragment) < self._length:
            if not self._pieces[0].startswith(fragment):
                self._append_text(fragment)
            return
        known = _drop_open_half(self._join_pieces())
        if not fragment.startswith(known):
            self._append_text(fragment)
            return
        if len(known) < self._length:
            self._drop_unsent_half()
        self._replace_text(fragment, len(known))
        self._unsent.append(fragment[len(known) :])

    def _drop_unsent_half(self) -> None:
        """Drop the half of a pair at the end, which was not sent: the text with the whole pair replaces it."""
        unsent = "".join(self._unsent)
        self._unsent = [_drop_open_half(unsent)]

    def _append_text(self, fragment: str) -> None:
        self._pieces.append(fragment)
        self._length += len(fragment)
        self._unsent.append(fragment)
        self._unchecked.append(fragment)

    def _replace_text(self, text: str, known: int = 0) -> None:
        """Replace the text; its first `known` characters were there before."""
        self._pieces = [text]
        self._length = len(text)
        if known:
            self._unchecked.append(text[known:])
        else:
            self._progress, self._unchecked = JsonProgress(), [text]

    def _join_pieces(self) -> str:
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    def _check_text(self) -> None:
        unchecked, self._unchecked = self._unchecked, []
        for piece in unchecked:
            self._progress.feed(piece)


def _drop_open_half(text: str) -> str:
    return text[:-1] if has_open_half(text) else text
