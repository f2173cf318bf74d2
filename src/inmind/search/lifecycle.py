"""What becomes of a crystal when something happens: found, dreamt of, consolidated, frozen.

A crystal is never rewritten. Its text, its importance and its source are those of the event that it comes from; what
changes is only what is known about it since, and that is folded from events here. So an index can be thrown away, and
the same crystals come out of the journal again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime

from inmind.core.events.base import Event
from inmind.core.events.crystals import Consolidated, CrystalPinned, SearchRecorded
from inmind.core.events.dreams import DreamCommitted
from inmind.search.crystal import HIDDEN_LIFECYCLES, Crystal


def is_searchable(crystal: Crystal) -> bool:
    """May search find it? What was merged is found as what it was merged into; what expired only as of a date."""
    return crystal.lifecycle not in HIDDEN_LIFECYCLES


def valid_since(crystal: Crystal) -> datetime:
    """Since when what it says is so; where nobody declared that, since it was said."""
    return crystal.valid_from or crystal.at


def apply_event(crystal: Crystal, event: Event, known: Mapping[str, Crystal]) -> Crystal:
    """The crystal once this has happened; `known` has the crystals that the event names, as they were before it."""
    match event.payload:
        case SearchRecorded(hits=wanted) | DreamCommitted(replayed=wanted) if crystal.id in wanted:
            return _record_access(crystal, event.at)
        case Consolidated() as pass_:
            return _apply_consolidation(crystal, pass_, known)
        case CrystalPinned(id=id, pinned=frozen) if id == crystal.id:
            return _pin(crystal) if frozen else _unpin(crystal)
        case _:
            return crystal


def _record_access(crystal: Crystal, at: datetime) -> Crystal:
    """Somebody has found it, or a dream went over it again because somebody had: an expired one, which a search as of
    an earlier day brings up, comes back by that."""
    lifecycle = "activated" if crystal.lifecycle in ("generated", "expired") else crystal.lifecycle
    return replace(crystal, accesses=crystal.accesses + 1, accessed=at, lifecycle=lifecycle)


def _apply_consolidation(crystal: Crystal, consolidation: Consolidated, known: Mapping[str, Crystal]) -> Crystal:
    merged, superseded = dict(consolidation.merged), dict(consolidation.superseded)
    hidden = {*merged, *consolidation.expired}
    kept = known.get(merged.get(crystal.id, ""))
    if kept and _can_merge(crystal, kept, hidden):
        return replace(crystal, merged_into=kept.id, lifecycle="archived")
    if crystal.id in consolidation.expired and _can_be_hidden(crystal):
        return replace(crystal, lifecycle="expired")
    if crystal.id in superseded:
        crystal = _supersede(crystal, superseded[crystal.id], known)
    named = {crystal.id} & {*superseded, *superseded.values()}
    for one in (known[one] for one, kept in consolidation.merged if kept == crystal.id and one in known):
        if _can_merge(one, crystal, hidden):
            crystal = _absorb(crystal, one)
            named.add(crystal.id)
    if named and crystal.lifecycle in ("generated", "activated"):
        return replace(crystal, lifecycle="consolidated")
    return crystal


def _can_merge(merged: Crystal, kept: Crystal, hidden: Collection[str]) -> bool:
    """Is there something left to merge, and something to be found as?

    Others may have gone through them while this pass was being decided, and may have chosen the other one of two to
    stay. What happened first has happened: else both would be out of search, each found as the other.
    """
    return _can_be_hidden(merged) and is_searchable(kept) and kept.id not in hidden


def _can_be_hidden(crystal: Crystal) -> bool:
    """Not if somebody has frozen it while the pass was being decided: what they asked for is the later word."""
    return is_searchable(crystal) and crystal.lifecycle != "frozen"


def _supersede(crystal: Crystal, newer: str, known: Mapping[str, Crystal]) -> Crystal:
    """It was true until the newer one was. An end that somebody declared stays."""
    ended = crystal.valid_to or (valid_since(known[newer]) if newer in known else None)
    return replace(crystal, superseded_by=newer, valid_to=ended)


def _absorb(kept: Crystal, merged: Crystal) -> Crystal:
    """The lineage, and the activation: it is the same statement that was found all those times."""
    moments = [moment for moment in (kept.accessed, merged.accessed) if moment]
    return replace(
        kept,
        sources=tuple(dict.fromkeys((*kept.sources, merged.id, *merged.sources))),
        accesses=kept.accesses + merged.accesses,
        accessed=max(moments, default=None),
    )


def _pin(crystal: Crystal) -> Crystal:
    """Back in search for good, whatever had become of it: as part of another one it could still fade."""
    return replace(crystal, lifecycle="frozen", merged_into="")


def _unpin(crystal: Crystal) -> Crystal:
    return replace(crystal, lifecycle="consolidated") if crystal.lifecycle == "frozen" else crystal
