"""Resolves the references of a text to entities, without a model, with a confidence.

A text may hold several references ("move it to the About page"). Each is resolved. The result for the whole text is
that of the most specific one: an id, then a name, then a description ("the second image", "that page"), then a
pronoun; of two of one kind the first, or both if they are joined ("the gray one and the red one"). The object of a verb
outranks what follows a preposition: "delete it from the About page" is about "it".

Policy for uncertain references:

- "it", "this" and "that page" mean the most recent entity that fits. After a list that is its best match, with lower
  confidence, and lower still after a list of two or three. "the page" is weaker: after a long search it is still the
  best match; after a short list the result is a question.
- "the second image" is counted in the last list as it was shown, also after other use. The result is a question if a
  deletion changed the position, if "the last one" may be the last used, or if the entity is no longer in the window.
- A deleted entity is meant only by its name or by words for deletion ("restore it", "the deleted page"). If a deletion
  was the last action, "it" means another entity: the only other one of its type, or a question if there are several.
- Words that fit several names equally well, "the other one" of more than two, and a description that fits nothing
  known: a question. Changing the wrong entity costs more than a question.
- Entities from a search, which is used if nothing in the window fits, are accepted for a name or an id. For "the page"
  they are only suggested in a question.
- Excluded entities ("not that page", "all images except the first", "every page but the home one") are not meant; if
  nothing else is left, the result is a question.
- "a page" is yet to be created and refers to nothing; neither do the words in it.

Confidence is roughly the share of references resolved in that way that was right, over all recorded dialogues of
`bench/resolve.py`. They contain too few ordinals, deletions, misspellings and partial names to measure those: there
it is an estimate. Low values vary most: in dialogues that the rules were not fitted to, about half of what was resolved
with 0.6 was right.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from inmind.core.language.languages import languages_of, word_pattern
from inmind.core.language.spans import any_of, compile_cached
from inmind.core.language.tables import ReferenceWords
from inmind.entities.entity import DEFAULT_RULES, Entity, EntityKey, EntityRules
from inmind.entities.nouns import singular, type_matches
from inmind.entities.references import spaced, unspaced
from inmind.entities.references.candidates import (
    LOW_CONFIDENCE,
    MAX_CANDIDATES,
    ReferenceBuilder,
    best_matches,
    resolve_description,
    resolve_phrase,
)
from inmind.entities.references.name_match import Mention, is_in_earlier_name
from inmind.entities.references.result import Kind, Phrase, Reference, ReferenceContext, Resolution
from inmind.entities.window import Entities

MAX_TEXT_CHARS = 4_000
"""Length of a text that is read."""
MAX_SEARCHED_ENTITIES = 5_000
"""Number of searched entities that are considered."""
MAX_REFERENCES = 40
"""Maximum names, and maximum phrases, per text. A text with more is a document."""

_KIND_RANK: dict[Kind, int] = {"id": 0, "name": 1, "ordinal": 2, "other": 2, "plural": 2, "typed": 2, "pronoun": 3}
_OPENING_MARKS = "[\"“'‘「《]?$"
_UNKNOWN_ID = r"(?a)(?<![\w-])(?:#\w{0,40}\d\w{0,40}|[A-Za-z]\w{0,40}[-_]\w{0,40}\d\w{0,40})(?![\w-])"
_QUOTES_AND_SPACES = r"[\s\"“”'‘’「」《》]*"


def resolve(
    text: str,
    entities: Entities,
    *,
    previous_text: str = "",
    searched: Iterable[Entity] = (),
    rules: EntityRules = DEFAULT_RULES,
) -> Resolution:
    """Resolve the references of a text.

    `previous_text` is the assistant's last message: entities it named are more salient than those a tool listed.
    `searched` is only iterated if nothing in the window fits.
    """
    excerpt = text[:MAX_TEXT_CHARS]
    context = ReferenceContext(entities, previous_text=previous_text[:MAX_TEXT_CHARS], rules=rules)
    references = _find_references(excerpt, context)
    main = _main_reference(excerpt, references)
    if main is None or main.confidence <= LOW_CONFIDENCE:
        search_context = ReferenceContext(
            Entities(window=tuple(islice(searched, MAX_SEARCHED_ENTITIES))), rules=rules, from_search=True
        )
        search_references = [
            reference
            for reference in _find_references(excerpt, search_context)
            if reference.confidence > LOW_CONFIDENCE
        ]
        if search_references:
            references, main = search_references, _main_reference(excerpt, search_references)
    if main is None:
        unknown_id = compile_cached(_UNKNOWN_ID).search(excerpt)
        why = f"{unknown_id[0]} was never seen" if unknown_id else "no reference to an entity"
        return Resolution(text=text, verdict="none", why=why)
    return Resolution(
        text=text,
        verdict=main.verdict,
        entities=main.entities,
        candidates=main.candidates,
        confidence=main.confidence,
        question=main.question,
        why=main.why,
        references=tuple(references),
    )


# -- finding references -----------------------------------------------------------------------------------------


def _find_references(text: str, context: ReferenceContext) -> list[Reference]:
    """Return every reference of a text, resolved, in text order.

    Names are resolved first, because they decide what the phrases around them mean; pronouns last, because they
    refer to what the others named.
    """
    phrases = _find_phrases(text, context.nouns)[:MAX_REFERENCES]
    indefinite = [phrase for phrase in phrases if phrase.indefinite]
    excluded_spans = [phrase.span for phrase in indefinite] + [
        _new_name_span(text, match.end()) for match in _pattern("new_name", "").finditer(text)
    ]
    references = _resolve_names(
        text, context.name_index.mentions(text, excluded_spans=excluded_spans)[:MAX_REFERENCES], phrases, context
    )
    name_spans = [reference.span for reference in references]
    phrases = [
        phrase for phrase in phrases if not phrase.indefinite and not any(_overlap(phrase.span, s) for s in name_spans)
    ]
    phrases = [_adapt_to_context(phrase, context) for phrase in phrases]
    ruled_out: dict[EntityKey, Entity] = {}
    for phrase in sorted(phrases, key=lambda phrase: (phrase.kind == "pronoun", not _is_ruled_out(text, phrase.span))):
        if phrase.kind == "pronoun" and context.from_search and not phrase.deleted:
            continue  # "it" only refers to entities in the window
        ruled_out |= {e.key: e for r in references if _is_ruled_out(text, r.span) for e in r.entities}
        reference = _resolve_words(text, phrase, context, references, indefinite, ruled_out)
        if not _is_ruled_out(text, phrase.span):
            reference = _exclude(
                reference, ruled_out, ReferenceBuilder.of(phrase, text, context), context.candidates_for(phrase)
            )
        references.append(reference)
    references = [_as_ruled_out(r) if _is_ruled_out(text, r.span) else r for r in references]
    return sorted(references, key=lambda reference: reference.span)


def _find_phrases(text: str, known_types: Collection[str]) -> list[Phrase]:
    phrases: list[Phrase] = []
    for language in languages_of(text):
        if language.references:
            phrases += spaced.find_phrases(text, known_types, language.references)
        if language.reference_forms:
            phrases += unspaced.find_phrases(text, known_types, language.reference_forms)
    return phrases


def _tables(text: str) -> list[ReferenceWords]:
    return [language.references for language in languages_of(text) if language.references]


def _adapt_to_context(phrase: Phrase, context: ReferenceContext) -> Phrase:
    """Adapt a phrase to the entities that exist and the last action."""
    if phrase.undo and context.just_deleted:
        phrase = replace(phrase, deleted=True)
    return phrase.possessor() if phrase.possessive and not context.candidates_for(phrase) else phrase


def _resolve_words(
    text: str,
    phrase: Phrase,
    context: ReferenceContext,
    references: Sequence[Reference],
    indefinite: Sequence[Phrase],
    ruled_out: Mapping[EntityKey, Entity],
) -> Reference:
    if phrase.kind == "pronoun":
        return _resolve_pronoun(text, phrase, context, references, indefinite)
    builder = ReferenceBuilder.of(phrase, text, context)
    if phrase.words:
        return resolve_description(builder, phrase, context)
    pool = context.candidates_for(phrase)
    if phrase.pick == "recent":
        pool = tuple(entity for entity in pool if entity.key not in ruled_out)
    return resolve_phrase(
        builder, phrase, pool, context, [entity for reference in references for entity in reference.entities]
    )


def _is_ruled_out(text: str, span: tuple[int, int]) -> bool:
    """Return True for "not that page", "all except the first", "every page but this one"."""
    if _is_before("exclusions", text, span[0], within=20):
        return True
    verbs = "(?i)" + any_of(*(table.verbs_after for table in _tables(text)))
    return _is_before("all_but", text, span[0], within=60) and compile_cached(verbs).match(text, span[1]) is None


def _as_ruled_out(reference: Reference) -> Reference:
    return Reference(
        text=reference.text,
        span=reference.span,
        kind=reference.kind,
        verdict="none",
        why=f'"{reference.text}" is excluded by the text',
    )


def _exclude(
    reference: Reference, ruled_out: Collection[EntityKey], builder: ReferenceBuilder, pool: Sequence[Entity]
) -> Reference:
    """Remove excluded entities: "all the images except the first". Ask if none remains."""
    remaining = tuple(entity for entity in reference.entities if entity.key not in ruled_out)
    if len(remaining) == len(reference.entities):
        return reference
    if not remaining:
        others = [entity for entity in pool if entity.key not in ruled_out]
        why = f'"{reference.entities[0].name}" is excluded by the text'
        return builder.ambiguous(others, why) if others else builder.unresolved(why)
    candidates = tuple(c for c in reference.candidates if c.entity.key not in ruled_out)
    return replace(reference, entities=remaining, candidates=candidates)


def _resolve_names(
    text: str, mentions: Sequence[Mention], phrases: Sequence[Phrase], context: ReferenceContext
) -> list[Reference]:
    """Resolve names and ids. Two names in one phrase are combined: "the black and grey coats"."""
    references: dict[tuple[int, int], Reference] = {}
    for mention in mentions:
        phrase = next((phrase for phrase in phrases if _belongs_to_phrase(text, phrase, mention)), None)
        if phrase is None or not _overrides_name(phrase, mention, context):
            reference = _resolve_name(text, mention, phrase, context)
            previous = references.get(reference.span)
            references[reference.span] = _combine(text, previous, reference) if previous else reference
    return list(references.values())


def _belongs_to_phrase(text: str, phrase: Phrase, mention: Mention) -> bool:
    """Return True if the name is in the phrase or next to its noun: "the page About Us"."""
    start, end = phrase.span
    if _overlap(phrase.span, (mention.start, mention.end)):
        return True
    between = text[end : mention.start] if end <= mention.start else text[mention.end : start]
    return (
        bool(phrase.nouns)
        and not phrase.words
        and len(between) < 12
        and _pattern("naming_verbs", f"?{_QUOTES_AND_SPACES}", before=_QUOTES_AND_SPACES).fullmatch(between) is not None
    )


def _overrides_name(phrase: Phrase, mention: Mention, context: ReferenceContext) -> bool:
    """Return True if a phrase outweighs the name in it.

    "the black coat" is not a jacket named Black, and "image #3" is not an order with id 3.
    """
    if phrase.numbered:
        return True
    if not phrase.words or mention.match_kind == "id":
        return False
    if mention.match_kind in {"part", "typo"}:
        return bool(best_matches(phrase, context)[0])
    pool = {entity.key for entity in context.candidates_for(phrase)}
    return bool(pool) and all(entity.key not in pool and not entity.deleted for entity in mention.entities)


_MATCH_REASONS = {
    "id": ("is its id", 0.99),
    "name": ("is its name", 0.9),
    "alias": ("was its name before", 0.85),
    "part": ("is in its name", 0.6),
    "typo": ("is nearly its name", 0.6),
}


def _resolve_name(text: str, mention: Mention, phrase: Phrase | None, context: ReferenceContext) -> Reference:
    span, noun = (mention.start, mention.end), ""
    if phrase is not None:
        span, noun = (min(span[0], phrase.span[0]), max(span[1], phrase.span[1])), phrase.noun
    kind: Kind = "id" if mention.match_kind == "id" else "name"
    builder = ReferenceBuilder(full_text=text, span=span, kind=kind, noun=noun, from_search=context.from_search)
    name = text[mention.start : mention.end]
    fitting = _disambiguate(text, mention, context)
    if phrase and phrase.count and phrase.pick == "recent" and len(fitting) != phrase.count:
        return builder.ambiguous(fitting, f'{len(fitting)}, and not {phrase.count}, have "{name}" in their names')
    if phrase and phrase.plural and len(fitting) > 1:
        return builder.resolved(fitting, 0.55, f'"{name}" is in the names of all of them')
    if len(fitting) > 1:
        return builder.ambiguous(fitting, f'"{name}" fits {len(fitting)} of them')
    reason, confidence = _MATCH_REASONS[mention.match_kind]
    if mention.match_kind == "part":
        confidence += 0.3 * mention.fit
        reason = "was in its earlier name" if any(is_in_earlier_name(name, one) for one in fitting) else reason
    deleted_note = ", and it was deleted" if any(entity.deleted for entity in fitting) else ""
    return builder.resolved(fitting, confidence, f'"{name}" {reason}{deleted_note}')


def _disambiguate(text: str, mention: Mention, context: ReferenceContext) -> tuple[Entity, ...]:
    """Of several entities with one name, prefer the type next to it ("the post News").

    Then entities that are not deleted.
    """
    fitting = mention.entities
    if (len(fitting) == 1 and not mention.weaker_matches) or mention.match_kind == "id":
        return fitting
    neighbourhood = f"{text[max(0, mention.start - 20) : mention.start]} {text[mention.end : mention.end + 20]}".lower()
    nouns = {singular(word) for word in re.findall(r"[^\W\d_]+", neighbourhood)} & context.nouns
    for language in languages_of(text):
        nouns |= {type for noun, types in language.nouns.items() if noun in neighbourhood for type in types}
    for known in (fitting, mention.weaker_matches):
        if matching := tuple(entity for entity in known if type_matches(entity.type, nouns)):
            fitting = matching
            break
    return tuple(entity for entity in fitting if not entity.deleted) or fitting


def _resolve_pronoun(
    text: str, phrase: Phrase, context: ReferenceContext, references: Sequence[Reference], indefinite: Sequence[Phrase]
) -> Reference:
    """Resolve a pronoun to what the previous clause named, not to what its clause names."""
    builder = ReferenceBuilder.of(phrase, text, context)
    named = [reference for reference in references if reference.kind != "pronoun" and reference.verdict == "resolved"]
    for reference in sorted(named, key=lambda reference: reference.span, reverse=True):
        before = reference.span[1] <= phrase.span[0] and not _same_clause(text, reference.span, phrase.span)
        if before and phrase.plural == (len(reference.entities) > 1):
            return builder.resolved(reference.entities, reference.confidence, f'"{reference.text}" in the same message')
    same_clause = [reference for reference in named if _same_clause(text, reference.span, phrase.span)]
    same_clause_keys = {entity.key for reference in same_clause for entity in reference.entities}
    pool = context.candidates_for(phrase)
    others = tuple(entity for entity in pool if entity.key not in same_clause_keys)
    if (
        pool
        and not others
        and any(_follows_preposition(text, reference) for reference in same_clause)
        and not any(builder.text.lower() in table.possessives for table in _tables(text))
    ):
        return builder.ambiguous(
            pool, "only entities named in the same sentence are in the window", confidence=LOW_CONFIDENCE
        )
    pool = others or pool
    created_nouns = {
        noun for other in indefinite for noun in other.nouns if _same_clause(text, other.span, phrase.span)
    }
    if created_nouns and _is_before("target_prepositions", text, phrase.span[0]):
        # "add a section to it": the target is not a section
        pool = tuple(entity for entity in pool if not type_matches(entity.type, created_nouns)) or pool
    return resolve_phrase(builder, phrase, pool, context)


# -- the main reference -----------------------------------------------------------------------------------------


def _main_reference(text: str, references: Sequence[Reference]) -> Reference | None:
    """Return the most specific reference, combined with those joined to it.

    In "delete the images from the About page" the images are the object: a reference after a preposition ranks
    below one without, and within a clause even below a pronoun ("delete it from the About page"). In Chinese, 把
    marks the object.
    """
    known = _join_references(text, [reference for reference in references if reference.verdict != "none"] or references)
    objects = [reference for reference in known if not _follows_preposition(text, reference)]

    def rank(reference: Reference) -> tuple[bool, bool, bool, bool, int]:
        oblique = _follows_preposition(text, reference)
        secondary = oblique and any(_same_clause(text, reference.span, other.span) for other in objects)
        is_pronoun = reference.kind == "pronoun"
        return not _is_object(text, reference), secondary, is_pronoun, oblique, _KIND_RANK[reference.kind]

    return min(known, key=rank, default=None)


def _is_object(text: str, reference: Reference) -> bool:
    """Return True if 把 marks it as the object, and not only its owner: 把那个页面的第一张图."""
    start, end = reference.span
    return _is_before("object_markers", text, start, within=3) and not text.startswith("的", end)


def _follows_preposition(text: str, reference: Reference) -> bool:
    """Return True if a preposition precedes it."""
    return _is_before("prepositions", text, reference.span[0])


def _join_references(text: str, references: Sequence[Reference]) -> list[Reference]:
    """Combine references that are joined by "and"."""
    joined: list[Reference] = []
    for reference in references:
        before = joined[-1] if joined and "pronoun" not in (joined[-1].kind, reference.kind) else None
        between = text[before.span[1] : reference.span[0]] if before else ""
        joining = _pattern("conjunctions", r"|[,、，&])\s*(?:also |the )?\s*", before="[^.;!?]{0,60}?(?:")
        if before and joining.fullmatch(between):
            joined[-1] = _combine(text, before, reference)
        else:
            joined.append(reference)
    return joined


def _combine(text: str, first: Reference, second: Reference) -> Reference:
    """Combine two references. If one is uncertain, the result is uncertain."""
    span = (first.span[0], second.span[1])
    uncertain = next(
        (r for r in (first, second) if r.verdict == "ambiguous"), first if second.verdict == "none" else None
    )
    if uncertain is not None:
        return replace(uncertain, text=text[slice(*span)], span=span)
    chosen = [*first.candidates[: len(first.entities)], *second.candidates[: len(second.entities)]]
    return replace(
        first,
        text=text[slice(*span)],
        span=span,
        entities=tuple({entity.key: entity for entity in (*first.entities, *second.entities)}.values()),
        candidates=tuple(sorted(chosen, key=lambda candidate: -candidate.confidence)[:MAX_CANDIDATES]),
        confidence=min(first.confidence, second.confidence),
        why=f"{first.why}; {second.why}",
    )


# -- positions in a text ----------------------------------------------------------------------------------------


def _pattern(kind: str, after: str, *, before: str = "") -> re.Pattern[str]:
    """Return the pattern of a word list of all languages, and of the text before and after it."""
    return compile_cached(f"(?i){before}{word_pattern(kind)}{after}")


def _is_before(kind: str, text: str, start: int, *, within: int = 10) -> bool:
    """Return True if a word of this list is directly before a position."""
    return _pattern(kind, rf"\s*{_OPENING_MARKS}").search(text, max(0, start - within), start) is not None


def _new_name_span(text: str, start: int) -> tuple[int, int]:
    """Return the span after "rename it to …": a name that nothing has yet."""
    end = compile_cached(r"[.;!?,。；！？，\n]| and | then |$").search(text, start)
    return start, end.start() if end else len(text)


def _same_clause(text: str, first: tuple[int, int], second: tuple[int, int]) -> bool:
    start, end = min(first[1], second[1]), max(first[0], second[0])
    return _pattern("clause_breaks", "", before="[.;!?,，。；]|").search(text, start, end) is None


def _overlap(first: tuple[int, int], second: tuple[int, int]) -> bool:
    return first[0] < second[1] and second[0] < first[1]
