"""What a child has changed comes home: three ways, and whatever the parent changed itself stays.

The child as it began (or as it was when this was last done), the child as it is, and the parent as it is now. Where
only the child changed something, the parent takes it; where both did, nobody's work is thrown away: the parent's
stays, and the report has both. What was archived is nobody's to change: it comes home whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from inmind.core.events.base import Draft, EventPayload, Trust
from inmind.core.events.documents import DocumentWritten, OverviewEvent
from inmind.core.events.entities import EntitySighting
from inmind.core.events.session import ChildMerged
from inmind.core.frozen import frozen
from inmind.documents.document import ARCHIVE, OVERVIEW, Document
from inmind.documents.overview.event_log import Note, Noted, with_noted
from inmind.documents.overview.maintain import as_others_wrote, kept_up, with_written
from inmind.documents.overview.template import Section
from inmind.documents.scratchpad.merge3 import Clash, reconciled
from inmind.documents.scratchpad.paths import ABSENT
from inmind.documents.scratchpad.state import Pad, Pads
from inmind.entities.serialize import thing_from
from inmind.errors import InvalidInput, SchemaViolation
from inmind.history.compaction.archive_page import moved, moved_path
from inmind.prompt.layers.base import EntityLayer, Layer
from inmind.prompt.layers.scratchpad import ScratchpadLayer
from inmind.session.children.inherit import copied_from, keeps_documents
from inmind.session.state import ResourceState, SessionState


@frozen(kw_only=True)
class MergeReport:
    """What a child's changes came to in its parent."""

    child: str
    brought: tuple[str, ...] = ()
    """Fields of the scratchpad and documents that the child had changed and the parent had not, as they are called in
    the parent: an archive is called otherwise there, where the parent has another under its name."""
    joined: tuple[str, ...] = ()
    """Where both had added, or had changed different lines: the parent's first, then what only the child had. Also the
    overview, where what occurred to the child is entered on the parent's."""
    conflicts: tuple[Clash, ...] = ()
    """Where both had changed the same. The parent's stays; the child's is here, and in its own session."""
    things: int = 0
    """How many things the child had spoken of, which the parent now has in mind."""
    repeated: bool = False
    """This had been brought home before; nothing was done again."""

    @property
    def ok(self) -> bool:
        return not self.conflicts

    @classmethod
    def of(cls, came: ChildMerged, *, repeated: bool = False) -> MergeReport:
        """The report of a homecoming, as the journal has it."""
        return cls(
            child=came.child,
            brought=came.brought,
            joined=came.joined,
            conflicts=tuple(_clash(told) for told in came.conflicts),
            things=came.things,
            repeated=repeated,
        )


@frozen(kw_only=True)
class Child:
    """A child as it stands, and as it was when its changes last came home, or when it began."""

    id: str
    then: SessionState
    pads: Pads
    """Its scratchpads when they last came home, which may be longer ago."""
    now: SessionState
    layers: Sequence[Layer]
    """As they were handed on to it."""

    def has_changed(self, path: str) -> bool:
        base = self.then.documents.by_path.get(path)
        return base is None or self.wrote(path, base.text) != self.wrote(path, self.now.documents.text(path))

    def wrote(self, path: str, text: str, *others: Noted) -> str:
        """A page as somebody wrote it: what memory has entered there is about the session that it was entered for."""
        return as_others_wrote(text, self.then.noted, self.now.noted, *others) if path == OVERVIEW else text


@frozen
class Arrivals:
    """What is to happen in the parent, and what the report will say."""

    happening: tuple[Draft, ...] = ()
    things: tuple[EntitySighting, ...] = ()
    brought: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()
    conflicts: tuple[Clash, ...] = ()
    waiting: bool = False
    """Something could not be taken as things are: the next homecoming looks at all of it again."""

    def __add__(self, other: Arrivals) -> Arrivals:
        return Arrivals(
            self.happening + other.happening,
            self.things + other.things,
            self.brought + other.brought,
            self.joined + other.joined,
            self.conflicts + other.conflicts,
            self.waiting or other.waiting,
        )


def pad_home(child: Child, mind: SessionState, belongings: ResourceState, layer: ScratchpadLayer | None) -> Arrivals:
    """The scratchpad's part, wherever the parent's is kept; and of those that the parent has no layer for, word."""
    left = _pads_left(child, layer)
    return left if layer is None else left + _pad_home(child, mind, belongings, layer)


