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
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import islice

from inmind.core.language.languages import languages_of, word_pattern
from inmind.core.language.spans import compile_cached
from inmind.core.language.tables import ReferenceWords
from inmind.entities.entity import DEFAULT_RULES, Entity, EntityKey, EntityRules
from inmind.entities.nouns import singular, type_matches
from inmind.entities.references.candidates import (
    LOW_CONFIDENCE,
    MAX_CANDIDATES,
    PhraseResolver,
    ReferenceBuilder,
    best_matches,
)
from inmind.entities.references.name_match import Mention, is_in_earlier_name
from inmind.entities.references.result import Kind, Phrase, Reference, ReferenceContext, Resolution
from inmind.entities.references.spaced import PhraseFinder
from inmind.entities.references.unspaced import FormFinder
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
    excerpt = _Text(text[:MAX_TEXT_CHARS])
    context = ReferenceContext(entities, previous_text=previous_text[:MAX_TEXT_CHARS], rules=rules)
    references = _TextResolver(excerpt, context).references()
    main = _main_reference(excerpt, references)
    if main is None or main.confidence <= LOW_CONFIDENCE:
        search_window = Entities(window=tuple(islice(searched, MAX_SEARCHED_ENTITIES)))
        search_context = ReferenceContext(search_window, rules=rules, from_search=True)
        in_search = [r for r in _TextResolver(excerpt, search_context).references() if r.confidence > LOW_CONFIDENCE]
        if in_search:
            references, main = in_search, _main_reference(excerpt, in_search)
    if main is None:
        unknown_id = compile_cached(_UNKNOWN_ID).search(excerpt.text)
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


Span = tuple[int, int]


