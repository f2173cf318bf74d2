"""Builds the stubs of a compaction: one for each shortened message and each removed run.

Ids that would no longer be in the prompt are named in the stubs, each once and within a limit: a summary loses ids,
and a model that needs one would invent it. The entity block has the most recent ids; stubs name others, most recent
first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from inmind.core.encoding import to_json
from inmind.core.events.session import Stub
from inmind.core.text import count_noun
from inmind.core.tokens import Counter
from inmind.documents.document import ARCHIVE_PREFIX
from inmind.history import ConversationEntry, EntriesByRange, History
from inmind.history.compaction.archive_page import ArchivePage
from inmind.history.compaction.request import CompactionRequest
from inmind.history.compaction.select import MIN_CUT_TOKENS, OUTPUT_STUB_TOKENS, CompactionSelection, output_stub_tokens
from inmind.history.compaction.stub_text import block_text, block_wires, cut_message, replace_outputs
from inmind.history.compaction.summary import extract_summary
from inmind.history.token_meter import TokenMeter
from inmind.history.turns import TurnMessage

_RECENT_MESSAGES = 6
"""Last messages, which a compaction usually keeps."""
_FRAME_TOKENS = 80
"""Tokens of the fixed text of a stub."""


def build_stubs(
    history: History,
    messages: Sequence[TurnMessage],
    selection: CompactionSelection,
    request: CompactionRequest,
    pages: Sequence[ArchivePage],
    meter: TokenMeter,
) -> list[Stub]:
    """Return all stubs of a compaction. `pages`: the archive pages with the messages."""
    return list(_StubBuilder(history, messages, selection, request, pages, meter).build())


def estimate_stub_tokens(messages: Sequence[TurnMessage], request: CompactionRequest, meter: TokenMeter) -> int:
    """Upper bound of the stub if all but the last messages and all earlier stubs are removed."""
    start = max(0, len(messages) - _RECENT_MESSAGES)
    removed = [one for place, one in enumerate(messages) if place < start or one.is_block]
    kept = [one for one in messages[start:] if not one.is_block]
    picker = IdPicker(request.known_ids, (text for one in kept for text in _message_texts(one)))
    ids = picker.pick(
        (text for one in removed for text in _message_texts(one)), max_tokens=request.id_tokens, count=meter.count
    )
    named = sum(meter.count(id) + 1 for id in ids)
    return _FRAME_TOKENS + request.stub_tokens + named


class _StubBuilder:
    """Builds the stubs of one compaction; an id is named in one stub only."""

    def __init__(
        self,
        history: History,
        messages: Sequence[TurnMessage],
        selection: CompactionSelection,
        request: CompactionRequest,
        pages: Sequence[ArchivePage],
        meter: TokenMeter,
    ) -> None:
        self._history, self._messages, self._selection, self._request = history, messages, selection, request
        self._pages, self._meter = pages, meter
        self._entries_in = EntriesByRange(history.messages)
        self._id_picker = IdPicker(request.known_ids, _unchanged_texts(messages, selection))

    def build(self) -> Iterator[Stub]:
        sent = self._history.sent
        for place in sorted(self._selection.cut):
            yield self._cut_stub(sent[place], self._selection.cut[place])
        # Newest first, because its ids are more likely to be used.
        for place in sorted(self._selection.outputs, reverse=True):
            yield self._output_stub(sent[place])
        for number, run in enumerate(self._selection.runs):
            yield self._run_stub(run, first=number == 0)

    def _output_stub(self, entry: ConversationEntry) -> Stub:
        room = output_stub_tokens(self._meter.count_message(entry)) - OUTPUT_STUB_TOKENS
        wires = replace_outputs(entry, self._archive_location(entry), lambda text: self._pick_ids([text], room))
        return Stub(message_ranges=((entry.seq, entry.seq),), messages=wires, format=entry.format)

    def _cut_stub(self, entry: ConversationEntry, tokens: int) -> Stub:
        """A stub for a cut message. If it is minimal, ids take precedence over the first words."""
        room = output_stub_tokens(self._meter.count_message(entry)) - OUTPUT_STUB_TOKENS
        if self._selection.minimal_stubs and tokens <= MIN_CUT_TOKENS:
            room, tokens = min(tokens, MIN_CUT_TOKENS), max(0, tokens - MIN_CUT_TOKENS)
        place, count = self._archive_location(entry), self._meter.count
        wires = cut_message(entry, place, lambda text: self._pick_ids([text], room), tokens=tokens, count=count)
        return Stub(message_ranges=((entry.seq, entry.seq),), messages=wires, format=entry.format)

    def _run_stub(self, run: Sequence[int], *, first: bool) -> Stub:
        """The first stub has summary and ids; the others only number and location of the messages."""
        entries = [self._history.sent[place] for place in run]
        fresh = [self._messages[place] for place in run if not self._messages[place].stub]
        size = sum(one.tokens for one in fresh)
        description = f"Archived: {count_noun(len(fresh), 'message')} of {size:,} tokens{self._total_count(entries)}."
        locations = [*self._page_spans(entries), *self._earlier_pages(entries)]
        text = block_text(description=description, pages=locations)
        if first:
            summary = self._request.summary or self._extract_summary(
                self._request.stub_tokens - self._meter.count(text)
            )
            ids = self._pick_ids(self._removed_texts(), self._request.id_tokens)
            text = block_text(description=description, pages=locations, summary=summary, ids=ids)
        format = entries[0].format
        return Stub(
            message_ranges=self._history.ranges_at(run),
            messages=block_wires(text, format),
            format=format,
            is_block=True,
        )

    def _extract_summary(self, room: int) -> str:
        if self._request.strategy != "summarize":
            return ""
        messages = [self._messages[place] for place in self._selection.removed if not self._messages[place].stub]
        return extract_summary(messages, budget=max(0, room), count=self._meter.count)

    def _pick_ids(self, texts: Iterator[str] | list[str], room: int) -> list[str]:
        return self._id_picker.pick(texts, max_tokens=room, count=self._meter.count)

    def _removed_texts(self) -> Iterator[str]:
        """Yield the texts of removed messages; for a stub of one message, its original text."""
        for place in self._selection.removed:
            yield from _message_texts(self._messages[place])
            ranges = self._history.sent[place].replaced_ranges
            if ranges and len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
                yield from (to_json(entry.wire) for entry in self._entries_in(ranges))

    def _archive_location(self, entry: ConversationEntry) -> str:
        return ", ".join(self._page_spans([entry])) or ARCHIVE_PREFIX

    def _page_spans(self, entries: Sequence[ConversationEntry]) -> Iterator[str]:
        """Yield page and line range of these messages."""
        for page in self._pages:
            lines = [page.lines[entry.seq] for entry in entries if entry.seq in page.lines]
            if lines:
                yield f"{page.path} from_line {lines[0][0]} to_line {lines[-1][1]}"

    def _total_count(self, entries: Sequence[ConversationEntry]) -> str:
        """Total number of messages, if the stub includes earlier stubs."""
        earlier = sum(len(self._entries_in(entry.replaced_ranges)) for entry in entries if entry.replaced_ranges)
        return f", {earlier + sum(not entry.is_stub for entry in entries)} in all" if earlier else ""

    def _earlier_pages(self, entries: Sequence[ConversationEntry]) -> list[str]:
        """Pages of the earlier compactions whose stubs are merged, as a range."""
        ids = {entry.id for entry in entries if entry.is_stub}
        if not ids:
            return []
        compactions = self._history.compactions
        last = max(place for place, one in enumerate(compactions) if one.id in ids)
        paths = [path for one in compactions[: last + 1] for path in one.payload.archives]
        return [paths[0]] if len(paths) == 1 else [f"{paths[0]} to {paths[-1]}"] if paths else []


def _unchanged_texts(messages: Sequence[TurnMessage], selection: CompactionSelection) -> list[str]:
    """All texts that will be sent, without those of stubs."""
    touched = set(selection.changed)
    texts = [one.text for place, one in enumerate(messages) if place not in touched or place in selection.outputs]
    unchanged = [one for place, one in enumerate(messages) if place not in touched]
    arguments = [call.arguments for one in unchanged for call in one.calls]
    return [*texts, *arguments, *(answer.text for one in unchanged for answer in one.results)]


def _message_texts(one: TurnMessage) -> list[str]:
    return [one.text, *(call.arguments for call in one.calls), *(answer.text for answer in one.results)]


MAX_KNOWN_IDS = 1_000
"""Known ids of a session that are searched for."""


_SEPARATORS = str.maketrans(dict.fromkeys("\"'`(),;:=[]{}<>|\\", " "))


_TRAILING = (".", "!", "?")


class IdPicker:
    """Picks known ids for stubs, in order of preference, without those in `sent_texts`."""

    def __init__(self, known: Sequence[str], sent_texts: Iterable[str]) -> None:
        self._known = {id: rank for rank, id in enumerate(dict.fromkeys(known[:MAX_KNOWN_IDS]))}
        for word in possible_ids("\n".join(sent_texts)) & self._known.keys():
            del self._known[word]

    def pick(self, texts: Iterable[str], *, max_tokens: int, count: Counter) -> list[str]:
        """Return the ids that occur in these texts, within `max_tokens`; each is picked once."""
        candidates = possible_ids("\n".join(texts)) if self._known else set[str]()
        picked: list[str] = []
        for id in sorted(candidates & self._known.keys(), key=self._known.__getitem__):
            max_tokens -= count(id) + 1
            if max_tokens < 0:
                break
            picked.append(id)
            del self._known[id]
        return picked


def possible_ids(text: str) -> set[str]:
    """Return all words of a text that could be an id."""
    words = set(text.translate(_SEPARATORS).split())
    return words | {word.rstrip("".join(_TRAILING)) for word in words if word.endswith(_TRAILING)}
