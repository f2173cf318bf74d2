"""What an id looks like: by the key it stands under, and by its shape.

A key can say that a value is an id; then almost anything is one, a bare number too. Without such a key only shapes
count that people do not use for anything else. A number of ten digits may be a product and may be a telephone; so
prices, dates, counts, sizes and telephone numbers are ids where the key says so and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise
from typing import Any, NamedTuple

from inmind.entities.nouns import UNTYPED, singular, words
from inmind.entities.reading import is_list, is_object, read
from inmind.entities.rules import DEFAULT_RULES, EntityRules

LONGEST = 128
MOST_TEXT = 10_000
"""Characters of a text that are searched for ids: the beginning says what it is about."""
MOST_NODES = 20_000
"""Values of one result or call that are looked at."""


@dataclass(frozen=True, slots=True)
class Found:
    """An id among the arguments of a call."""

    path: str
    key: str
    type: str
    id: str
    kind: str = "id"
    """`id`, or a `path`, an `email`, a `url`: names that a call may well use for the first time."""


# -- keys -------------------------------------------------------------------------------------------------

_ID_WORDS = frozenset("id ids uuid uuids guid guids uid uids identifier identifiers".split())
_CODE_WORDS = frozenset(
    "number numbers no nr num code codes ref reference sku skus isbn iban vin imei symbol ticker tracking pnr".split()
)
_PATH_WORDS = frozenset("path paths file files filepath filename filenames directory folder".split())
# A secret is not to be shown again, and a trace belongs to a machine.
_NEVER = frozenset(
    "token tokens secret secrets password passwd passphrase pwd apikey credential credentials auth authorization "
    "bearer jwt otp cvv cvc ssn cookie signature nonce csrf cursor etag hash checksum trace span correlation phone "
    "telephone fax mobile zip postal postcode".split()
)
# What makes a key one that opens something.
_LOCKS = frozenset("api access private secret signing encryption ssh license".split())
_NOT_CODES = frozenset(
    "error status country area language currency state province room house page line version build exit response "
    "http color colour row column card serial_count total".split()
)
# Which of several is meant, not what it is.
_MODIFIERS = frozenset(
    "new old current target source original selected my our your default primary first last next previous from to "
    "external internal existing related linked all other the parent".split()
)


class Sense(NamedTuple):
    """What a key says of its value."""

    says: str
    """`own`: the id of the object; `id`: of another; `code`: an id if it has the shape of one; `path`; `private`;
    `key`: it is an id itself; or nothing."""
    type: str


@lru_cache(maxsize=8192)
def sense(key: str) -> Sense:
    """`order_id` is the id of an order, `id` of the object itself, `flight_number` may be one, `price` is none."""
    parts = words(key)
    if not parts:
        return Sense("", UNTYPED)
    last, before = parts[-1], parts[:-1]
    if (kind := kind_of(key)) in ("id", "email"):
        return Sense("key", "email" if kind == "email" else UNTYPED)
    if not _NEVER.isdisjoint(parts) or _opens_something(parts):
        return Sense("private", UNTYPED)
    if last in _ID_WORDS:
        type = noun_of(before)
        return Sense("id", type) if type else Sense("own", UNTYPED)
    if key == "key":
        return Sense("own", UNTYPED)
    if last in _CODE_WORDS:
        return Sense("code", noun_of(before) or last) if _NOT_CODES.isdisjoint(parts) else Sense("private", UNTYPED)
    if last in _PATH_WORDS:
        return Sense("path", "folder" if {"directory", "folder"} & set(parts) else "file")
    return Sense("", noun_of(parts) or UNTYPED)


def _opens_something(parts: tuple[str, ...]) -> bool:
    return any(word in _LOCKS and after in ("key", "keys") for word, after in pairwise(parts))


def noun_of(parts: tuple[str, ...]) -> str:
    named = [part for part in parts if part not in _MODIFIERS and not part.isdigit()]
    return singular("_".join(named))


# -- shapes -----------------------------------------------------------------------------------------------

_UNITS = frozenset(
    "b kb mb gb tb pb kib mib gib bit bits g kg mg lb lbs oz ml cl dl l m cm mm km mi ft in inch inches yd s ms "
    "sec secs min mins h hr hrs d w wk mo y yr yrs am pm st nd rd th hz khz mhz ghz kw kwh wh v mv a ma mah k bn "
    "x p px pt em rem fps dpi mp usd eur gbp cad aud inr cny rmb jpy c f pc pcs pack ct star stars sqft rpm mpg "
    "mph kmh kph cal kcal psi bar nm um pax pp".split()
)
_CURRENCIES = frozenset("usd eur gbp cad aud inr cny rmb jpy chf sek nok dkk".split())
_TECHNICAL = frozenset(
    "sha256 sha512 sha1 h264 h265 base64 utf8 utf16 mpeg4 ipv4 ipv6 int32 int64 float32 x86_64".split()
)

_UUID = re.compile(r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")
_MEASURE = re.compile(r"[~≈<>]?\d[\d.,]*[-_]?([A-Za-z]+)")
_NOT_AN_ID = re.compile(
    r"\d{4}[-/.]\d\d.*"  # a date
    r"|\d{1,2}[-/.:]\d{1,2}.*"  # a date or a time
    r"|.*\d(?:am|pm|AM|PM)\b.*"
    r"|\d+(?:x\d+)+"  # a size
    r"|[vV]?\d+(?:\.\d+)+\S*"  # a version, an address of the network
    r"|\d+(?:-[a-z]+)+(?:-\d+)?"  # 4-piece, 1-on-1
    r"|[A-Za-z]+-?\d{1,2}"  # covid-19, python3
    r"|[A-Z]?[a-z]+-?(?:19|20)\d\d"  # mid-2024
    r"|[A-Z][a-z]+\d{1,3}"  # Boeing737
    r"|(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[-_./]?\d{1,4}(?:\D.*)?"
    r"|(?i:q[1-4]|fy|h[12]|ww?|week)[-_/]?(?:19|20)?\d\d"
    r"|(?:application|audio|font|image|model|multipart|text|video)/.*"  # a kind of content
    r"|\$.*|.*[%=<>{}()\[\]|\"'`\\,;!?*].*",
)
# Keys that open accounts, as their issuers mark them, and signed tokens: not to be kept wherever they stand.
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
    """A shape that people use for nothing else: letters and digits in one word that is no measure, date or version."""
    if not 4 <= len(text) <= LONGEST:
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
    if len(text) > 64 or text.lower() in _TECHNICAL or _COLOUR.fullmatch(text):
        return False
    measure = _MEASURE.fullmatch(text)
    if measure and (measure[1].islower() or measure[1].lower() in _UNITS or len(measure[1]) == 1):
        return False
    prefix = re.match(r"[A-Za-z]*", text)
    if prefix and prefix[0].lower() in _CURRENCIES and text[prefix.end() :].replace(".", "").replace(",", "").isdigit():
        return False
    if _NOT_AN_ID.fullmatch(text) or _CREDENTIAL.fullmatch(text):
        return False
    return bool(_ID.fullmatch(text)) and not _is_file(text) and not _EMAIL.fullmatch(text)


_ID = re.compile(r"#?[A-Za-z0-9](?:[A-Za-z0-9_:.#@+~-]*[A-Za-z0-9])?")


def as_id(value: object) -> str | None:
    """A value under a key that says it is an id. A number is one too; a truth, a fraction or a paragraph is not."""
    if isinstance(value, str):
        text = value.strip()
        fits = 0 < len(text) <= LONGEST and text.isprintable() and not _CREDENTIAL.fullmatch(text)
        return text if fits else None
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**30:
        return str(value)
    return None


def kind_of(text: str) -> str | None:
    """Which kind of handle a whole text is by its shape: an id, an email, a path, a url, or none."""
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


# -- arguments --------------------------------------------------------------------------------------------


def ids_in(value: object, *, own: str = UNTYPED, rules: EntityRules = DEFAULT_RULES) -> list[Found]:
    """The ids among the arguments of a call, in order; `own` is what the tool is about, which a plain `id` means."""
    found: dict[tuple[str, str], Found] = {}
    for path, key, item in _leaves(value):
        seen = _found(path, key, item, own, rules)
        if seen is not None:
            found.setdefault((seen.type, seen.id), seen)
    return list(found.values())


def _leaves(value: object) -> Iterator[tuple[str, str, Any]]:
    """Every scalar with its path and the nearest key above it, in order, without recursion."""
    pending: list[tuple[str, str, Any]] = [("", "", value)]
    for _ in range(MOST_NODES):
        if not pending:
            return
        path, key, node = pending.pop()
        if isinstance(node, str) and node[:1] in ("[", "{"):
            node = read(node)
        if is_object(node):
            pairs = islice(node.items(), MOST_NODES)
            pending.extend(reversed([(f"{path}.{k}" if path else k, k, v) for k, v in pairs]))
        elif is_list(node):
            pending.extend(reversed([(f"{path}[{n}]", key, v) for n, v in enumerate(node[:MOST_NODES])]))
        else:
            yield path, key, node


def _found(path: str, key: str, value: object, own: str, rules: EntityRules) -> Found | None:
    said = handle(key, value, rules)
    if said is None:
        return None
    type, id, kind = said
    says = sense(key).says
    return Found(path, key, rules.type_named(own) if says == "own" and key not in rules.id_keys else type, id, kind)


def handle(key: str, value: object, rules: EntityRules = DEFAULT_RULES) -> tuple[str, str, str] | None:
    """Type, id and kind of the handle that a value under a key is; None for everything else."""
    if key in rules.id_keys:
        text = as_id(value)
        return (rules.id_keys[key], text, "id") if text else None
    says, type = sense(key)
    if says == "private":
        return None
    if says in ("own", "id"):
        text = as_id(value)
        return (rules.type_named(type), text, _kind(text)) if text else None
    if not isinstance(value, str):
        return None
    text = value.strip()
    if says == "code" and is_code(text):
        return rules.type_named(type), text, "id"
    if says == "path" and 0 < len(text) <= 200 and "\n" not in text:
        return type, text, "path"
    kind = kind_of(text)
    if kind is None:
        return None
    return _KINDS.get(kind) or rules.type_named(type), text, kind


_KINDS = {"path": "file", "email": "email", "url": "url"}


def _kind(text: str) -> str:
    return "email" if "@" in text and _EMAIL.fullmatch(text) else "id"


def is_code(text: str) -> bool:
    """Under a key that speaks of a number or a code, a word with digits and letters in it."""
    return 3 <= len(text) <= 40 and text.isascii() and not text.isalpha() and text.isalnum() and not text.isdigit()


# -- texts ------------------------------------------------------------------------------------------------

# A word that may be an id, an email or a file, by what it must have; a code in capitals; a word in quotes. The look
# ahead is short, so that no text can make it look at everything from everywhere.
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9_])[#@]?"
    r"(?:(?=[\w.:/+~#-]{0,60}(?:\d|@|\.[A-Za-z]))[A-Za-z0-9][\w.:/@+~#-]*|[A-Z]{5,12}(?!\w))"
    r"|(?<=[\"'])[A-Za-z][\w-]{2,40}(?=[\"'])"
)
_CUE = re.compile(
    r"(?:([A-Za-z][A-Za-z_]{1,30})(?:'s)?[ _])?\b(id|ID|Id|number|no\.?|code|reference|ref)(?: is| was|:|=)?"
    r"\s*[\"'(#]*$"
)
_NO_TYPE = frozenset("with the its an a whose my your our their his her this that has have and use by of".split())
_NO_IDS = _NEVER | frozenset("card cvv cvc security verification house room page line".split())
_SECRET = re.compile(
    r"\b(?:password|passcode|passphrase|secret|token|api key|pin)\b\W{0,3}(?:is|was|to)?\W{0,4}$", re.IGNORECASE
)
_NOUN = re.compile(r"([A-Za-z][a-z]{1,30})\s*[:\"'(]*$")
_TYPES = frozenset(
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
    "workflow workspace".split()
)


def ids_in_text(text: str, *, rules: EntityRules = DEFAULT_RULES) -> list[Found]:
    """Ids that stand in running text, each with the type that the words before it say."""
    found: dict[str, Found] = {}
    text = text[:MOST_TEXT]
    for match in _TOKEN.finditer(text):
        token = match[0].rstrip(".:/@+~#-")
        if len(token) < 2 or token in found:
            continue
        before = text[max(0, match.start() - 40) : match.start()]
        if _SECRET.search(before):
            continue
        kind = kind_of(token)
        cue = _CUE.search(before)
        if cue is not None:
            said = (cue[1] or "").lower()
            type = "" if said in _NO_TYPE else noun_of(words(said))
            if type not in _NO_IDS and (type or kind or cue[2].lower() == "id"):
                found[token] = Found("", "", rules.type_named(type or UNTYPED), token, kind or "id")
        elif kind is not None:
            type = _KINDS.get(kind) or _type_before(before) or UNTYPED
            found[token] = Found("", "", rules.type_named(type), token, kind)
        elif _is_capitals(token) and (type := _type_before(before)):
            found[token] = Found("", "", rules.type_named(type), token)
    return list(found.values())


def _is_capitals(token: str) -> bool:
    return 5 <= len(token) <= 12 and token.isupper() and token.isalpha()


def _type_before(before: str) -> str:
    """What the word before an id says that it is: "order #W2378156"."""
    noun = _NOUN.search(before)
    type = noun[1].lower() if noun else ""
    return type if type in _TYPES else ""
