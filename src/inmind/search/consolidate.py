"""Going through crystals in their idle time: what says the same becomes one, what was said anew is marked, what faded
leaves search.

A pass is decided at once and carried out in batches, so that it can stop at any time: what was not carried out is
decided again. It is decided from what there is and from nothing else, hence a pass that follows another finds nothing
left to do.

Only what was written down is merged or superseded. Messages are evidence: that somebody said the same twice is a fact
about the conversation, and what they said first is not made untrue by what they said later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from inmind.core.events.base import Trust
from inmind.core.events.crystals import Consolidated
from inmind.search.claims import Answer, differ, read
from inmind.search.crystal import Crystal
from inmind.search.decay import expires
from inmind.search.lifecycle import alive, holds_from


def plan(crystals: Sequence[Crystal], *, now: datetime) -> Consolidated:
    """What shall become of the crystals of a resource.

    Those that are merged or expired may be among them: what they were superseded by is not merged away under them, so
    that no way along `merged_into` and `superseded_by` leads back.
    """
    living = sorted(filter(alive, crystals), key=lambda crystal: crystal.id)
    fading = [crystal.id for crystal in living if expires(crystal, now)]
    faded = set(fading)
    noted = [crystal for crystal in living if crystal.source == "memory" and crystal.id not in faded]
    superseded = _superseded(noted, now)
    merged = _merged(noted, superseded, {crystal.superseded_by for crystal in crystals})
    return Consolidated(
        "", merged=tuple(sorted(merged.items())), superseded=tuple(sorted(superseded.items())), expired=tuple(fading)
    )


def in_batches(decided: Consolidated, most: int) -> Iterator[Consolidated]:
    """The same, for so many crystals at a time; each says up to which it goes."""
    merged, superseded, expired = dict(decided.merged), dict(decided.superseded), {*decided.expired}
    named = sorted({*merged, *superseded, *expired})
    for start in range(0, len(named), most):
        batch = named[start : start + most]
        yield Consolidated(
            batch[-1],
            merged=tuple((one, merged[one]) for one in batch if one in merged),
            superseded=tuple((one, superseded[one]) for one in batch if one in superseded),
            expired=tuple(one for one in batch if one in expired),
        )


_Standing = defaultdict[tuple[str, Trust], dict[Answer, Crystal]]
"""By question and trust: what holds, each answer with the newest that gives it, the newest first."""


def _superseded(noted: Iterable[Crystal], now: datetime) -> dict[str, str]:
    """Each crystal that was said anew, with the newest that does so.

    That one holds by now and was not given an end: what ends leaves the older one true behind it. It is not superseded
    itself, since what holds no longer takes nobody's place; the newest are gone through first, so that this is known.
    """
    standing: _Standing = defaultdict(dict)
    superseded: dict[str, str] = {}
    for crystal in sorted(noted, key=_age, reverse=True):
        if crystal.superseded_by:
            continue
        if newer := _successor(crystal, standing):
            superseded[crystal.id] = newer.id
        elif crystal.valid_to is None and holds_from(crystal) <= now:
            statement = read(crystal.text)
            for asked in statement.overrules:
                standing[asked, crystal.trust].setdefault(statement.answers[asked], crystal)
    return superseded


def _successor(older: Crystal, standing: _Standing) -> Crystal | None:
    """It is trusted at least as much: what a tool answered does not take back what a person has said."""
    statement = read(older.text)
    if not statement.whole:
        return None
    differing = (
        next((one for answer, one in standing[asked, trust].items() if differ(answer, said)), None)
        for asked, said in statement.answers.items()
        for trust in Trust
        if trust >= older.trust and (asked, trust) in standing
    )
    return max((one for one in differing if one and _is_newer(one, older)), key=_age, default=None)


def _merged(noted: Iterable[Crystal], superseded: Mapping[str, str], successors: set[str]) -> dict[str, str]:
    """Each crystal that another says in nearly the same words, with the one that stays.

    Both are of one kind and trust and hold for the same time. What is superseded belongs to its own time and is left
    there; what superseded another stays, since others go by its date.
    """
    alike: defaultdict[tuple[object, ...], list[Crystal]] = defaultdict(list)
    for crystal in noted:
        if not crystal.superseded_by and crystal.id not in superseded:
            same = (read(crystal.text).wording, crystal.kind, crystal.trust, crystal.valid_from, crystal.valid_to)
            alike[same].append(crystal)
    needed = successors | {*superseded.values()}
    return {
        one.id: kept.id
        for group in alike.values()
        for kept in [max(group, key=_stays)]
        for one in group
        if one is not kept and one.lifecycle != "frozen" and one.id not in needed
    }


def _is_newer(one: Crystal, other: Crystal) -> bool:
    """Does it hold from later on, or was it said later? Of one instant, such as that of a reply which calls twice, only
    events of one stream are known to have come one after the other; and parts of a page came together."""
    if _since(one) != _since(other):
        return _since(one) > _since(other)
    (here, seq, _), (there, before, _) = _place(one), _place(other)
    return here == there and seq > before


def _age(crystal: Crystal) -> tuple[tuple[datetime, datetime], tuple[str, int, int]]:
    return _since(crystal), _place(crystal)


def _since(crystal: Crystal) -> tuple[datetime, datetime]:
    return holds_from(crystal), crystal.at


def _place(crystal: Crystal) -> tuple[str, int, int]:
    """Where its event stands: the stream, the number in it, and of a page the number of the part."""
    stream, _, event = crystal.id.rpartition("#")
    seq, _, part = event.partition(".")
    return stream, int(seq), int(part or 0)


def _stays(crystal: Crystal) -> tuple[bool, float, int, datetime, tuple[str, int, int]]:
    """Which of several stays. Importance goes first: what was called important must not fade as a part of another."""
    return crystal.lifecycle == "frozen", crystal.importance, crystal.accesses, crystal.at, _place(crystal)
