"""Child sessions: what they inherit, and the merge of their changes.

Of each layer of its parent a child inherits a copy (fork), a view, or nothing. A view is the layer itself, called with
the context of the parent. A copy belongs to the child from its first event on: a child that dies has changed nothing in
its parent, and its changes are in its own stream until they are merged back.

The three sides of a merge are the child when it was opened or last merged, the child now, and the parent now.
Child-only changes are applied; on conflict the parent wins and the report carries both values. Archive pages never
change, so they are copied whole.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, cast, get_args

from inmind.core.encoding import digest
from inmind.core.events.base import Draft, EventId, EventPayload, Origin, Trust
from inmind.core.events.documents import DocumentWritten, OverviewEvent, ScratchpadStarted
from inmind.core.events.session import (
    ChildMerged,
    EntitiesRestored,
    EntitySighting,
    Retained,
    RetainedItem,
    SessionOpened,
)
from inmind.core.frozen import frozen
from inmind.core.paths import SESSION_PREFIX
from inmind.core.text import count_noun
from inmind.documents.document import ARCHIVE_PREFIX, OVERVIEW_PATH, Document, validate_text
from inmind.documents.overview.event_log import OverviewLine, OverviewLog, with_log_lines
from inmind.documents.overview.maintain import overview_updates, with_pending_writes, without_generated_lines
from inmind.documents.overview.page import OverviewSection
from inmind.documents.scratchpad.state import (
    MergeConflict,
    SavedScratchpad,
    ScratchpadMerge,
    Scratchpads,
    merge_three_way,
)
from inmind.documents.scratchpad.values import ABSENT
from inmind.entities.serialize import deserialize, serialize, sighting_from
from inmind.errors import InvalidInput, SchemaViolation
from inmind.history.compaction.stubs import renumbered_path, update_continuation
from inmind.prompt.layers.base import Layer, Spawn, ViewLayer, unwrap_view
from inmind.prompt.layers.builtin import EntityLayer, RetainedLayer, RetainedView, pinned_item
from inmind.prompt.layers.scratchpad import ScratchpadLayer, find_scratchpad
from inmind.session.compaction_plan import CompactionPlanner
from inmind.session.context import SessionContext
from inmind.session.entities import restore_from_child
from inmind.session.state import MergePoint, ResourceState, SessionState
from inmind.store.stream import Decision, Stream, key_for


def prepare_child(
    context: SessionContext, planner: CompactionPlanner, id: str | None, policy: object, key: str | None
) -> tuple[str, SessionOpened, list[Draft]]:
    """The id of a child, its opening event, and the events that it inherits.

    The same id is the same child. Without an id, it is derived from the key.
    """
    checked_key = key_for(key, "spawn")
    state, resource_state = context.stream.refresh(), context.resource.refresh()
    policies = _inherit_policies(context.config.layers, policy)
    opened = state.opened or SessionOpened(resource="", cwd="")
    suffix = digest(checked_key.value) if checked_key else os.urandom(4).hex()
    child_id = f"{context.id}.{suffix}" if id is None else id
    opening = replace(opened, parent=context.id, inheritance=tuple(policies.items()))
    states = [state, *(ancestor.refresh() for ancestor in context.ancestors)]
    drafts: dict[str, Draft] = {}
    for layer in context.config.layers:
        if policies[layer.name] == "fork":
            own, height = unwrap_view(layer)
            if isinstance(own, RetainedLayer):
                above = states[height::-1]
                items = [(state, item) for state in above for item in planner.retained_items(state.history)]
                drafts |= _copied_items(items)
            else:
                drafts |= _copies(own, states[height], resource_state)
    return child_id, opening, list(drafts.values())


def _inherit_policies(layers: Sequence[Layer], policy: object) -> dict[str, Spawn]:
    """The policy of each layer: from the caller, for all or by name, or else from the layer."""
    own: dict[str, Spawn] = {layer.name: _policy(layer.spawn(), f"{layer.name}.spawn") for layer in layers}
    if policy is None:
        return own
    if isinstance(policy, Mapping):
        policies = cast(Mapping[Any, Any], policy)
        if unknown := [name for name in policies if name not in own]:
            raise InvalidInput(field="policy", value=unknown[0], expected=f"a layer: {', '.join(own)}")
        return {**own, **{name: _policy(value, f"policy[{name!r}]") for name, value in policies.items()}}
    return dict.fromkeys(own, _policy(policy, "policy"))


def child_layers(layers: Sequence[Layer], policies: Mapping[str, str]) -> tuple[Layer, ...]:
    """The layers of a child. A layer that the parent does not have belongs to the child.

    A view may be inherited as a view. Otherwise the layer belongs to the child.
    """
    inherited: list[Layer] = []
    for layer in layers:
        own, _ = unwrap_view(layer)
        if policies.get(layer.name) == "view":
            inherited.append(RetainedView(layer) if isinstance(own, RetainedLayer) else ViewLayer(layer))
        else:
            inherited.append(own.for_session() if isinstance(own, ScratchpadLayer) else own)
    return tuple(inherited)


def _copy_draft(payload: EventPayload, sources: Sequence[str], trust: Trust) -> Draft:
    """An event copied from another session, with its sources and its trust."""
    return Draft(payload=payload, origin=Origin.OPERATOR, sources=tuple(filter(None, sources)), trust=trust)


def _keeps_documents(layer: Layer) -> bool:
    """True if a layer stores documents. A host's layers do."""
    return not isinstance(layer, ScratchpadLayer | EntityLayer | ViewLayer)