def _pad_home(child: Child, mind: SessionState, belongings: ResourceState, layer: ScratchpadLayer) -> Arrivals:
    """None where the child only had a view of it."""
    theirs = next((one for one in child.layers if isinstance(one, ScratchpadLayer) and one.name == layer.name), None)
    if theirs is None:
        return Arrivals()
    pads = mind.pads if layer.scope == "thread" else belongings.pads
    if layer.closed(pads) or theirs.misfit(child.pads) or theirs.misfit(child.now.pads):
        # What does not fit the schema counts as nothing, and nothing must not come home as a deletion.
        waits = _is_changed(child, layer.name)
        return Arrivals(conflicts=(_refused(child, pads, layer.name),), waiting=True) if waits else Arrivals()
    came = reconciled(theirs.held(child.pads), layer.held(pads), theirs.held(child.now.pads))
    sides = [child.now.pads.get(layer.name), *([pads.get(layer.name)] if came.joined else [])]
    sources, trust = _origins([pad for pad in sides if pad])
    try:
        happened: Sequence[EventPayload] = layer.revised_by_child(pads, came)
    except (SchemaViolation, InvalidInput):
        # Each side fits by itself and both together do not: the host has to say what is to stay.
        return Arrivals(conflicts=(_refused(child, pads, layer.name),))
    return Arrivals(
        happening=tuple(copied_from(what, sources, trust) for what in happened),
        brought=tuple(path or layer.name for path in came.brought),
        joined=tuple(path or layer.name for path in came.joined),
        conflicts=tuple(replace(clash, path=clash.path or layer.name) for clash in came.conflicts),
    )


def _pads_left(child: Child, layer: ScratchpadLayer | None) -> Arrivals:
    """Scratchpads that the child has changed and this parent has no layer for."""
    others = [name for name in child.now.pads.by_name if layer is None or name != layer.name]
    clashes = tuple(_refused(child, Pads(), name) for name in others if _is_changed(child, name))
    return Arrivals(conflicts=clashes, waiting=bool(clashes))


def rest_home(child: Child, mind: SessionState, layers: Sequence[Layer]) -> Arrivals:
    """Documents that the child wrote, and things that it spoke of, where it had layers of its own for them.

    `layers`: the parent's, which may only look at what its own parent has.
    """
    came = Arrivals()
    if any(map(keeps_documents, child.layers)):
        kept = any(map(keeps_documents, layers))
        for path in filter(child.has_changed, child.now.documents.by_path):
            if not kept:
                came += _document_left(child, path)
            elif not path.startswith(ARCHIVE):
                came += _document_home(child, mind, path)
        if kept:
            came += _archives_home(child, mind)
            came += _entered(child, mind, came)
    if any(isinstance(layer, EntityLayer) for layer in child.layers):
        came += Arrivals(things=_seen_since(child))
    return came


def _document_home(child: Child, mind: SessionState, path: str) -> Arrivals:
    base, theirs = child.then.documents.by_path.get(path), child.now.documents.by_path[path]
    ours = mind.documents.by_path.get(path)
    written = DocumentWritten(path=path, text=theirs.text)
    if ours is None:
        return Arrivals((copied_from(written, *_origins([theirs])),), brought=(path,))
    sides = (base.text if base else "", ours.text, theirs.text)
    came = reconciled(*(child.wrote(path, text, mind.noted) for text in sides))
    origins = _origins([theirs, ours] if came.joined else [theirs])
    # What memory keeps here was not taken off by anybody: it stands on the page that comes home, too.
    text = with_noted(came.text, mind.noted, mind.language) if came.text and path == OVERVIEW else came.text
    return Arrivals(
        (copied_from(replace(written, text=text), *origins),) if text is not None else (),
        brought=(path,) if came.brought else (),
        joined=(path,) if came.joined else (),
        conflicts=tuple(replace(clash, path=path) for clash in came.conflicts),
    )


