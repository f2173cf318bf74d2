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
from inmind.documents.document import ARCHIVE_PREFIX, OVERVIEW_PATH, Document
from inmind.documents.overview.event_log import OverviewLine, OverviewLog, with_log_lines
from inmind.documents.overview.maintain import overview_updates, with_pending_writes, without_generated_lines
from inmind.documents.overview.template import OverviewSection
from inmind.documents.scratchpad.merge3 import MergeConflict, merge_three_way
from inmind.documents.scratchpad.paths import ABSENT
from inmind.documents.scratchpad.state import SavedScratchpad, Scratchpads
from inmind.entities.serialize import sighting_from
from inmind.errors import InvalidInput, SchemaViolation
from inmind.history.compaction.archive_page import renumbered_path, update_continuation
from inmind.prompt.layers.base import Layer
from inmind.prompt.layers.builtin import EntityLayer
from inmind.prompt.layers.scratchpad import ScratchpadLayer
from inmind.session.children.inherit import copy_draft, keeps_documents
from inmind.session.state import ResourceState, SessionState


@frozen(kw_only=True)
class MergeReport:
    """What a child's changes came to in its parent."""

    child: str
    taken: tuple[str, ...] = ()
    """Fields of the scratchpad and documents that the child had changed and the parent had not, as they are called in
    the parent: an archive is called otherwise there, where the parent has another under its name."""
    combined: tuple[str, ...] = ()
    """Where both had added, or had changed different lines: the parent's first, then what only the child had. Also the
    overview, where what occurred to the child is entered on the parent's."""
    conflicts: tuple[MergeConflict, ...] = ()
    """Where both had changed the same. The parent's stays; the child's is here, and in its own session."""
    entities: int = 0
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
            taken=came.taken,
            combined=came.combined,
            conflicts=tuple(_conflict_from_json(told) for told in came.conflicts),
            entities=came.entities,
            repeated=repeated,
        )


@frozen(kw_only=True)
class ChildChanges:
    """A child as it stands, and as it was when its changes last came home, or when it began."""

    id: str
    base: SessionState
    base_scratchpads: Scratchpads
    """Its scratchpads when they last came home, which may be longer ago."""
    state: SessionState
    layers: Sequence[Layer]
    """As they were handed on to it."""

    def has_changed(self, path: str) -> bool:
        base = self.base.documents.by_path.get(path)
        return base is None or self.written_part(path, base.text) != self.written_part(
            path, self.state.documents.text(path)
        )

    def written_part(self, path: str, text: str, *others: OverviewLog) -> str:
        """A page as somebody wrote it: what memory has entered there is about the session that it was entered for."""
        return (
            without_generated_lines(text, self.base.overview_lines, self.state.overview_lines, *others)
            if path == OVERVIEW_PATH
            else text
        )


@frozen
class MergeChanges:
    """What is to happen in the parent, and what the report will say."""

    drafts: tuple[Draft, ...] = ()
    entities: tuple[EntitySighting, ...] = ()
    taken: tuple[str, ...] = ()
    combined: tuple[str, ...] = ()
    conflicts: tuple[MergeConflict, ...] = ()
    waiting: bool = False
    """Something could not be taken as things are: the next homecoming looks at all of it again."""

    def __add__(self, other: MergeChanges) -> MergeChanges:
        return MergeChanges(
            self.drafts + other.drafts,
            self.entities + other.entities,
            self.taken + other.taken,
            self.combined + other.combined,
            self.conflicts + other.conflicts,
            self.waiting or other.waiting,
        )


def merge_scratchpad(
    child: ChildChanges, state: SessionState, resource_state: ResourceState, layer: ScratchpadLayer | None
) -> MergeChanges:
    """The scratchpad's part, wherever the parent's is kept; and of those that the parent has no layer for, word."""
    left = _unmerged_scratchpads(child, layer)
    return left if layer is None else left + _merge_own_scratchpad(child, state, resource_state, layer)


