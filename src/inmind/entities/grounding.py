"""Was every id in a call ever seen? A guard against ids that a model made up, or copied wrong.

It reports and never refuses: a host may know ids that no tool has shown. What was seen counts wherever it was seen,
in the window, in what left it, in the words of a message, in other sessions of the resource, and the dear ways to
find out are gone only when the cheap ones have failed. For an id that nobody has seen it says which it may have
been meant to be.

Some ids say by their shape that they are one, and then it is enough that they were seen. A small number or a plain
word says nothing by itself: it stands in many texts and names things of many types, so more is asked of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property
from itertools import chain, islice
from typing import Any, Literal

from inmind.core.events.entities import EntityPart
from inmind.core.frozen import frozen
from inmind.core.text import stands_in
from inmind.entities.config import DEFAULT_RULES, EntityRules
from inmind.entities.edit_distance import edit_distance
from inmind.entities.entity import Entity
from inmind.entities.extract.tool_name import Tool, tool_named
from inmind.entities.ids.arguments import Found, ids_in
from inmind.entities.ids.keys import sense
from inmind.entities.ids.prose import ids_in_text
from inmind.entities.ids.shapes import kind_of
from inmind.entities.nouns import SYNONYMS, UNTYPED, canonical_type, split_words, type_matches
from inmind.entities.window import MIN_UNIQUE_DIGITS, Entities

Standing = Literal["held", "known", "heard", "elsewhere", "deleted", "new", "unknown"]
"""How an id stands with this session: in mind; seen before and no longer in mind; only in the words of a message or
of a tool; seen by another session of the resource; of a thing that was deleted; one that a call may well be the first
to use, as a path, an address, or the id of what it makes; never seen by anybody."""

_RESTORES = frozenset("restore undelete recover revert undo untrash".split())
MOST_COMPARED = 2_000
"""Known ids that an unknown one is compared with, the newest first."""
MOST_NEAREST = 3
MOST_UNKNOWN = 20
"""Unknown ids of one call for which the nearest are looked for."""

_CREATES = frozenset("create insert make new register".split())
# Whoever calls makes these up, so that a call which is repeated can be told from a second one.
_CALLERS_OWN = frozenset("dedupe deduplication idempotence idempotency".split())
# What is begun by these may be given a name by its client, under which it is known from then on.
_BEGINS = _CREATES | frozenset("add book buy order pay place post reserve schedule send start submit transfer".split())


@frozen(kw_only=True)
class Finding:
    """One id among the arguments of a call."""

    path: str
    """Where it stands in the arguments: `items[0].id`."""
    id: str
    type: str
    standing: Standing
    why: str
    nearest: tuple[EntityPart, ...] = ()
    """Known ids that it may have been meant to be, the nearest first; only for one that was never seen."""

    def __str__(self) -> str:
        return f"{self.path}: {self.why}" if self.path else self.why


@frozen(kw_only=True)
class CallCheck:
    """What is known about each id in a call."""

    tool: str
    findings: tuple[Finding, ...] = ()

    @property
    def unknown(self) -> tuple[Finding, ...]:
        """Those that were never seen."""
        return tuple(finding for finding in self.findings if finding.standing == "unknown")

    @property
    def ok(self) -> bool:
        """Was every id seen before, and is nothing among them deleted?"""
        return all(finding.standing not in ("unknown", "deleted") for finding in self.findings)

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        if not self.findings:
            return f"{self.tool}: no ids among the arguments"
        return "\n".join(
            [f"{self.tool}: {'ok' if self.ok else 'look again'}", *(f"  {each}" for each in self.findings)]
        )


@frozen(kw_only=True)
class Told:
    """The words of a session, by whose they are. The model's are not among them: they prove nothing."""

    operator: str = ""
    people: str = ""
    tools: str = ""

    def teller(self, id: str) -> str:
        """Who has said this id; empty if nobody has.

        What a person writes with a digit in it, or quotes, or calls an id, is meant, and people leave out a "#"; any
        other word of a sentence is a word. Tools write so much that any small number stands somewhere in it: there only
        what can be nothing but an id counts.
        """
        if _is_pointed(self.people, id) or (id[:1] == "#" and _is_pointed(self.people, id[1:])):
            return "a person"
        if stands_in(self.operator, id):
            return "the operator"
        return "a tool" if _speaks_for_itself(id) and stands_in(self.tools, id) else ""


def _is_pointed(text: str, id: str) -> bool:
    """Does a text hold this as an id, and not as any word of its sentences?"""
    if not stands_in(text, id) or not id[-1:].isalnum():
        return False
    if any(map(str.isdigit, id)) or "@" in id or re.search(rf"[\"'(`“‘]{re.escape(id)}[\"')`”’]", text):
        return True
    called = re.search(_CALLED.format(re.escape(id)), text)
    return called is not None or any(found.id == id for found in ids_in_text(text))


