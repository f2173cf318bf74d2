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
from inmind.search.claim_forms import Answer
from inmind.search.claims import answers_differ, parse_statement
from inmind.search.crystal import Crystal
from inmind.search.decay import is_expired
from inmind.search.lifecycle import is_searchable, valid_since


def plan_consolidation(crystals: Sequence[Crystal], *, now: datetime) -> Consolidated:
    """What shall become of the crystals of a resource.

    Those that are merged or expired may be among them: what they were superseded by is not merged away under them, so
    that no way along `merged_into` and `superseded_by` leads back.
    """
    searchable = sorted(filter(is_searchable, crystals), key=lambda crystal: crystal.id)
    expired = [crystal.id for crystal in searchable if is_expired(crystal, now)]
    expired_ids = set(expired)
    notes = [crystal for crystal in searchable if crystal.source == "memory" and crystal.id not in expired_ids]
    superseded = _find_superseded(notes, now)
    merged = _find_duplicates(notes, superseded, {crystal.superseded_by for crystal in crystals})
    return Consolidated(
        "", merged=tuple(sorted(merged.items())), superseded=tuple(sorted(superseded.items())), expired=tuple(expired)
    )


def split_batches(consolidation: Consolidated, size: int) -> Iterator[Consolidated]:
    """The same, for so many crystals at a time; each says up to which it goes."""
    merged, superseded, expired = dict(consolidation.merged), dict(consolidation.superseded), {*consolidation.expired}
    ids = sorted({*merged, *superseded, *expired})
    for start in range(0, len(ids), size):
        batch = ids[start : start + size]
        yield Consolidated(
            batch[-1],
            merged=tuple((one, merged[one]) for one in batch if one in merged),
            superseded=tuple((one, superseded[one]) for one in batch if one in superseded),
            expired=tuple(one for one in batch if one in expired),
        )


_CurrentAnswers = defaultdict[tuple[str, Trust], dict[Answer, Crystal]]
"""By question and trust: what holds, each answer with the newest that gives it, the newest first."""


def _find_superseded(notes: Iterable[Crystal], now: datetime) -> dict[str, str]:
    """Each crystal that was said anew, with the newest that does so.

    That one holds by now and was not given an end: what ends leaves the older one true behind it. It is not superseded
    itself, since what holds no longer takes nobody's place; the newest are gone through first, so that this is known.
    """
    current: _CurrentAnswers = defaultdict(dict)
    superseded: dict[str, str] = {}
    for crystal in sorted(notes, key=_age_key, reverse=True):
        if crystal.superseded_by:
            continue
        if successor := _find_successor(crystal, current):
            superseded[crystal.id] = successor.id
        elif crystal.valid_to is None and valid_since(crystal) <= now:
            statement = parse_statement(crystal.text)
            for asked in statement.overrules:
                current[asked, crystal.trust].setdefault(statement.answers[asked], crystal)
    return superseded


def _find_successor(older: Crystal, current: _CurrentAnswers) -> Crystal | None:
    """It is trusted at least as much: what a tool answered does not take back what a person has said."""
    statement = parse_statement(older.text)
    if not statement.is_complete:
        return None
    differing = (
        next((one for answer, one in current[asked, trust].items() if answers_differ(answer, answer_)), None)
        for asked, answer_ in statement.answers.items()
        for trust in Trust
        if trust >= older.trust and (asked, trust) in current
    )
    return max((one for one in differing if one and _is_newer(one, older)), key=_age_key, default=None)


def _find_duplicates(notes: Iterable[Crystal], superseded: Mapping[str, str], successors: set[str]) -> dict[str, str]:
    """Each crystal that another says in nearly the same words, with the one that stays.

    Both are of one kind and trust and hold for the same time. What is superseded belongs to its own time and is left
    there; what superseded another stays, since others go by its date.
    """
    groups: defaultdict[tuple[object, ...], list[Crystal]] = defaultdict(list)
    for crystal in notes:
        if not crystal.superseded_by and crystal.id not in superseded:
            group_key = (
                parse_statement(crystal.text).wording,
                crystal.kind,
                crystal.trust,
                crystal.valid_from,
                crystal.valid_to,
            )
            groups[group_key].append(crystal)
    protected = successors | {*superseded.values()}
    return {
        one.id: kept.id
        for group in groups.values()
        for kept in [max(group, key=_keep_priority)]
        for one in group
        if one is not kept and one.lifecycle != "frozen" and one.id not in protected
    }


def _is_newer(first: Crystal, second: Crystal) -> bool:
    """Does it hold from later on, or was it said later? Of one instant, such as that of a reply which calls twice, only
    events of one stream are known to have come one after the other; and parts of a page came together."""
    if _validity_key(first) != _validity_key(second):
        return _validity_key(first) > _validity_key(second)
    (here, seq, _), (there, before, _) = _event_position(first), _event_position(second)
    return here == there and seq > before


def _age_key(crystal: Crystal) -> tuple[tuple[datetime, datetime], tuple[str, int, int]]:
    return _validity_key(crystal), _event_position(crystal)


def _validity_key(crystal: Crystal) -> tuple[datetime, datetime]:
    return valid_since(crystal), crystal.at


def _event_position(crystal: Crystal) -> tuple[str, int, int]:
    """Where its event stands: the stream, the number in it, and of a page the number of the part."""
    stream, _, event = crystal.id.rpartition("#")
    seq, _, part = event.partition(".")
    return stream, int(seq), int(part or 0)


def _keep_priority(crystal: Crystal) -> tuple[bool, float, int, datetime, tuple[str, int, int]]:
    """Which of several stays. Importance goes first: what was called important must not fade as a part of another."""
    return crystal.lifecycle == "frozen", crystal.importance, crystal.accesses, crystal.at, _event_position(crystal)
