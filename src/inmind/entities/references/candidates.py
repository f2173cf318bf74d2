"""Decides which entities one reference means, and with which confidence.

A phrase has candidates, most recent first. A function for each kind of choice selects among them: by position, as the
other one, as the previous one, by age, or as the most recent. An uncertain choice becomes a question. Entities found by
search are accepted for a name or an id; for "the page" they are only suggested.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from inmind.core.frozen import frozen
from inmind.core.language.languages import languages_of
from inmind.entities.entity import DEFAULT_MAX_PER_LIST, Entity
from inmind.entities.nouns import UNTYPED, canonical_type, is_plural, type_matches
from inmind.entities.references.name_match import is_in_earlier_name
from inmind.entities.references.result import Candidate, Kind, Phrase, Reference, ReferenceContext

MAX_CANDIDATES = 5

LOW_CONFIDENCE = 0.1
"""Confidence for a candidate with the right type and the wrong name: ask only if a search found nothing better."""

_SEARCH_FACTOR = 0.8
"""Factor on the confidence if the entity comes from a search and not from the window."""


@frozen(kw_only=True)
class ReferenceBuilder:
    """Builds the result for one reference."""

    full_text: str
    """The text that contains the reference."""
    span: tuple[int, int]
    kind: Kind
    noun: str = ""
    from_search: bool = False

    @classmethod
    def of(cls, phrase: Phrase, full_text: str, context: ReferenceContext) -> ReferenceBuilder:
        return cls(
            full_text=full_text, span=phrase.span, kind=phrase.kind, noun=phrase.noun, from_search=context.from_search
        )

    @property
    def text(self) -> str:
        return self.full_text[slice(*self.span)]

    @property
    def noun_or_default(self) -> str:
        return self.noun or "entity"

    @property
    def location(self) -> str:
        return "outside the window" if self.from_search else "in the window"

    def resolved(
        self, entities: Sequence[Entity], confidence: float, why: str, *, others: Sequence[Entity] = ()
    ) -> Reference:
        if self.from_search and self.kind not in {"id", "name"}:
            return self.ambiguous([*entities, *others], why)
        if self.from_search:
            confidence, why = confidence * _SEARCH_FACTOR, self._with_location(why)
        share = round((1 - confidence) / (len(others) + 1), 2)
        candidates = [Candidate(entity=entity, confidence=round(confidence, 2), why=why) for entity in entities]
        candidates += [Candidate(entity=entity, confidence=share, why="it also fits") for entity in others]
        return Reference(
            text=self.text,
            span=self.span,
            kind=self.kind,
            verdict="resolved",
            entities=tuple(entities),
            candidates=tuple(candidates[:MAX_CANDIDATES]),
            confidence=round(confidence, 2),
            why=why,
        )

    def ambiguous(self, fitting: Sequence[Entity], why: str, *, confidence: float | None = None) -> Reference:
        if confidence is None:
            confidence = max(round(1 / (len(fitting) + 1), 2), LOW_CONFIDENCE + 0.05)
        why = self._with_location(why)
        top_candidates = fitting[:MAX_CANDIDATES]
        return Reference(
            text=self.text,
            span=self.span,
            kind=self.kind,
            verdict="ambiguous",
            candidates=tuple(Candidate(entity=entity, confidence=confidence, why=why) for entity in top_candidates),
            confidence=confidence,
            why=why,
            question=self._question(top_candidates),
        )

    def unresolved(self, why: str) -> Reference:
        return Reference(text=self.text, span=self.span, kind=self.kind, verdict="none", why=why)

    def _with_location(self, why: str) -> str:
        return why if not self.from_search or self.location in why else f"{why}, {self.location}"

    def _question(self, entities: Sequence[Entity]) -> str:
        names = Counter(entity.name.casefold() for entity in entities)
        labels = [_distinct_label(entity) if names[entity.name.casefold()] > 1 else entity.name for entity in entities]
        language = languages_of(self.full_text)[-1]
        *first, last = (language.listed_name.format(name) for name in labels)
        question = language.which_question if first else language.confirm_question
        noun = self.noun or language.which_noun
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


def resolve_description(builder: ReferenceBuilder, phrase: Phrase, context: ReferenceContext) -> Reference:
    """Resolve "the red one", "the About page": words that should be in a name."""
    fitting, fit = best_matches(phrase, context)
    words = " ".join(phrase.words)
    if not fitting:
        pool = context.candidates_for(phrase)
        if not pool or context.from_search:
            return builder.unresolved(f"no {builder.noun_or_default} is known")
        return builder.ambiguous(pool, f'no {builder.noun_or_default} is called "{words}"', confidence=LOW_CONFIDENCE)
    if phrase.pick != "recent" or phrase.plural:
        return replace(resolve_phrase(builder, phrase, fitting, context), kind="name")
    top, *rest = fitting
    if not rest:
        reason = "was in its earlier name" if is_in_earlier_name(words, top) else "is in its name"
        return builder.resolved(fitting, 0.55 + 0.3 * fit, f'"{words}" {reason}')
    if phrase.demonstrative and not context.listed_with(top, fitting):
        return builder.resolved(
            [top], 0.6, f'the most recent of {len(fitting)} with "{words}" in their names', others=rest
        )
    return builder.ambiguous(fitting, f'"{words}" fits {len(fitting)} of them')


def resolve_phrase(
    builder: ReferenceBuilder,
    phrase: Phrase,
    pool: tuple[Entity, ...],
    context: ReferenceContext,
    named: Sequence[Entity] = (),
) -> Reference:
    """Choose among the candidates of a phrase; `named` are other entities of the text."""
    if not pool:
        deleted_match = next(
            (entity for entity in context.deleted if phrase.nouns and type_matches(entity.type, phrase.nouns)), None
        )
        if deleted_match is not None and not phrase.deleted:
            return builder.unresolved(
                f'"{deleted_match.name}" was deleted, and no other {builder.noun_or_default} is known'
            )
        return builder.unresolved(f"no {'deleted ' if phrase.deleted else ''}{builder.noun_or_default} is known")
    match phrase.pick:
        case "place":
            return _resolve_ordinal(builder, phrase, pool, context)
        case "other":
            return _resolve_other(builder, phrase, pool, context, named)
        case "previous":
            return _resolve_previous(builder, phrase, pool, context)
        case "oldest":
            return _resolve_oldest(builder, phrase, pool, context)
        case "newest":
            return _resolve_newest(builder, phrase, pool, context)
        case "recent":
            return (
                _resolve_plural(builder, phrase, pool, context)
                if phrase.plural
                else _resolve_single(builder, phrase, pool, context)
            )


def _resolve_single(
    builder: ReferenceBuilder, phrase: Phrase, pool: tuple[Entity, ...], context: ReferenceContext
) -> Reference:
    top, *rest = pool
    just_deleted = context.just_deleted
    if (
        just_deleted is not None
        and not phrase.deleted
        and (not phrase.nouns or type_matches(just_deleted.type, phrase.nouns))
    ):
        return _resolve_after_deletion(builder, pool, just_deleted)
    if top.deleted:
        return builder.resolved([top], 0.8, f"the {builder.noun_or_default} that was deleted last", others=rest)
    if phrase.deleted:
        return builder.ambiguous(pool, f"no {builder.noun_or_default} was deleted", confidence=LOW_CONFIDENCE)
    if not rest:
        return builder.resolved([top], 0.95, f"the only {builder.noun_or_default} {builder.location}")
    if context.from_search:
        return builder.ambiguous(pool, f"{len(pool)} of them are known")
    if top.parent and top in context.parts:
        return builder.ambiguous(pool, f"{len(pool)} of them are in {top.parent[1]}")
    listed = context.listed_with(top, pool)
    if phrase.qualified:
        return builder.ambiguous((top, *listed) if listed else pool, _QUALIFIED)
    if not listed:
        return builder.resolved([top], 0.9, f"the most recent {builder.noun_or_default}", others=rest)
    if len(listed) >= DEFAULT_MAX_PER_LIST:
        return builder.resolved([top], 0.8, f"the first of {len(listed) + 1} that were listed together", others=rest)
    if not phrase.demonstrative:
        return builder.ambiguous((top, *listed), f"{len(listed) + 1} of them were listed together")
    why = f"the first of {len(listed) + 1} that were listed together, though any of them fits"
    return builder.resolved([top], 0.7, why, others=rest)


_QUALIFIED = "the words after it select one by something that is not known"


def _resolve_after_deletion(builder: ReferenceBuilder, pool: tuple[Entity, ...], just_deleted: Entity) -> Reference:
    same_type = tuple(entity for entity in pool if canonical_type(entity.type) == canonical_type(just_deleted.type))
    why = f'"{just_deleted.name}" was just deleted'
    if len(same_type) != 1:
        return builder.ambiguous(same_type or pool, why)
    others = [entity for entity in pool if entity not in same_type]
    return builder.resolved(same_type, 0.55, f"{why}, and this is the only other {just_deleted.type}", others=others)


def _resolve_plural(
    builder: ReferenceBuilder, phrase: Phrase, pool: tuple[Entity, ...], context: ReferenceContext
) -> Reference:
    top, *rest = pool
    listed = _remaining_list(phrase, pool, context)
    if phrase.qualified and rest:
        return builder.ambiguous(listed or pool, _QUALIFIED)
    if phrase.count:
        return _resolve_count(builder, phrase, pool, context)
    if phrase.maybe_singular and not 1 <= len(context.listed_with(top, pool)) < DEFAULT_MAX_PER_LIST:
        return _resolve_single(builder, phrase, pool, context)
    if phrase.nouns and not phrase.demonstrative:
        all_entities = context.with_listed_rest(pool)
        return (
            builder.ambiguous(all_entities, _TRUNCATED)
            if context.is_truncated(all_entities)
            else builder.resolved(all_entities, 0.7, f"every {builder.noun_or_default} in the window")
        )
    same_action = tuple(takewhile(lambda e: e.action and (e.type, e.action) == (top.type, top.action), pool))
    if len(same_action) > 1 and not context.listed_with(top, pool):  # for example two pages created one after the other
        return builder.resolved(same_action, 0.55, f"the entities of the last {top.action} calls")
    if listed and (listed[0].key == top.key or not is_plural(top.type)):
        if context.is_truncated(listed):
            return builder.ambiguous(listed, _TRUNCATED)
        return builder.resolved(listed, 0.55, "those that were listed together last")
    return builder.resolved([top], 0.55, f"the most recent {builder.noun_or_default}", others=rest)


_TRUNCATED = "the list had more entries than are stored"


def _resolve_count(
    builder: ReferenceBuilder, phrase: Phrase, pool: tuple[Entity, ...], context: ReferenceContext
) -> Reference:
    count, listed = phrase.count, _remaining_list(phrase, pool, context)
    if len(listed) == count:
        return builder.resolved(listed, 0.9, f"the {count} that were listed together")
    if len(pool) == count:
        return builder.resolved(pool, 0.85, f"every {builder.noun_or_default} in the window")
    if len(pool) < count:
        return builder.ambiguous(pool, f"only {len(pool)} of them in the window")
    if phrase.exhaustive:
        return builder.ambiguous(pool, f"{len(pool)} of them are in the window, not {count}")
    return builder.resolved(pool[:count], 0.55, f"the {count} most recent", others=pool[count:])


def _remaining_list(phrase: Phrase, pool: tuple[Entity, ...], context: ReferenceContext) -> tuple[Entity, ...]:
    """Return the window entities of the last list, if there are at least two."""
    in_window = (
        entity
        for entity in context.listing_for(phrase, pool)
        if context.holds(entity) and entity.deleted == phrase.deleted
    )
    listing = tuple(entity for entity in in_window if entity in pool or not entity.parent)
    return listing if len(listing) > 1 else ()


def _resolve_ordinal(
    builder: ReferenceBuilder, phrase: Phrase, pool: tuple[Entity, ...], context: ReferenceContext
) -> Reference:
    """Count in the last list that was shown, else by age."""
    listed = context.listing_for(phrase, pool)
    if phrase.numbered:
        numbered = [entity for entity in (*pool, *listed) if entity.id.lstrip("#") == str(phrase.position)]
        if numbered and numbered[0].deleted and not phrase.deleted:
            return builder.unresolved(f'"{numbered[0].name}" was deleted')
        if numbered:
            return replace(builder, kind="id").resolved(numbered[:1], 0.9, "that number is its id")
        if not listed:
            return builder.ambiguous(
                pool, f"there is no list of them, and none has the id {phrase.position}", confidence=LOW_CONFIDENCE
            )
    entries, order, confidence = (
        (listed, "in the last list", 0.8) if listed else (context.by_age(pool), "by when they were first seen", 0.5)
    )
    not_deleted = entries if phrase.deleted else tuple(entity for entity in entries if not entity.deleted)
    if phrase.position < 0 and context.is_truncated(listed):
        return builder.ambiguous(not_deleted[-MAX_CANDIDATES:], _TRUNCATED)
    if phrase.position == -1 and not phrase.count:
        if pool[0] not in listed:  # "the last one" is the most recent if another entity was used since
            return builder.resolved(pool[:1], 0.6, "the most recent", others=pool[1:])
        if pool[0] != not_deleted[-1] and not context.is_untouched(listed):
            return builder.ambiguous(
                [pool[0], not_deleted[-1]], f'"{pool[0].name}" was used last, "{not_deleted[-1].name}" was listed last'
            )
    chosen, chosen_without_deleted = _at_position(phrase, entries), _at_position(phrase, not_deleted)
    if not chosen:
        return builder.unresolved(f"there are only {len(entries)} {order}")
    if set(chosen) <= set(not_deleted) and chosen_without_deleted in ((), chosen):
        why = f'"{builder.text}" {order}'
        if not all(map(context.holds, chosen)):
            return builder.ambiguous(chosen, f"{why}, and no longer in the window")
        return builder.resolved(chosen, confidence, why, others=[e for e in not_deleted if e not in chosen])
    deleted_names = ", ".join(f'"{entity.name}"' for entity in entries if entity not in not_deleted)
    fitting = tuple(entity for entity in dict.fromkeys((*chosen, *chosen_without_deleted)) if entity in not_deleted)
    why = f"{deleted_names} of the last list was deleted"
    return builder.ambiguous(fitting, why) if fitting else builder.unresolved(why)


def _at_position(phrase: Phrase, entries: tuple[Entity, ...]) -> tuple[Entity, ...]:
    """Return the entities at the positions of a phrase; nothing unless all of them exist."""
    count = phrase.count or 1
    start = phrase.position - 1 if phrase.position > 0 else len(entries) + phrase.position + 1 - count
    chosen = entries[start : start + count] if start >= 0 else ()
    return chosen if len(chosen) == count else ()


def _resolve_other(
    builder: ReferenceBuilder,
    phrase: Phrase,
    pool: tuple[Entity, ...],
    context: ReferenceContext,
    named: Sequence[Entity],
) -> Reference:
    """Resolve "the other one": any but the one just named. Ambiguous if several remain."""
    known = {entity.key for entity in named}
    excluded = next((entity for entity in pool if entity.key in known), pool[0])
    rest = tuple(entity for entity in pool if entity.key not in {excluded.key, *known})
    if not phrase.nouns:
        rest = tuple(entity for entity in rest if canonical_type(entity.type) == canonical_type(excluded.type)) or rest
    if not rest:
        return builder.unresolved(f'there is no other than "{excluded.name}"')
    listed_keys = {entity.key for entity in context.listed_with(excluded, pool)}
    rest = tuple(entity for entity in rest if entity.key in listed_keys) or rest
    if len(rest) == (phrase.count or 1):
        return builder.resolved(rest, 0.8, f'the one that is not "{excluded.name}"')
    if phrase.plural and not phrase.count:
        return builder.resolved(rest, 0.65, f'all but "{excluded.name}"')
    return builder.ambiguous(rest, f'{len(rest)} of them are not "{excluded.name}"')


def _resolve_previous(
    builder: ReferenceBuilder, phrase: Phrase, pool: tuple[Entity, ...], context: ReferenceContext
) -> Reference:
    """Resolve "the previous one": before the most recent, or before its list if it was listed."""
    latest, *before = pool
    if listed := context.listed_with(latest, pool):
        listed_keys = {latest.key, *(entity.key for entity in listed)}
        same_type = [entity for entity in before if canonical_type(entity.type) == canonical_type(latest.type)]
        earlier = [entity for entity in same_type if entity.key not in listed_keys]
        if not earlier:
            return builder.ambiguous((latest, *listed), f"{len(listed) + 1} of them were listed together")
        return builder.resolved(earlier[:1], 0.6, f'the one before the list of "{latest.name}"', others=earlier[1:])
    if not phrase.nouns:
        before = [entity for entity in before if canonical_type(entity.type) == canonical_type(latest.type)] or before
    if before:
        return builder.resolved(before[:1], 0.7, f'the one before "{latest.name}"', others=before[1:])
    if context.alive and context.alive[0].key != latest.key:
        return builder.resolved([latest], 0.6, f'the {builder.noun_or_default} before "{context.alive[0].name}"')
    return builder.unresolved(f'there was none before "{latest.name}"')


def _resolve_oldest(
    builder: ReferenceBuilder, phrase: Phrase, pool: tuple[Entity, ...], context: ReferenceContext
) -> Reference:
    first, *rest = context.by_age(pool)
    simultaneous = [entity for entity in rest if first.first_seen and entity.first_seen == first.first_seen]
    if simultaneous and first in context.listing_for(phrase, pool):
        return builder.ambiguous([first, *simultaneous], f"{len(simultaneous) + 1} of them were first seen together")
    return builder.resolved([first], 0.7, f"the first {builder.noun_or_default} that was seen", others=rest)


def _resolve_newest(
    builder: ReferenceBuilder, phrase: Phrase, pool: tuple[Entity, ...], context: ReferenceContext
) -> Reference:
    """Resolve "the newest": ambiguous if the last used and the last first seen differ."""
    last_used, newest = pool[0], context.by_age(pool)[-1]
    if context.listed_with(last_used, pool):
        return _resolve_single(builder, replace(phrase, demonstrative=False), pool, context)
    if last_used.key != newest.key:
        return builder.ambiguous(
            [last_used, newest], f'"{last_used.name}" was used last, "{newest.name}" was first seen last'
        )
    return builder.resolved([last_used], 0.8, f"the most recent {builder.noun_or_default}", others=pool[1:])