def _merge_own_scratchpad(
    child: ChildChanges, state: SessionState, resource_state: ResourceState, layer: ScratchpadLayer
) -> MergeChanges:
    """None where the child only had a view of it."""
    theirs = next((one for one in child.layers if isinstance(one, ScratchpadLayer) and one.name == layer.name), None)
    if theirs is None:
        return MergeChanges()
    pads = state.scratchpads if layer.scope == "thread" else resource_state.scratchpads
    if (
        layer.read_only_reason(pads)
        or theirs.mismatch_reason(child.base_scratchpads)
        or theirs.mismatch_reason(child.state.scratchpads)
    ):
        # What does not fit the schema counts as nothing, and nothing must not come home as a deletion.
        waits = _is_changed(child, layer.name)
        return (
            MergeChanges(conflicts=(_scratchpad_conflict(child, pads, layer.name),), waiting=True)
            if waits
            else MergeChanges()
        )
    came = merge_three_way(
        theirs.current_state(child.base_scratchpads),
        layer.current_state(pads),
        theirs.current_state(child.state.scratchpads),
    )
    sides = [child.state.scratchpads.get(layer.name), *([pads.get(layer.name)] if came.combined else [])]
    sources, trust = _sources_and_trust([pad for pad in sides if pad])
    try:
        happened: Sequence[EventPayload] = layer.revise_by_child(pads, came)
    except (SchemaViolation, InvalidInput):
        # Each side fits by itself and both together do not: the host has to say what is to stay.
        return MergeChanges(conflicts=(_scratchpad_conflict(child, pads, layer.name),))
    return MergeChanges(
        drafts=tuple(copy_draft(what, sources, trust) for what in happened),
        taken=tuple(path or layer.name for path in came.taken),
        combined=tuple(path or layer.name for path in came.combined),
        conflicts=tuple(replace(clash, path=clash.path or layer.name) for clash in came.conflicts),
    )


def _unmerged_scratchpads(child: ChildChanges, layer: ScratchpadLayer | None) -> MergeChanges:
    """Scratchpads that the child has changed and this parent has no layer for."""
    others = [name for name in child.state.scratchpads.by_name if layer is None or name != layer.name]
    clashes = tuple(_scratchpad_conflict(child, Scratchpads(), name) for name in others if _is_changed(child, name))
    return MergeChanges(conflicts=clashes, waiting=bool(clashes))


def merge_documents(child: ChildChanges, state: SessionState, layers: Sequence[Layer]) -> MergeChanges:
    """Documents that the child wrote, and things that it spoke of, where it had layers of its own for them.

    `layers`: the parent's, which may only look at what its own parent has.
    """
    came = MergeChanges()
    if any(map(keeps_documents, child.layers)):
        kept = any(map(keeps_documents, layers))
        for path in filter(child.has_changed, child.state.documents.by_path):
            if not kept:
                came += _unmerged_document(child, path)
            elif not path.startswith(ARCHIVE_PREFIX):
                came += _merge_document(child, state, path)
        if kept:
            came += _merge_archives(child, state)
            came += _merge_overview_lines(child, state, came)
    if any(isinstance(layer, EntityLayer) for layer in child.layers):
        came += MergeChanges(entities=_entities_since(child))
    return came


def _merge_document(child: ChildChanges, state: SessionState, path: str) -> MergeChanges:
    base, theirs = child.base.documents.by_path.get(path), child.state.documents.by_path[path]
    ours = state.documents.by_path.get(path)
    written = DocumentWritten(path=path, text=theirs.text)
    if ours is None:
        return MergeChanges((copy_draft(written, *_sources_and_trust([theirs])),), taken=(path,))
    sides = (base.text if base else "", ours.text, theirs.text)
    came = merge_three_way(*(child.written_part(path, text, state.overview_lines) for text in sides))
    origins = _sources_and_trust([theirs, ours] if came.combined else [theirs])
    # What memory keeps here was not taken off by anybody: it stands on the page that comes home, too.
    text = (
        with_log_lines(came.text, state.overview_lines, state.language)
        if came.text and path == OVERVIEW_PATH
        else came.text
    )
    return MergeChanges(
        (copy_draft(replace(written, text=text), *origins),) if text is not None else (),
        taken=(path,) if came.taken else (),
        combined=(path,) if came.combined else (),
        conflicts=tuple(replace(clash, path=path) for clash in came.conflicts),
    )


def _merge_archives(child: ChildChanges, state: SessionState) -> MergeChanges:
    """Stubs name the lines of archives, so none is joined to another text, and no line that is home changes.

    A text that the parent has, under whatever name, is home already, and one that goes on from such a text goes on
    there. Any other keeps its name where that is free.
    """
    came = MergeChanges()
    taken = {*state.documents.by_path, *child.state.documents.by_path}
    home = {path: page.text for path, page in state.documents.by_path.items() if path.startswith(ARCHIVE_PREFIX)}
    places: dict[str, str] = {}
    for path, page in child.state.documents.by_path.items():
        if not path.startswith(ARCHIVE_PREFIX):
            continue
        text, before = (update_continuation(one, places) for one in (page.text, child.base.documents.text(path)))
        place = _path_with_text(text, home)
        if place is None and child.has_changed(path):
            begun = _path_with_text(before, home) if before and text.startswith(before.rstrip()) else None
            place = begun or (path if path not in home else renumbered_path(path, taken))
            written = DocumentWritten(path=place, text=text)
            came += MergeChanges((copy_draft(written, *_sources_and_trust([page])),), taken=(place,))
            home[place] = text
            taken.add(place)
        places[path] = place or path
    return came


