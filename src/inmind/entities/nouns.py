"""Nouns as entity types: word splitting of tool names and keys, English plurals, synonyms.

Any noun can become a type, so no list of types is required.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

from inmind.core.language.spans import split_identifier


def edit_distance(first: str, second: str, *, max_distance: int) -> int:
    """Return the number of edits between two texts, or `max_distance` + 1 if there are more.

    An edit inserts, deletes or replaces a character or swaps two neighbours.
    """
    if abs(len(first) - len(second)) > max_distance:
        return max_distance + 1
    rows = [list(range(len(second) + 1))]
    for char in first:
        above, row = rows[-1], [len(rows)]
        for column, other in enumerate(second):
            best = min(above[column] + (char != other), above[column + 1] + 1, row[column] + 1)
            if len(rows) > 1 and column and char == second[column - 1] and other == first[len(rows) - 2]:
                best = min(best, rows[-2][column - 1] + 1)
            row.append(best)
        if min(row) > max_distance:
            return max_distance + 1
        rows.append(row)
    return min(rows[-1][-1], max_distance + 1)


UNTYPED = "reference"
"""Type of an id whose type is unknown."""

TYPE_ALIASES = {"image": "media"}
"""Two names of one type: an image and a media item with the same id are the same entity."""

# Only the last word of a compound is looked up, so one entry covers all compounds.
_IRREGULAR_PLURALS = """
    alias:aliases analysis:analyses appendix:appendices atlas:atlases axe:axes bias:biases cache:caches calorie:calories
    canvas:canvases child:children cookie:cookies crisis:crises criterion:criteria diagnosis:diagnoses gas:gases
    half:halves hero:heroes hypothesis:hypotheses index:indices leaf:leaves lens:lenses life:lives man:men
    matrix:matrices menu:menus mouse:mice movie:movies person:people pie:pies potato:potatoes quiz:quizzes shelf:shelves
    taxi:taxis thesis:theses tie:ties tomato:tomatoes tooth:teeth vertex:vertices wife:wives wolf:wolves woman:women
"""
_IRREGULAR: dict[str, str] = dict(re.findall(r"(\w+):(\w+)", _IRREGULAR_PLURALS))
_SINGULAR = {many: one for one, many in _IRREGULAR.items()}
_UNCOUNTABLE = frozenset(
    "content data equipment feedback fish furniture hardware info information luggage media metadata money news "
    "series sheep software species staff".split()
)
COMMON_TYPES = frozenset(
    "account alarm album appointment article asset bill board booking branch bug build campaign card cart case "
    "category channel chapter chat claim client collection comment commit company contact contract conversation "
    "course customer dashboard database dataset deal delivery deployment device document draft email employee "
    "entry event expense feature file flight folder form game group hotel image incident inventory invoice issue "
    "item job key label lead lesson list loan location meeting member message milestone module movie node note "
    "notebook offer order organization package page parcel passenger patient payment person photo playlist policy "
    "post product profile project property purchase query quote receipt recipe record refund release reminder "
    "report repository request reservation resource restaurant return review role room route rule run sale "
    "schedule section server service session shipment shop site song space sprint stock store story student "
    "subscription supplier survey table tag task team template tenant test thread ticket tournament train "
    "transaction trip tweet user variant vehicle vendor version video visit volume voucher website widget "
    "workflow workspace pr".split()
)
"""Entity types common in many applications. They are accepted on weaker evidence than other nouns."""

SYNONYMS: dict[str, tuple[str, ...]] = {
    one: tuple(noun for noun in group.split(", ") if noun != one)
    for group in (
        "image, media, picture, photo, pic",
        "booking, reservation",
        "post, article",
        "user, customer, client",
        "email, mail, message",
        "file, document, doc",
        "item, product",
        "task, todo",
        "issue, ticket, bug",
        "section, block",
        "meeting, appointment, event",
        "repository, repo",
        "folder, directory",
        "house, home, residence, property",
        "car, vehicle, rental, rental car",
        "song, track, music",
        "ride, cab, taxi",
        "restaurant, diner",
        "movie, film",
    )
    for one in group.split(", ")
}
"""Other words that users say for a type. Only used if no entity of the type itself matches."""


@lru_cache(maxsize=4096)
def split_words(name: str) -> tuple[str, ...]:
    """Split a tool name or key into lower-case words: cms_createPage, get-page, HTTPServer."""
    return tuple(split_identifier(name[:200]))


@lru_cache(maxsize=4096)
def plural(noun: str) -> str:
    """entry, entries; category, categories; media, media; payment_method, payment_methods."""
    front, last = _last_word(noun)
    if last in _UNCOUNTABLE or not last:
        return noun
    if last in _IRREGULAR:
        return front + _IRREGULAR[last]
    if re.search(r"(?:s|x|z|ch|sh)$", last):
        return front + last + "es"
    if re.search(r"[^aeiou]y$", last):
        return front + last[:-1] + "ies"
    return front + last + "s" if last.isascii() else noun


@lru_cache(maxsize=4096)
def singular(noun: str) -> str:
    """Return the singular of a noun; a singular noun is returned unchanged."""
    front, last = _last_word(noun)
    if last in _SINGULAR:
        return front + _SINGULAR[last]
    if last in _UNCOUNTABLE or last in _IRREGULAR or len(last) < 3 or not re.search(r"[^sui]s$", last):
        return noun
    if last.endswith("ies"):
        return f"{front}{last[:-3]}y"
    return front + (last[:-2] if re.search(r"(?:ss|x|ch|sh|[^ao]us)es$", last) else last[:-1])


def is_plural(noun: str) -> bool:
    return singular(noun) != noun or _last_word(noun)[1] in _UNCOUNTABLE


def canonical_type(type: str) -> str:
    """Return the name of a type that comparisons use."""
    return TYPE_ALIASES.get(type, type)


def _last_word(noun: str) -> tuple[str, str]:
    cut = max(noun.rfind("_"), noun.rfind(" "), noun.rfind("-")) + 1
    return noun[:cut], noun[cut:]


def head_nouns(type: str) -> tuple[str, ...]:
    """Return the nouns for a type: a payment_method is a "payment method" and a "method"."""
    parts = split_words(type)
    if not parts or type == UNTYPED:
        return ()
    full_name, last = " ".join(parts), singular(parts[-1])
    return (full_name,) if full_name == last else (full_name, last)


def type_matches(type: str, nouns: Collection[str]) -> bool:
    """Return True if one of the nouns names this type."""
    types = {canonical_type(noun) for noun in nouns}
    return any(canonical_type(head) in types for head in head_nouns(type))
