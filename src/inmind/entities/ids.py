"""Recognises an id by its shape, and by the key above it.

By its shape alone, only shapes with no other common use count. A number of ten digits may be a product or a telephone
number, so prices, dates, counts, sizes and telephone numbers are ids only if their key says so.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise, product
from typing import NamedTuple

from inmind.entities.nouns import COMMON_TYPES, UNTYPED, singular, split_words

MAX_ID_CHARS = 128

_UNITS = frozenset(
    "b kb mb gb tb pb kib mib gib bit bits g kg mg lb lbs oz ml cl dl l m cm mm km mi ft in inch inches yd s ms "
    "sec secs min mins h hr hrs d w wk mo y yr yrs am pm st nd rd th hz khz mhz ghz kw kwh wh v mv a ma mah k bn "
    "x p px pt em rem fps dpi mp usd eur gbp cad aud inr cny rmb jpy c f pc pcs pack ct star stars sqft rpm mpg "
    "mph kmh kph cal kcal psi bar nm um pax pp".split()
)
_CURRENCIES = frozenset("usd eur gbp cad aud inr cny rmb jpy chf sek nok dkk".split())
_TECHNICAL_TERMS = frozenset(
    "sha256 sha512 sha1 h264 h265 base64 utf8 utf16 mpeg4 ipv4 ipv6 int32 int64 float32 x86_64".split()
)

_UUID = re.compile(r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")
_MEASURE = re.compile(r"[~≈<>]?\d[\d.,]*[-_]?([A-Za-z]+)")
_NOT_AN_ID = re.compile(
    r"\d{4}[-/.]\d\d.*"  # a date
    r"|\d{1,2}[-/.:]\d{1,2}.*"  # a date or a time
    r"|.*\d(?:am|pm|AM|PM)\b.*"
    r"|\d+(?:x\d+)+"  # a size
    r"|[vV]?\d+(?:\.\d+)+\S*"  # a version or an IP address
    r"|\d+(?:-[a-z]+)+(?:-\d+)?"  # 4-piece, 1-on-1
    r"|[A-Za-z]+\d{1,2}"  # python3
    r"|[a-z]+-?\d+[a-z]{1,2}"  # gpt-4o
    r"|[a-z]+\d+(?:\.\d+)+"  # python3.11
    r"|\d+[a-z]\d+[a-z]?"  # 7h30m, 5e10
    r"|[a-z]*(?:[A-Z][a-z]+)+\d+(?:[A-Z][a-z]+)+"  # iPhone15Pro
    r"|[A-Z]?[a-z]+-?(?:19|20)\d\d"  # mid-2024
    r"|[A-Z][a-z]+\d{1,3}"  # Boeing737
    r"|(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[-_./]?\d{1,4}(?:\D.*)?"
    r"|(?i:q[1-4]|fy|h[12]|ww?|week)[-_/]?(?:19|20)?\d\d"
    r"|(?:application|audio|font|image|model|multipart|text|video)/.*"  # a MIME type
    r"|\$.*|.*[%=<>{}()\[\]|\"'`\\,;!?*].*",
)
# API keys with the prefixes of their issuers, and signed tokens: never stored.
_CREDENTIAL = re.compile(
    r"(?:sk|pk|rk)[-_](?:live|test|proj|ant)[-_].*|sk-[A-Za-z0-9]{16,}|gh[opsur]_.*|github_pat_.*|glpat-.*|xox[abeprs]-.*"
    r"|A(?:KIA|SIA)[A-Z0-9]{12,}|AIza[\w-]{20,}|eyJ[\w-]{8,}\..*"
)
_COLOUR = re.compile(r"#(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})")
_EMAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}")
_URL = re.compile(r"(?:https?://|www\.)[^\s<>\"')\]]{3,200}")
_EXTENSIONS = frozenset(
    "txt md pdf doc docx xls xlsx csv tsv ppt pptx json jsonl yaml yml toml xml html htm css js jsx ts tsx py "
    "ipynb rb rs go java kt c h cpp hpp cs php sh sql log ini cfg conf env lock png jpg jpeg gif svg webp mp3 mp4 "
    "mov wav zip tar gz zst rtf odt tex bib eml ics db sqlite parquet swift scala lua pl r m vue".split()
)
_FILE = re.compile(r"(?:[\w~.@-]{0,100}/){0,20}[\w@+-][\w.@+-]{0,100}\.(\w{1,7})")


def looks_like_id(text: str) -> bool:
    """Return True for letters and digits in one word that is not a measure, date or version."""
    if not 4 <= len(text) <= MAX_ID_CHARS:
        return False
    digits = sum(map(str.isdigit, text))
    if not digits:
        return False
    if digits == len(text) - 1 and text[0] == "#":
        return digits >= 3
    if not any(map(str.isalpha, text)) or not text.isascii() or any(map(str.isspace, text)):
        return False
    if _UUID.fullmatch(text):
        return True
    if len(text) > 64 or text.lower() in _TECHNICAL_TERMS or _COLOUR.fullmatch(text):
        return False
    measure = _MEASURE.fullmatch(text)
    if measure and (measure[1].islower() or measure[1].lower() in _UNITS or len(measure[1]) == 1):
        return False
    prefix = re.match(r"[A-Za-z]*", text)
    if prefix and prefix[0].lower() in _CURRENCIES and text[prefix.end() :].replace(".", "").replace(",", "").isdigit():
        return False
    short = _SHORT_ID.fullmatch(text)
    if short:
        return _is_id_prefix(short[1])
    if _NOT_AN_ID.fullmatch(text) or _CREDENTIAL.fullmatch(text):
        return False
    return bool(_ID.fullmatch(text)) and not _is_file(text) and not _EMAIL.fullmatch(text)


_ID = re.compile(r"#?[A-Za-z0-9](?:[A-Za-z0-9_:.#@+~-]*[A-Za-z0-9])?")


_SHORT_ID = re.compile(r"([A-Za-z]+)-(\d{1,2})")
_NOT_PREFIXES = frozenset("covid gpt utf iso mp top mid sub pre post non top wi f b c a x t g v".split())
_ABBREVIATIONS = frozenset("img sec usr cus inv ord msg doc proj req evt prod cat sub acc".split())


def _is_id_prefix(prefix: str) -> bool:
    """Return True for the prefix of PROJ-7, INV-42 or page-12; False for covid-19 or gpt-4."""
    known = prefix.lower() in COMMON_TYPES or prefix.lower() in _ABBREVIATIONS
    return known or (prefix.isupper() and len(prefix) > 1 and prefix.lower() not in _NOT_PREFIXES)


def is_credential(text: str) -> bool:
    """Return True for an API key or a signed token."""
    return _CREDENTIAL.fullmatch(text) is not None


def parse_id(value: object) -> str | None:
    """Return a value under an id key as text. Booleans, fractions and long texts are not ids."""
    if isinstance(value, str):
        text = value.strip()
        if not 0 < len(text) <= MAX_ID_CHARS or not text.isprintable():
            return None
        return None if text[0] in "spgrxAe" and is_credential(text) else text
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**30:
        return str(value)
    return None


def handle_kind(text: str) -> str | None:
    """Return the kind of handle a whole text is by its shape: id, email, path, url, or None."""
    if len(text) > 200 or len(text) < 4 or "\n" in text or " " in text:
        return None
    if "@" in text and _EMAIL.fullmatch(text):
        return "email"
    if _URL.fullmatch(text):
        return "url"
    if "." in text and _is_file(text):
        return "path"
    return "id" if looks_like_id(text) else None


def _is_file(text: str) -> bool:
    match = _FILE.fullmatch(text)
    return match is not None and match[1].lower() in _EXTENSIONS and any(map(str.isalpha, text[: match.start(1)]))


def is_code(text: str) -> bool:
    """Return True for a word with digits and letters, under a key for numbers or codes."""
    return _CODE.fullmatch(text) is not None


_CODE = re.compile(r"(?=[^\d]*\d)(?=[\W\d_]*[A-Za-z])[A-Za-z0-9][A-Za-z0-9_-]{2,39}")


def parse_code(noun: str, value: object) -> str | None:
    """Return a value under `<noun>_number` or similar.

    A bare number counts if the noun is an entity type.
    """
    if isinstance(value, str) and is_code(value.strip()):
        return value.strip()
    return parse_id(value) if noun in COMMON_TYPES and isinstance(value, int | str) and str(value).isdigit() else None


def is_name(text: str) -> bool:
    """Return True for the name of a person or place: a few words, not a number or a sentence."""
    if not 0 < len(text) <= 60 or not text.isprintable() or text.count(" ") > 5 or text.lower() in _NOT_NAMES:
        return False
    return text[0].isalpha() and text[-1] not in ".!?;:,"


_NOT_NAMES = frozenset(
    "all any anyone both default everyone false given i it me my myself n/a none null other self system them "
    "they this that true undefined unknown us user we yes no you".split()
) | {"nobody"}  # a word of users


def spellings(id: str) -> list[str]:
    """Return an id and its other spellings: users omit the # of an order and type lower case."""
    plain = id.removeprefix("#")
    forms = (form for one in (plain, plain.upper(), plain.lower()) for form in (one, f"#{one}"))
    return list(dict.fromkeys((id, *forms)))