_CALLED = r"(?i:\b(?:id|named?|called|username|handle)(?: is| was)?[:=]?\s+){}(?!\w)"


def check_call(
    tool: str,
    arguments: Any,
    entities: Entities,
    *,
    told: Callable[[], Told] = Told,
    elsewhere: Callable[[], Iterable[Entities]] = tuple[Entities, ...],
    rules: EntityRules = DEFAULT_RULES,
) -> CallCheck:
    """How each id among the arguments stands.

    `told` gives every text of the session, `elsewhere` what each other session of the resource has seen. Both may be
    slow: they are asked once at most, and not for an id that the window or its past knows.
    """
    called = tool_named(tool)
    guard = _Guard(called, entities, told=told, elsewhere=elsewhere)
    # A single word that is no verb we know says what is done rather than what with: approve(id=7).
    own = called.type if called.verb or len(called.nouns) > 1 else UNTYPED
    found = ids_in(arguments, own=own or UNTYPED, one=called.about_one, rules=rules)
    return CallCheck(tool=tool, findings=tuple(map(guard.finding, found)))


class _Guard:
    """What is known, asked in the order of what it costs."""

    def __init__(
        self,
        tool: Tool,
        entities: Entities,
        *,
        told: Callable[[], Told],
        elsewhere: Callable[[], Iterable[Entities]],
    ) -> None:
        self._tool, self._here, self._told = tool, _Seen(entities), cache(told)
        self._elsewhere = cache(lambda: [_Seen(other) for other in elsewhere()])
        self._searched = 0

    def finding(self, found: Found) -> Finding:
        known = self._here.known(found)
        if known is not None:
            return self._seen(found, known)
        respelt = self._here.respelt(found)
        if respelt is not None:
            return self._unknown(found, respelt)
        if teller := self._told().teller(found.id):
            why = f"stands in what {teller} answered" if teller == "a tool" else f"was said by {teller}"
            return _finding(found, "heard", f"{found.id} {why}")
        if any(other.known(found) for other in self._elsewhere()):
            return _finding(found, "elsewhere", f"{found.id} was seen in another session")
        if may_be := _may_be_new(found, self._tool):
            return _finding(found, "new", f"{found.id} was never seen; {may_be}")
        return self._unknown(found)

    def _seen(self, found: Found, known: EntityPart) -> Finding:
        thing = self._here.thing(found, known)
        if thing is not None and thing.deleted and self._tool.verb in _RESTORES:
            return _finding(found, "known", f'{found.id}, "{thing.name}", was deleted, which this takes back')
        if thing is not None and thing.deleted:
            return _finding(found, "deleted", f'{found.id}, "{thing.name}", was deleted')
        if self._here.holds(found):
            return _finding(found, "held", f"{found.id} is in mind{self._if_mistaken(found, known)}")
        return _finding(found, "known", f"{found.id} was seen earlier{self._if_mistaken(found, known)}")

    def _unknown(self, found: Found, respelt: EntityPart | None = None) -> Finding:
        self._searched += 1
        nearest = self._nearest(found) if self._searched <= MOST_UNKNOWN else ()
        if respelt is not None:
            nearest = tuple(dict.fromkeys((respelt, *nearest)))[:MOST_NEAREST]
        meant = " or ".join(map(_shown, nearest))
        namesake = self._here.entities.ids.get(found.id)
        seen = f"was seen as {_a(namesake.type)}, not as {_a(found.type)}" if namesake else "was never seen"
        why = f"{found.id} {seen}" + (f"; perhaps {meant} was meant" if meant else "")
        return _finding(found, "unknown", why, nearest)

    def _nearest(self, found: Found) -> tuple[EntityPart, ...]:
        others = chain.from_iterable(other.entities.ids for other in self._elsewhere())
        known = chain(islice(self._here.entities.ids, MOST_COMPARED), islice(others, MOST_COMPARED))
        near = [
            (distance, part)
            for id, part in known
            if id != found.id and (distance := _distance(found, part)) is not None
        ]
        near.sort(key=lambda pair: (pair[0] + (0 if _is_a(pair[1], found.type) else 0.5), pair[1].id))
        return tuple(dict.fromkeys(part for _, part in near))[:MOST_NEAREST]

    def _if_mistaken(self, found: Found, known: EntityPart) -> str:
        """An order's id where a user's is asked for. Only said where ids of users are known: a key may name a role."""
        if UNTYPED in (found.type, known.type) or _is_a(known, found.type):
            return ""
        expected = any(_is_a(part, found.type) for _, part in islice(self._here.entities.ids, MOST_COMPARED))
        return f", but as the id of another type: {known.type}, not {found.type}" if expected else ""