def _archives_home(child: Child, mind: SessionState) -> Arrivals:
    """Stubs name the lines of archives, so none is joined to another text, and no line that is home changes.

    A text that the parent has, under whatever name, is home already, and one that goes on from such a text goes on
    there. Any other keeps its name where that is free.
    """
    came = Arrivals()
    taken = {*mind.documents.by_path, *child.now.documents.by_path}
    home = {path: page.text for path, page in mind.documents.by_path.items() if path.startswith(ARCHIVE)}
    places: dict[str, str] = {}
    for path, page in child.now.documents.by_path.items():
        if not path.startswith(ARCHIVE):
            continue
        text, before = (moved(one, places) for one in (page.text, child.then.documents.text(path)))
        place = _holding(text, home)
        if place is None and child.has_changed(path):
            begun = _holding(before, home) if before and text.startswith(before.rstrip()) else None
            place = begun or (path if path not in home else moved_path(path, taken))
            written = DocumentWritten(path=place, text=text)
            came += Arrivals((copied_from(written, *_origins([page])),), brought=(place,))
            home[place] = text
            taken.add(place)
        places[path] = place or path
    return came


def _holding(text: str, pages: Mapping[str, str]) -> str | None:
    return next((path for path, held in pages.items() if held == text), None)


def _entered(child: Child, mind: SessionState, came: Arrivals) -> Arrivals:
    """What has occurred to the child, and the parent's overview with that and with the pages that come home."""
    fresh = [note for note in child.now.noted.notes if note.entered > child.then.seq]
    language = mind.language
    occurred = [what for note in reversed(fresh) if (what := _occurred(note, language)) is not None]
    drafts = kept_up(
        with_written(mind.documents, came.happening),
        language,
        occurred,
        noted=mind.noted,
        trust=min((note.trust for note in fresh), default=Trust.OPERATOR),
        sources=[f"{child.now.stream}#{note.entered}" for note in reversed(fresh)],
    )
    wrote = any(isinstance(draft.payload, DocumentWritten) for draft in drafts)
    told = not (occurred and wrote) or OVERVIEW in (*came.brought, *came.joined)
    return Arrivals(tuple(drafts), joined=() if told else (OVERVIEW,))


def _occurred(note: Note, language: str) -> OverviewEvent | None:
    """A child's line as news to its parent. Its task is the child's alone, and so is what became of its history."""
    match note.section:
        case Section.TASK:
            return None
        case Section.ACTIONS:
            alone = note.word == "set_aside" or note.about
            return None if alone else OverviewEvent("action_taken", note.worded(language))
        case section:
            return OverviewEvent(_NEWS[section], note.text, about=note.about)


_NEWS = {
    Section.DECISIONS: "decision_made",
    Section.FACTS: "context_changed",
    Section.PROBLEMS: "bug_found",
}


def _document_left(child: Child, path: str) -> Arrivals:
    """A page for which the parent has no place of its own."""
    base, theirs = child.then.documents.by_path.get(path), child.now.documents.by_path[path]
    return Arrivals(conflicts=(Clash(path, base.text if base else ABSENT, ABSENT, theirs.text),), waiting=True)


def _seen_since(child: Child) -> tuple[EntitySighting, ...]:
    """Things that the child has spoken of since, the most recent first."""
    fresh = (entity for entity in child.now.entities if _place(entity.source) > child.then.seq)
    return tuple(thing_from(entity, "things") for entity in fresh)


def told(clash: Clash) -> dict[str, Any]:
    """A conflict as JSON, in which what is absent is not there."""
    sides = {"base": clash.base, "ours": clash.ours, "theirs": clash.theirs}
    return {"path": clash.path, **{side: value for side, value in sides.items() if value is not ABSENT}}


def _clash(told: Mapping[str, Any]) -> Clash:
    return Clash(told["path"], *(told.get(side, ABSENT) for side in ("base", "ours", "theirs")))


def _refused(child: Child, ours: Pads, name: str) -> Clash:
    """A whole scratchpad that cannot be taken, with all sides as they are kept, whether they fit or not."""
    kept = [pads.get(name) for pads in (child.pads, ours, child.now.pads)]
    return Clash(name, *(pad.state if pad else ABSENT for pad in kept))


def _is_changed(child: Child, pad: str) -> bool:
    return child.pads.get(pad) != child.now.pads.get(pad)


def _origins(sides: Sequence[Document | Pad]) -> tuple[tuple[str, ...], Trust]:
    """Where something comes from that was put together from these, and how far to trust it."""
    return tuple(side.source for side in sides), min((side.trust for side in sides), default=Trust.AGENT)


def _place(event: str) -> int:
    return int(event.rpartition("#")[2])
