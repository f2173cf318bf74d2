"""Three-way merge of a child's changes into its parent.

The three sides are the child when it was opened or last merged, the child now, and the parent now. Child-only changes
are applied; on conflict the parent wins and the report carries both values. Archive pages never change, so they are
copied whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

from inmind.core.events.base import Draft, EventId, EventPayload, Origin, Trust
from inmind.core.events.documents import DocumentWritten, OverviewEvent
from inmind.core.events.entities import EntitySighting
from inmind.core.events.session import ChildMerged
from inmind.core.frozen import frozen
from inmind.core.text import count_noun
from inmind.documents.document import ARCHIVE_PREFIX, OVERVIEW_PATH, Document, validate_text
from inmind.documents.overview.event_log import OverviewLine, OverviewLog, with_log_lines
from inmind.documents.overview.maintain import overview_updates, with_pending_writes, without_generated_lines
from inmind.documents.overview.page import OverviewSection
from inmind.documents.scratchpad.state import MergeConflict, SavedScratchpad, Scratchpads, merge_three_way
from inmind.documents.scratchpad.values import ABSENT
from inmind.entities.serialize import sighting_from
from inmind.errors import InvalidInput, SchemaViolation
from inmind.history.compaction.stubs import renumbered_path, update_continuation
from inmind.prompt.layers.base import Layer
from inmind.prompt.layers.builtin import EntityLayer
from inmind.prompt.layers.scratchpad import ScratchpadLayer, find_scratchpad
from inmind.session.children import child_layers, copy_draft, keeps_documents
from inmind.session.context import SessionContext
from inmind.session.entities import restore_from_child
from inmind.session.state import MergePoint, ResourceState, SessionState
from inmind.store.stream import Decision, key_for


@frozen(kw_only=True)
class MergeReport:
    """The result of merging a child into its parent."""

    child: str
    taken: tuple[str, ...] = ()
    """Scratchpad fields and documents that only the child had changed, by their names in the parent. An archive page is
    renamed if the parent has another with the same name."""
    combined: tuple[str, ...] = ()
    """Items that both had added to, or changed in different lines; the parent's part comes first. The overview is one
    of them if lines of the child were added to it.
    """
    conflicts: tuple[MergeConflict, ...] = ()
    """Items that both had changed. The parent's value stays; the child's is here, and in its session."""
    entities: int = 0
    """Number of entities of the child that are now in the parent's window."""
    repeated: bool = False
    """These changes had been merged before; nothing was done again."""

    @property
    def ok(self) -> bool:
        return not self.conflicts

    def __str__(self) -> str:
        changes = (
            f"{len(self.taken)} taken, {len(self.combined)} combined, {count_noun(len(self.conflicts), 'conflict')}"
        )
        return f"merged {self.child}: {changes}, entities added: {self.entities}"

    @classmethod
    def of(cls, merged: ChildMerged, *, repeated: bool = False) -> MergeReport:
        """The report of a merge, from its event."""
        return cls(
            child=merged.child,
            taken=merged.taken,
            combined=merged.combined,
            conflicts=tuple(
                MergeConflict(one["path"], *(one.get(side, ABSENT) for side in ("base", "ours", "theirs")))
                for one in merged.conflicts
            ),
            entities=merged.entities,
            repeated=repeated,
        )


@frozen(kw_only=True)
class ChildChanges:
    """A child now, and when it was opened or last merged (`base`)."""

    id: str
    base: SessionState
    base_scratchpads: Scratchpads
    """Its scratchpads when they were last merged, which may be earlier."""
    state: SessionState
    layers: Sequence[Layer]
    """The layers of the child, as inherited."""

    def has_changed(self, path: str) -> bool:
        base = self.base.documents.by_path.get(path)
        return base is None or self.written_part(path, base.text) != self.written_part(
            path, self.state.documents.text(path)
        )

    def written_part(self, path: str, text: str, *others: OverviewLog) -> str:
        """A page without memory's own lines, which are about one session."""
        return (
            without_generated_lines(text, self.base.overview_lines, self.state.overview_lines, *others)
            if path == OVERVIEW_PATH
            else text
        )


