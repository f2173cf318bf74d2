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
from inmind.search.crystal import HIDDEN, Crystal


def alive(crystal: Crystal) -> bool:
    """May search find it? What was merged is found as what it was merged into; what expired only as of a date."""
    return crystal.lifecycle not in HIDDEN


def holds_from(crystal: Crystal) -> datetime:
    """Since when what it says is so; where nobody declared that, since it was said."""
    return crystal.valid_from or crystal.at


def after(crystal: Crystal, event: Event, known: Mapping[str, Crystal]) -> Crystal:
    """The crystal once this has happened; `known` has the crystals that the event names, as they were before it."""
    match event.payload:
        case SearchRecorded(hits=wanted) | DreamCommitted(replayed=wanted) if crystal.id in wanted:
            return _wanted(crystal, event.at)
        case Consolidated() as pass_:
            return _consolidated(crystal, pass_, known)
        case CrystalPinned(id=id, pinned=frozen) if id == crystal.id:
            return _frozen(crystal) if frozen else _thawed(crystal)
        case _:
            return crystal


def _wanted(crystal: Crystal, at: datetime) -> Crystal:
    """Somebody has found it, or a dream went over it again because somebody had: an expired one, which a search as of
    an earlier day brings up, comes back by that."""
    lifecycle = "activated" if crystal.lifecycle in ("generated", "expired") else crystal.lifecycle
    return replace(crystal, accesses=crystal.accesses + 1, accessed=at, lifecycle=lifecycle)


def _consolidated(crystal: Crystal, pass_: Consolidated, known: Mapping[str, Crystal]) -> Crystal:
    merged, superseded = dict(pass_.merged), dict(pass_.superseded)
    leaving = {*merged, *pass_.expired}
    kept = known.get(merged.get(crystal.id, ""))
    if kept and _goes_into(crystal, kept, leaving):
        return replace(crystal, merged_into=kept.id, lifecycle="archived")
    if crystal.id in pass_.expired and _may_leave(crystal):
        return replace(crystal, lifecycle="expired")
    if crystal.id in superseded:
        crystal = _superseded(crystal, superseded[crystal.id], known)
    named = {crystal.id} & {*superseded, *superseded.values()}
    for one in (known[one] for one, kept in pass_.merged if kept == crystal.id and one in known):
        if _goes_into(one, crystal, leaving):
            crystal = _with_what_went_into_it(crystal, one)
            named.add(crystal.id)
    if named and crystal.lifecycle in ("generated", "activated"):
        return replace(crystal, lifecycle="consolidated")
    return crystal


def _goes_into(one: Crystal, kept: Crystal, leaving: Collection[str]) -> bool:
    """Is there something left to merge, and something to be found as?

    Others may have gone through them while this pass was being decided, and may have chosen the other one of two to
    stay. What happened first has happened: else both would be out of search, each found as the other.
    """
    return _may_leave(one) and alive(kept) and kept.id not in leaving


def _may_leave(crystal: Crystal) -> bool:
    """Not if somebody has frozen it while the pass was being decided: what they asked for is the later word."""
    return alive(crystal) and crystal.lifecycle != "frozen"


def _superseded(crystal: Crystal, newer: str, known: Mapping[str, Crystal]) -> Crystal:
    """It was true until the newer one was. An end that somebody declared stays."""
    ended = crystal.valid_to or (holds_from(known[newer]) if newer in known else None)
    return replace(crystal, superseded_by=newer, valid_to=ended)


def _with_what_went_into_it(kept: Crystal, merged: Crystal) -> Crystal:
    """The lineage, and the activation: it is the same statement that was found all those times."""
    moments = [moment for moment in (kept.accessed, merged.accessed) if moment]
    return replace(
        kept,
        sources=tuple(dict.fromkeys((*kept.sources, merged.id, *merged.sources))),
        accesses=kept.accesses + merged.accesses,
        accessed=max(moments, default=None),
    )


def _frozen(crystal: Crystal) -> Crystal:
    """Back in search for good, whatever had become of it: as part of another one it could still fade."""
    return replace(crystal, lifecycle="frozen", merged_into="")


def _thawed(crystal: Crystal) -> Crystal:
    return replace(crystal, lifecycle="consolidated") if crystal.lifecycle == "frozen" else crystal