class _Seen:
    """What one session has seen, asked by what a call means: an id that says nothing by itself with its type."""

    def __init__(self, entities: Entities) -> None:
        self.entities = entities

    def known(self, found: Found) -> EntityPart | None:
        part = self.entities.ids.get(found.id)
        if part is None or _speaks_for_itself(found.id) or _fits(part, found.type):
            return part
        return next((part for part in self._namesakes.get(found.id, ()) if _fits(part, found.type)), None)

    def thing(self, found: Found, known: EntityPart) -> Entity | None:
        return self.entities.get(found.id, None if _speaks_for_itself(found.id) else known.type)

    def holds(self, found: Found) -> bool:
        if _speaks_for_itself(found.id):
            return self.entities.holds(found.id)
        return any(part.id == found.id and _fits(part, found.type) for part in _parts(self.entities.window))

    def respelt(self, found: Found) -> EntityPart | None:
        """What a tool has shown in another spelling, with a # or in capitals. Tools take an id as they spell it."""
        if found.kind != "id":
            return None
        bare = found.id.removeprefix("#")
        spellings = (form for plain in (bare, bare.upper(), bare.lower()) for form in (plain, f"#{plain}"))
        known = (self.entities.ids.get(form) for form in spellings if form != found.id)
        return next((part for part in known if part and _fits(part, found.type) and self._was_shown(part)), None)

    def _was_shown(self, part: EntityPart) -> bool:
        """By a tool, rather than spelt by a person as people do."""
        thing = self.entities.get(part.id)
        return thing is None or bool(thing.action)

    @cached_property
    def _namesakes(self) -> dict[str, list[EntityPart]]:
        """Everything that goes by one of the ids that many things go by."""
        by_id: dict[str, list[EntityPart]] = {}
        for part in chain(_parts(self.entities.window), _parts(self.entities.evicted_entities)):
            if not _speaks_for_itself(part.id):
                by_id.setdefault(part.id, []).append(part)
        return by_id


def _parts(entities: Iterable[Entity]) -> Iterator[EntityPart]:
    for entity in entities:
        yield EntityPart(entity.type, entity.id, entity.name)
        yield from entity.parts


def _may_be_new(found: Found, tool: Tool) -> str:
    """Why a call may be the first to use this; empty where it may not."""
    if found.kind != "id":
        return f"{_a(found.kind)} may be new"
    own, at_top = sense(found.key).says == "own", found.path == found.key
    # Something is added by the id that it has: only a plain `id` is that of what is made.
    if at_top and (tool.verb in _CREATES or (tool.verb == "add" and own)) and (own or found.type == tool.type):
        return "what is made may be given a new id"
    spelt = split_words(found.key)
    named_by_client = tool.verb in _BEGINS and "client" in spelt[:-2]  # client_order_id: a client_id is a client's
    by_request = "request" in spelt and "request" not in tool.nouns
    if named_by_client or by_request or not _CALLERS_OWN.isdisjoint(spelt):
        return f"whoever calls chooses the {found.key}"
    return ""


def _speaks_for_itself(id: str) -> bool:
    """Can this be nothing but an id, by its shape?"""
    return kind_of(id) is not None or (id.isdigit() and len(id) >= MIN_UNIQUE_DIGITS)


def _fits(part: EntityPart, type: str) -> bool:
    """May what is known as this be meant by an id of that type? A role is filled by a user."""
    if UNTYPED in (part.type, type) or _is_a(part, type) or type_matches(type, {part.type}):
        return True
    return sense(type).says == "person" and type_matches(part.type, {"user", *SYNONYMS["user"]})


def _a(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in tuple('aeio') else 'a'} {noun}"


def _finding(found: Found, standing: Standing, why: str, nearest: tuple[EntityPart, ...] = ()) -> Finding:
    return Finding(path=found.path, id=found.id, type=found.type, standing=standing, why=why, nearest=nearest)


def _shown(part: EntityPart) -> str:
    return (
        f'{part.id} ({part.type} "{part.name}")' if part.name and part.name != part.id else f"{part.id} ({part.type})"
    )


def _is_a(part: EntityPart, type: str) -> bool:
    return canonical_type(part.type) == canonical_type(type) or type_matches(part.type, {type, *SYNONYMS.get(type, ())})


def _distance(found: Found, part: EntityPart) -> float | None:
    """How far a known id is from one that was given: a name in its place, another spelling, or a slip or two."""
    given, known = found.id, part.id
    if part.name and part.name.casefold() == given.casefold():
        return 0.0
    plain, other = _plain(given), _plain(known)
    if plain and plain == other:
        return 0.0
    if min(len(plain), len(other)) >= 4 and (plain.endswith(other) or other.endswith(plain)):
        return 0.5
    allowed = 1 if len(given) < 6 else 2 if len(given) < 12 else 3
    if abs(len(given) - len(known)) > allowed or len(set(given) ^ set(known)) > 2 * allowed:
        return None
    distance = edit_distance(given, known, max_distance=allowed)
    return float(distance) if distance <= allowed else None


def _plain(id: str) -> str:
    """Letters and digits alone: "W123" for "#W123", "order_7" for "ORDER-7"."""
    return "".join(filter(str.isalnum, id)).casefold()