@frozen
class MergeChanges:
    """Events for the parent, and the content of the report."""

    drafts: tuple[Draft, ...] = ()
    entities: tuple[EntitySighting, ...] = ()
    taken: tuple[str, ...] = ()
    combined: tuple[str, ...] = ()
    conflicts: tuple[MergeConflict, ...] = ()
    waiting: bool = False
    """Something could not be merged now; the next merge checks all changes again."""

    def __add__(self, other: MergeChanges) -> MergeChanges:
        return MergeChanges(
            self.drafts + other.drafts,
            self.entities + other.entities,
            self.taken + other.taken,
            self.combined + other.combined,
            self.conflicts + other.conflicts,
            self.waiting or other.waiting,
        )


def merge_child(context: SessionContext, id: str, key: str | None) -> MergeReport:
    """Merge the changes of a child in one commit."""
    checked_key = key_for(key, "merge_back", id)
    stream = context.session_stream(validate_text(id, field="child"))
    child_state = stream.state
    if child_state.opened is None or child_state.opened.parent != context.id:
        raise InvalidInput(field="child", value=id, expected=f"a child session of {context.id}")
    layers = context.config.layers
    inherited = child_layers(layers, dict(child_state.opened.inheritance))
    layer = find_scratchpad(layers)
    context.resource.refresh()

    def decide(state: SessionState, at: datetime) -> Decision[SessionState, MergeReport]:
        last = state.merged_children.get(id, MergePoint(child_state.opening_end, child_state.opening_end, 0))
        base = stream.state_at(last.seq)
        is_same = last.scratchpad_seq == last.seq
        scratchpads = base.scratchpads if is_same else stream.state_at(last.scratchpad_seq).scratchpads
        child = ChildChanges(id=id, base=base, base_scratchpads=scratchpads, state=child_state, layers=inherited)
        scratchpad = _merge_scratchpad(child, state, context.resource.state, layer)
        if (
            last.event
            and last.seq == child_state.seq
            and (last.scratchpad_seq == child_state.seq or scratchpad.waiting)
        ):
            return Decision([], _repeat_report(context, last.event))
        documents = _merge_documents(child, state, layers)
        changes = scratchpad + documents
        seq = last.seq if documents.waiting else child_state.seq
        scratchpad_seq = last.scratchpad_seq if scratchpad.waiting else child_state.seq
        merged = ChildMerged(
            id,
            seq,
            changes.taken,
            changes.combined,
            tuple(map(_conflict_json, changes.conflicts)),
            len(changes.entities),
            None if scratchpad_seq == seq else scratchpad_seq,
        )
        companion = scratchpad.drafts if layer is not None and layer.scope == "resource" else ()
        drafts = [Draft(payload=merged, origin=Origin.OPERATOR), *changes.drafts[len(companion) :]]
        next_state = context.stream.preview(state, state.seq, drafts, at)
        drafts += restore_from_child(context, next_state, changes.entities, at)
        return Decision(drafts, MergeReport.of(merged), companion=companion)

    done = context.stream.commit(decide, key=checked_key, companion=context.resource)
    return done.result or _repeat_report(context, context.stream.state_at(done.appended.last).merged_children[id].event)


def _repeat_report(context: SessionContext, seq: int) -> MergeReport:
    """The report of an earlier merge, from its event."""
    (event,) = context.store.read(context.stream.name, after=seq - 1, until=seq)
    return MergeReport.of(cast(ChildMerged, event.payload), repeated=True)


def _merge_scratchpad(
    child: ChildChanges, state: SessionState, resource_state: ResourceState, layer: ScratchpadLayer | None
) -> MergeChanges:
    """Merge the scratchpad into the stream in which the parent keeps it.

    Changed scratchpads of the child without a layer in the parent are reported as conflicts.
    """
    others = [name for name in child.state.scratchpads.by_name if layer is None or name != layer.name]
    conflicts = tuple(_scratchpad_conflict(child, Scratchpads(), name) for name in others if _is_changed(child, name))
    unmerged = MergeChanges(conflicts=conflicts, waiting=bool(conflicts))
    return unmerged if layer is None else unmerged + _merge_own_scratchpad(child, state, resource_state, layer)


