"""The dreams of a resource: list them, read one, cancel the running one, undo the last one."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from itertools import islice
from operator import attrgetter
from typing import Any, Final, Literal

from inmind.core.events.base import Draft, Event, EventId, EventPayload, Origin
from inmind.core.events.crystals import CrystalCreated, NoteAdded
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.dreams import (
    DreamAnswered,
    DreamChecked,
    DreamCommitted,
    DreamFailed,
    DreamGathered,
    DreamProgressed,
    DreamProposed,
    DreamStarted,
    DreamUndone,
    GuardVerdict,
    PageLine,
)
from inmind.core.frozen import frozen
from inmind.core.paths import RESOURCE_PREFIX
from inmind.core.text import count_noun
from inmind.documents.document import MEMORY_PAGE_PATH, NOTES_PAGE_PATH
from inmind.documents.notes_page import PageNote, format_timestamp, parse_notes, prepend_notes, to_page_note
from inmind.dreams.page.draft import merge_pages
from inmind.errors import DreamOvertaken, InvalidInput, NotFound
from inmind.session.state import ResourceState
from inmind.store.protocol import Clock, Key, Store
from inmind.store.stream import Decision, Stream

_FIRST_WINDOW: Final = 64
"""Events in the first window of a search through the stream. Each further window is twice as long."""

_PHASE_AFTER: Final[Mapping[type[EventPayload], str]] = {
    DreamAnswered: "propose",
    DreamGathered: "propose",
    DreamProposed: "check",
    DreamChecked: "commit",
}
"""The phase that follows an event of a dream. Only earlier versions wrote the last three."""


@frozen(kw_only=True)
class Dream:
    """One dream and its outcome."""

    id: int
    resource: str
    status: Literal["running", "done", "failed", "abandoned", "undone"]
    trigger: str
    """`asked`, `schedule` or `spike`."""
    began: datetime
    ended: datetime | None = None
    by: str = "rules"
    """The proposer: `rules`, or the name of a model."""
    phase: str = ""
    """The current phase, or the phase in which it failed."""
    code: str = ""
    reason: str = ""
    """Why it failed, or why rules proposed instead of the model."""
    before: str = ""
    after: str = ""
    """MEMORY.md before and after the dream; both empty if it changed nothing."""
    notes: tuple[str, ...] = ()
    """Ids of the notes that it took in."""
    lines: tuple[PageLine, ...] = ()
    """Lines that it wrote on the page."""
    verdicts: tuple[GuardVerdict, ...] = ()
    refused: tuple[str, ...] = ()
    """Proposed edits that were not applied, each with the reason."""
    inputs: Mapping[str, Any] | None = None
    mood: str = ""
    tokens: tuple[int, int] = (0, 0)
    price: float = 0.0
    seconds: float = 0.0

    @property
    def diff(self) -> str:
        """The change of MEMORY.md as a unified diff; empty if it changed nothing."""
        before, after = self.before.splitlines(), self.after.splitlines()
        names = f"MEMORY.md before dream {self.id}", f"MEMORY.md after dream {self.id}"
        return "\n".join(difflib.unified_diff(before, after, *names, lineterm=""))

    def __str__(self) -> str:
        text = f"dream {self.id} of {self.resource}: {self.status}"
        if self.status in ("running", "abandoned"):
            return f"{text} in phase {self.phase}"
        if self.status == "failed":
            return f"{text} in phase {self.phase}: {self.reason}"
        notes, lines = count_noun(len(self.notes), "note"), count_noun(len(self.lines), "line")
        return f"{text} by {self.by}: {notes} taken in, {lines} written"


class DreamHistory:
    """The dreams of one resource.

    Each call reads only the events of the dreams that it returns.
    """

    def __init__(
        self, resource: str, open_stream: Callable[[], Stream[ResourceState]], store: Store, clock: Clock
    ) -> None:
        """`open_stream` loads the stream of the resource.

        A list without a running dream does not need it.
        """
        self._resource, self._open_stream, self._store, self._clock = resource, open_stream, store, clock
        self._name = f"{RESOURCE_PREFIX}{resource}"

    @cached_property
    def _stream(self) -> Stream[ResourceState]:
        return self._open_stream()

    def newest(self, limit: int | None = None) -> list[Dream]:
        """Dreams with their results, newest first, at most `limit`."""
        if isinstance(limit, bool) or not isinstance(limit, int | None) or (limit is not None and limit < 0):  # pyright: ignore[reportUnnecessaryIsInstance] -- hosts are not all typed
            raise InvalidInput(field="limit", value=limit, expected="a number of dreams, or None for all")
        started = [*islice(self._read_backwards(DreamStarted, until=self._store.version(self._name)), limit)]
        return self._build_all(started[-1].seq) if started else []

    def get(self, id: int | None = None) -> Dream:
        """One dream by its number, or the newest."""
        if isinstance(id, bool) or not isinstance(id, int | None):  # pyright: ignore[reportUnnecessaryIsInstance] -- hosts are not all typed
            raise InvalidInput(field="dream", value=id, expected="the number of a dream")
        if id is None:
            dreams = self.newest(1)
        else:
            started = self._read_kind(DreamStarted, after=id - 1, until=id)
            dreams = self._build_all(id, until=self._last_event_of(id)) if started else []
        if not dreams:
            known_ids = ", ".join(str(dream.id) for dream in self.newest(10))
            hint = f"existing dreams: {known_ids}" if known_ids else f"{self._resource} has no dreams yet"
            raise NotFound(what="dream", name=id if id is not None else self._resource, hint=hint)
        return dreams[0]

    def cancel(self, key: Key | None = None) -> bool:
        """End the running dream, in any process.

        The dream can no longer commit. Returns False if none is running.
        """

        def decide(state: ResourceState, _: datetime) -> Decision[ResourceState, bool]:
            drafts = _end_running(state, "it was cancelled")
            return Decision(drafts, bool(drafts))

        self._stream.refresh()
        return self._stream.commit(decide, key=key).result is not False

    def undo(self, id: int | None = None, key: Key | None = None) -> Dream:
        """Undo the last dream.

        MEMORY.md is restored with the later edits of users, and the dream's notes return to the notes page. A running
        dream is ended, because its input is no longer valid.
        """
        if key is not None and (receipt := self._store.receipt(self._name, key)) is not None:
            (undone,) = self._store.read(self._name, after=receipt.first - 1, until=receipt.first)
            return self.get(_dream_id(undone))
        dream = self._find_undoable(id)
        commits = self._read_kind(DreamCommitted, after=dream.id, until=self._last_event_of(dream.id))
        commit = next(event for event in commits if _dream_id(event) == dream.id)
        before = self._stream.state_at(commit.seq - 1)

        def decide(state: ResourceState, _: datetime) -> Decision[ResourceState, None]:
            if state.dreams.last_dream != dream.id:
                raise InvalidInput(field="dream", value=dream.id, expected="the last dream that is not undone")
            undone = DreamUndone(
                dream=dream.id,
                previous_dream=before.dreams.last_dream,
                last_seq=before.dreams.last_seq,
                journal_position=before.dreams.journal_position,
                lines=tuple(before.dreams.lines.values()),
                gaps=before.dreams.gaps,
                skills=before.dreams.skills,
                user_lines=tuple(before.dreams.user_lines.items()),
                adopted_entries=tuple(sorted(before.dreams.adopted_entries)),
                insights=commit.payload.insights if isinstance(commit.payload, DreamCommitted) else (),
                crystals=tuple(event.id for event in self._crystals_of(commit) if event.origin is Origin.DREAM),
            )
            drafts = [Draft(payload=undone, origin=Origin.OPERATOR, sources=(commit.id,))]
            drafts += self._restore_pages(state, dream, commit)
            drafts += _end_running(state, f"dream {dream.id}, on which it is based, was undone")
            return Decision(drafts, None)

        self._stream.refresh()
        self._stream.commit(decide, key=key)
        return self.get(dream.id)

    def _find_undoable(self, id: int | None) -> Dream:
        last = self._stream.refresh().dreams.last_dream
        if not last:
            raise NotFound(what="dream to undo of", name=self._resource, hint="no dream is left to undo")
        if id is not None and id != last:
            self.get(id)
            raise InvalidInput(field="dream", value=id, expected=f"{last}: the last dream is undone first")
        return self.get(last)

    def _restore_pages(self, state: ResourceState, dream: Dream, commit: Event) -> Iterator[Draft]:
        if MEMORY_PAGE_PATH not in state.documents.by_path:
            return  # the dream had no input and wrote no page
        current = state.documents.text(MEMORY_PAGE_PATH)
        text = dream.before if current == dream.after else merge_pages(dream.after, current, dream.before)
        page = DocumentWritten(path=MEMORY_PAGE_PATH, text=text)
        yield Draft(
            payload=page,
            origin=Origin.DREAM,
            sources=(commit.id,),
            trust=state.documents.by_path[MEMORY_PAGE_PATH].trust,
        )
        notes_text = state.documents.text(NOTES_PAGE_PATH)
        missing = list(self._missing_notes(dream, commit, notes_text))
        if missing:
            notes = DocumentWritten(path=NOTES_PAGE_PATH, text=prepend_notes(notes_text, missing))
            yield Draft(payload=notes, origin=Origin.DREAM, sources=dream.notes)

    def _missing_notes(self, dream: Dream, commit: Event, notes_text: str) -> Iterator[PageNote]:
        """Notes of the dream that are not on the page.

        Equal notes that were added since do not count.
        """
        last_seq = commit.payload.last_seq if isinstance(commit.payload, DreamCommitted) else commit.seq
        since = self._store.read(self._name, after=last_seq, kind=NoteAdded.kind)
        counts = Counter[PageNote | None](parse_notes(notes_text))
        counts.subtract(map(as_page_note, since))
        for note in self._page_notes(dream):
            counts[note] -= 1
            if counts[note] < 0:
                yield note

    def _page_notes(self, dream: Dream) -> Iterator[PageNote]:
        """The notes of a dream as they were on the notes page."""
        for id in dream.notes:
            seq = EventId.of(id).seq
            (event,) = self._store.read(self._name, after=seq - 1, until=seq)
            if (note := as_page_note(event)) is not None:
                yield note

    def _crystals_of(self, commit: Event) -> Iterator[Event]:
        """Events of the crystals in the dream's commit, which ends at the next batch."""
        for event in self._store.read(self._name, after=commit.seq):
            if event.starts_batch:
                return
            if isinstance(event.payload, CrystalCreated):
                yield event

    def _read_kind(self, kind: type[Any], after: int = 0, until: int | None = None) -> Sequence[Event]:
        return self._store.read(self._name, after=max(0, after), until=until, kind=kind.kind)

    def _read_backwards(self, kind: type[Any], *, until: int) -> Iterator[Event]:
        """Events of a kind up to a number, newest first, read in windows."""
        size = _FIRST_WINDOW
        while until > 0:
            yield from reversed(self._read_kind(kind, after=until - size, until=until))
            until, size = until - size, 2 * size

    def _last_event_of(self, id: int) -> int | None:
        """The last event before the next dream starts; None if this is the last dream."""
        after, size, version = id, _FIRST_WINDOW, self._store.version(self._name)
        while after < version:
            if started := self._read_kind(DreamStarted, after=after, until=after + size):
                return started[0].seq - 1
            after, size = after + size, 2 * size
        return None

    def _build_all(self, first: int, *, until: int | None = None) -> list[Dream]:
        """The dreams that started from one event to another, newest first."""
        pages_before = filter(is_memory_page, self._read_backwards(DocumentWritten, until=first))
        page = next((_page_text(event) for event in pages_before), "")
        dreams: dict[int, Dream] = {}
        dream_by_commit: dict[str, int] = {}
        for event in self._read_dreams(first, until):
            if is_memory_page(event):
                page = _page_text(event)
                for source in dream_by_commit.keys() & event.sources:
                    id = dream_by_commit.pop(source)
                    dreams[id] = replace(dreams[id], after=page)
            elif isinstance(event.payload, DreamStarted):
                started = event.payload
                dreams[event.seq] = Dream(
                    id=event.seq,
                    resource=self._resource,
                    status="abandoned",
                    trigger=started.trigger,
                    began=event.at,
                    by=started.proposer,
                    phase="gather",
                )
            elif dream := dreams.get(_dream_id(event)):
                dreams[dream.id] = _with_event(dream, event, page)
                if isinstance(event.payload, DreamCommitted):
                    dream_by_commit[event.id] = dream.id
        undone = {_dream_id(event) for event in self._read_kind(DreamUndone, first)}
        return [
            replace(dream, status="undone") if dream.id in undone else self._with_status(dream)
            for dream in reversed(dreams.values())
        ]

    def _read_dreams(self, first: int, until: int | None) -> list[Event]:
        """Events of dreams and documents from one event to another, without notes and messages.

        The events before the end of a dream are read only for a dream that has not ended.
        """
        kinds = (DreamStarted, DreamCommitted, DreamFailed, DocumentWritten)
        events = [event for kind in kinds for event in self._read_kind(kind, first - 1, until)]
        ended = {*map(_dream_id, events)}
        unfinished = [event.seq for event in events if event.kind == DreamStarted.kind and event.seq not in ended]
        for kind in (DreamProgressed, *_PHASE_AFTER) if unfinished else ():
            events += self._read_kind(kind, min(unfinished), until)
        return sorted(events, key=attrgetter("seq"))

    def _with_status(self, dream: Dream) -> Dream:
        """A dream that has not ended is running as long as its lease holds."""
        running = self._stream.state.dreams.running if dream.status == "abandoned" else None
        is_running = running is not None and running.dream == dream.id and running.is_held(self._clock())
        return replace(dream, status="running") if is_running else dream


