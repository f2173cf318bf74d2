"""One dream, carried out: read, ask, decide, commit.

It begins by an event that says so, which keeps others from dreaming for the same resource, and holds no lock beside
that: whoever takes a note meanwhile waits for nothing. What it proposes is a list of edits. They are carried out on the
page as it is when it commits, with whatever people and other processes have written since; and the pages, the notes
that were taken in and the crystals that came of it are one commit, or nothing. Each stage on the way there is an event
too: one that died is gone on with by the next, and to that one it is as if the dream had only been slow.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING

from inmind.core import metrics
from inmind.core.events.base import Draft, EventPayload, Origin, Trust
from inmind.core.events.crystals import CrystalCreated
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.dreams import DreamAnswered, DreamCommitted, DreamUnderway, PageAdopted, PageLine
from inmind.core.frozen import frozen
from inmind.core.text import counted
from inmind.documents.document import MEMORY_PAGE_PATH, NOTES_PAGE_PATH
from inmind.documents.notes_page import remove_pieces
from inmind.dreams.classify import classify_section
from inmind.dreams.material import DreamMaterial, PendingNote
from inmind.dreams.page.adopt_existing import chunks
from inmind.dreams.page.edits import Add, Edit, Proposal, Rewrite
from inmind.dreams.page.eviction import PRECIOUS, THEIRS
from inmind.dreams.page.fact_checks import one_line
from inmind.dreams.page.limits import MOST_CHARACTERS
from inmind.dreams.page.page import read
from inmind.dreams.page.rewrite import Ground, Rewritten, rewritten
from inmind.dreams.page.sections import weights
from inmind.dreams.propose_by_rules import MAX_LINE_CHARACTERS, propose_by_rules
from inmind.dreams.state import RULES
from inmind.errors import DreamOvertaken, DreamRejected, ModelFailed, StoreError
from inmind.jobs.dreaming.gather import UNNAMED, Gathered, Gathering
from inmind.jobs.dreaming.lease import Lease, Left, LeftOff, Watch, code_of
from inmind.search.crystal import Crystal
from inmind.search.engine import DeepMemory
from inmind.session.backend import DocumentFiles
from inmind.session.state import ResourceState
from inmind.store.protocol import Clock, Key, Store
from inmind.store.stream import Decision, Stream

if TYPE_CHECKING:
    from inmind.jobs.dreaming.model_call import Asked

log = logging.getLogger("inmind")

PHASES = ("gather", "propose", "check", "commit", "index")


class Dreamer:
    """Dreams for one resource."""

    def __init__(
        self,
        *,
        resource: str,
        stream: Stream[ResourceState],
        files: DocumentFiles,
        back_up: Callable[[str], str],
        store: Store,
        deep: DeepMemory,
        clock: Clock,
        sources: tuple[str, ...] = (),
    ) -> None:
        """`back_up`: keeps a page that somebody has written, and answers with where. `sources`: where whoever reads the
        page will search, if not everywhere."""
        self._resource, self._stream, self._files, self._back_up = resource, stream, files, back_up
        self._store, self._deep, self._clock = store, deep, clock
        self._gathering = Gathering(
            resource=resource, stream=stream, store=store, deep=deep, clock=clock, sources=sources
        )

    def dream(
        self,
        trigger: str,
        asked: Asked | None = None,
        *,
        watch: Watch | None = None,
        cancelled: Callable[[], bool] | None = None,
        key: Key | None = None,
    ) -> int:
        """Dream once; answers with the number of the dream. What became of it is in the journal, also where it failed.

        One that was left in the middle is gone on with instead, from the last stage that it has reached, and so is the
        one that an earlier call with the same key has begun. DreamRunning if somebody else dreams. A dream that the
        guards have refused, or that was overtaken, is no error: it has changed nothing, and says why.
        """
        self._files.read_edits()
        self._seed()
        lease = Lease(resource=self._resource, stream=self._stream, store=self._store, watch=watch, cancelled=cancelled)
        if not lease.take(trigger, asked.model.name if asked else RULES, key):
            return lease.dream
        try:
            self._carry_out(lease, asked)
        except BaseException as error:
            lease.fail(error)
            _measure(lease, trigger, error)
            if not isinstance(error, DreamRejected | DreamOvertaken):
                raise
        else:
            _measure(lease, trigger)
            self._show(lease)
        return lease.dream

    def _carry_out(self, lease: Lease, asked: Asked | None) -> None:
        gathered, left = self._gathered(lease)
        proposal = (left and left.proposal) or self._thought_up(lease, gathered, asked, left.answers if left else ())
        lease.enter("check", f"{counted(len(proposal.edits), 'edit')} by {proposal.by}")
        self._files.read_edits()
        gathered = _asking_once(gathered)
        self._check(lease, gathered, proposal)
        lease.enter("commit")
        self._commit(lease, gathered, proposal)

    def _gathered(self, lease: Lease) -> tuple[Gathered, Left | None]:
        """What there is to dream of; as it was before this one took the dream over, if what came of it then still means
        what it did."""
        left = lease.left(self._clock())
        if left is not None:
            lease.enter("gather", "once more, as it was")
            gathered = self._gathering.gather_again(left.gathered)
            if gathered.typed_digest == left.gathered.user_notes_digest:
                return gathered, left
            log.warning("what was proposed in dream %d of %s names what is not there", lease.dream, self._resource)
        lease.enter("gather")
        gathered = self._gathering.gather()
        lease.gathered(
            upto=gathered.upto, position=gathered.position, now=gathered.material.now, typed=gathered.typed_digest
        )
        return gathered, None

    def _thought_up(
        self, lease: Lease, gathered: Gathered, asked: Asked | None, answers: Sequence[DreamAnswered]
    ) -> Proposal:
        notes, crystals = len(gathered.material.notes), sum(gathered.crystals.values())
        lease.enter("propose", f"{counted(notes, 'note')}, {counted(crystals, 'new crystal')}")
        proposal = self._proposed(lease, gathered.material, asked, answers)
        lease.proposed(proposal)
        return proposal

    def _show(self, lease: Lease) -> None:
        """What was committed stands, whatever happens now: whoever looks next would see to files and index as well."""
        try:
            lease.tell("index")
        finally:
            self._files.publish()
            try:
                self._deep.catch_up([self._resource])
            except StoreError as error:
                log.warning("dream %d of %s is not in the index yet: %s", lease.dream, self._resource, error)

    # -- what people had written before the first dream --------------------------------------------------------

    def _seed(self) -> None:
        """It is backed up, and made crystals of, once: the flag is in the commit of the crystals."""

        def decide(owned: ResourceState, _: datetime) -> Decision[ResourceState, None]:
            page = owned.documents.by_path.get(MEMORY_PAGE_PATH)
            known = owned.dreams.page_adopted or owned.dreams.last_done_at is not None
            if page is None or known or not page.text.strip():
                return Decision([], None)
            pieces = chunks(page.text)
            backup = self._back_up(page.text)
            made: list[EventPayload] = [PageAdopted(text=page.text, backup=backup, chunks=len(pieces))]
            made += (CrystalCreated(text=piece, importance=THEIRS, consolidated=True) for piece in pieces)
            drafts = [Draft(payload=one, origin=Origin.FILE, sources=(page.source,), trust=page.trust) for one in made]
            return Decision(drafts, None)

        self._stream.refresh()
        self._stream.commit(decide)

    # -- proposing -----------------------------------------------------------------------------------------

    def _proposed(
        self, lease: Lease, material: DreamMaterial, asked: Asked | None, answers: Sequence[DreamAnswered]
    ) -> Proposal:
        """By the model, if one is asked, or was, and its answer can be used; else by rules."""
        if asked is None and not answers:
            return propose_by_rules(material)
        from inmind.dreams.propose_by_model import propose_by_model
        from inmind.jobs.dreaming.model_call import Thinking

        def check(proposal: Proposal) -> list[str]:
            made = self._rewritten(self._stream.state, proposal.edits, material)
            return [] if made.passed else _reasons(made)

        seconds = asked.seconds if asked else 0.0
        try:
            return propose_by_model(
                material, Thinking(lease, asked, answers, self._clock), seconds=seconds, check=check
            )
        except ModelFailed as error:
            log.warning("dream %d of %s is made by rules: %s", lease.dream, self._resource, error.reason)
            price = asked.price(error.tokens) if asked else 0.0
            return replace(propose_by_rules(material), fell_back=error.reason, tokens=error.tokens, price=price)

    # -- committing ----------------------------------------------------------------------------------------

    def _check(self, lease: Lease, gathered: Gathered, proposal: Proposal) -> None:
        """Guards that say no to the page as it is now would say no to the commit."""
        self._judge(lease, proposal, self._rewritten(self._stream.refresh(), proposal.edits, gathered.material))
        lease.checked()

    def _commit(self, lease: Lease, gathered: Gathered, proposal: Proposal) -> None:
        def decide(owned: ResourceState, _: datetime) -> Decision[ResourceState, None]:
            lease.must_hold(owned)
            made = self._made(owned, gathered, proposal)
            self._judge(lease, proposal, made.page)
            return Decision(self._drafts(owned, gathered, proposal, made, lease), None)

        self._stream.commit(decide)

    def _judge(self, lease: Lease, proposal: Proposal, page: Rewritten) -> None:
        lease.verdicts, lease.refused = page.verdicts, (*proposal.refused, *page.refused)
        if not page.passed:
            raise DreamRejected(reasons=_reasons(page))

    def _made(self, owned: ResourceState, gathered: Gathered, proposal: Proposal) -> _Made:
        """The page as it will be, once what has no event yet is called by the events that this commit makes of it."""
        first = self._stream.version + 2
        named = {f"{UNNAMED}{place}": f"{self._stream.name}#{first + place}" for place in range(len(gathered.typed))}
        edits = tuple(_renamed(edit, named) for edit in proposal.edits)
        page = self._rewritten(owned, edits, gathered.material, names=named)
        known = {*owned.dreams.lines, *owned.dreams.people_entries, *page.lines}
        theirs = [entry for _, entry in read(page.text).everything() if entry not in known]
        place = first + len(gathered.typed)
        return _Made(page, tuple(named.values()), {entry: place + n for n, entry in enumerate(dict.fromkeys(theirs))})

    def _rewritten(
        self,
        owned: ResourceState,
        edits: tuple[Edit, ...],
        material: DreamMaterial,
        names: Mapping[str, str] | None = None,
    ) -> Rewritten:
        known: dict[str, PendingNote | Crystal | None] = {crystal.id: crystal for crystal in material.crystals}
        known |= {(names or {}).get(note.id, note.id): note for note in material.notes}

        def source(id: str) -> PendingNote | Crystal | None:
            if id not in known:
                known[id] = material.get_crystal(id)
            return known[id]

        def source_text(id: str) -> str:
            one = source(id)
            return one.text if one else ""

        def source_trust(id: str) -> Trust:
            one = source(id)
            return one.trust if one else Trust.DATA

        ground = Ground(
            now=material.now,
            mood=material.mood,
            lines=owned.dreams.lines,
            theirs=owned.dreams.people_entries,
            seed=owned.dreams.adopted_entries,
            weights=weights(material.levels),
            finds=material.search,
            source_text=source_text,
            source_trust=source_trust,
            must=tuple(_must_survive(material.notes, names or {})),
        )
        return rewritten(owned.documents.text(MEMORY_PAGE_PATH), edits, ground)

    def _drafts(
        self, owned: ResourceState, gathered: Gathered, proposal: Proposal, made: _Made, lease: Lease
    ) -> list[Draft]:
        """The dream first, then the crystals, in the order in which they were named, then the pages."""
        material = gathered.material
        dreamt = DreamCommitted(
            dream=lease.dream,
            proposer=proposal.by,
            last_seq=gathered.upto,
            journal_position=gathered.position,
            notes=(*gathered.notes, *made.typed),
            lines=made.page.fresh,
            gaps=material.gaps,
            skills=material.skills,
            user_lines=tuple((entry, f"{self._stream.name}#{seq}") for entry, seq in made.theirs.items()),
            replayed=gathered.replayed,
            insights=tuple(insight.key for insight in material.insights),
            verdicts=lease.verdicts,
            refused=lease.refused,
            inputs={
                "crystals": gathered.crystals,
                "levels": {name: round(level, 3) for name, level in material.levels.named.items()},
                "rebased": self._is_rebased(gathered),
            },
            mood=material.mood,
            fallback_reason=proposal.fell_back,
            tokens=lease.tokens,
            price=lease.price,
            seconds=lease.seconds,
        )
        crystals = (*_typed(gathered, owned), *_theirs(made, owned), *_insights(material))
        dream = Draft(payload=dreamt, origin=Origin.DREAM, sources=dreamt.notes)
        return [dream, *crystals, *self._pages(owned, gathered, made)]

    def _is_rebased(self, gathered: Gathered) -> bool:
        """Has anything been written since, beside what this dream itself has told?"""
        since = self._store.read(self._stream.name, after=gathered.upto, until=self._stream.version)
        return not all(isinstance(event.payload, DreamUnderway) for event in since)

    def _pages(self, owned: ResourceState, gathered: Gathered, made: _Made) -> Iterator[Draft]:
        """MEMORY.md, unless there is nothing to show on it, and the notes without those that were taken in."""
        by = f"{self._stream.name}#{self._stream.version + 1}"
        if MEMORY_PAGE_PATH in owned.documents.by_path or any(read(made.page.text).everything()):
            trust = min((Trust(line.trust) for line in made.page.lines.values()), default=Trust.AGENT)
            page = DocumentWritten(path=MEMORY_PAGE_PATH, text=made.page.text)
            yield Draft(payload=page, origin=Origin.DREAM, sources=(by,), trust=trust)
        notes = owned.documents.by_path.get(NOTES_PAGE_PATH)
        left = remove_pieces(notes.text, gathered.jottings, gathered.remarks) if notes else ""
        if notes is not None and left != notes.text:
            what = DocumentWritten(path=NOTES_PAGE_PATH, text=left)
            yield Draft(payload=what, origin=Origin.DREAM, sources=(by,), trust=notes.trust)


@frozen
class _Made:
    """What a dream comes to."""

    page: Rewritten
    typed: tuple[str, ...]
    """Events that it makes of what people typed among the notes."""
    theirs: dict[str, int]
    """What people wrote on the page and no crystal has yet, with the numbers of the events that it makes of them."""


def _measure(lease: Lease, trigger: str, error: BaseException | None = None) -> None:
    outcome = "done"
    if error is not None:
        outcome = "LEFT" if isinstance(error, LeftOff) else code_of(error)
    metrics.dreamt(
        outcome=outcome,
        by=lease.by,
        trigger=trigger,
        seconds=lease.seconds,
        tokens=lease.paid,
        price=lease.paid_price,
    )


def _asking_once(gathered: Gathered) -> Gathered:
    """What a search finds takes long to be told, and the commit comes right behind the check."""
    return replace(gathered, material=replace(gathered.material, search=cache(gathered.material.search)))


def _typed(gathered: Gathered, owned: ResourceState) -> Iterator[Draft]:
    """What people typed among the notes."""
    for one in gathered.typed:
        what = CrystalCreated(
            text=one.text, importance=one.importance, category=one.kind, valence=one.valence, consolidated=True
        )
        source = owned.documents.by_path[NOTES_PAGE_PATH].source
        yield Draft(payload=what, origin=Origin.FILE, sources=(source,), trust=one.trust)


def _theirs(made: _Made, owned: ResourceState) -> Iterator[Draft]:
    """What people wrote on the page."""
    for entry in made.theirs:
        what = CrystalCreated(text=entry, importance=THEIRS, consolidated=True)
        yield Draft(payload=what, origin=Origin.FILE, sources=(owned.documents.by_path[MEMORY_PAGE_PATH].source,))


def _insights(material: DreamMaterial) -> Iterator[Draft]:
    for one in material.insights:
        what = CrystalCreated(text=one.text, importance=one.importance, category="insight", consolidated=True)
        yield Draft(payload=what, origin=Origin.DREAM, sources=one.sources, trust=one.trust)


def _must_survive(notes: Sequence[PendingNote], names: Mapping[str, str]) -> Iterator[PageLine]:
    """Notes that were called as important as can be, in their own words, the newest of them as far as there is room."""
    room = MOST_CHARACTERS // 4
    for note in sorted(notes, key=lambda note: note.at, reverse=True):
        plain = one_line(note.text) == note.text and note.valence >= 0 and note.trust > Trust.DATA
        if (
            note.importance >= PRECIOUS
            and plain
            and not note.superseded
            and len(note.text) <= min(room, MAX_LINE_CHARACTERS)
        ):
            room -= len(note.text)
            yield PageLine(
                section=classify_section(note.text, kind=note.kind, trust=note.trust),
                text=note.text,
                sources=(names.get(note.id, note.id),),
                importance=note.importance,
                kind=note.kind,
                at=note.at,
                trust=note.trust,
            )


def _reasons(made: Rewritten) -> list[str]:
    return [f"{one.guard}: {one.detail}" for one in made.verdicts if not one.passed]


def _renamed(edit: Edit, names: Mapping[str, str]) -> Edit:
    if isinstance(edit, Add | Rewrite):
        return replace(edit, sources=tuple(names.get(source, source) for source in edit.sources))
    return edit
