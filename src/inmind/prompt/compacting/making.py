"""A compaction, put together: pages, stubs, what must survive, and the overview's own record of it.

All of it is one decision over values, so that it happens at once or not at all. What must survive is checked item by
item against what will be sent: what stands nowhere there is written into the stub in its own words.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from functools import partial

from inmind.documents import ARCHIVE, OVERVIEW, Document, Documents, checked_text, resolve
from inmind.errors import InvalidInput, InvalidPath
from inmind.frozen import frozen
from inmind.history import Behind, Entry, History
from inmind.history.compact import LEAST_LEFT, OUTPUT_STUB, Leaving, output_stub
from inmind.history.prose import is_greeting, own_words
from inmind.history.retain import items_of, merged
from inmind.history.spoken import Spoken
from inmind.history.summarize import extract
from inmind.journal import Compacted, DocumentWritten, Draft, Item, Occurred, Origin, Stub, Trust, to_json
from inmind.overview.events import Noted
from inmind.prompt.compacting.naming import Naming
from inmind.prompt.compacting.page import Page, free_path, pages
from inmind.prompt.compacting.spoken import in_context
from inmind.prompt.compacting.stub import block, cut_short, for_messages, without_outputs
from inmind.prompt.meter import Meter
from inmind.prompt.upkeep import kept_up
from inmind.text import counted, shortened

MOST_STUB = 800
"""Tokens that a stub for messages takes at most, with all that must survive; less in a small window."""
LEAST_STUB = 160
SHARE = 24

MOST_IDS = 1_000
"""Tokens of ids that a stub for messages names at most, beside all else: without them a model would have to guess."""

MOST_KEPT = 8_000
"""Tokens of rules and decisions that are kept over all compactions; how many a prompt shows is its own matter."""

MOST_DECLARED = 1_000
"""Characters of a text that a host declares."""

_MOST_TITLE = 60
_RECENT = 6
"""Messages that no compaction takes whole, as a rule: the last rounds."""
_FRAME = 80
"""Tokens of the words around what a stub says."""


@frozen(kw_only=True)
class Wanted:
    """What a compaction is to be like, whoever asked for it."""

    reason: str
    target: str = "all"
    strategy: str = "archive"
    archive_to: str | None = None
    summary: str = ""
    """As a model wrote it; without one it is extracted, where the strategy asks for it."""
    stub: int = MOST_STUB
    """Tokens that a stub for messages may take."""
    request: Item | None = None
    """What was asked last."""
    ids: Sequence[str] = ()
    """Ids of things that are known, those first that are to be named first."""


@frozen
class KeptItem:
    """Something that had to survive, and where it stands now."""

    kind: str
    text: str
    where: str
    """`conversation`, where a message that is still sent says it, or `memory`, in front of the conversation."""


@frozen(kw_only=True)
class CompactionReport:
    """What a compaction did. One that found nothing to compact has no messages, and says why."""

    reason: str
    messages: int = 0
    tokens: int = 0
    """By how many the conversation that is sent became shorter."""
    archives: tuple[str, ...] = ()
    items: tuple[KeptItem, ...] = ()
    """What had to survive, each with where it stands."""
    left_out: tuple[Item, ...] = ()
    """Rules and decisions, the oldest ones, that had no room; the archive has them."""

    def __bool__(self) -> bool:
        return self.messages > 0

    def __str__(self) -> str:
        if not self:
            return f"Nothing was compacted: {self.reason}."
        kept = f" Kept word for word: {', '.join(_counted_kinds(self.items))}." if self.items else ""
        return (
            f"Compacted {counted(self.messages, 'message')}, {self.tokens:,} tokens less to send. "
            f"All of it is in {', '.join(self.archives)}.{kept} {no_room_for(self.left_out)}".rstrip()
        )


def no_room_for(left_out: Sequence[Item]) -> str:
    """What is said of items that are in the archive alone; nothing where there are none."""
    return f"There was no room to keep {', '.join(_counted_kinds(left_out))}: archive/ has them." if left_out else ""


@frozen
class Made:
    drafts: list[Draft]
    report: CompactionReport


def compaction(
    history: History,
    documents: Documents,
    said: Sequence[Spoken],
    leaving: Leaving,
    wanted: Wanted,
    *,
    noted: Noted,
    language: str,
    meter: Meter,
) -> Made:
    """The events of a compaction. `said`: what is sent, message by message, as `history.sent` has it."""
    entries = history.sent[:]
    fresh = [place for place in leaving.touched if not entries[place].stub]
    seen = in_context(history, said, meter)
    title = _title(seen, leaving)
    archived = _archived([entries[place] for place in fresh], title, wanted, documents)
    items, dropped = _items(history, seen, leaving, meter)
    naming = Naming(wanted.ids, _untouched(said, leaving))
    cut = [_cut_stub(entries[place], archived, leaving, place, naming, meter) for place in sorted(leaving.cut)]
    # The newest first: its ids are the likelier to be used.
    outputs = [_output_stub(entries[place], archived, naming, meter) for place in sorted(leaving.outputs, reverse=True)]
    stubs = [*cut, *outputs, *_run_stubs(history, said, leaving, wanted, archived, naming, meter)]
    before = sum(said[place].tokens for place in leaving.touched)
    after = sum(meter.wire(stub.format, wire) for stub in stubs for wire in stub.wires)
    what = Compacted(
        target=wanted.target,
        reason=wanted.reason,
        stubs=tuple(stubs),
        strategy=wanted.strategy,
        messages=len(fresh),
        tokens=before - after,
        archives=tuple(page.path for page in archived),
        items=tuple(items),
        left_out=tuple(item for item in dropped if item not in history.left_out),
    )
    shorter = {said[place].seq for place in (*leaving.whole, *leaving.cut)}
    asked = [wanted.request] if wanted.request else []
    report = CompactionReport(
        reason=wanted.reason,
        messages=len(fresh),
        tokens=before - after,
        archives=what.archives,
        items=tuple(KeptItem(one.kind, one.text, _where(one, said, shorter)) for one in (*items, *asked)),
        left_out=tuple(dropped),
    )
    drafts = [
        _draft(DocumentWritten(page.path, page.text, upkeep=True), _sources_of(page, history, documents))
        for page in archived
    ]
    sources = _sources(history, leaving.touched)
    earlier = [one.id for one in history.compactions[-1:]]  # what must survive is handed on from one to the next
    drafts.append(_draft(what, (*earlier, *sources)))
    # The overview is memory's to keep current: no model has to remember to.
    if archived:
        number = f"{len(fresh)} 条消息" if language == "zh" else counted(len(fresh), "message")
        told = _COMPLETED[language].format(number, title, archived[0].path)
        occurred = [Occurred("compression_completed", told)]
        drafts += kept_up(_with_pages(documents, archived), language, occurred, noted=noted, sources=sources)
    return Made(drafts, report)


_COMPLETED = {
    "en": "archived {} about {}: {}",
    "zh": "已归档 {}（{}）：{}",
}


def _with_pages(documents: Documents, archived: Sequence[Page]) -> Documents:
    """The documents with pages that are about to be written, which are the newest."""
    newest = max((one.version for one in documents.by_path.values()), default=0)
    fresh = {
        page.path: Document(page.text, newest + number, "") for number, page in enumerate(reversed(archived), start=1)
    }
    return Documents({**documents.by_path, **fresh})


def _draft(what: DocumentWritten | Compacted, sources: tuple[str, ...]) -> Draft:
    """It holds what anybody has said, tools among them."""
    return Draft(what=what, origin=Origin.OPERATOR, sources=sources, trust=Trust.DATA)


def _sources_of(page: Page, history: History, documents: Documents) -> tuple[str, ...]:
    """The messages on a page, and what stood there before."""
    here = [place for place, entry in enumerate(history.sent) if not entry.stub and entry.seq in page.lines]
    before = documents.by_path.get(page.path)
    return (*([before.source] if before else []), *_sources(history, here))


def _sources(history: History, places: Sequence[int]) -> tuple[str, ...]:
    """All messages at these places, those behind stubs included; such as follow each other as one, from first to last.

    A page holds hundreds, and whoever forgets one of them has to find it.
    """
    stream = history.sent[places[0]].id.rpartition("#")[0]
    runs = _ranges(history, places)
    return tuple(f"{stream}#{first}" if first == last else f"{stream}#{first}-{last}" for first, last in runs)


def _archived(entries: Sequence[Entry], title: str, wanted: Wanted, documents: Documents) -> list[Page]:
    if not entries:
        return []
    path = free_path(title, documents.by_path) if wanted.archive_to is None else archive_path(wanted.archive_to)
    made = pages(entries, title=title, path=path, before=documents.text(path))
    for page in made:
        checked_text(page.text, field="archive_to")
        if page.path != path and page.path in documents.by_path:
            raise InvalidPath(field="archive_to", value=wanted.archive_to, expected="a page with room for all of it")
    return made


def archive_path(path: object) -> str:
    """Where somebody wants an archive to be: a page of detail/ or archive/, of this session."""
    scope, name = resolve(path, field="archive_to")
    if scope != "thread" or name == OVERVIEW or not name.endswith(".md"):
        raise InvalidPath(field="archive_to", value=path, expected=f"{ARCHIVE}<name>.md or detail/<name>.md")
    return name


def checked_item(text: object) -> str:
    """A text that may be retained: it will stand in every prompt, so it has to be short."""
    checked = checked_text(text)
    if not checked.strip() or len(checked) > MOST_DECLARED:
        raise InvalidInput(field="text", value=checked, expected=f"1 to {MOST_DECLARED} characters")
    return checked


def survivors(history: History, said: Sequence[Spoken], leaving: Leaving, meter: Meter) -> list[Item]:
    """What must survive a compaction and will be said by no message any more."""
    gone = {said[place].seq for place in (*leaving.whole, *leaving.cut)}
    sent = {one.seq for one in said if not one.stub} - gone
    kept = _items(history, in_context(history, said, meter), leaving, meter)[0]
    return [item for item in kept if item.seq not in sent]


def _items(history: History, said: Sequence[Spoken], leaving: Leaving, meter: Meter) -> tuple[list[Item], list[Item]]:
    """What must survive this compaction, and what there is no room for."""
    gone = {place for place in (*leaving.whole, *leaving.cut) if not said[place].stub}
    earlier = (*history.left_out, *history.items)
    first = not any(item.kind == "goal" for item in earlier)
    found = items_of(said, first=first, at=gone)
    found = [item for item in found if item.text not in history.released]
    kept, dropped = merged(earlier, found, most_tokens=MOST_KEPT, count=meter.count)
    return [item for item in kept if item.kind != "request"], dropped


def _title(said: Sequence[Spoken], leaving: Leaving) -> str:
    """What it was about: the first that a user asked there, the tools that answered, or what an agent did by text."""
    fresh = [said[place] for place in leaving.whole if not said[place].stub]
    for one in fresh:
        if one.begins_turn and not is_greeting(one.words):
            return shortened(one.words, _MOST_TITLE)
    names = {call.id: call.tool for one in said for call in one.asks}
    tools = [names.get(answer.id, "") for place in leaving.touched for answer in said[place].answers]
    used = ", ".join(dict.fromkeys(filter(None, tools)))
    if used:
        return shortened(f"outputs of {used}", _MOST_TITLE)
    told = (line for one in fresh if one.by == "assistant" for line in own_words(one.words))
    return shortened(next(told, "conversation"), _MOST_TITLE)


def _where(item: Item, said: Sequence[Spoken], shorter: Container[int]) -> str:
    sent = any(one.seq == item.seq and not one.stub for one in said) and item.seq not in shorter
    return "conversation" if sent or item.kind == "request" else "memory"


def _untouched(said: Sequence[Spoken], leaving: Leaving) -> list[str]:
    """All the words that will be sent, but for those of stubs."""
    touched = set(leaving.touched)
    words = [one.words for place, one in enumerate(said) if place not in touched or place in leaving.outputs]
    stay = [one for place, one in enumerate(said) if place not in touched]
    arguments = [call.arguments for one in stay for call in one.asks]
    return [*words, *arguments, *(answer.text for one in stay for answer in one.answers)]


def _place_of(entry: Entry, archived: Sequence[Page]) -> str:
    for page in archived:
        if entry.seq in page.lines:
            first, last = page.lines[entry.seq]
            return f"{page.path} from_line {first} to_line {last}"
    return archived[0].path if archived else ARCHIVE


def _output_stub(entry: Entry, archived: Sequence[Page], naming: Naming, meter: Meter) -> Stub:
    room = output_stub(meter.message(entry)) - OUTPUT_STUB
    name = partial(_named, naming, room, meter)
    wires = without_outputs(entry, _place_of(entry, archived), name)
    return Stub(of=((entry.seq, entry.seq),), wires=wires, format=entry.format)


def _named(naming: Naming, room: int, meter: Meter, text: str) -> list[str]:
    return naming.among([text], room=room, count=meter.count)


def _cut_stub(
    entry: Entry, archived: Sequence[Page], leaving: Leaving, place: int, naming: Naming, meter: Meter
) -> Stub:
    """Where there is hardly any room, ids are worth more than the first words."""
    room, tokens = output_stub(meter.message(entry)) - OUTPUT_STUB, leaving.cut[place]
    if leaving.tight and tokens <= LEAST_LEFT:
        room, tokens = min(tokens, LEAST_LEFT), max(0, tokens - LEAST_LEFT)
    name = partial(_named, naming, room, meter)
    wires = cut_short(entry, _place_of(entry, archived), name, tokens=tokens, count=meter.count)
    return Stub(of=((entry.seq, entry.seq),), wires=wires, format=entry.format)


def _run_stubs(
    history: History,
    said: Sequence[Spoken],
    leaving: Leaving,
    wanted: Wanted,
    archived: Sequence[Page],
    naming: Naming,
    meter: Meter,
) -> list[Stub]:
    """A stub for each run of messages. The first says everything; the others, how much there was and where it is."""
    stubs: list[Stub] = []
    for number, run in enumerate(leaving.runs):
        fresh = [said[place] for place in run if not said[place].stub]
        size, all_of_them = sum(one.tokens for one in fresh), _in_all(history, run)
        told = f"Archived: {counted(len(fresh), 'message')} of {size:,} tokens{all_of_them}."
        earlier = _earlier(history, [history.sent[place] for place in run])
        where = [*_spans([history.sent[place] for place in run], archived), *earlier]
        text = for_messages(told=told, where=where)
        if number == 0:
            summary = wanted.summary
            if not summary and wanted.strategy == "summarize":
                room = wanted.stub - meter.count(text)
                left = [said[place] for place in leaving.whole if not said[place].stub]
                summary = extract(left, budget=max(0, room), count=meter.count)
            ids = naming.among(_all_of(history, said, leaving.whole), room=MOST_IDS, count=meter.count)
            text = for_messages(told=told, where=where, summary=summary, ids=ids)
        format = history.sent[run[0]].format
        stubs.append(Stub(of=_ranges(history, run), wires=block(text, format), format=format, block=True))
    return stubs


def _texts(one: Spoken) -> list[str]:
    return [one.words, *(call.arguments for call in one.asks), *(answer.text for answer in one.answers)]


def _all_of(history: History, said: Sequence[Spoken], places: Sequence[int]) -> Iterator[str]:
    """What messages say; of one that was sent as a stub, all that it had said."""
    behind = Behind(history.line)
    for place in places:
        yield from _texts(said[place])
        of = history.sent[place].of
        if of and len(of) == 1 and of[0][0] == of[0][1]:
            yield from (to_json(entry.wire) for entry in behind(of))


def _spans(entries: Sequence[Entry], archived: Sequence[Page]) -> Iterator[str]:
    """Where these messages are: the pages, and the lines of each that they take."""
    for page in archived:
        lines = [page.lines[entry.seq] for entry in entries if entry.seq in page.lines]
        if lines:
            yield f"{page.path} from_line {lines[0][0]} to_line {lines[-1][1]}"


def _in_all(history: History, run: Sequence[int]) -> str:
    """How many messages a stub stands for, where others were archived before."""
    entries = [history.sent[place] for place in run]
    behind = Behind(history.line)
    earlier = sum(len(behind(entry.of)) for entry in entries if entry.of)
    return f", {earlier + sum(not entry.stub for entry in entries)} in all" if earlier else ""


def _earlier(history: History, entries: Sequence[Entry]) -> list[str]:
    """Pages of compactions whose stubs go into this one, as a span."""
    ids = {entry.id for entry in entries if entry.stub}
    if not ids:
        return []
    last = max(place for place, one in enumerate(history.compactions) if one.id in ids)
    paths = [path for one in history.compactions[: last + 1] for path in one.what.archives]
    return [paths[0]] if len(paths) == 1 else [f"{paths[0]} to {paths[-1]}"] if paths else []


def _ranges(history: History, run: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """The messages of the line that a run stands for, those of stubs in it included, as runs of their numbers."""
    line, behind = sorted(entry.seq for entry in history.line), Behind(history.line)
    covered: set[int] = set()
    for entry in (history.sent[place] for place in run):
        if entry.of is None:
            covered.add(entry.seq)
            continue
        covered.update(message.seq for message in behind(entry.of))
    ranges: list[tuple[int, int]] = []
    open_since: int | None = None
    before = 0
    for seq in [*line, None]:
        if seq is not None and seq in covered:
            open_since = seq if open_since is None else open_since
            before = seq
        elif open_since is not None:
            ranges.append((open_since, before))
            open_since = None
    return tuple(ranges)


def _counted_kinds(items: Sequence[KeptItem | Item]) -> list[str]:
    kinds = dict.fromkeys(item.kind for item in items)
    return [counted(sum(item.kind == kind for item in items), kind) for kind in kinds]


def sized(wanted: Wanted, room: int) -> Wanted:
    """The same with a stub that keeps to a small share of the room that the conversation has."""
    return replace(wanted, stub=max(LEAST_STUB, min(MOST_STUB, room // SHARE)))


def stub_size(said: Sequence[Spoken], wanted: Wanted, meter: Meter) -> int:
    """What the stub for messages will take at most, if all but the last messages leave."""
    start = max(0, len(said) - _RECENT)
    naming = Naming(wanted.ids, (text for one in said[start:] for text in _texts(one)))
    ids = naming.among((text for one in said[:start] for text in _texts(one)), room=MOST_IDS, count=meter.count)
    named = sum(meter.count(id) + 1 for id in ids)
    return _FRAME + wanted.stub + named