def _copies(layer: Layer, state: SessionState, resource_state: ResourceState) -> dict[str, Draft]:
    """Copies for one layer, keyed by the copied item.

    Layers that store documents share the same copies.
    """
    if isinstance(layer, ScratchpadLayer):
        pads = state.scratchpads if layer.scope == "thread" else resource_state.scratchpads
        pad, content = pads.get(layer.name), layer.current_state(pads)
        source, trust = (pad.source, pad.trust) if pad else ("", Trust.OPERATOR)
        return {layer.name: _copy_draft(ScratchpadStarted(layer.name, content), (source,), trust)} if content else {}
    if isinstance(layer, EntityLayer):
        things = deserialize(serialize(state.entities))
        return {layer.name: _copy_draft(EntitiesRestored(things), (), Trust.DATA)} if things else {}
    return {
        f"{path} (a page)": _copied_page(path, page, state)
        for path, page in state.documents.by_path.items()
        if not path.startswith(ARCHIVE_PREFIX)
    }


def _copied_items(items: Sequence[tuple[SessionState, RetainedItem]]) -> dict[str, Draft]:
    """Retained items of ancestors, as items that the child's host has declared."""
    return {
        f"{item.text} (an item)": _copy_draft(
            Retained(pinned_item(item)),
            (f"{state.stream}#{item.seq}" if item.seq else "",),
            Trust.PERSON if item.seq else Trust.OPERATOR,
        )
        for state, item in items
    }


def _copied_page(path: str, page: Document, state: SessionState) -> Draft:
    """A copied page, without memory's lines about archives: the child has none of them."""
    log = state.overview_lines.without_compactions()
    text = with_log_lines(page.text, log, state.language) if path == OVERVIEW_PATH else page.text
    return _copy_draft(DocumentWritten(path=path, text=text), (page.source,), page.trust)


def _policy(value: object, field: str) -> Spawn:
    if value not in get_args(Spawn):
        raise InvalidInput(field=field, value=value, expected="fork, view or none")
    return cast(Spawn, value)


@frozen(kw_only=True)
class MergeReport:
    """The result of merging a child into its parent."""

    child: str
    taken: tuple[str, ...] = ()
    """Scratchpad fields and documents that only the child had changed, by their names in the parent. An archive page is
    renamed if the parent has another with the same name."""
    combined: tuple[str, ...] = ()
    """Items that both had added to, or changed in different lines; the parent's part comes first. The overview is one
    of them if lines of the child were added to it."""
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
        counts = f"{len(self.taken)} taken, {len(self.combined)} combined"
        conflicts = count_noun(len(self.conflicts), "conflict")
        return f"merged {self.child}: {counts}, {conflicts}, entities added: {self.entities}"

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