def _merge_own_scratchpad(
    child: ChildChanges, state: SessionState, resource_state: ResourceState, layer: ScratchpadLayer
) -> MergeChanges:
    """Merge the scratchpad of a layer. Nothing is merged if the child only had a view of it."""
    theirs = next((one for one in child.layers if isinstance(one, ScratchpadLayer) and one.name == layer.name), None)
    if theirs is None:
        return MergeChanges()
    pads = state.scratchpads if layer.scope == "thread" else resource_state.scratchpads
    if (
        layer.read_only_reason(pads)
        or theirs.mismatch_reason(child.base_scratchpads)
        or theirs.mismatch_reason(child.state.scratchpads)
    ):
        # Content that does not fit the schema reads as empty, and empty must not be merged as a deletion.
        if not _is_changed(child, layer.name):
            return MergeChanges()
        return MergeChanges(conflicts=(_scratchpad_conflict(child, pads, layer.name),), waiting=True)
    merged = merge_three_way(
        theirs.current_state(child.base_scratchpads),
        layer.current_state(pads),
        theirs.current_state(child.state.scratchpads),
    )
    sides = [child.state.scratchpads.get(layer.name), *([pads.get(layer.name)] if merged.combined else [])]
    sources, trust = _sources_and_trust([pad for pad in sides if pad])
    try:
        payloads: Sequence[EventPayload] = layer.revise_by_child(pads, merged)
    except (SchemaViolation, InvalidInput):
        # Each side fits the schema, but the merged result does not: the host has to decide.
        return MergeChanges(conflicts=(_scratchpad_conflict(child, pads, layer.name),))
    return MergeChanges(
        drafts=tuple(copy_draft(payload, sources, trust) for payload in payloads),
        taken=tuple(path or layer.name for path in merged.taken),
        combined=tuple(path or layer.name for path in merged.combined),
        conflicts=tuple(replace(conflict, path=conflict.path or layer.name) for conflict in merged.conflicts),
    )


def _merge_documents(child: ChildChanges, state: SessionState, layers: Sequence[Layer]) -> MergeChanges:
    """Merge documents and entities, if the child has its own layers for them.

    `layers` are those of the parent. They may be views, and nothing can be merged into a view.
    """
    merged = MergeChanges()
    if any(map(keeps_documents, child.layers)):
        parent_has_documents = any(map(keeps_documents, layers))
        for path in filter(child.has_changed, child.state.documents.by_path):
            if not parent_has_documents:
                base, theirs = child.base.documents.by_path.get(path), child.state.documents.by_path[path]
                conflict = MergeConflict(path, base.text if base else ABSENT, ABSENT, theirs.text)
                merged += MergeChanges(conflicts=(conflict,), waiting=True)
            elif not path.startswith(ARCHIVE_PREFIX):
                merged += _merge_document(child, state, path)
        if parent_has_documents:
            merged += _merge_archives(child, state)
            merged += _merge_overview_lines(child, state, merged)
    if any(isinstance(layer, EntityLayer) for layer in child.layers):
        fresh = (one for one in child.state.entities if EventId.of(one.source).seq > child.base.seq)
        merged += MergeChanges(entities=tuple(sighting_from(entity, "things") for entity in fresh))
    return merged


def _merge_document(child: ChildChanges, state: SessionState, path: str) -> MergeChanges:
    base, theirs = child.base.documents.by_path.get(path), child.state.documents.by_path[path]
    ours = state.documents.by_path.get(path)
    written = DocumentWritten(path=path, text=theirs.text)
    if ours is None:
        return MergeChanges((copy_draft(written, *_sources_and_trust([theirs])),), taken=(path,))
    sides = (base.text if base else "", ours.text, theirs.text)
    merged = merge_three_way(*(child.written_part(path, text, state.overview_lines) for text in sides))
    origins = _sources_and_trust([theirs, ours] if merged.combined else [theirs])
    # Memory's own lines on the parent's page were not removed by anyone, so the merged page has them too.
    text = (
        with_log_lines(merged.text, state.overview_lines, state.language)
        if merged.text and path == OVERVIEW_PATH
        else merged.text
    )
    return MergeChanges(
        (copy_draft(replace(written, text=text), *origins),) if text is not None else (),
        taken=(path,) if merged.taken else (),
        combined=(path,) if merged.combined else (),
        conflicts=tuple(replace(conflict, path=path) for conflict in merged.conflicts),
    )


