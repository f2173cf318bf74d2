"""Builds the archive pages and the stubs of a compaction.

A page has compacted messages, complete and verbatim, for the model to read again. It is read by lines, so each message
starts at a line that its stub names. Parts that are not text (images, provider specific parts) are kept as JSON. A page
stays below the size of a document; a long conversation continues on further pages.

There is a stub for each shortened message and each removed run.

Tool results are pruned to records. The stub of removed messages has a summary and the records of their calls. Ids that
no record has, and that would no longer be in the prompt, are named with their type and name: a summary loses ids, and a
model that needs one would invent it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import PurePosixPath
from typing import Any

from inmind.core.encoding import to_json
from inmind.core.events.session import EntityPart, Stub
from inmind.core.frozen import frozen
from inmind.core.json import is_list, is_object
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Call, Message, Result, Text
from inmind.core.text import count_noun
from inmind.core.tokens import Counter
from inmind.documents.document import ARCHIVE_PREFIX, MAX_DOCUMENT_BYTES, split_lines
from inmind.entities.record import Detail
from inmind.entities.render import render_parts
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
from inmind.history.history import ConversationEntry
from inmind.history.turns import TurnMessage, to_turn_message

MAX_PAGE_BYTES = MAX_DOCUMENT_BYTES - 64 * 1024
"""Bytes of messages on one page; the rest is left for edits by people."""

MAX_SLUG_CHARACTERS = 32

# Text of a message must not look like the start of another message.
_HEADING_LOOKALIKE = re.compile(r"^(?=## \d+: )", re.MULTILINE)
_NUMBERED_PATH = re.compile(rf"{ARCHIVE_PREFIX}(\d{{3,}})-")
_CONTINUATION = re.compile(r"(# .*\n\nGoes on from )(.+)(?=\.\n)")
_WORDS = re.compile(r"[^\W_]+")


@frozen
class ArchivePage:
    """One archive page, and the line range of each message by sequence number."""

    path: str
    text: str
    lines: dict[int, tuple[int, int]]


def build_pages(
    entries: Sequence[ConversationEntry], *, title: str, path: str, existing: str = ""
) -> list[ArchivePage]:
    """Return the pages with these messages.

    The first page continues the text that exists at `path`.
    """
    title = title.replace("\x00", " ")
    heading = f"# {title}\n\n{count_noun(len(entries), 'message')}\n"
    page = _PageWriter(path, f"{existing.rstrip()}\n\n{heading}" if existing else heading)
    finished: list[_PageWriter] = []
    for entry in entries:
        for piece in _split_section(_message_section(entry)):
            if page.lines and page.bytes + len(piece.encode()) > MAX_PAGE_BYTES:
                finished.append(page)
                stem, _, ending = path.rpartition(".")
                next_path = f"{stem}-{len(finished) + 1}.{ending}"
                page = _PageWriter(next_path, f"# {title}\n\nGoes on from {finished[-1].path}.\n")
            page.add(entry.seq, piece)
    return [ArchivePage(one.path, "\n".join(one.pieces), one.lines) for one in (*finished, page)]


def new_path(title: str, existing_paths: Collection[str]) -> str:
    """Return an unused path in archive/ with the next number and the first words of the title."""
    numbers = [int(match[1]) for path in existing_paths if (match := _NUMBERED_PATH.match(path))]
    words = "-".join(_WORDS.findall(unicodedata.normalize("NFC", title.lower())))
    slug = words[:MAX_SLUG_CHARACTERS].rstrip("-") or "conversation"
    return f"{ARCHIVE_PREFIX}{max(numbers, default=0) + 1:03}-{slug}.md"


def page_name(path: str) -> str:
    """Return the short name of a numbered page, `archive/012`, else the path. Both can be read."""
    match = _NUMBERED_PATH.match(path)
    return match[0].rstrip("-") if match else path


def parse_location(location: str, paths: Iterable[str]) -> tuple[str, tuple[int, int] | None]:
    """Return the page that a location names, `archive/012:5-9`, and its lines if it names them.

    A numbered page is found by its short name; of several, the first that a compaction wrote. A location that is no
    short name is returned as its path.
    """
    name, _, lines = location.partition(":")
    match = _LINES.fullmatch(lines)
    path = min(
        (path for path in paths if page_name(path) == name.removeprefix("working-memory/")), key=len, default=name
    )
    if not match:
        return (location if lines else path), None
    return path, (int(match[1]), int(match[2] or match[1]))


_LINES = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


def renumbered_path(path: str, existing_paths: Collection[str]) -> str:
    """Return an unused path with the same words, for a page whose path is in use."""
    return new_path(PurePosixPath(_NUMBERED_PATH.sub("", path)).stem, existing_paths)


def update_continuation(text: str, new_paths: Mapping[str, str]) -> str:
    """Return the page with the link to the page it continues updated.

    `new_paths`: new path by old path.
    """
    link = _CONTINUATION.match(text)
    return f"{link[1]}{new_paths.get(link[2], link[2])}{text[link.end() :]}" if link else text


class _PageWriter:
    """Builds one page."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.pieces, self.lines = path, [text], dict[int, tuple[int, int]]()
        self.bytes = len(text.encode())
        self._next = len(split_lines(text)) + 1

    def add(self, seq: int, piece: str) -> None:
        first, _ = self.lines.get(seq, (self._next, 0))
        self.pieces.append(piece)
        self.bytes += len(piece.encode()) + 1
        self._next += len(split_lines(piece))
        self.lines[seq] = (first, self._next - (2 if piece.endswith("\n") else 1))  # without the blank line after it


