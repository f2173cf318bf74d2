"""Decides which entities one reference means, and with which confidence.

A phrase has candidates, most recent first. A method for each kind of choice selects among them: by position, as the
other one, as the previous one, by age, or as the most recent. An uncertain choice becomes a question. Entities found by
search are accepted for a name or an id; for "the page" they are only suggested.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import takewhile

from inmind.core.language.languages import languages_of
from inmind.entities.entity import DEFAULT_MAX_PER_LIST, Entity, EntityKey
from inmind.entities.nouns import UNTYPED, canonical_type, is_plural, type_matches
from inmind.entities.references.name_match import is_in_earlier_name
from inmind.entities.references.result import Candidate, Kind, Phrase, Reference, ReferenceContext

MAX_CANDIDATES = 5

LOW_CONFIDENCE = 0.1
"""Confidence for a candidate with the right type and the wrong name: ask only if a search found nothing better."""

_SEARCH_FACTOR = 0.8
"""Factor on the confidence if the entity comes from a search and not from the window."""


class ReferenceBuilder:
    """Builds the result for one reference in a text."""

    def __init__(self, full_text: str, span: tuple[int, int], kind: Kind, noun: str, context: ReferenceContext) -> None:
        self.full_text, self.span, self.context = full_text, span, context
        self.kind: Kind = kind
        self.text = full_text[slice(*span)]
        self.noun, self.stated_noun = noun or "entity", noun
        self.location = "outside the window" if context.from_search else "in the window"

    def resolved(
        self, entities: Sequence[Entity], confidence: float, why: str, *, others: Sequence[Entity] = ()
    ) -> Reference:
        if self.context.from_search:
            if self.kind not in {"id", "name"}:
                return self.ambiguous([*entities, *others], why)
            confidence, why = confidence * _SEARCH_FACTOR, self._with_location(why)
        share = round((1 - confidence) / (len(others) + 1), 2)
        candidates = [Candidate(entity=entity, confidence=round(confidence, 2), why=why) for entity in entities]
        candidates += [Candidate(entity=entity, confidence=share, why="it also fits") for entity in others]
        return replace(
            self.unresolved(why),
            verdict="resolved",
            entities=tuple(entities),
            candidates=tuple(candidates[:MAX_CANDIDATES]),
            confidence=round(confidence, 2),
        )

    def ambiguous(self, fitting: Sequence[Entity], why: str, *, confidence: float | None = None) -> Reference:
        if confidence is None:
            confidence = max(round(1 / (len(fitting) + 1), 2), LOW_CONFIDENCE + 0.05)
        why, top = self._with_location(why), fitting[:MAX_CANDIDATES]
        return replace(
            self.unresolved(why),
            verdict="ambiguous",
            candidates=tuple(Candidate(entity=entity, confidence=confidence, why=why) for entity in top),
            confidence=confidence,
            question=self._question(top),
        )

    def unresolved(self, why: str) -> Reference:
        return Reference(text=self.text, span=self.span, kind=self.kind, verdict="none", why=why)

    def _with_location(self, why: str) -> str:
        return why if not self.context.from_search or self.location in why else f"{why}, {self.location}"

    def _question(self, entities: Sequence[Entity]) -> str:
        names = Counter(entity.name.casefold() for entity in entities)
        labels = [_distinct_label(entity) if names[entity.name.casefold()] > 1 else entity.name for entity in entities]
        language = languages_of(self.full_text)[-1]
        *first, last = (language.listed_name.format(name) for name in labels)
        question = language.which_question if first else language.confirm_question
        noun = self.stated_noun or language.which_noun
        return question.format(noun=noun, first=language.list_separator.join(first), last=last)


def _distinct_label(entity: Entity) -> str:
    """Add type and id to a name that several entities have: News (page p1)."""
    type = "" if entity.type == UNTYPED else entity.type
    id = "" if entity.id == entity.name else entity.id
    known = f"{type} {id}".strip()
    return f"{entity.name} ({known})" if known else entity.name


def best_matches(phrase: Phrase, context: ReferenceContext) -> tuple[tuple[Entity, ...], float]:
    """Return the candidates that the words of a phrase fit best, and how well; none below 0.5."""
    fits = [(entity, context.name_index.fit(phrase.words, entity)) for entity in context.candidates_for(phrase)]
    best = max((fit for _, fit in fits), default=0.0)
    return (tuple(entity for entity, fit in fits if fit > best - 0.01), best) if best >= 0.5 else ((), 0.0)


class PhraseResolver(ReferenceBuilder):
    """Chooses among the candidates of a phrase.

    The caller may remove some of them; `named` are entities that the text names elsewhere.
    """

    def __init__(self, full_text: str, phrase: Phrase, context: ReferenceContext) -> None:
        super().__init__(full_text, phrase.span, phrase.kind, phrase.noun, context)
        self.phrase = phrase
        self.pool = context.candidates_for(phrase)
        self.named: Sequence[Entity] = ()

    def without(self, excluded: Collection[EntityKey]) -> tuple[Entity, ...]:
        """Return the candidates that are not excluded."""
        return tuple(entity for entity in self.pool if entity.key not in excluded)

    def resolve_description(self) -> Reference:
        """Resolve "the red one", "the About page": words that should be in a name."""
        phrase, words = self.phrase, " ".join(self.phrase.words)
        fitting, fit = best_matches(phrase, self.context)
        if not fitting:
            if not self.pool or self.context.from_search:
                return self.unresolved(f"no {self.noun} is known")
            return self.ambiguous(self.pool, f'no {self.noun} is called "{words}"', confidence=LOW_CONFIDENCE)
        if phrase.pick != "recent" or phrase.plural:
            self.pool = fitting
            return replace(self.resolve(), kind="name")
        top, *rest = fitting
        if not rest:
            reason = "was in its earlier name" if is_in_earlier_name(words, top) else "is in its name"
            return self.resolved(fitting, 0.55 + 0.3 * fit, f'"{words}" {reason}')
        if phrase.demonstrative and not self.context.listed_with(top, fitting):
            why = f'the most recent of {len(fitting)} with "{words}" in their names'
            return self.resolved([top], 0.6, why, others=rest)
        return self.ambiguous(fitting, f'"{words}" fits {len(fitting)} of them')

    def resolve(self) -> Reference:
        """Choose by the position, age or number that the phrase states."""
        if not self.pool:
            return self._without_candidates()
        match self.phrase.pick:
            case "place":
                return self._resolve_ordinal()
            case "other":
                return self._resolve_other()
            case "previous":
                return self._resolve_previous()
            case "oldest":
                return self._resolve_oldest()
            case "newest":
                return self._resolve_newest()
            case "recent":
                return self._resolve_plural() if self.phrase.plural else self._resolve_single()

    def _without_candidates(self) -> Reference:
        phrase = self.phrase
        deleted = (e for e in self.context.deleted if phrase.nouns and type_matches(e.type, phrase.nouns))
        if not phrase.deleted and (match := next(deleted, None)):
            return self.unresolved(f'"{match.name}" was deleted, and no other {self.noun} is known')
        return self.unresolved(f"no {'deleted ' if phrase.deleted else ''}{self.noun} is known")

    def _resolve_single(self) -> Reference:
        phrase, context, pool = self.phrase, self.context, self.pool
        top, *rest = pool
        deleted = context.just_deleted
        if deleted and not phrase.deleted and (not phrase.nouns or type_matches(deleted.type, phrase.nouns)):
            return self._resolve_after_deletion(deleted)
        if top.deleted:
            return self.resolved([top], 0.8, f"the {self.noun} that was deleted last", others=rest)
        if phrase.deleted:
            return self.ambiguous(pool, f"no {self.noun} was deleted", confidence=LOW_CONFIDENCE)
        if not rest:
            return self.resolved([top], 0.95, f"the only {self.noun} {self.location}")
        listed = (top, *context.listed_with(top, pool))
        if phrase.qualified:
            return self.ambiguous(listed if len(listed) > 1 else pool, _QUALIFIED)
        if len(listed) == 1:
            return self.resolved([top], 0.9, f"the most recent {self.noun}", others=rest)
        why = f"the first of {len(listed)} that were listed together"
        if len(listed) > DEFAULT_MAX_PER_LIST:
            return self.resolved([top], 0.8, why, others=rest)
        if not phrase.demonstrative:
            return self.ambiguous(listed, f"{len(listed)} of them were listed together")
        return self.resolved([top], 0.7, f"{why}, though any of them fits", others=rest)

    def _resolve_after_deletion(self, deleted: Entity) -> Reference:
        same_type = _of_type(self.pool, deleted)
        why = f'"{deleted.name}" was just deleted'
        if len(same_type) != 1:
            return self.ambiguous(same_type or self.pool, why)
        others = [entity for entity in self.pool if entity not in same_type]
        return self.resolved(same_type, 0.55, f"{why}, and this is the only other {deleted.type}", others=others)

    def _resolve_plural(self) -> Reference:
        phrase, context, pool = self.phrase, self.context, self.pool
        top, *rest = pool
        listed = self._remaining_list()
        if phrase.qualified and rest:
            return self.ambiguous(listed or pool, _QUALIFIED)
        if phrase.count:
            return self._resolve_count(listed)
        if phrase.maybe_singular and not 1 <= len(context.listed_with(top, pool)) < DEFAULT_MAX_PER_LIST:
            return self._resolve_single()
        if phrase.nouns and not phrase.demonstrative:
            return self._resolve_all(context.with_listed_rest(pool), 0.7, f"every {self.noun} in the window")
        same_action = tuple(takewhile(lambda e: e.action and (e.type, e.action) == (top.type, top.action), pool))
        if len(same_action) > 1 and not context.listed_with(top, pool):  # two pages created one after the other
            return self.resolved(same_action, 0.55, f"the entities of the last {top.action} calls")
        if listed and (listed[0].key == top.key or not is_plural(top.type)):
            return self._resolve_all(listed, 0.55, "those that were listed together last")
        return self.resolved([top], 0.55, f"the most recent {self.noun}", others=rest)

    def _resolve_all(self, entities: Sequence[Entity], confidence: float, why: str) -> Reference:
        if self.context.is_truncated(entities):
            return self.ambiguous(entities, _TRUNCATED)
        return self.resolved(entities, confidence, why)

    def _resolve_count(self, listed: Sequence[Entity]) -> Reference:
        count, pool = self.phrase.count, self.pool
        if len(listed) == count:
            return self.resolved(listed, 0.9, f"the {count} that were listed together")
        if len(pool) == count:
            return self.resolved(pool, 0.85, f"every {self.noun} in the window")
        if len(pool) < count:
            return self.ambiguous(pool, f"only {len(pool)} of them in the window")
        if self.phrase.exhaustive:
            return self.ambiguous(pool, f"{len(pool)} of them are in the window, not {count}")
        return self.resolved(pool[:count], 0.55, f"the {count} most recent", others=pool[count:])

    def _remaining_list(self) -> tuple[Entity, ...]:
        """Return the window entities of the last list, if there are at least two."""
        known = [one for one in self.context.listing_for(self.phrase, self.pool) if one in self.pool or not one.parent]
        deleted = self.phrase.deleted
        listing = tuple(one for one in known if self.context.holds(one) and one.deleted == deleted)
        return listing if len(listing) > 1 else ()

    def _resolve_ordinal(self) -> Reference:
        """Count in the last list that was shown, else by age."""
        phrase, context, pool = self.phrase, self.context, self.pool
        listed = context.listing_for(phrase, pool)
        if phrase.numbered and (by_number := self._resolve_number(listed)):
            return by_number
        entries, order, confidence = (
            (listed, "in the last list", 0.8) if listed else (context.by_age(pool), "by when they were first seen", 0.5)
        )
        remaining = entries if phrase.deleted else tuple(entity for entity in entries if not entity.deleted)
        if phrase.position < 0 and context.is_truncated(listed):
            return self.ambiguous(remaining[-MAX_CANDIDATES:], _TRUNCATED)
        if phrase.position == -1 and not phrase.count:
            if pool[0] not in listed:  # "the last one" is the most recent if another entity was used since
                return self.resolved(pool[:1], 0.6, "the most recent", others=pool[1:])
            if pool[0] != remaining[-1] and not context.is_untouched(listed):
                why = f'"{pool[0].name}" was used last, "{remaining[-1].name}" was listed last'
                return self.ambiguous([pool[0], remaining[-1]], why)
        chosen, without_deleted = _at_position(phrase, entries), _at_position(phrase, remaining)
        if not chosen:
            return self.unresolved(f"there are only {len(entries)} {order}")
        if set(chosen) <= set(remaining) and without_deleted in ((), chosen):
            why = f'"{self.text}" {order}'
            if not all(map(context.holds, chosen)):
                return self.ambiguous(chosen, f"{why}, and no longer in the window")
            return self.resolved(chosen, confidence, why, others=[e for e in remaining if e not in chosen])
        deleted_names = ", ".join(f'"{entity.name}"' for entity in entries if entity not in remaining)
        fitting = tuple(entity for entity in dict.fromkeys((*chosen, *without_deleted)) if entity in remaining)
        why = f"{deleted_names} of the last list was deleted"
        return self.ambiguous(fitting, why) if fitting else self.unresolved(why)

    def _resolve_number(self, listed: Sequence[Entity]) -> Reference | None:
        """Resolve "image 3" to the id 3, or ask; None if it is a position in a list."""
        position = self.phrase.position
        known = [entity for entity in (*self.pool, *listed) if entity.id.lstrip("#") == str(position)]
        if known and known[0].deleted and not self.phrase.deleted:
            return self.unresolved(f'"{known[0].name}" was deleted')
        if known:
            self.kind = "id"
            return self.resolved(known[:1], 0.9, "that number is its id")
        why = f"there is no list of them, and none has the id {position}"
        return None if listed else self.ambiguous(self.pool, why, confidence=LOW_CONFIDENCE)

    def _resolve_other(self) -> Reference:
        """Resolve "the other one": any but the one just named. Ambiguous if several remain."""
        known = {entity.key for entity in self.named}
        excluded = next((entity for entity in self.pool if entity.key in known), self.pool[0])
        rest = self.without({excluded.key, *known})
        if not self.phrase.nouns:
            rest = _of_type(rest, excluded) or rest
        if not rest:
            return self.unresolved(f'there is no other than "{excluded.name}"')
        listed = {entity.key for entity in self.context.listed_with(excluded, self.pool)}
        rest = tuple(entity for entity in rest if entity.key in listed) or rest
        if len(rest) == (self.phrase.count or 1):
            return self.resolved(rest, 0.8, f'the one that is not "{excluded.name}"')
        if self.phrase.plural and not self.phrase.count:
            return self.resolved(rest, 0.65, f'all but "{excluded.name}"')
        return self.ambiguous(rest, f'{len(rest)} of them are not "{excluded.name}"')

    def _resolve_previous(self) -> Reference:
        """Resolve "the previous one": before the most recent, or before its list if it was listed."""
        latest, *before = self.pool
        if others := self.context.listed_with(latest, self.pool):
            listed = (latest, *others)
            earlier = [e for e in _of_type(before, latest) if e.key not in {entity.key for entity in listed}]
            if not earlier:
                return self.ambiguous(listed, f"{len(listed)} of them were listed together")
            return self.resolved(earlier[:1], 0.6, f'the one before the list of "{latest.name}"', others=earlier[1:])
        if not self.phrase.nouns:
            before = _of_type(before, latest) or before
        if before:
            return self.resolved(before[:1], 0.7, f'the one before "{latest.name}"', others=before[1:])
        newest = next(iter(self.context.alive), latest)
        if newest.key != latest.key:
            return self.resolved([latest], 0.6, f'the {self.noun} before "{newest.name}"')
        return self.unresolved(f'there was none before "{latest.name}"')

    def _resolve_oldest(self) -> Reference:
        first, *rest = self.context.by_age(self.pool)
        together = [first, *(entity for entity in rest if first.first_seen and entity.first_seen == first.first_seen)]
        if len(together) > 1 and first in self.context.listing_for(self.phrase, self.pool):
            return self.ambiguous(together, f"{len(together)} of them were first seen together")
        return self.resolved([first], 0.7, f"the first {self.noun} that was seen", others=rest)

    def _resolve_newest(self) -> Reference:
        """Resolve "the newest": ambiguous if the last used and the last first seen differ."""
        last_used, newest = self.pool[0], self.context.by_age(self.pool)[-1]
        if self.context.listed_with(last_used, self.pool):
            self.phrase = replace(self.phrase, demonstrative=False)
            return self._resolve_single()
        if last_used.key != newest.key:
            why = f'"{last_used.name}" was used last, "{newest.name}" was first seen last'
            return self.ambiguous([last_used, newest], why)
        return self.resolved([last_used], 0.8, f"the most recent {self.noun}", others=self.pool[1:])


_QUALIFIED = "the words after it select one by something that is not known"
_TRUNCATED = "the list had more entries than are stored"


def _of_type(entities: Sequence[Entity], other: Entity) -> tuple[Entity, ...]:
    """Return the entities of the same type as another."""
    return tuple(entity for entity in entities if canonical_type(entity.type) == canonical_type(other.type))


def _at_position(phrase: Phrase, entries: tuple[Entity, ...]) -> tuple[Entity, ...]:
    """Return the entities at the positions of a phrase; nothing unless all of them exist."""
    count = phrase.count or 1
    start = phrase.position - 1 if phrase.position > 0 else len(entries) + phrase.position + 1 - count
    chosen = entries[start : start + count] if start >= 0 else ()
    return chosen if len(chosen) == count else ()