def _with_event(dream: Dream, event: Event, page: str) -> Dream:
    """A dream after one of its events. `page`: MEMORY.md at that event."""
    match event.payload:
        case DreamCommitted() as committed:
            return replace(
                dream,
                status="done",
                phase="",
                ended=event.at,
                by=committed.proposer,
                reason=committed.fallback_reason,
                before=page,
                after=page,
                **_copied(committed, "notes", "lines", "inputs", "mood"),
            )
        case DreamFailed() as failed:
            by = failed.proposer or dream.by
            return replace(dream, status="failed", ended=event.at, by=by, **_copied(failed, "phase", "code", "reason"))
        case DreamProgressed(phase=phase):
            return replace(dream, phase=phase)
        case DreamAnswered() | DreamProposed() as paid:
            tokens = dream.tokens[0] + paid.tokens[0], dream.tokens[1] + paid.tokens[1]
            phase = _PHASE_AFTER[type(paid)]
            return replace(dream, phase=phase, by=paid.proposer, tokens=tokens, price=dream.price + paid.price)
        case payload:
            return replace(dream, phase=_PHASE_AFTER[type(payload)])


def _copied(payload: object, *names: str) -> dict[str, Any]:
    return {name: getattr(payload, name) for name in ("verdicts", "refused", "tokens", "price", "seconds", *names)}