def _message_section(entry: ConversationEntry) -> str:
    message = FORMATS[entry.format].read(entry.wire)
    lines = [f"## {entry.seq}: {message.role}", ""]
    incomplete = False
    for part in message.parts:
        match part:
            case Text(text=text):
                lines.append(text)
            case Call():
                lines += [f"calls {part.name} ({part.id}):", part.arguments]
            case Result():
                lines.append(f"{'fails' if part.error else 'answers'} ({part.id}):")
                lines += [inner.text for inner in part.parts if isinstance(inner, Text)]
                incomplete = incomplete or any(not isinstance(inner, Text) for inner in part.parts)
            case _:
                incomplete = True
    if incomplete or not _is_fully_rendered(entry, message):
        lines += ["as it came:", to_json(entry.wire)]
    body = "\n".join(_HEADING_LOOKALIKE.sub(r"\\\g<0>", line) for line in lines[2:])
    return f"{lines[0]}\n\n{body}\n".replace("\x00", "\\u0000")


def _is_fully_rendered(entry: ConversationEntry, message: Message) -> bool:
    """True if the readable form has everything of the message.

    That is: the message has no name, signature or provider specific field.
    """
    written = FORMATS[entry.format].write([message])
    # Some formats require a user message first.
    if not written or (len(written) > 1 and message.role == "user"):
        return False
    return len(written) <= 2 and (entry.wire == written[-1] or _normalize(entry.wire) == _normalize(written[-1]))


def _normalize(value: Any) -> Any:
    """Return a message in one form.

    Providers accept a text as a list with one text, and omit default fields.
    """
    if is_list(value):
        return [_normalize(item) for item in value]
    if not is_object(value):
        return value
    normalized = {key: _normalize(item) for key, item in value.items() if (key, item) not in _DEFAULT_FIELDS}
    match normalized.get("content"):
        case [{"type": "text" | "input_text" | "output_text", "text": text, **more}] if not more:
            return {**normalized, "content": text}
        case _:
            return normalized


_DEFAULT_FIELDS = (("type", "message"), ("is_error", False))


def _split_section(section: str) -> Iterator[str]:
    """Split a message that is larger than a page."""
    rest = section
    while len(rest.encode()) > MAX_PAGE_BYTES:
        head = rest.encode()[:MAX_PAGE_BYTES].decode(errors="ignore")
        yield head
        rest = rest[len(head) :]
    yield rest


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
    texts += [message.all_text] if entry.is_stub else ()
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
        self._ids.drop(FORMATS[one.format].read(wire).all_text for one in pruned.values() for wire in one.messages)
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
        self._ids.drop(FORMATS[entry.format].read(wire).all_text for wire in wires)
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
            locations = ", ".join([*self._page_spans(entries), *self._earlier_pages(entries)])
            text = block_text(
                description=f"{count_noun(len(originals[number]), 'message')}, archived: {locations}.",
                records=lines.by_run[number],
                **({} if number else first),
            )
            format = entries[0].format
            yield Stub(
                message_ranges=self._history.ranges_at(run),
                messages=block_wires(text, format),
                format=format,
                is_block=True,
            )

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

    def _earlier_pages(self, entries: Sequence[ConversationEntry]) -> list[str]:
        """Pages of earlier compactions with messages of the merged stubs; many as a range."""
        ranges = [one for entry in entries if entry.is_stub for one in entry.replaced_ranges or ()]
        paths = [
            page_name(path)
            for one in self._history.compactions
            if one.overlaps(ranges)
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


def _unchanged_texts(messages: Sequence[TurnMessage], selection: CompactionSelection) -> list[str]:
    """All texts that will be sent, without those of stubs."""
    touched = set(selection.changed)
    unchanged = [one for place, one in enumerate(messages) if place not in touched]
    return [
        *(messages[place].text for place in selection.outputs),
        *chain.from_iterable(map(_message_texts, unchanged)),
    ]


def _message_texts(one: TurnMessage) -> list[str]:
    return [one.text, *(call.arguments for call in one.calls), *(answer.text for answer in one.results)]


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