_ID_WORDS = frozenset("id ids uuid uuids guid guids uid uids identifier identifiers".split())
_CODE_WORDS = frozenset(
    "number numbers no nr num code codes ref reference sku skus isbn iban vin imei symbol ticker tracking pnr".split()
)
_PATH_WORDS = frozenset("path paths file files filepath filename filenames directory folder".split())
_CREDENTIAL_WORDS = frozenset(
    "token tokens secret secrets password passwd passphrase pwd apikey credential credentials authorization bearer jwt "
    "otp pin pincode passcode mnemonic cvv cvc ssn cookie 密码".split()
)
# Secrets must not be shown again, and trace ids are meaningless to the user.
PRIVATE_WORDS = _CREDENTIAL_WORDS | frozenset(
    "auth pass signature nonce csrf cursor etag trace span correlation phone telephone fax zip postal postcode".split()
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
    if last in _CODE_WORDS and not _NOT_CODE_WORDS.isdisjoint(parts):
        return KeyMeaning("private", UNTYPED)
    if last in _CODE_WORDS:
        return KeyMeaning("code", noun_from_words(before) or last)
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


_SECRET_CODES = product(("backup", "recovery", "verification"), ("code", "codes"))
_SECRET_PAIRS = frozenset({*_SECRET_CODES, ("security", "answer"), ("seed", "phrase")})


@lru_cache(maxsize=8192)
def is_credential_key(key: str) -> bool:
    """True for a key whose value grants access. A phone number is private, and no credential."""
    parts = split_words(key)
    return not _CREDENTIAL_WORDS.isdisjoint(parts) or _is_secret_key(parts)


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
