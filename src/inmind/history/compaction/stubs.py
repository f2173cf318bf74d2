"""Builds the stubs of a compaction: one for each shortened message and each removed run.

Tool results are pruned to records. The stub of removed messages has a summary and the records of their calls. Ids that
no record has, and that would no longer be in the prompt, are named with their type and name: a summary loses ids, and a
model that needs one would invent it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from inmind.core.events.entities import EntityPart
from inmind.core.events.session import Stub
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Message, Wire
from inmind.core.text import count_noun
from inmind.core.tokens import Counter
from inmind.documents.document import ARCHIVE_PREFIX
from inmind.entities.record import Detail
from inmind.entities.render import render_parts
from inmind.history import ConversationEntry
from inmind.history.compaction.archive_page import ArchivePage, page_name
from inmind.history.compaction.message_records import MessageRecords, block_text, block_wires, cut_message
from inmind.history.compaction.policy import CompactionRequest
from inmind.history.compaction.record_lines import RecordLines, record_lines
from inmind.history.compaction.records import AnsweredCall, possible_ids
from inmind.history.compaction.select import (
    LOCATION_TOKENS,
    MIN_CUT_TOKENS,
    CompactionSelection,
    cut_stub_tokens,
)
from inmind.history.turns import TurnMessage, to_turn_message

FRAME_TOKENS = 40
"""Tokens of the fixed text of a stub."""
MAX_LISTED_PAGES = 3
"""More archive pages of one stub are named as a range."""
MAX_KNOWN_IDS = 1_000
"""Known ids of a session that are searched for."""


def build_stubs(
    records: MessageRecords, selection: CompactionSelection, request: CompactionRequest, pages: Sequence[ArchivePage]
) -> list[Stub]:
    """Return all stubs of a compaction. `pages`: the archive pages with the messages."""
    return list(_StubBuilder(records, selection, request, pages).build())


def shown_ids(entry: ConversationEntry, message: Message) -> frozenset[str]:
    """Words that could be ids in a stub, or in the calls of a message.

    A pruned result does not repeat the ids of its call. `message`: the parsed one of the entry.
    """
    texts = [call.arguments for call in message.calls]
    texts += _texts_and_results(message) if entry.is_stub else ()
    return frozenset(possible_ids("\n".join(texts)) if texts else ())


class _StubBuilder:
    """Builds the stubs of one compaction; an id is named in one stub only."""

    def __init__(
        self,
        records: MessageRecords,
        selection: CompactionSelection,
        request: CompactionRequest,
        pages: Sequence[ArchivePage],
    ) -> None:
        self._records, self._selection, self._request, self._pages = records, selection, request, pages
        self._history, self._messages, self._meter = records.history, records.messages, records.meter
        self._ids = IdPicker(records.known_ids, _unchanged_texts(records.messages, selection))

    def build(self) -> Iterator[Stub]:
        sent = self._history.sent
        outputs = self._selection.outputs
        for place in sorted(self._selection.cut):
            yield self._cut_stub(sent[place], self._selection.cut[place])
        pruned = {place: self._pruned_stub(place, outputs[place]) for place in sorted(outputs)}
        yield from (stub for place, stub in pruned.items() if stub.messages != (sent[place].wire,))
        self._ids.drop(
            text for one in pruned.values() for wire in one.messages for text in _wire_texts(one.format, wire)
        )
        if self._selection.runs:
            yield from self._run_stubs()

    def _pruned_stub(self, place: int, detail: Detail) -> Stub:
        """A stub for a message with pruned results."""
        entry = self._history.sent[place]
        wires = self._records.pruned_wires(place, detail, self._archive_location(entry))
        return Stub(message_ranges=((entry.seq, entry.seq),), messages=wires, format=entry.format)

    def _cut_stub(self, entry: ConversationEntry, tokens: int) -> Stub:
        """A stub for a cut message. If it is minimal, ids take precedence over the first words."""
        room = cut_stub_tokens(self._meter.count_message(entry)) - LOCATION_TOKENS
        if self._selection.minimal_stubs and tokens <= MIN_CUT_TOKENS:
            room, tokens = min(tokens, MIN_CUT_TOKENS), max(0, tokens - MIN_CUT_TOKENS)
        room = min(room, self._request.id_tokens)
        place, count = self._archive_location(entry), self._meter.count
        wires = cut_message(entry, place, self._name_ids, tokens=tokens, id_tokens=room, count=count)
        self._ids.drop(text for wire in wires for text in _wire_texts(entry.format, wire))
        return Stub(message_ranges=((entry.seq, entry.seq),), messages=wires, format=entry.format)

    def _run_stubs(self) -> Iterator[Stub]:
        """A stub for each removed run, with its records; the first also has the summary."""
        runs, request, count = self._selection.runs, self._request, self._meter.count
        originals = [list(self._originals(run)) for run in runs]
        calls = [self._records.answered_calls(some) for some in originals]
        lines = record_lines(
            calls,
            self._kept_calls(),
            self._records.is_known,
            budget=request.record_tokens,
            count=count,
            detail_budget=request.detailed_record_tokens,
        )
        summary = request.summary if request.strategy == "summarize" else ""
        self._ids.drop([summary, *lines.texts])
        texts = (text for some in originals for one in some for text in _message_texts(one))
        ids = self._name_remaining_ids(lines, texts, request.id_tokens)
        more = f"({count_noun(len(lines.left_out), 'more call')} only in the archive)" if lines.left_out else ""
        first = {"summary": summary, "more": more, "ids": ids}
        for number, run in enumerate(runs):
            entries = [self._history.sent[place] for place in run]
            text = block_text(
                description=self._description(entries), records=lines.by_run[number], **({} if number else first)
            )
            format = entries[0].format
            yield Stub(
                message_ranges=self._history.ranges_at(run),
                messages=block_wires(text, format),
                format=format,
                is_block=True,
            )

    def _description(self, entries: Sequence[ConversationEntry]) -> str:
        locations = [*self._page_spans(entries), *self._earlier_pages(entries)]
        return f"{count_noun(self._message_count(entries), 'message')}, archived: {', '.join(locations)}."

    def _kept_calls(self) -> list[AnsweredCall]:
        removed = set(self._selection.removed)
        return [
            answered
            for place, answers in enumerate(self._records.answers)
            if place not in removed and not self._messages[place].is_block
            for answered in answers
        ]

    def _name_remaining_ids(self, lines: RecordLines, texts: Iterable[str], room: int) -> str:
        """Name the ids that no line has.

        Those of calls without a line come first, then lists in lines, then all others.
        """
        count = self._meter.count
        left_out, _ = self._ids.pick((one.result.text for one in lines.left_out), max_tokens=room, count=count)
        room -= count(render_parts(left_out)) if left_out else 0
        room -= lines.add_lists(room)
        self._ids.drop(lines.texts)
        others, unnamed = self._ids.pick(texts, max_tokens=room, count=count)
        return _render_ids([*left_out, *others], unnamed)

    def _name_ids(self, text: str, room: int) -> str:
        return _render_ids(*self._ids.pick([text], max_tokens=room, count=self._meter.count))

    def _originals(self, run: Sequence[int]) -> Iterator[TurnMessage]:
        """Yield the messages of a run as they were, with those of earlier stubs, oldest first."""
        sent = {one.seq: one for one in (self._messages[place] for place in run) if not one.stub}
        for entry in self._records.entries_in(self._history.ranges_at(run)):
            message = sent.get(entry.seq)
            yield message or to_turn_message(entry, FORMATS[entry.format].read(entry.wire), self._meter)

    def _archive_location(self, entry: ConversationEntry) -> str:
        return ", ".join(self._page_spans([entry])) or ARCHIVE_PREFIX

    def _page_spans(self, entries: Sequence[ConversationEntry]) -> Iterator[str]:
        """Yield page and line range of these messages.

        Only the first page of a compaction has a short name.
        """
        for number, page in enumerate(self._pages):
            lines = [page.lines[entry.seq] for entry in entries if entry.seq in page.lines]
            name = page.path if number or self._request.archive_to else page_name(page.path)
            if lines:
                yield f"{name}:{lines[0][0]}-{lines[-1][1]}"

    def _message_count(self, entries: Sequence[ConversationEntry]) -> int:
        """Number of messages, with those of earlier stubs."""
        earlier = sum(
            len(self._records.entries_in(entry.replaced_ranges)) for entry in entries if entry.replaced_ranges
        )
        return earlier + sum(not entry.is_stub for entry in entries)

    def _earlier_pages(self, entries: Sequence[ConversationEntry]) -> list[str]:
        """Pages of earlier compactions with messages of the merged stubs; many as a range."""
        ranges = [one for entry in entries if entry.is_stub for one in entry.replaced_ranges or ()]
        paths = [
            page_name(path)
            for one in self._history.compactions
            if any(_overlap(ranges, stub.message_ranges) for stub in one.payload.stubs)
            for path in one.payload.archives
        ]
        return paths if len(paths) <= MAX_LISTED_PAGES else [f"{paths[0]} to {paths[-1]}"]


def _render_ids(picked: Sequence[EntityPart], unnamed: int) -> str:
    """The ids by type, and the number of those that are not named."""
    more = f" ({count_noun(unnamed, 'more id')} only in the archive)" if unnamed else ""
    # They are of many things, so that their order would tell nothing.
    types = list(dict.fromkeys(part.type for part in picked))
    parts = [part._replace(from_same_list=False) for type in types for part in picked if part.type == type]
    return f"{render_parts(parts)}{more}" if picked or more else ""


def _overlap(ranges: Sequence[tuple[int, int]], others: Sequence[tuple[int, int]]) -> bool:
    return any(first <= other[1] and other[0] <= last for first, last in ranges for other in others)


def _unchanged_texts(messages: Sequence[TurnMessage], selection: CompactionSelection) -> list[str]:
    """All texts that will be sent, without those of stubs."""
    touched = set(selection.changed)
    texts = [one.text for place, one in enumerate(messages) if place not in touched or place in selection.outputs]
    unchanged = [one for place, one in enumerate(messages) if place not in touched]
    arguments = [call.arguments for one in unchanged for call in one.calls]
    return [*texts, *arguments, *(answer.text for one in unchanged for answer in one.results)]


def _message_texts(one: TurnMessage) -> list[str]:
    return [one.text, *(call.arguments for call in one.calls), *(answer.text for answer in one.results)]


def _wire_texts(format: str, wire: Wire) -> list[str]:
    return _texts_and_results(FORMATS[format].read(wire))


def _texts_and_results(message: Message) -> list[str]:
    return [message.text, *(result.text for result in message.results)]


class IdPicker:
    """Picks known ids for stubs, in order of preference, without those in `sent_texts`."""

    def __init__(self, known: Sequence[EntityPart], sent_texts: Iterable[str]) -> None:
        self._known = {part.id: part for part in known[:MAX_KNOWN_IDS]}
        self.drop(sent_texts)

    def drop(self, texts: Iterable[str]) -> None:
        """Do not pick ids that these texts have."""
        for word in possible_ids("\n".join(texts)) & self._known.keys():
            del self._known[word]

    def pick(self, texts: Iterable[str], *, max_tokens: int, count: Counter) -> tuple[list[EntityPart], int]:
        """Return the ids that occur in these texts, within `max_tokens`, and how many do not fit.

        Each is picked once.
        """
        candidates = possible_ids("\n".join(texts)) if self._known else set[str]()
        wanted = [part for id, part in self._known.items() if id in candidates]
        picked: list[EntityPart] = []
        for part in wanted:
            max_tokens -= count(render_parts([part])) + 1
            if max_tokens < 0:
                break
            picked.append(part)
            del self._known[part.id]
        return picked, len(wanted) - len(picked)
