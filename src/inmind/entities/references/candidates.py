"""Which things one reference means, and how sure that is.

A phrase leaves some things possible, most recent first. Each way of picking among them is a function here: by place,
by being the other one, by having come before, by age, or as the most recent. What is no better than a guess is asked,
and so is what nobody had in mind: deep memory answers to a name or an id, while "the page" there is only a suggestion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from inmind.core.frozen import frozen
from inmind.entities.config import DEFAULT_MAX_PER_LIST
from inmind.entities.entity import Entity
from inmind.entities.nouns import UNTYPED, canonical_type, is_plural, type_matches
from inmind.entities.references import chinese
from inmind.entities.references.context import Scene
from inmind.entities.references.phrase import Kind, Phrase
from inmind.entities.references.result import Candidate, Reference

MOST_CANDIDATES = 5

HARDLY = 0.1
"""The confidence in what has the right type and the wrong name: worth asking about, once deep memory has been asked."""

_IN_DEEP_MEMORY = 0.8
"""What is left of a confidence when nothing of the kind is in mind."""


@frozen(kw_only=True)
class Said:
    """The words of one reference, about to be given a meaning."""

    whole: str
    """The text that they stand in."""
    span: tuple[int, int]
    kind: Kind
    noun: str = ""
    deep: bool = False

    @classmethod
    def of(cls, phrase: Phrase, whole: str, scene: Scene) -> Said:
        return cls(whole=whole, span=phrase.span, kind=phrase.kind, noun=phrase.noun, deep=scene.deep)

    @property
    def text(self) -> str:
        return self.whole[slice(*self.span)]

    @property
    def thing(self) -> str:
        return self.noun or "thing"

    @property
    def where(self) -> str:
        return "in deep memory" if self.deep else "in mind"

    def means(
        self, entities: Sequence[Entity], confidence: float, why: str, *, others: Sequence[Entity] = ()
    ) -> Reference:
        if self.deep and self.kind not in {"id", "name"}:
            return self.asks([*entities, *others], why)
        if self.deep:
            confidence, why = confidence * _IN_DEEP_MEMORY, self._placed(why)
        share = round((1 - confidence) / (len(others) + 1), 2)
        candidates = [Candidate(entity=entity, confidence=round(confidence, 2), why=why) for entity in entities]
        candidates += [Candidate(entity=entity, confidence=share, why="it would fit too") for entity in others]
        return Reference(
            text=self.text,
            span=self.span,
            kind=self.kind,
            verdict="resolved",
            entities=tuple(entities),
            candidates=tuple(candidates[:MOST_CANDIDATES]),
            confidence=round(confidence, 2),
            why=why,
        )

    def asks(self, fitting: Sequence[Entity], why: str, *, confidence: float | None = None) -> Reference:
        if confidence is None:
            confidence = max(round(1 / (len(fitting) + 1), 2), HARDLY + 0.05)
        why = self._placed(why)
        shown = fitting[:MOST_CANDIDATES]
        return Reference(
            text=self.text,
            span=self.span,
            kind=self.kind,
            verdict="ambiguous",
            candidates=tuple(Candidate(entity=entity, confidence=confidence, why=why) for entity in shown),
            confidence=confidence,
            why=why,
            question=self._question(shown),
        )

    def means_nothing(self, why: str) -> Reference:
        return Reference(text=self.text, span=self.span, kind=self.kind, verdict="none", why=why)

    def _placed(self, why: str) -> str:
        return why if not self.deep or self.where in why else f"{why}, {self.where}"

    def _question(self, entities: Sequence[Entity]) -> str:
        names = Counter(entity.name.casefold() for entity in entities)
        shown = [_told_apart(entity) if names[entity.name.casefold()] > 1 else entity.name for entity in entities]
        if chinese.is_chinese(self.whole):
            *first, last = [f"「{name}」" for name in shown]
            return f"是哪个{self.noun}：{'、'.join(first)}还是{last}？" if first else f"是指{last}吗？"
        *first, last = shown
        return f"Which {self.noun or 'one'}: {', '.join(first)} or {last}?" if first else f"Do you mean {last}?"


def _told_apart(entity: Entity) -> str:
    """A name that others have too, with what else is known: News (page p1)."""
    type = "" if entity.type == UNTYPED else entity.type
    id = "" if entity.id == entity.name else entity.id
    known = f"{type} {id}".strip()
    return f"{entity.name} ({known})" if known else entity.name


def described(phrase: Phrase, scene: Scene) -> tuple[tuple[Entity, ...], float]:
    """What the words of a phrase fit best, of its type, and how well; nothing if they hardly fit anything."""
    fits = [(entity, scene.names.fit(phrase.words, entity)) for entity in scene.of(phrase)]
    best = max((fit for _, fit in fits), default=0.0)
    return (tuple(entity for entity, fit in fits if fit > best - 0.01), best) if best >= 0.5 else ((), 0.0)


def by_description(said: Said, phrase: Phrase, scene: Scene) -> Reference:
    """ "the red one", "the About page": words that should be in a name."""
    fitting, fit = described(phrase, scene)
    words = " ".join(phrase.words)
    if not fitting:
        pool = scene.of(phrase)
        if not pool or scene.deep:
            return said.means_nothing(f"no {said.thing} is known")
        return said.asks(pool, f'no {said.thing} is called "{words}"', confidence=HARDLY)
    if phrase.pick != "recent" or phrase.many:
        return replace(by_phrase(said, phrase, fitting, scene), kind="name")
    top, *rest = fitting
    if not rest:
        return said.means(fitting, 0.55 + 0.3 * fit, f'"{words}" is in its name')
    if phrase.pointing and not scene.beside(top, fitting):
        return said.means([top], 0.6, f'the most recent of {len(fitting)} with "{words}" in their names', others=rest)
    return said.asks(fitting, f'"{words}" fits {len(fitting)} of them')


def by_phrase(
    said: Said, phrase: Phrase, pool: tuple[Entity, ...], scene: Scene, named: Sequence[Entity] = ()
) -> Reference:
    """What a phrase picks among the things that it leaves possible; `named` are those that the text names besides."""
    if not pool:
        gone = next((dead for dead in scene.dead if phrase.nouns and type_matches(dead.type, phrase.nouns)), None)
        if gone is not None and not phrase.deleted:
            return said.means_nothing(f'"{gone.name}" was deleted, and no other {said.thing} is known')
        return said.means_nothing(f"no {'deleted ' if phrase.deleted else ''}{said.thing} is known")
    match phrase.pick:
        case "place":
            return _by_place(said, phrase, pool, scene)
        case "other":
            return _by_otherness(said, phrase, pool, scene, named)
        case "previous":
            return _by_precedence(said, phrase, pool, scene)
        case "oldest":
            return _oldest(said, phrase, pool, scene)
        case "newest":
            return _newest(said, phrase, pool, scene)
        case "recent":
            return _several(said, phrase, pool, scene) if phrase.many else _one(said, phrase, pool, scene)


def _one(said: Said, phrase: Phrase, pool: tuple[Entity, ...], scene: Scene) -> Reference:
    top, *rest = pool
    gone = scene.just_deleted
    if gone is not None and not phrase.deleted and (not phrase.nouns or type_matches(gone.type, phrase.nouns)):
        return _after_a_deletion(said, pool, gone)
    if top.deleted:
        return said.means([top], 0.8, f"the {said.thing} that was deleted last", others=rest)
    if phrase.deleted:
        return said.asks(pool, f"no {said.thing} was deleted", confidence=HARDLY)
    if not rest:
        return said.means([top], 0.95, f"the only {said.thing} {said.where}")
    if scene.deep:
        return said.asks(pool, f"{len(pool)} of them are known")
    if top.parent and top in scene.parts:
        return said.asks(pool, f"{len(pool)} of them are in {top.parent[1]}")
    listed = scene.beside(top, pool)
    if phrase.narrowed:
        return said.asks((top, *listed) if listed else pool, _NARROWED)
    if not listed:
        return said.means([top], 0.9, f"the most recent {said.thing}", others=rest)
    if len(listed) >= DEFAULT_MAX_PER_LIST:
        return said.means([top], 0.8, f"the first of {len(listed) + 1} that were listed together", others=rest)
    if not phrase.pointing:
        return said.asks((top, *listed), f"{len(listed) + 1} of them were listed together")
    why = f"the first of {len(listed) + 1} that were listed together, though any of them would fit"
    return said.means([top], 0.7, why, others=rest)


_NARROWED = "the words behind it say which, and they describe what we do not know"


def _after_a_deletion(said: Said, pool: tuple[Entity, ...], gone: Entity) -> Reference:
    alike = tuple(entity for entity in pool if canonical_type(entity.type) == canonical_type(gone.type))
    why = f'"{gone.name}" was just deleted'
    if len(alike) != 1:
        return said.asks(alike or pool, why)
    others = [entity for entity in pool if entity not in alike]
    return said.means(alike, 0.55, f"{why}, and this is the only other {gone.type}", others=others)


def _several(said: Said, phrase: Phrase, pool: tuple[Entity, ...], scene: Scene) -> Reference:
    top, *rest = pool
    listed = _still_listed(phrase, pool, scene)
    if phrase.narrowed and rest:
        return said.asks(listed or pool, _NARROWED)
    if phrase.count:
        return _so_many(said, phrase, pool, scene)
    if phrase.loose and not 1 <= len(scene.beside(top, pool)) < DEFAULT_MAX_PER_LIST:
        return _one(said, phrase, pool, scene)
    if phrase.nouns and not phrase.pointing:
        every = scene.everything(pool)
        return said.asks(every, _CUT) if scene.is_cut(every) else said.means(every, 0.7, f"every {said.thing} in mind")
    alike = tuple(takewhile(lambda e: e.action and (e.type, e.action) == (top.type, top.action), pool))
    if len(alike) > 1 and not scene.beside(top, pool):  # two pages, created one by one
        return said.means(alike, 0.55, f"the last for which the tool was to {top.action}")
    if listed and (listed[0].key == top.key or not is_plural(top.type)):
        if scene.is_cut(listed):
            return said.asks(listed, _CUT)
        return said.means(listed, 0.55, "those that were listed together last")
    return said.means([top], 0.55, f"the most recent {said.thing}", others=rest)


_CUT = "there were more in the list than are known here"


def _so_many(said: Said, phrase: Phrase, pool: tuple[Entity, ...], scene: Scene) -> Reference:
    count, listed = phrase.count, _still_listed(phrase, pool, scene)
    if len(listed) == count:
        return said.means(listed, 0.9, f"the {count} that were listed together")
    if len(pool) == count:
        return said.means(pool, 0.85, f"every {said.thing} in mind")
    if len(pool) < count:
        return said.asks(pool, f"only {len(pool)} of them in mind")
    if phrase.whole:
        return said.asks(pool, f"{len(pool)} of them are in mind, and not {count}")
    return said.means(pool[:count], 0.55, f"the {count} most recent", others=pool[count:])


def _still_listed(phrase: Phrase, pool: tuple[Entity, ...], scene: Scene) -> tuple[Entity, ...]:
    """What is left in mind of the last list, if that is more than one: these, and what rides beside them."""
    held = (entity for entity in scene.row(phrase, pool) if scene.holds(entity) and entity.deleted == phrase.deleted)
    row = tuple(entity for entity in held if entity in pool or not entity.parent)
    return row if len(row) > 1 else ()


def _by_place(said: Said, phrase: Phrase, pool: tuple[Entity, ...], scene: Scene) -> Reference:
    """Counted in the last list that was shown, else by age."""
    listed = scene.row(phrase, pool)
    if phrase.numbered:
        numbered = [entity for entity in (*pool, *listed) if entity.id.lstrip("#") == str(phrase.place)]
        if numbered and numbered[0].deleted and not phrase.deleted:
            return said.means_nothing(f'"{numbered[0].name}" was deleted')
        if numbered:
            return replace(said, kind="id").means(numbered[:1], 0.9, "that number is its id")
        if not listed:
            return said.asks(pool, f"there is no list of them, and none has the id {phrase.place}", confidence=HARDLY)
    row, where, sure = (
        (listed, "in the last list", 0.8) if listed else (scene.by_age(pool), "by when they were first seen", 0.5)
    )
    left = row if phrase.deleted else tuple(entity for entity in row if not entity.deleted)
    if phrase.place < 0 and scene.is_cut(listed):
        return said.asks(left[-MOST_CANDIDATES:], _CUT)
    if phrase.place == -1 and not phrase.count:
        if pool[0] not in listed:  # after something else, "the last one" is simply the most recent
            return said.means(pool[:1], 0.6, "the most recent", others=pool[1:])
        if pool[0] != left[-1] and not scene.is_untouched(listed):
            return said.asks([pool[0], left[-1]], f'"{pool[0].name}" was used last, "{left[-1].name}" was listed last')
    chosen, without_the_dead = _counted(phrase, row), _counted(phrase, left)
    if not chosen:
        return said.means_nothing(f"there are only {len(row)} {where}")
    if set(chosen) <= set(left) and without_the_dead in ((), chosen):
        why = f'"{said.text}" {where}'
        if not all(map(scene.holds, chosen)):
            return said.asks(chosen, f"{why}, and no longer in mind")
        return said.means(chosen, sure, why, others=[e for e in left if e not in chosen])
    gone = ", ".join(f'"{entity.name}"' for entity in row if entity not in left)
    fitting = tuple(entity for entity in dict.fromkeys((*chosen, *without_the_dead)) if entity in left)
    why = f"{gone} of the last list was deleted"
    return said.asks(fitting, why) if fitting else said.means_nothing(why)


def _counted(phrase: Phrase, row: tuple[Entity, ...]) -> tuple[Entity, ...]:
    """What stands at the places that a phrase says; nothing, unless all of them are there."""
    wanted = phrase.count or 1
    start = phrase.place - 1 if phrase.place > 0 else len(row) + phrase.place + 1 - wanted
    chosen = row[start : start + wanted] if start >= 0 else ()
    return chosen if len(chosen) == wanted else ()


def _by_otherness(
    said: Said, phrase: Phrase, pool: tuple[Entity, ...], scene: Scene, named: Sequence[Entity]
) -> Reference:
    """Not the one that was just spoken of. With more than one left, nobody can know."""
    known = {entity.key for entity in named}
    one = next((entity for entity in pool if entity.key in known), pool[0])
    rest = tuple(entity for entity in pool if entity.key not in {one.key, *known})
    if not phrase.nouns:
        rest = tuple(entity for entity in rest if canonical_type(entity.type) == canonical_type(one.type)) or rest
    if not rest:
        return said.means_nothing(f'there is no other than "{one.name}"')
    beside = {entity.key for entity in scene.beside(one, pool)}
    rest = tuple(entity for entity in rest if entity.key in beside) or rest
    if len(rest) == (phrase.count or 1):
        return said.means(rest, 0.8, f'what is not "{one.name}"')
    if phrase.many and not phrase.count:
        return said.means(rest, 0.65, f'all but "{one.name}"')
    return said.asks(rest, f'{len(rest)} of them are not "{one.name}"')


def _by_precedence(said: Said, phrase: Phrase, pool: tuple[Entity, ...], scene: Scene) -> Reference:
    """What came before the most recent; in one list nothing did, so there it is what came before the list."""
    now, *before = pool
    if listed := scene.beside(now, pool):
        together = {now.key, *(entity.key for entity in listed)}
        alike = [entity for entity in before if canonical_type(entity.type) == canonical_type(now.type)]
        earlier = [entity for entity in alike if entity.key not in together]
        if not earlier:
            return said.asks((now, *listed), f"{len(listed) + 1} of them were listed together")
        return said.means(earlier[:1], 0.6, f'the one before the list of "{now.name}"', others=earlier[1:])
    if not phrase.nouns:
        before = [entity for entity in before if canonical_type(entity.type) == canonical_type(now.type)] or before
    if before:
        return said.means(before[:1], 0.7, f'the one before "{now.name}"', others=before[1:])
    if scene.living and scene.living[0].key != now.key:
        return said.means([now], 0.6, f'the {said.thing} before "{scene.living[0].name}"')
    return said.means_nothing(f'there was none before "{now.name}"')


def _oldest(said: Said, phrase: Phrase, pool: tuple[Entity, ...], scene: Scene) -> Reference:
    first, *rest = scene.by_age(pool)
    together = [entity for entity in rest if first.first_seen and entity.first_seen == first.first_seen]
    if together and first in scene.row(phrase, pool):
        return said.asks([first, *together], f"{len(together) + 1} of them came together, before the others")
    return said.means([first], 0.7, f"the first {said.thing} that was seen", others=rest)


def _newest(said: Said, phrase: Phrase, pool: tuple[Entity, ...], scene: Scene) -> Reference:
    """Is the newest the last that was used, or the last that turned up? Where the two differ, nobody can know."""
    used, seen = pool[0], scene.by_age(pool)[-1]
    if scene.beside(used, pool):
        return _one(said, replace(phrase, pointing=False), pool, scene)
    if used.key != seen.key:
        return said.asks([used, seen], f'"{used.name}" was used last, "{seen.name}" turned up last')
    return said.means([used], 0.8, f"the most recent {said.thing}", others=pool[1:])