class _ChildMerge:
    """Merges a child into one state of its parent: its events and its report."""

    def __init__(
        self, context: SessionContext, child: Stream[SessionState], layers: Sequence[Layer], state: SessionState
    ) -> None:
        """`layers`: those of the child, as inherited. `state`: that of the parent."""
        self._context, self._layers, self._parent = context, layers, state
        self._parent_layers, self._child = context.config.layers, child.state
        id, first = child.name.removeprefix(SESSION_PREFIX), self._child.opening_end
        self.last = state.merged_children.get(id, MergePoint(first, first, 0))
        self._base = child.state_at(self.last.seq)
        """The child when it was opened or last merged."""
        is_same = self.last.scratchpad_seq == self.last.seq
        self._base_pads = self._base.scratchpads if is_same else child.state_at(self.last.scratchpad_seq).scratchpads
        """Its scratchpads when they were last merged, which may be earlier."""
        self.drafts: list[Draft] = []
        self.scratchpad_drafts: list[Draft] = []
        self.entities: tuple[EntitySighting, ...] = ()
        self.taken: list[str] = []
        self.combined: list[str] = []
        self.conflicts: list[MergeConflict] = []
        self.documents_wait = self.scratchpad_waits = False
        """Something could not be merged now; the next merge checks all changes again."""

    def merge_scratchpad(self, layer: ScratchpadLayer | None) -> None:
        """Merge the scratchpad into the stream in which the parent keeps it.

        Changed scratchpads of the child without a layer in the parent are reported as conflicts.
        """
        for name in self._child.scratchpads.by_name:
            if layer is None or name != layer.name:
                self._wait_for_pad(name, Scratchpads())
        own = (one for one in self._layers if layer and isinstance(one, ScratchpadLayer) and one.name == layer.name)
        theirs = next(own, None)
        if layer is None or theirs is None:  # also if the child only has a view of it
            return
        base, child = self._base_pads, self._child.scratchpads
        pads = self._parent.scratchpads if layer.scope == "thread" else self._context.resource.state.scratchpads
        if layer.read_only_reason(pads) or theirs.mismatch_reason(base) or theirs.mismatch_reason(child):
            # Content that does not fit the schema reads as empty, and empty must not be merged as a deletion.
            self._wait_for_pad(layer.name, pads)
            return
        merged = merge_three_way(theirs.current_state(base), layer.current_state(pads), theirs.current_state(child))
        sides = [child.get(layer.name), *([pads.get(layer.name)] if merged.combined else [])]
        try:
            payloads = layer.revise_by_child(pads, merged)
        except (SchemaViolation, InvalidInput):
            # Each side fits the schema, but the merged result does not: the host has to decide.
            self._add_pad_conflict(layer.name, pads)
        else:
            self.scratchpad_drafts += [_merged_draft(payload, *filter(None, sides)) for payload in payloads]
            self._report(merged, layer.name)

    def _wait_for_pad(self, name: str, ours: Scratchpads) -> None:
        """Report a scratchpad that the child has changed and that cannot be merged now."""
        if self._base_pads.get(name) != self._child.scratchpads.get(name):
            self._add_pad_conflict(name, ours)
            self.scratchpad_waits = True

    def merge_documents(self) -> None:
        """Merge documents and entities, if the child has its own layers for them.

        The parent's layers may be views, and nothing can be merged into a view.
        """
        if any(map(_keeps_documents, self._layers)):
            parent_has_documents = any(map(_keeps_documents, self._parent_layers))
            for path in filter(self._has_changed, self._child.documents.by_path):
                if not parent_has_documents:
                    base, theirs = self._base.documents.by_path.get(path), self._child.documents.text(path)
                    self.conflicts.append(MergeConflict(path, base.text if base else ABSENT, ABSENT, theirs))
                    self.documents_wait = True
                elif not path.startswith(ARCHIVE_PREFIX):
                    self._merge_document(path)
            if parent_has_documents:
                self._merge_archives()
                self._merge_overview_lines()
        if any(isinstance(layer, EntityLayer) for layer in self._layers):
            fresh = (one for one in self._child.entities if EventId.of(one.source).seq > self._base.seq)
            self.entities = tuple(sighting_from(entity, "things") for entity in fresh)

    def _merge_document(self, path: str) -> None:
        theirs, ours = self._child.documents.by_path[path], self._parent.documents.by_path.get(path)
        if ours is None:
            self.drafts.append(_merged_draft(DocumentWritten(path=path, text=theirs.text), theirs))
            self.taken.append(path)
            return
        log = self._parent.overview_lines
        sides = (self._base.documents.text(path), ours.text, theirs.text)
        merged = merge_three_way(*(self._written_part(path, text, log) for text in sides))
        text = merged.text
        if text and path == OVERVIEW_PATH:
            # Memory's own lines on the parent's page were not removed by anyone, so the merged page has them too.
            text = with_log_lines(text, log, self._parent.language)
        if text is not None:
            written = DocumentWritten(path=path, text=text)
            self.drafts.append(_merged_draft(written, theirs, *([ours] if merged.combined else [])))
        self._report(merged, path)

    def _merge_archives(self) -> None:
        """Copy archive pages.

        Stubs refer to their lines, so a page is never merged with another text. A text that the parent already has,
        under any name, is skipped. A page that continues such a text extends it. Any other page keeps its name if that
        is free.
        """
        used_paths = {*self._parent.documents.by_path, *self._child.documents.by_path}
        pages = {path: page.text for path, page in _archives(self._parent)}
        places: dict[str, str] = {}
        for path, page in _archives(self._child):
            text, before = (update_continuation(one, places) for one in (page.text, self._base.documents.text(path)))
            place = _path_with_text(text, pages)
            if place is None and self._has_changed(path):
                extended = _path_with_text(before, pages) if before and text.startswith(before.rstrip()) else None
                place = extended or (path if path not in pages else renumbered_path(path, used_paths))
                self.drafts.append(_merged_draft(DocumentWritten(path=place, text=text), page))
                self.taken.append(place)
                pages[place] = text
                used_paths.add(place)
            places[path] = place or path

    def _merge_overview_lines(self) -> None:
        """Add the child's new overview lines and the merged pages to the parent's overview."""
        parent, language = self._parent, self._parent.language
        fresh = [one for one in reversed(self._child.overview_lines.lines) if one.entered_seq > self._base.seq]
        events = [event for line in fresh if (event := _overview_event(line, language)) is not None]
        drafts = overview_updates(
            with_pending_writes(parent.documents, self.drafts),
            language,
            events,
            log=parent.overview_lines,
            trust=min((line.trust for line in fresh), default=Trust.OPERATOR),
            sources=[f"{self._child.stream}#{line.entered_seq}" for line in fresh],
        )
        if events and _written_paths(drafts) and OVERVIEW_PATH not in _written_paths(self.drafts):
            self.combined.append(OVERVIEW_PATH)
        self.drafts += drafts

    def _has_changed(self, path: str) -> bool:
        base, now = self._base.documents.by_path.get(path), self._child.documents.text(path)
        return base is None or self._written_part(path, base.text) != self._written_part(path, now)

    def _written_part(self, path: str, text: str, *others: OverviewLog) -> str:
        """A page without memory's own lines, which are about one session."""
        if path != OVERVIEW_PATH:
            return text
        return without_generated_lines(text, self._base.overview_lines, self._child.overview_lines, *others)

    def _add_pad_conflict(self, name: str, ours: Scratchpads) -> None:
        """Add a conflict about a whole scratchpad, with all sides as stored."""
        sides = [pads.get(name) for pads in (self._base_pads, ours, self._child.scratchpads)]
        self.conflicts.append(MergeConflict(name, *(pad.state if pad else ABSENT for pad in sides)))

    def _report(self, merged: ScratchpadMerge, name: str) -> None:
        """Add what was merged to the report. `name` stands for an empty path, which is all of it."""
        self.taken += [path or name for path in merged.taken]
        self.combined += [path or name for path in merged.combined]
        self.conflicts += [replace(conflict, path=conflict.path or name) for conflict in merged.conflicts]