def as_page_note(event: Event) -> PageNote | None:
    """The note of an event as it is on the notes page; None for other events.

    A typed note counts too, once a dream has recorded it.
    """
    match event.payload:
        case NoteAdded() as note:
            return to_page_note(note, event.at)
        case CrystalCreated(text=text, importance=importance):
            return PageNote(format_timestamp(event.at), importance, text)
        case _:
            return None


def _end_running(state: ResourceState, reason: str) -> list[Draft]:
    """The event that ends the running dream; empty if none is running."""
    running = state.dreams.running
    if running is None:
        return []
    failed = DreamFailed(
        dream=running.dream,
        phase=running.phase,
        code=DreamOvertaken.code,
        reason=reason,
        proposer=running.proposer,
        tokens=running.tokens,
        price=running.price,
    )
    return [Draft(payload=failed, origin=Origin.OPERATOR)]


def is_memory_page(event: Event) -> bool:
    """True if the event wrote MEMORY.md."""
    return isinstance(event.payload, DocumentWritten) and event.payload.path == MEMORY_PAGE_PATH


def _page_text(event: Event) -> str:
    return event.payload.text if isinstance(event.payload, DocumentWritten) else ""


def _dream_id(event: Event) -> int:
    return getattr(event.payload, "dream", 0)