def _merge_archives(child: ChildChanges, state: SessionState) -> MergeChanges:
    """Copy archive pages.

    Stubs refer to their lines, so a page is never merged with another text.

    A text that the parent already has, under any name, is skipped. A page that continues such a text extends it. Any
    other page keeps its name if that is free.
    """
    merged = MergeChanges()
    used_paths = {*state.documents.by_path, *child.state.documents.by_path}
    parent_pages = {
        path: page.text for path, page in state.documents.by_path.items() if path.startswith(ARCHIVE_PREFIX)
    }
    places: dict[str, str] = {}
    for path, page in child.state.documents.by_path.items():
        if not path.startswith(ARCHIVE_PREFIX):
            continue
        text, before = (update_continuation(one, places) for one in (page.text, child.base.documents.text(path)))
        place = _path_with_text(text, parent_pages)
        if place is None and child.has_changed(path):
            extended = _path_with_text(before, parent_pages) if before and text.startswith(before.rstrip()) else None
            place = extended or (path if path not in parent_pages else renumbered_path(path, used_paths))
            written = DocumentWritten(path=place, text=text)
            merged += MergeChanges((copy_draft(written, *_sources_and_trust([page])),), taken=(place,))
            parent_pages[place] = text
            used_paths.add(place)
        places[path] = place or path
    return merged


def _path_with_text(text: str, pages: Mapping[str, str]) -> str | None:
    return next((path for path, page_text in pages.items() if page_text == text), None)


def _merge_overview_lines(child: ChildChanges, state: SessionState, merged: MergeChanges) -> MergeChanges:
    """Add the child's new overview lines and the merged pages to the parent's overview."""
    fresh = [note for note in child.state.overview_lines.lines if note.entered_seq > child.base.seq]
    language = state.language
    events = [event for note in reversed(fresh) if (event := _overview_event(note, language)) is not None]
    drafts = overview_updates(
        with_pending_writes(state.documents, merged.drafts),
        language,
        events,
        log=state.overview_lines,
        trust=min((note.trust for note in fresh), default=Trust.OPERATOR),
        sources=[f"{child.state.stream}#{note.entered_seq}" for note in reversed(fresh)],
    )
    wrote = any(isinstance(draft.payload, DocumentWritten) for draft in drafts)
    is_reported = not (events and wrote) or OVERVIEW_PATH in (*merged.taken, *merged.combined)
    return MergeChanges(tuple(drafts), combined=() if is_reported else (OVERVIEW_PATH,))


def _overview_event(note: OverviewLine, language: str) -> OverviewEvent | None:
    """A line of the child as an event for its parent.

    Lines about its task or its own history are left out.
    """
    match note.section:
        case OverviewSection.TASK:
            return None
        case OverviewSection.ACTIONS:
            is_own_history = note.prefix == "set_aside" or note.topic
            return None if is_own_history else OverviewEvent("action_taken", note.prefixed_text(language))
        case section:
            return OverviewEvent(_EVENT_KINDS[section], note.text, subject=note.topic)


_EVENT_KINDS = {
    OverviewSection.DECISIONS: "decision_made",
    OverviewSection.FACTS: "context_changed",
    OverviewSection.PROBLEMS: "bug_found",
}


def _conflict_json(conflict: MergeConflict) -> dict[str, Any]:
    """A conflict as JSON. An absent value has no key."""
    sides = {"base": conflict.base, "ours": conflict.ours, "theirs": conflict.theirs}
    return {"path": conflict.path, **{side: value for side, value in sides.items() if value is not ABSENT}}


def _scratchpad_conflict(child: ChildChanges, ours: Scratchpads, name: str) -> MergeConflict:
    """A conflict about a whole scratchpad, with all sides as stored."""
    sides = [pads.get(name) for pads in (child.base_scratchpads, ours, child.state.scratchpads)]
    return MergeConflict(name, *(pad.state if pad else ABSENT for pad in sides))


def _is_changed(child: ChildChanges, pad: str) -> bool:
    return child.base_scratchpads.get(pad) != child.state.scratchpads.get(pad)


def _sources_and_trust(sides: Sequence[Document | SavedScratchpad]) -> tuple[tuple[str, ...], Trust]:
    """Sources of a merged value, and the lowest trust among them."""
    return tuple(side.source for side in sides), min((side.trust for side in sides), default=Trust.AGENT)