def _path_with_text(text: str, pages: Mapping[str, str]) -> str | None:
    return next((path for path, held in pages.items() if held == text), None)


def _merge_overview_lines(child: ChildChanges, state: SessionState, came: MergeChanges) -> MergeChanges:
    """What has occurred to the child, and the parent's overview with that and with the pages that come home."""
    fresh = [note for note in child.state.overview_lines.lines if note.entered_seq > child.base.seq]
    language = state.language
    occurred = [what for note in reversed(fresh) if (what := _overview_event(note, language)) is not None]
    drafts = overview_updates(
        with_pending_writes(state.documents, came.drafts),
        language,
        occurred,
        log=state.overview_lines,
        trust=min((note.trust for note in fresh), default=Trust.OPERATOR),
        sources=[f"{child.state.stream}#{note.entered_seq}" for note in reversed(fresh)],
    )
    wrote = any(isinstance(draft.payload, DocumentWritten) for draft in drafts)
    told = not (occurred and wrote) or OVERVIEW_PATH in (*came.taken, *came.combined)
    return MergeChanges(tuple(drafts), combined=() if told else (OVERVIEW_PATH,))


def _overview_event(note: OverviewLine, language: str) -> OverviewEvent | None:
    """A child's line as news to its parent. Its task is the child's alone, and so is what became of its history."""
    match note.section:
        case OverviewSection.TASK:
            return None
        case OverviewSection.ACTIONS:
            alone = note.prefix == "set_aside" or note.topic
            return None if alone else OverviewEvent("action_taken", note.prefixed_text(language))
        case section:
            return OverviewEvent(_EVENT_KINDS[section], note.text, subject=note.topic)


_EVENT_KINDS = {
    OverviewSection.DECISIONS: "decision_made",
    OverviewSection.FACTS: "context_changed",
    OverviewSection.PROBLEMS: "bug_found",
}


def _unmerged_document(child: ChildChanges, path: str) -> MergeChanges:
    """A page for which the parent has no place of its own."""
    base, theirs = child.base.documents.by_path.get(path), child.state.documents.by_path[path]
    return MergeChanges(
        conflicts=(MergeConflict(path, base.text if base else ABSENT, ABSENT, theirs.text),), waiting=True
    )


def _entities_since(child: ChildChanges) -> tuple[EntitySighting, ...]:
    """Things that the child has spoken of since, the most recent first."""
    fresh = (entity for entity in child.state.entities if _seq_of(entity.source) > child.base.seq)
    return tuple(sighting_from(entity, "things") for entity in fresh)


def conflict_json(clash: MergeConflict) -> dict[str, Any]:
    """A conflict as JSON, in which what is absent is not there."""
    sides = {"base": clash.base, "ours": clash.ours, "theirs": clash.theirs}
    return {"path": clash.path, **{side: value for side, value in sides.items() if value is not ABSENT}}


def _conflict_from_json(told: Mapping[str, Any]) -> MergeConflict:
    return MergeConflict(told["path"], *(told.get(side, ABSENT) for side in ("base", "ours", "theirs")))


def _scratchpad_conflict(child: ChildChanges, ours: Scratchpads, name: str) -> MergeConflict:
    """A whole scratchpad that cannot be taken, with all sides as they are kept, whether they fit or not."""
    kept = [pads.get(name) for pads in (child.base_scratchpads, ours, child.state.scratchpads)]
    return MergeConflict(name, *(pad.state if pad else ABSENT for pad in kept))


def _is_changed(child: ChildChanges, pad: str) -> bool:
    return child.base_scratchpads.get(pad) != child.state.scratchpads.get(pad)


def _sources_and_trust(sides: Sequence[Document | SavedScratchpad]) -> tuple[tuple[str, ...], Trust]:
    """Where something comes from that was put together from these, and how far to trust it."""
    return tuple(side.source for side in sides), min((side.trust for side in sides), default=Trust.AGENT)


def _seq_of(event: str) -> int:
    return int(event.rpartition("#")[2])
