"""What a key says of its value: that it is an id, and of what; or that it is nobody's business."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from inmind.entities.ids.shapes import kind_of
from inmind.entities.nouns import UNTYPED, singular, split_words

_ID_WORDS = frozenset("id ids uuid uuids guid guids uid uids identifier identifiers".split())
_CODE_WORDS = frozenset(
    "number numbers no nr num code codes ref reference sku skus isbn iban vin imei symbol ticker tracking pnr".split()
)
_PATH_WORDS = frozenset("path paths file files filepath filename filenames directory folder".split())
# A secret is not to be shown again, and a trace belongs to a machine.
NEVER = frozenset(
    "token tokens secret secrets password passwd passphrase pwd apikey credential credentials auth authorization "
    "bearer jwt otp cvv cvc ssn cookie signature nonce csrf cursor etag trace span correlation phone "
    "telephone fax zip postal postcode".split()
)
# Who or where somebody is: such a key holds a plain name where there are no ids.
_PEOPLE = frozenset(
    "assignee attendee author channel creator invitee login member organiser organizer owner participant receiver "
    "recipient reporter sender user username".split()
)
# What makes a key one that opens something.
_LOCKS = frozenset("api access private secret signing encryption ssh license".split())
_NOT_CODES = frozenset(
    "error status country area language currency state province room house page line version build exit response "
    "http color colour row column card serial_count total".split()
)
# Which of several is meant, not what it is.
MODIFIERS = frozenset(
    "new old current target source original selected my our your default primary first last next previous from to "
    "external internal existing related linked all other the parent".split()
)


class Sense(NamedTuple):
    """What a key says of its value."""

    says: str
    """`own`: the id of the object; `id`: of another; `code`: an id if it has the shape of one; `path`; `person`: who
    goes by a plain name; `name`: what something is called; `private`; `key`: it is an id itself; or nothing."""
    type: str


@lru_cache(maxsize=8192)
def sense(key: str) -> Sense:
    """`order_id` is the id of an order, `id` of the object itself, `flight_number` may be one, `price` is none."""
    parts = split_words(key)
    if not parts:
        return Sense("", UNTYPED)
    last, before = parts[-1], parts[:-1]
    if (kind := kind_of(key)) in ("id", "email"):
        return Sense("key", "email" if kind == "email" else UNTYPED)
    if not NEVER.isdisjoint(parts) or _opens_something(parts):
        return Sense("private", UNTYPED)
    if last in _ID_WORDS:
        type = noun_of(before)
        return Sense("id", type) if type else Sense("own", UNTYPED)
    if key == "key":
        return Sense("own", UNTYPED)
    if last in _CODE_WORDS:
        return Sense("code", noun_of(before) or last) if _NOT_CODES.isdisjoint(parts) else Sense("private", UNTYPED)
    if last in ("key", "keys") and before:
        return Sense("code", noun_of(before) or UNTYPED)
    noun = noun_of(before if last in ("name", "names") else parts)
    if last in _PATH_WORDS or (noun != noun_of(parts) and noun in _PATH_WORDS | {"dir"}):
        return Sense("path", "folder" if {"directory", "folder", "dir"} & set(parts) else "file")
    if noun in _PEOPLE:
        return Sense("person", noun)
    if last in ("name", "names") and noun:
        return Sense("name", noun)
    return Sense("", noun_of(parts) or UNTYPED)


def _opens_something(parts: tuple[str, ...]) -> bool:
    return any(word in _LOCKS and after in ("key", "keys") for word, after in pairwise(parts))


def noun_of(parts: tuple[str, ...]) -> str:
    named = [part for part in parts if part not in MODIFIERS and not part.isdigit()]
    return singular("_".join(named))
