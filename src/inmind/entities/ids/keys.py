"""Classifies a JSON key: whether its value is an id, and of which type, or private."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from inmind.entities.ids.shapes import handle_kind, is_credential
from inmind.entities.nouns import UNTYPED, singular, split_words

_ID_WORDS = frozenset("id ids uuid uuids guid guids uid uids identifier identifiers".split())
_CODE_WORDS = frozenset(
    "number numbers no nr num code codes ref reference sku skus isbn iban vin imei symbol ticker tracking pnr".split()
)
_PATH_WORDS = frozenset("path paths file files filepath filename filenames directory folder".split())
# Secrets must not be shown again, and trace ids are meaningless to the user.
PRIVATE_WORDS = frozenset(
    "token tokens secret secrets password passwd passphrase pwd apikey credential credentials auth authorization "
    "bearer jwt otp pin pincode pass passcode mnemonic cvv cvc ssn cookie signature nonce csrf cursor etag trace span "
    "correlation phone telephone fax zip postal postcode 密码".split()
)
# Keys for a person or place: their value is a plain name if the application has no ids.
_PERSON_WORDS = frozenset(
    "assignee attendee author channel creator invitee login member organiser organizer owner participant receiver "
    "recipient reporter sender user username".split()
)
# Words that make "key" a credential.
_SECRET_KEY_WORDS = frozenset("api access private secret signing encryption ssh license".split())
_NOT_CODE_WORDS = frozenset(
    "error status country area language currency state province room house page line version build exit response "
    "http color colour row column card serial_count total".split()
)
# Words that select one of several and do not change the type.
MODIFIERS = frozenset(
    "new old current target source original selected my our your default primary first last next previous from to "
    "external internal existing related linked all other the parent".split()
)


class KeyMeaning(NamedTuple):
    """The role of a key and the type of its value."""

    role: str
    """`own`: id of the object itself; `id`: id of another object; `code`: an id if the value has the shape of one;
    `path`; `person`: a person identified by name; `name`: a name; `private`; `key`: the key itself is an id; or ""."""
    type: str


@lru_cache(maxsize=8192)
def key_meaning(key: str) -> KeyMeaning:
    """Classify a key: `order_id` is an order's id, `id` the object's own, `price` is not an id."""
    parts = split_words(key)
    if not parts:
        return KeyMeaning("", UNTYPED)
    last, before = parts[-1], parts[:-1]
    if (kind := handle_kind(key)) in ("id", "email"):
        return KeyMeaning("key", "email" if kind == "email" else UNTYPED)
    if not PRIVATE_WORDS.isdisjoint(parts) or _is_secret_key(parts):
        return KeyMeaning("private", UNTYPED)
    if last in _ID_WORDS:
        type = noun_from_words(before)
        return KeyMeaning("id", type) if type else KeyMeaning("own", UNTYPED)
    if key == "key":
        return KeyMeaning("own", UNTYPED)
    if last in _CODE_WORDS:
        return (
            KeyMeaning("code", noun_from_words(before) or last)
            if _NOT_CODE_WORDS.isdisjoint(parts)
            else KeyMeaning("private", UNTYPED)
        )
    if last in ("key", "keys") and before:
        return KeyMeaning("code", noun_from_words(before) or UNTYPED)
    noun = noun_from_words(before if last in ("name", "names") else parts)
    if last in _PATH_WORDS or (noun != noun_from_words(parts) and noun in _PATH_WORDS | {"dir"}):
        return KeyMeaning("path", "folder" if {"directory", "folder", "dir"} & set(parts) else "file")
    if noun in _PERSON_WORDS:
        return KeyMeaning("person", noun)
    if last in ("name", "names") and noun:
        return KeyMeaning("name", noun)
    return KeyMeaning("", noun_from_words(parts) or UNTYPED)


def _is_secret_key(parts: tuple[str, ...]) -> bool:
    return any(
        (word in _SECRET_KEY_WORDS and after in ("key", "keys")) or (word, after) in _SECRET_PAIRS
        for word, after in pairwise(parts)
    )


_SECRET_PAIRS = frozenset(
    {
        *((word, code) for word in ("backup", "recovery", "verification") for code in ("code", "codes")),
        ("security", "answer"),
        ("seed", "phrase"),
    }
)


@lru_cache(maxsize=8192)
def is_credential_key(key: str) -> bool:
    """True for a key whose value grants access. A phone number is private, and no credential."""
    parts = split_words(key)
    return not _CREDENTIAL_WORDS.isdisjoint(parts) or _is_secret_key(parts)


_CREDENTIAL_WORDS = frozenset(
    "token tokens secret secrets password passwd passphrase pwd apikey credential credentials authorization bearer jwt "
    "otp pin pincode passcode mnemonic cvv cvc ssn cookie 密码".split()
)


def is_secret_key(key: str) -> bool:
    """True for a key whose value must not be shown: `api_key`, `DB_PASSWORD`."""
    return key_meaning(key).role == "private"


def has_secret(text: str) -> bool:
    """True if a text has a credential: a key by its form, `PASSWORD=…`, a password in a URL."""
    if is_credential(text) or ("://" in text and _URL_WITH_PASSWORD.search(text)):
        return True
    return "=" in text and any(is_secret_key(name) for name in _ASSIGNED.findall(text))


_URL_WITH_PASSWORD = re.compile(r"://[^\s/:@]{1,100}:[^\s/@]{1,100}@")
_ASSIGNED = re.compile(r"\b([A-Za-z_]{3,40})=\S")


def noun_from_words(parts: tuple[str, ...]) -> str:
    words = [part for part in parts if part not in MODIFIERS and not part.isdigit()]
    return singular("_".join(words))