class _Text:
    """A text, and the words around the references in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.languages = languages_of(text)

    def is_before(self, kind: str, start: int, *, within: int = 10) -> bool:
        """Return True if a word of this list is directly before a position."""
        return _pattern(kind, rf"\s*{_OPENING_MARKS}").search(self.text, max(0, start - within), start) is not None

    def is_ruled_out(self, span: Span) -> bool:
        """Return True for "not that page", "all except the first", "every page but this one"."""
        if self.is_before("exclusions", span[0], within=20):
            return True
        is_subject = _pattern("verbs_after", "", before=r"\s+").match(self.text, span[1]) is not None
        return self.is_before("all_but", span[0], within=60) and not is_subject

    def is_object(self, span: Span) -> bool:
        """Return True if 把 marks it as the object, and not only its owner: 把那个页面的第一张图."""
        return self.is_before("object_markers", span[0], within=3) and not self.text.startswith("的", span[1])

    def follows_preposition(self, span: Span) -> bool:
        return self.is_before("prepositions", span[0])

    def same_clause(self, first: Span, second: Span) -> bool:
        start, end = min(first[1], second[1]), max(first[0], second[0])
        return _pattern("clause_breaks", "", before="[.;!?,，。；]|").search(self.text, start, end) is None

    def new_names(self) -> list[Span]:
        """Return the spans after "rename it to …": names that nothing has yet."""
        starts = [match.end() for match in _pattern("new_name", "").finditer(self.text)]
        stops = compile_cached(r"[.;!?,。；！？，\n]| and | then ")
        return [(start, start + len(stops.split(self.text[start:], maxsplit=1)[0])) for start in starts]


# -- finding references -----------------------------------------------------------------------------------------


class _TextResolver:
    """Resolves every reference of a text."""

    def __init__(self, text: _Text, context: ReferenceContext) -> None:
        self.full, self.text, self.context = text, text.text, context

    def references(self) -> list[Reference]:
        """Return every reference, in text order.

        Names are resolved first, because they decide what the phrases around them mean; pronouns last, because they
        refer to what the others named.
        """
        full, context = self.full, self.context
        phrases = self._find_phrases()
        indefinite = [phrase for phrase in phrases if phrase.indefinite]
        excluded = [*(phrase.span for phrase in indefinite), *full.new_names()]
        references = self._resolve_names(context.name_index.mentions(self.text, excluded_spans=excluded), phrases)
        names = [reference.span for reference in references]
        ruled_out = {e.key for r in references if full.is_ruled_out(r.span) for e in r.entities}
        phrases = [
            self._adapt_to_context(phrase)
            for phrase in phrases
            if not phrase.indefinite and not any(_overlap(phrase.span, name) for name in names)
        ]
        for phrase in sorted(phrases, key=lambda one: (one.kind == "pronoun", not full.is_ruled_out(one.span))):
            if phrase.kind == "pronoun" and context.from_search and not phrase.deleted:
                continue  # "it" only refers to entities in the window
            resolver = PhraseResolver(self.text, phrase, context)
            if phrase.kind == "pronoun":
                reference = self._resolve_pronoun(resolver, references, indefinite)
            elif phrase.words:
                reference = resolver.resolve_description()
            else:
                resolver.named = [entity for other in references for entity in other.entities]
                resolver.pool = resolver.without(ruled_out if phrase.pick == "recent" else ())
                reference = resolver.resolve()
            if full.is_ruled_out(phrase.span):
                ruled_out.update(entity.key for entity in reference.entities)
            elif not ruled_out.isdisjoint(entity.key for entity in reference.entities):
                reference = self._exclude(reference, ruled_out, PhraseResolver(self.text, phrase, context))
            references.append(reference)
        references = [_as_ruled_out(r) if full.is_ruled_out(r.span) else r for r in references]
        return sorted(references, key=lambda reference: reference.span)

    def _find_phrases(self) -> list[Phrase]:
        """Return the phrases in each language.

        They mean deleted entities if the text restores something.
        """
        phrases: list[Phrase] = []
        for language in self.full.languages:
            table = language.references
            if table is None:
                continue
            restores = compile_cached(table.restore).search(self.text) is not None
            restores |= bool(self.context.just_deleted and compile_cached(table.undo).search(self.text))
            text, nouns = self.text, self.context.nouns
            is_spaced = isinstance(table, ReferenceWords)
            finder = PhraseFinder(text, nouns, table) if is_spaced else FormFinder(text, nouns, table)
            phrases += (replace(phrase, deleted=phrase.deleted or restores) for phrase in finder.find())
        return phrases[:MAX_REFERENCES]

    def _adapt_to_context(self, phrase: Phrase) -> Phrase:
        """Adapt a phrase to the entities that exist."""
        if phrase.possessor and not self.context.candidates_for(phrase):
            return replace(phrase.possessor, deleted=phrase.deleted)
        return phrase

    def _exclude(self, reference: Reference, ruled_out: Collection[EntityKey], resolver: PhraseResolver) -> Reference:
        """Remove excluded entities: "all the images except the first". Ask if none remains."""
        remaining = tuple(entity for entity in reference.entities if entity.key not in ruled_out)
        if not remaining:
            others = resolver.without(ruled_out)
            why = f'"{reference.entities[0].name}" is excluded by the text'
            return resolver.ambiguous(others, why) if others else resolver.unresolved(why)
        candidates = tuple(one for one in reference.candidates if one.entity.key not in ruled_out)
        return replace(reference, entities=remaining, candidates=candidates)

    def _resolve_names(self, mentions: Sequence[Mention], phrases: Sequence[Phrase]) -> list[Reference]:
        """Resolve names and ids. Two names in one phrase are combined: "the black and grey coats"."""
        references: dict[Span, Reference] = {}
        for mention in mentions[:MAX_REFERENCES]:
            phrase = next((phrase for phrase in phrases if self._belongs_to_phrase(phrase, mention)), None)
            if phrase is None or not self._overrides_name(phrase, mention):
                reference = self._resolve_name(mention, phrase)
                previous = references.get(reference.span)
                references[reference.span] = _combine(self.text, previous, reference) if previous else reference
        return list(references.values())

    def _belongs_to_phrase(self, phrase: Phrase, mention: Mention) -> bool:
        """Return True if the name is in the phrase or next to its noun: "the page About Us"."""
        start, end = phrase.span
        if _overlap(phrase.span, mention.span):
            return True
        between = self.text[end : mention.start] if end <= mention.start else self.text[mention.end : start]
        naming = _pattern("naming_verbs", f"?{_QUOTES_AND_SPACES}", before=_QUOTES_AND_SPACES)
        return bool(phrase.nouns and not phrase.words and len(between) < 12 and naming.fullmatch(between))

    def _overrides_name(self, phrase: Phrase, mention: Mention) -> bool:
        """Return True if a phrase outweighs the name in it.

        "the black coat" is not a jacket named Black, and "image #3" is not an order with id 3.
        """
        if phrase.numbered:
            return True
        if not phrase.words or mention.match_kind == "id":
            return False
        if mention.match_kind in {"part", "typo"}:
            return bool(best_matches(phrase, self.context)[0])
        pool = {entity.key for entity in self.context.candidates_for(phrase)}
        return bool(pool) and all(entity.key not in pool and not entity.deleted for entity in mention.entities)

    def _resolve_name(self, mention: Mention, phrase: Phrase | None) -> Reference:
        span, noun = mention.span, ""
        if phrase is not None:
            span, noun = (min(span[0], phrase.span[0]), max(span[1], phrase.span[1])), phrase.noun
        kind: Kind = "id" if mention.match_kind == "id" else "name"
        builder = ReferenceBuilder(self.text, span, kind, noun, self.context)
        name = self.text[slice(*mention.span)]
        fitting = self._disambiguate(mention)
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

    def _disambiguate(self, mention: Mention) -> tuple[Entity, ...]:
        """Of several entities with one name, prefer the type next to it ("the post News").

        Then entities that are not deleted.
        """
        fitting = mention.entities
        if (len(fitting) == 1 and not mention.weaker_matches) or mention.match_kind == "id":
            return fitting
        before, after = self.text[max(0, mention.start - 20) : mention.start], self.text[mention.end : mention.end + 20]
        near = f"{before} {after}".lower()
        nouns = {singular(word) for word in re.findall(r"[^\W\d_]+", near)} & self.context.nouns
        for language in self.full.languages:
            nouns |= {type for noun, types in language.nouns.items() if noun in near for type in types}
        for known in (fitting, mention.weaker_matches):
            if matching := tuple(entity for entity in known if type_matches(entity.type, nouns)):
                fitting = matching
                break
        return tuple(entity for entity in fitting if not entity.deleted) or fitting

    def _resolve_pronoun(
        self, resolver: PhraseResolver, references: Sequence[Reference], indefinite: Sequence[Phrase]
    ) -> Reference:
        """Resolve a pronoun to what the previous clause named, not to what its clause names."""
        full, phrase = self.full, resolver.phrase
        named = [one for one in references if one.kind != "pronoun" and one.verdict == "resolved"]
        same_clause = [one for one in named if full.same_clause(one.span, phrase.span)]
        for other in sorted(named, key=lambda reference: reference.span, reverse=True):
            before = other.span[1] <= phrase.span[0] and other not in same_clause
            if before and phrase.plural == (len(other.entities) > 1):
                return resolver.resolved(other.entities, other.confidence, f'"{other.text}" in the same message')
        others = resolver.without({entity.key for other in same_clause for entity in other.entities})
        if resolver.pool and not others and any(full.follows_preposition(other.span) for other in same_clause):
            why = "only entities named in the same sentence are in the window"
            return resolver.ambiguous(resolver.pool, why, confidence=LOW_CONFIDENCE)
        pool = others or resolver.pool
        created = {noun for other in indefinite for noun in other.nouns if full.same_clause(other.span, phrase.span)}
        if created and full.is_before("target_prepositions", phrase.span[0]):
            # "add a section to it": the target is not a section
            pool = tuple(entity for entity in pool if not type_matches(entity.type, created)) or pool
        resolver.pool = pool
        return resolver.resolve()


_MATCH_REASONS = {
    "id": ("is its id", 0.99),
    "name": ("is its name", 0.9),
    "alias": ("was its name before", 0.85),
    "part": ("is in its name", 0.6),
    "typo": ("is nearly its name", 0.6),
}


def _as_ruled_out(reference: Reference) -> Reference:
    why = f'"{reference.text}" is excluded by the text'
    return Reference(text=reference.text, span=reference.span, kind=reference.kind, verdict="none", why=why)


# -- the main reference -----------------------------------------------------------------------------------------


def _main_reference(text: _Text, references: Sequence[Reference]) -> Reference | None:
    """Return the most specific reference, combined with those joined to it.

    In "delete the images from the About page" the images are the object: a reference after a preposition ranks
    below one without, and within a clause even below a pronoun ("delete it from the About page"). In Chinese, 把
    marks the object.
    """
    known = _join_references(text, [one for one in references if one.verdict != "none"] or references)
    objects = [reference for reference in known if not text.follows_preposition(reference.span)]

    def rank(reference: Reference) -> tuple[bool, bool, bool, bool, int]:
        oblique = text.follows_preposition(reference.span)
        secondary = oblique and any(text.same_clause(reference.span, other.span) for other in objects)
        is_pronoun = reference.kind == "pronoun"
        return not text.is_object(reference.span), secondary, is_pronoun, oblique, _KIND_RANK[reference.kind]

    return min(known, key=rank, default=None)


def _join_references(text: _Text, references: Sequence[Reference]) -> list[Reference]:
    """Combine references that are joined by "and"."""
    joined: list[Reference] = []
    joining = _pattern("conjunctions", r"|[,、，&])\s*(?:also |the )?\s*", before="[^.;!?]{0,60}?(?:")
    for reference in references:
        before = joined[-1] if joined and "pronoun" not in (joined[-1].kind, reference.kind) else None
        if before and joining.fullmatch(text.text[before.span[1] : reference.span[0]]):
            joined[-1] = _combine(text.text, before, reference)
        else:
            joined.append(reference)
    return joined


def _combine(text: str, first: Reference, second: Reference) -> Reference:
    """Combine two references. If one is uncertain, the result is uncertain."""
    span = (first.span[0], second.span[1])
    uncertain = next((one for one in (first, second) if one.verdict == "ambiguous"), None)
    if uncertain or second.verdict == "none":
        return replace(uncertain or first, text=text[slice(*span)], span=span)
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


def _pattern(kind: str, after: str, *, before: str = "") -> re.Pattern[str]:
    """Return the pattern of a word list of all languages, and of the text before and after it."""
    return compile_cached(f"(?i){before}{word_pattern(kind)}{after}")


def _overlap(first: Span, second: Span) -> bool:
    return first[0] < second[1] and second[0] < first[1]
