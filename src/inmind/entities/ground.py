"""Was every id in a call ever seen? A guard against ids that a model made up, or copied wrong.

It reports and never refuses: a host may know ids that no tool has shown. What was seen counts wherever it was seen,
in the window, in what left it, in the words of a message, in other sessions of the resource, and the dear ways to
find out are gone only when the cheap ones have failed. For an id that nobody has seen it says which it may have
been meant to be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice
from typing import Any, Literal

from inmind.entities.extract.calls import tool_named
from inmind.entities.ids.arguments import Found, ids_in
from inmind.entities.nouns import UNTYPED, same_type
from inmind.entities.resolve.reference import SAME_NOUN, is_called
from inmind.entities.resolve.spelling import slips
from inmind.entities.rules import DEFAULT_RULES, EntityRules
from inmind.entities.window import Entities
from inmind.journal import Part

Standing = Literal["held", "known", "heard", "elsewhere", "deleted", "new", "unknown"]
"""How an id stands with this session: in mind; seen before and no longer in mind; only in the words of a message;
seen by another session of the resource; of a thing that was deleted; a path or an address that a call may well be
the first to use; never seen by anybody."""

MOST_COMPARED = 2_000
"""Known ids that an unknown one is compared with, the newest first."""
MOST_NEAREST = 3
MOST_UNKNOWN = 50
"""Unknown ids of one call for which the nearest are looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One id among the arguments of a call."""

    path: str
    """Where it stands in the arguments: `items[0].id`."""
    id: str
    type: str
    standing: Standing
    why: str
    nearest: tuple[Part, ...] = ()
    """Known ids that it may have been meant to be, the nearest first; only for one that was never seen."""

    def __str__(self) -> str:
        return f"{self.path}: {self.why}" if self.path else self.why


@dataclass(frozen=True, slots=True, kw_only=True)
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

    def __str__(self) -> str:
        if not self.findings:
            return f"{self.tool}: no ids among the arguments"
        return "\n".join(
            [f"{self.tool}: {'ok' if self.ok else 'look again'}", *(f"  {each}" for each in self.findings)]
        )


def check_call(
    tool: str,
    arguments: Any,
    entities: Entities,
    *,
    heard: Callable[[str], bool] = lambda _: False,
    elsewhere: Callable[[], Mapping[str, Part]] = dict[str, Part],
    rules: EntityRules = DEFAULT_RULES,
) -> CallCheck:
    """How each id among the arguments stands.

    `heard` says whether an id is in any text of the session, `elsewhere` gives what other sessions of the resource
    have seen. Both may be slow: neither is asked about an id that the window or its past knows.
    """
    guard = _Guard(entities, heard=heard, elsewhere=cache(elsewhere))
    about = tool_named(tool).type or UNTYPED
    return CallCheck(tool=tool, findings=tuple(map(guard.finding, ids_in(arguments, own=about, rules=rules))))


class _Guard:
    """What is known, asked in the order of what it costs."""

    def __init__(
        self, entities: Entities, *, heard: Callable[[str], bool], elsewhere: Callable[[], Mapping[str, Part]]
    ) -> None:
        self._entities, self._heard, self._elsewhere = entities, heard, elsewhere
        self._searched = 0

    def finding(self, found: Found) -> Finding:
        known = self._entities.ids.get(found.id)
        thing = self._entities.get(found.id) if known is not None else None
        if thing is not None and thing.deleted:
            return _finding(found, "deleted", f'{found.id}, "{thing.name}", was deleted')
        if self._entities.holds(found.id):
            return _finding(found, "held", f"{found.id} is in mind{self._if_mistaken(found, known)}")
        if known is not None:
            return _finding(found, "known", f"{found.id} was seen earlier{self._if_mistaken(found, known)}")
        if self._heard(found.id):
            return _finding(found, "heard", f"{found.id} was said in this session, by no tool")
        if found.id in self._elsewhere():
            return _finding(found, "elsewhere", f"{found.id} was seen in another session")
        if found.kind != "id":
            return _finding(found, "new", f"{found.id} was never seen; a {found.kind} may be new")
        return self._unknown(found)

    def _unknown(self, found: Found) -> Finding:
        self._searched += 1
        nearest = self._nearest(found) if self._searched <= MOST_UNKNOWN else ()
        meant = " or ".join(map(_shown, nearest))
        why = f"{found.id} was never seen" + (f"; perhaps {meant} was meant" if meant else "")
        return _finding(found, "unknown", why, nearest)

    def _nearest(self, found: Found) -> tuple[Part, ...]:
        known = chain(
            islice((part for _, part in self._entities.ids), MOST_COMPARED),
            islice(self._elsewhere().values(), MOST_COMPARED),
        )
        near = [(distance, part) for part in known if (distance := _distance(found, part)) is not None]
        near.sort(key=lambda pair: (pair[0] + (0 if _is_a(pair[1], found.type) else 0.5), pair[1].id))
        return tuple(dict.fromkeys(part for _, part in near))[:MOST_NEAREST]

    def _if_mistaken(self, found: Found, known: Part | None) -> str:
        """An order's id where a user's is asked for. Only said where ids of users are known: a key may name a role."""
        if known is None or UNTYPED in (found.type, known.type) or _is_a(known, found.type):
            return ""
        expected = any(_is_a(part, found.type) for _, part in islice(self._entities.ids, MOST_COMPARED))
        return f", but as the id of another type: {known.type}, not {found.type}" if expected else ""


def _finding(found: Found, standing: Standing, why: str, nearest: tuple[Part, ...] = ()) -> Finding:
    return Finding(path=found.path, id=found.id, type=found.type, standing=standing, why=why, nearest=nearest)


def _shown(part: Part) -> str:
    return (
        f'{part.id} ({part.type} "{part.name}")' if part.name and part.name != part.id else f"{part.id} ({part.type})"
    )


def _is_a(part: Part, type: str) -> bool:
    return same_type(part.type) == same_type(type) or is_called(part.type, {type, *SAME_NOUN.get(type, ())})


def _distance(found: Found, part: Part) -> float | None:
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
    distance = slips(given, known, most=allowed)
    return float(distance) if distance <= allowed else None


def _plain(id: str) -> str:
    """Letters and digits alone: "W123" for "#W123", "order_7" for "ORDER-7"."""
    return "".join(filter(str.isalnum, id)).casefold()
