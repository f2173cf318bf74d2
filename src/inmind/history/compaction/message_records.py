"""Records of the messages that are sent, each built once.

Selection asks for the size of a record, and the stubs contain it; a compaction is measured before it is stored. All of
them use the same records, since reducing hundreds of tool results takes most of the time of a compaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, cached_property

from inmind.core.events.entities import EntityPart
from inmind.core.messages.model import Wire
from inmind.core.text import escape_markup
from inmind.core.tokens import TOKENS_PER_MESSAGE
from inmind.documents.document import ARCHIVE_PREFIX
from inmind.entities.record import Detail
from inmind.history import ConversationEntry, EntriesByRange, History
from inmind.history.compaction.record_lines import record_lines
from inmind.history.compaction.records import (
    AnsweredCall,
    answer_text,
    answered_calls,
    answers_by_message,
    pruned_result,
)
from inmind.history.compaction.select import CompactionSelection, MessageSizes
from inmind.history.compaction.stub_text import location_in, prune_outputs, pruned_pointer
from inmind.history.token_meter import TokenMeter
from inmind.history.turn_messages import with_archived
from inmind.history.turns import TurnMessage, TurnResult

_USUAL_LOCATION = f"{ARCHIVE_PREFIX}001:1000-1100"


class MessageRecords:
    """The sent messages of a history, with the records of their tool results."""

    def __init__(
        self, history: History, messages: Sequence[TurnMessage], meter: TokenMeter, known_ids: Sequence[EntityPart] = ()
    ) -> None:
        """`messages`: those of `history.sent`.

        `known_ids`: in the order in which a stub should name them.
        """
        self.history, self.messages, self.meter, self.known_ids = history, messages, meter, known_ids
        self.is_known = {part.id for part in known_ids}.__contains__
        self.entries_in = EntriesByRange(history.messages)
        self._answered, self._text, self._pruned = cache(AnsweredCall), cache(self._render), cache(self._count_pruned)

    @cached_property
    def answers(self) -> list[list[AnsweredCall]]:
        """The answered calls of each message, with complete results."""
        return answers_by_message(self._originals, self._answered)

    def answered_calls(self, messages: Iterable[TurnMessage]) -> list[AnsweredCall]:
        """The answered calls of messages that were sent; each is parsed once."""
        return answered_calls(messages, self._answered)

    @cached_property
    def _originals(self) -> list[TurnMessage]:
        originals = with_archived(self.history, self.messages, self.meter)
        return list(map(_with_result, self.messages, originals))

    def pruned_wires(self, place: int, detail: Detail, location: str) -> tuple[Wire, ...]:
        """The message at a place with its tool results pruned, from the original.

        A result that was pruned before keeps its location.
        """
        entry, original = self.history.sent[place], self._original(place)
        pointer = pruned_pointer(location_in(entry, original) or location)
        results = self._pruned_results(place, detail, pointer)
        return prune_outputs(original, pointer, lambda _: next(results))

    def sizes(self, *, record_tokens: int) -> MessageSizes:
        """Sizes of pruned messages, and of their lines in a stub with this room for records."""

        @cache
        def line(place: int) -> int:
            if self.messages[place].is_block:
                return self.messages[place].tokens
            if not self.answers[place]:
                return 0
            count = self.meter.count
            [lines] = record_lines([self.answers[place]], [], self.is_known, budget=record_tokens, count=count).by_run
            return count("\n".join(lines)) if lines else 0

        return MessageSizes(self._pruned, line)

    def without_unprunable(self, selection: CompactionSelection) -> CompactionSelection:
        """The selection without tool results whose record is not shorter."""
        outputs = {
            place: detail
            for place, detail in selection.outputs.items()
            if self._pruned(place, detail) < self.messages[place].tokens
        }
        return replace(selection, outputs=outputs)

    def _original(self, place: int) -> ConversationEntry:
        """The message that was sent before it was shortened."""
        entry = self.history.sent[place]
        return entry if entry.replaced_ranges is None else self.entries_in(entry.replaced_ranges)[-1]

    def _pruned_results(self, place: int, detail: Detail, pointer: str) -> Iterator[str]:
        for number, answered in enumerate(self.answers[place]):
            yield pruned_result(answered.result.text, self._text(place, number, detail), pointer)

    def _count_pruned(self, place: int, detail: Detail) -> int:
        """Tokens of a message after its results are pruned, without writing it."""
        tokens = self._originals[place].tokens
        texts = self._pruned_results(place, detail, pruned_pointer(_USUAL_LOCATION))
        for answered, text in zip(self.answers[place], texts, strict=True):
            if text != answered.result.text:
                tokens += self.meter.count(text) + TOKENS_PER_MESSAGE - answered.result.tokens
        return tokens

    def _render(self, place: int, number: int, detail: Detail) -> str:
        return escape_markup(answer_text(self.answers[place][number], detail, self.is_known))


def _with_result(message: TurnMessage, original: TurnMessage) -> TurnMessage:
    """The original message with its results, also one of an agent without tool calls."""
    if message.stub and message.results and not original.results:
        return replace(original, results=(TurnResult("", original.text, original.tokens),))
    return original
