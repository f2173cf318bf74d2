"""Plans a consolidation: merge duplicates, mark superseded, expire unused crystals.

A pass is planned at once and committed in batches, so that it can stop at any time; the rest is planned again. The
plan depends only on the crystals, so a second pass finds nothing to do.

Only notes and dream crystals are merged or superseded. Messages are evidence: saying the same twice is a fact about
the conversation, and a later message does not make an earlier one untrue.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from inmind.core.events.base import Trust
from inmind.core.events.crystals import Consolidated
from inmind.core.fair_turns import giving_way
from inmind.search.claims import Answer, answers_differ, parse_statement
from inmind.search.crystal import Crystal, is_expired, is_searchable, valid_since


def plan_consolidation(crystals: Sequence[Crystal], *, now: datetime) -> Consolidated:
    """Plan the consolidation of a resource's crystals.

    Merged and expired crystals may be included: a crystal that superseded one of them is not merged, so that
    following `merged_into` and `superseded_by` never leads back.
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
    """Split a consolidation into batches of crystals; each names its last one."""
    merged, superseded, expired = dict(consolidation.merged), dict(consolidation.superseded), {*consolidation.expired}
    ids = sorted({*merged, *superseded, *expired})
    for start in range(0, len(ids), size):
        batch = ids[start : start + size]
        yield Consolidated(
            batch[-1],
            merged=tuple((id, merged[id]) for id in batch if id in merged),
            superseded=tuple((id, superseded[id]) for id in batch if id in superseded),
            expired=tuple(id for id in batch if id in expired),
        )


_CurrentAnswers = defaultdict[tuple[str, Trust], dict[Answer, Crystal]]
"""By question and trust: the current answers, each with its newest crystal, newest first."""


def _find_superseded(notes: Iterable[Crystal], now: datetime) -> dict[str, str]:
    """Return each superseded crystal with the newest one that supersedes it.

    The successor must be valid now and have no declared end: otherwise the older statement becomes true again. A
    superseded crystal supersedes nothing; the newest are processed first, so that this is known.
    """
    current: _CurrentAnswers = defaultdict(dict)
    superseded: dict[str, str] = {}
    for crystal in giving_way(sorted(notes, key=_age_key, reverse=True)):
        if crystal.superseded_by:
            continue
        if successor := _find_successor(crystal, current):
            superseded[crystal.id] = successor.id
        elif crystal.valid_to is None and valid_since(crystal) <= now:
            statement = parse_statement(crystal.text)
            for question in statement.overrules:
                current[question, crystal.trust].setdefault(statement.answers[question], crystal)
    return superseded


def _find_successor(older: Crystal, current: _CurrentAnswers) -> Crystal | None:
    """Return the crystal that supersedes it, if any.

    The successor must be at least as trusted: a tool result does not override a person.
    """
    statement = parse_statement(older.text)
    if not statement.is_complete:
        return None
    differing = (
        next(
            (crystal for answer, crystal in current[question, trust].items() if answers_differ(answer, older_answer)),
            None,
        )
        for question, older_answer in statement.answers.items()
        for trust in Trust
        if trust >= older.trust and (question, trust) in current
    )
    return max((crystal for crystal in differing if crystal and _is_newer(crystal, older)), key=_age_key, default=None)


def _find_duplicates(notes: Iterable[Crystal], superseded: Mapping[str, str], successors: set[str]) -> dict[str, str]:
    """Return each duplicate with the crystal that is kept.

    Both have the same kind, trust and validity. Superseded crystals are not merged, and neither is a successor,
    because its date is used.
    """
    groups: defaultdict[tuple[object, ...], list[Crystal]] = defaultdict(list)
    for crystal in notes:
        if not crystal.superseded_by and crystal.id not in superseded:
            validity = (crystal.valid_from, crystal.valid_to)
            groups[parse_statement(crystal.text).wording, crystal.kind, crystal.trust, *validity].append(crystal)
    protected = successors | {*superseded.values()}
    return {
        crystal.id: kept.id
        for group in groups.values()
        for kept in [max(group, key=_keep_priority)]
        for crystal in group
        if crystal is not kept and crystal.lifecycle != "frozen" and crystal.id not in protected
    }


def _is_newer(first: Crystal, second: Crystal) -> bool:
    """Return True if it is valid from later, or was stated later.

    At the same time, only events of one stream have an order; sections of one page are simultaneous.
    """
    if _validity_key(first) != _validity_key(second):
        return _validity_key(first) > _validity_key(second)
    (first_stream, first_seq, _), (second_stream, second_seq, _) = _event_position(first), _event_position(second)
    return first_stream == second_stream and first_seq > second_seq


def _age_key(crystal: Crystal) -> tuple[tuple[datetime, datetime], tuple[str, int, int]]:
    return _validity_key(crystal), _event_position(crystal)


def _validity_key(crystal: Crystal) -> tuple[datetime, datetime]:
    return valid_since(crystal), crystal.at


def _event_position(crystal: Crystal) -> tuple[str, int, int]:
    """Return stream, sequence number and section of its event."""
    stream, _, event = crystal.id.rpartition("#")
    seq, _, part = event.partition(".")
    return stream, int(seq), int(part or 0)


def _keep_priority(crystal: Crystal) -> tuple[bool, float, int, datetime, tuple[str, int, int]]:
    """Sort key for which duplicate is kept.

    Importance comes before accesses, so that an important crystal does not expire as part of another.
    """
    return crystal.lifecycle == "frozen", crystal.importance, crystal.accesses, crystal.at, _event_position(crystal)