def merge_child(context: SessionContext, id: str, key: str | None) -> MergeReport:
    """Merge the changes of a child in one commit."""
    checked_key = key_for(key, "merge_back", id)
    child = context.session_stream(validate_text(id, field="child"))
    opened, end = child.state.opened, child.state.seq
    if opened is None or opened.parent != context.id:
        raise InvalidInput(field="child", value=id, expected=f"a child session of {context.id}")
    layers = child_layers(context.config.layers, dict(opened.inheritance))
    layer = find_scratchpad(context.config.layers)
    context.resource.refresh()

    def decide(state: SessionState, at: datetime) -> Decision[SessionState, MergeReport]:
        merge = _ChildMerge(context, child, layers, state)
        merge.merge_scratchpad(layer)
        last = merge.last
        if last.event and last.seq == end and (last.scratchpad_seq == end or merge.scratchpad_waits):
            return Decision([], _repeat_report(context, last.event))
        merge.merge_documents()
        seq = last.seq if merge.documents_wait else end
        scratchpad_seq = last.scratchpad_seq if merge.scratchpad_waits else end
        changes = (tuple(merge.taken), tuple(merge.combined), tuple(map(_conflict_json, merge.conflicts)))
        own_seq = None if scratchpad_seq == seq else scratchpad_seq
        merged = ChildMerged(id, seq, *changes, len(merge.entities), own_seq)
        is_shared = layer is not None and layer.scope == "resource"
        own, shared = ([], merge.scratchpad_drafts) if is_shared else (merge.scratchpad_drafts, [])
        drafts = [Draft(payload=merged, origin=Origin.OPERATOR), *own, *merge.drafts]
        next_state = context.stream.preview(state, state.seq, drafts, at)
        drafts += restore_from_child(context, next_state, merge.entities, at)
        return Decision(drafts, MergeReport.of(merged), companion=shared)

    done = context.stream.commit(decide, key=checked_key, companion=context.resource)
    return done.result or _repeat_report(context, context.stream.state_at(done.appended.last).merged_children[id].event)


