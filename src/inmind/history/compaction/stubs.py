"""What is sent instead of what leaves: a stub for each message that became shorter, and one for each run that left.

Ids that then stand nowhere else are named, each once, as far as there is room: a summary forgets them, and a model that
needs one would invent it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from inmind.core.encoding import to_json
from inmind.core.events.session import Stub
from inmind.core.text import counted
from inmind.core.tokens import Counter
from inmind.documents.document import ARCHIVE_PREFIX
from inmind.history import Behind, ConversationEntry, History
from inmind.history.compaction.archive_page import Page
from inmind.history.compaction.request import Wanted
from inmind.history.compaction.select import LEAST_LEFT, OUTPUT_STUB, Leaving, output_stub
from inmind.history.compaction.stub_text import block, cut_short, for_messages, without_outputs
from inmind.history.compaction.summary import extract
from inmind.history.token_meter import Meter
from inmind.history.turns import Spoken

_RECENT = 6
"""Messages that no compaction takes whole, as a rule: the last rounds."""
_FRAME = 80
"""Tokens of the words around what a stub says."""


def stubs_for(
    history: History, said: Sequence[Spoken], leaving: Leaving, wanted: Wanted, archived: Sequence[Page], meter: Meter
) -> list[Stub]:
    """All stubs of a compaction. `archived`: the pages on which what leaves will be."""
    return list(_Stubs(history, said, leaving, wanted, archived, meter).all())


def stub_size(said: Sequence[Spoken], wanted: Wanted, meter: Meter) -> int:
    """What the stub for messages will take at most, if all but the last messages leave, and with them earlier ones."""
    start = max(0, len(said) - _RECENT)
    leave = [one for place, one in enumerate(said) if place < start or one.block]
    stay = [one for one in said[start:] if not one.block]
    naming = Naming(wanted.ids, (text for one in stay for text in _texts(one)))
    ids = naming.among((text for one in leave for text in _texts(one)), room=wanted.naming, count=meter.count)
    named = sum(meter.count(id) + 1 for id in ids)
    return _FRAME + wanted.stub + named


class _Stubs:
    """The stubs of one compaction in the making: what one has named, the next need not."""

    def __init__(
        self,
        history: History,
        said: Sequence[Spoken],
        leaving: Leaving,
        wanted: Wanted,
        archived: Sequence[Page],
        meter: Meter,
    ) -> None:
        self._history, self._said, self._leaving, self._wanted = history, said, leaving, wanted
        self._archived, self._meter = archived, meter
        self._behind = Behind(history.line)
        self._naming = Naming(wanted.ids, _untouched(said, leaving))

    def all(self) -> Iterator[Stub]:
        sent = self._history.sent
        for place in sorted(self._leaving.cut):
            yield self._of_cut(sent[place], self._leaving.cut[place])
        # The newest first: its ids are the likelier to be used.
        for place in sorted(self._leaving.outputs, reverse=True):
            yield self._of_outputs(sent[place])
        for number, run in enumerate(self._leaving.runs):
            yield self._of_run(run, first=number == 0)

    def _of_outputs(self, entry: ConversationEntry) -> Stub:
        room = output_stub(self._meter.message(entry)) - OUTPUT_STUB
        wires = without_outputs(entry, self._place_of(entry), lambda text: self._named([text], room))
        return Stub(message_ranges=((entry.seq, entry.seq),), messages=wires, format=entry.format)

    def _of_cut(self, entry: ConversationEntry, tokens: int) -> Stub:
        """Where there is hardly any room, ids are worth more than the first words."""
        room = output_stub(self._meter.message(entry)) - OUTPUT_STUB
        if self._leaving.tight and tokens <= LEAST_LEFT:
            room, tokens = min(tokens, LEAST_LEFT), max(0, tokens - LEAST_LEFT)
        place, count = self._place_of(entry), self._meter.count
        wires = cut_short(entry, place, lambda text: self._named([text], room), tokens=tokens, count=count)
        return Stub(message_ranges=((entry.seq, entry.seq),), messages=wires, format=entry.format)

    def _of_run(self, run: Sequence[int], *, first: bool) -> Stub:
        """The first says everything; the others, how much there was and where it is."""
        entries = [self._history.sent[place] for place in run]
        fresh = [self._said[place] for place in run if not self._said[place].stub]
        size = sum(one.tokens for one in fresh)
        told = f"Archived: {counted(len(fresh), 'message')} of {size:,} tokens{self._in_all(entries)}."
        where = [*self._spans(entries), *self._earlier(entries)]
        text = for_messages(told=told, where=where)
        if first:
            summary = self._wanted.summary or self._extracted(self._wanted.stub - self._meter.count(text))
            ids = self._named(self._all_that_leaves(), self._wanted.naming)
            text = for_messages(told=told, where=where, summary=summary, ids=ids)
        format = entries[0].format
        return Stub(
            message_ranges=self._history.runs_at(run), messages=block(text, format), format=format, is_block=True
        )

    def _extracted(self, room: int) -> str:
        if self._wanted.strategy != "summarize":
            return ""
        left = [self._said[place] for place in self._leaving.whole if not self._said[place].stub]
        return extract(left, budget=max(0, room), count=self._meter.count)

    def _named(self, texts: Iterator[str] | list[str], room: int) -> list[str]:
        return self._naming.among(texts, room=room, count=self._meter.count)

    def _all_that_leaves(self) -> Iterator[str]:
        """What the messages say; of one that was sent as a stub, all that it had said."""
        for place in self._leaving.whole:
            yield from _texts(self._said[place])
            of = self._history.sent[place].of
            if of and len(of) == 1 and of[0][0] == of[0][1]:
                yield from (to_json(entry.wire) for entry in self._behind(of))

    def _place_of(self, entry: ConversationEntry) -> str:
        return ", ".join(self._spans([entry])) or ARCHIVE_PREFIX

    def _spans(self, entries: Sequence[ConversationEntry]) -> Iterator[str]:
        """Where these messages are: the pages, and the lines of each that they take."""
        for page in self._archived:
            lines = [page.lines[entry.seq] for entry in entries if entry.seq in page.lines]
            if lines:
                yield f"{page.path} from_line {lines[0][0]} to_line {lines[-1][1]}"

    def _in_all(self, entries: Sequence[ConversationEntry]) -> str:
        """How many messages a stub stands for, where others were archived before."""
        earlier = sum(len(self._behind(entry.of)) for entry in entries if entry.of)
        return f", {earlier + sum(not entry.stub for entry in entries)} in all" if earlier else ""

    def _earlier(self, entries: Sequence[ConversationEntry]) -> list[str]:
        """Pages of compactions whose stubs go into this one, as a span."""
        ids = {entry.id for entry in entries if entry.stub}
        if not ids:
            return []
        compactions = self._history.compactions
        last = max(place for place, one in enumerate(compactions) if one.id in ids)
        paths = [path for one in compactions[: last + 1] for path in one.what.archives]
        return [paths[0]] if len(paths) == 1 else [f"{paths[0]} to {paths[-1]}"] if paths else []


def _untouched(said: Sequence[Spoken], leaving: Leaving) -> list[str]:
    """All the words that will be sent, but for those of stubs."""
    touched = set(leaving.touched)
    words = [one.words for place, one in enumerate(said) if place not in touched or place in leaving.outputs]
    stay = [one for place, one in enumerate(said) if place not in touched]
    arguments = [call.arguments for one in stay for call in one.asks]
    return [*words, *arguments, *(answer.text for one in stay for answer in one.answers)]


def _texts(one: Spoken) -> list[str]:
    return [one.words, *(call.arguments for call in one.asks), *(answer.text for answer in one.answers)]


MOST_KNOWN = 1_000
"""Ids that are looked for, of those that a session knows."""


_BETWEEN = str.maketrans(dict.fromkeys("\"'`(),;:=[]{}<>|\\", " "))


_BEHIND = (".", "!", "?")


class Naming:
    """`known`: ids, those first that are to be named first. `stays`: all that is still sent."""

    def __init__(self, known: Sequence[str], stays: Iterable[str]) -> None:
        self._known = {id: rank for rank, id in enumerate(dict.fromkeys(known[:MOST_KNOWN]))}
        for word in words_in("\n".join(stays)) & self._known.keys():
            del self._known[word]

    def among(self, texts: Iterable[str], *, room: int, count: Counter) -> list[str]:
        """Those that stand in these texts, in so many tokens. Each is named once."""
        there = words_in("\n".join(texts)) if self._known else set[str]()
        named: list[str] = []
        for id in sorted(there & self._known.keys(), key=self._known.__getitem__):
            room -= count(id) + 1
            if room < 0:
                break
            named.append(id)
            del self._known[id]
        return named


def words_in(text: str) -> set[str]:
    """Whatever could be an id in a text."""
    words = set(text.translate(_BETWEEN).split())
    return words | {word.rstrip("".join(_BEHIND)) for word in words if word.endswith(_BEHIND)}