def _repeat_report(context: SessionContext, seq: int) -> MergeReport:
    """The report of an earlier merge, from its event."""
    (event,) = context.store.read(context.stream.name, after=seq - 1, until=seq)
    return MergeReport.of(cast(ChildMerged, event.payload), repeated=True)


def _archives(state: SessionState) -> list[tuple[str, Document]]:
    return [(path, page) for path, page in state.documents.by_path.items() if path.startswith(ARCHIVE_PREFIX)]


def _written_paths(drafts: Sequence[Draft]) -> set[str]:
    return {draft.payload.path for draft in drafts if isinstance(draft.payload, DocumentWritten)}


def _path_with_text(text: str, pages: Mapping[str, str]) -> str | None:
    return next((path for path, page_text in pages.items() if page_text == text), None)


def _overview_event(note: OverviewLine, language: str) -> OverviewEvent | None:
    """A line of the child as an event for its parent; none for its task or its own history."""
    if note.section is OverviewSection.ACTIONS:
        is_own_history = note.prefix == "set_aside" or note.topic
        return None if is_own_history else OverviewEvent("action_taken", note.prefixed_text(language))
    kind = _EVENT_KINDS.get(note.section)
    return OverviewEvent(kind, note.text, subject=note.topic) if kind else None


_EVENT_KINDS = {
    OverviewSection.DECISIONS: "decision_made",
    OverviewSection.FACTS: "context_changed",
    OverviewSection.PROBLEMS: "bug_found",
}


def _conflict_json(conflict: MergeConflict) -> dict[str, Any]:
    """A conflict as JSON. An absent value has no key."""
    sides = {"base": conflict.base, "ours": conflict.ours, "theirs": conflict.theirs}
    return {"path": conflict.path, **{side: value for side, value in sides.items() if value is not ABSENT}}


def _merged_draft(payload: EventPayload, *sides: Document | SavedScratchpad) -> Draft:
    """An event with a merged value, with the sources of the sides and their lowest trust."""
    trust = min((side.trust for side in sides), default=Trust.AGENT)
    return _copy_draft(payload, tuple(side.source for side in sides), trust)
