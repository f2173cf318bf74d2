"""Checks whether every id in a tool call was seen before, to detect invented ids.

It also detects misspelt ids. It reports and never rejects, because a host may know ids that no tool has shown. An id
counts as seen in the entity window, among evicted entities, in message texts, or in other sessions of the resource. The
expensive sources are read only if the cheap ones do not have the id. For an unknown id the nearest known ids are
suggested.

An id that is recognisable by its shape only has to be seen in one of these. A small number or a plain word occurs in
many texts and belongs to entities of several types, so its type must match too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice
from typing import Any, Literal

from inmind.core.events.session import EntityPart
from inmind.core.frozen import frozen
from inmind.core.text import contains_id
from inmind.entities.entity import DEFAULT_RULES, Entity, EntityRules
from inmind.entities.extract.identity import ToolName, parse_tool_name
from inmind.entities.find_ids import FoundId, find_ids, find_ids_in_text
from inmind.entities.ids import handle_kind, key_meaning, spellings
from inmind.entities.nouns import SYNONYMS, UNTYPED, canonical_type, edit_distance, split_words, type_matches
from inmind.entities.window import MIN_UNIQUE_DIGITS, Entities

IdStatus = Literal["in_window", "known", "mentioned", "other_session", "deleted", "new", "unknown"]
"""How an id relates to this session.

`in_window`: belongs to a window entity; `known`: seen before, no longer in the window; `mentioned`: only in the
text of a message or tool result; `other_session`: seen by another session of the resource; `deleted`: its
entity was deleted; `new`: a call may be the first to use it, such as a path, an email or the id of a created
entity; `unknown`: never seen."""

_RESTORE_VERBS = frozenset("restore undelete recover revert undo untrash".split())
MAX_COMPARED_IDS = 2_000
"""Number of known ids that an unknown one is compared with, newest first."""
MAX_NEAREST = 3
MAX_UNKNOWN_COMPARED = 20
"""Number of unknown ids per call for which the nearest ids are looked up."""

_CREATE_VERBS = frozenset("create insert make new register".split())
# The caller invents these, so that a repeated call can be recognised.
_CALLER_CHOSEN_WORDS = frozenset("dedupe deduplication idempotence idempotency".split())
# A client may choose the id of an entity that these verbs create.
_START_VERBS = _CREATE_VERBS | frozenset(
    "add book buy order pay place post reserve schedule send start submit transfer".split()
)


@frozen(kw_only=True)
class IdFinding:
    """The check of one id in the arguments of a call."""

    path: str
    """Path in the arguments: `items[0].id`."""
    id: str
    type: str
    status: IdStatus
    why: str
    nearest: tuple[EntityPart, ...] = ()
    """Known ids that may have been meant, nearest first; only for an unknown id."""

    def __str__(self) -> str:
        return f"{self.path}: {self.why}" if self.path else self.why


@frozen(kw_only=True)
class CallCheck:
    """The check of every id in a call."""

    tool: str
    findings: tuple[IdFinding, ...] = ()

    @property
    def unknown(self) -> tuple[IdFinding, ...]:
        """Ids that were never seen."""
        return tuple(finding for finding in self.findings if finding.status == "unknown")

    @property
    def ok(self) -> bool:
        """True if every id was seen before and none is deleted."""
        return all(finding.status not in ("unknown", "deleted") for finding in self.findings)

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        if not self.findings:
            return f"{self.tool}: no ids among the arguments"
        return "\n".join([f"{self.tool}: {self._summary()}", *(f"  {finding}" for finding in self.findings)])

    def _summary(self) -> str:
        statuses = [finding.status for finding in self.findings]
        problems = [(statuses.count(status), status) for status in ("unknown", "deleted")]
        return ", ".join(f"{n} {status} id{'s' if n > 1 else ''}" for n, status in problems if n) or "ok"


@frozen(kw_only=True)
class SessionTexts:
    """Texts of a session by author, without those of the model, which prove nothing."""

    operator: str = ""
    user: str = ""
    tools: str = ""

    def speaker_of(self, id: str) -> str:
        """Return the author who mentioned this id, or "".

        In text of the user, a word counts as an id if it has a digit, is quoted or is called an id; the user may
        omit a "#". Tool results are long enough to contain any small number, so only ids that are recognisable by
        their shape count.
        """
        if _is_marked_as_id(self.user, id) or (id[:1] == "#" and _is_marked_as_id(self.user, id[1:])):
            return "the user"
        if contains_id(self.operator, id):
            return "the operator"
        return "a tool" if _is_unmistakable(id) and contains_id(self.tools, id) else ""


def _is_marked_as_id(text: str, id: str) -> bool:
    """Return True if the text contains this word as an id and not as an ordinary word."""
    if not contains_id(text, id) or not id[-1:].isalnum():
        return False
    if any(map(str.isdigit, id)) or "@" in id or re.search(rf"[\"'(`“‘]{re.escape(id)}[\"')`”’]", text):
        return True
    match = re.search(_NAMED_AS.format(re.escape(id)), text)
    return match is not None or any(found_id.id == id for found_id in find_ids_in_text(text))


_NAMED_AS = r"(?i:\b(?:id|named?|called|username|handle)(?: is| was)?[:=]?\s+){}(?!\w)"


def check_call(
    tool: str,
    arguments: Any,
    entities: Entities,
    *,
    texts: Callable[[], SessionTexts] = SessionTexts,
    other_sessions: Callable[[], Iterable[Entities]] = tuple[Entities, ...],
    rules: EntityRules = DEFAULT_RULES,
) -> CallCheck:
    """Check every id in the arguments of a call.

    `texts` returns the texts of the session, `other_sessions` the entities of the other sessions of the resource.
    Both may be slow: each is called at most once, and only for an id that this session's entities do not have.
    """
    tool_name = parse_tool_name(tool)
    others = cache(lambda: [_SeenIds(other) for other in other_sessions()])
    checker = _CallChecker(tool_name, _SeenIds(entities), cache(texts), others)
    # A single unknown word is taken for the verb, not the type: approve(id=7).
    own_type = tool_name.type if tool_name.verb or len(tool_name.nouns) > 1 else UNTYPED
    found_ids = find_ids(arguments, own_type=own_type or UNTYPED, about_one=tool_name.about_one, rules=rules)
    return CallCheck(tool=tool, findings=tuple(map(checker.finding, found_ids)))


@dataclass
class _CallChecker:
    """Looks an id up in all sources, cheapest first."""

    tool_name: ToolName
    session_ids: _SeenIds
    texts: Callable[[], SessionTexts]
    other_sessions: Callable[[], Sequence[_SeenIds]]
    compared: int = 0

    def finding(self, found_id: FoundId) -> IdFinding:
        known = self.session_ids.find(found_id)
        if known is not None:
            return self._check_known(found_id, known)
        respelling = self.session_ids.find_respelling(found_id)
        if respelling is not None:
            return self._check_unknown(found_id, respelling)
        if speaker := self.texts().speaker_of(found_id.id):
            why = "appears in a tool result" if speaker == "a tool" else f"was mentioned by {speaker}"
            return _make_finding(found_id, "mentioned", f"{found_id.id} {why}")
        if any(other.find(found_id) for other in self.other_sessions()):
            return _make_finding(found_id, "other_session", f"{found_id.id} was seen in another session")
        if reason := _reason_to_be_new(found_id, self.tool_name):
            return _make_finding(found_id, "new", f"{found_id.id} was never seen; {reason}")
        return self._check_unknown(found_id)

    def _check_known(self, found_id: FoundId, known: EntityPart) -> IdFinding:
        entity = self.session_ids.entity(found_id, known)
        if entity is not None and entity.deleted:
            why = f'{found_id.id}, "{entity.name}", was deleted'
            if self.tool_name.verb in _RESTORE_VERBS:
                return _make_finding(found_id, "known", f"{why}; this call restores it")
            return _make_finding(found_id, "deleted", why)
        note = self._type_mismatch_note(found_id, known)
        if self.session_ids.in_window(found_id):
            return _make_finding(found_id, "in_window", f"{found_id.id} is in the window{note}")
        return _make_finding(found_id, "known", f"{found_id.id} was seen earlier{note}")

    def _check_unknown(self, found_id: FoundId, respelling: EntityPart | None = None) -> IdFinding:
        self.compared += 1
        nearest = self._find_nearest(found_id) if self.compared <= MAX_UNKNOWN_COMPARED else ()
        if respelling is not None:
            nearest = tuple(dict.fromkeys((respelling, *nearest)))[:MAX_NEAREST]
        why = f"{found_id.id} was never seen"
        if other := self.session_ids.entities.ids.get(found_id.id):
            why = f"{found_id.id} was seen as {_with_article(other.type)}, not as {_with_article(found_id.type)}"
        if nearest:
            why += f"; did you mean {' or '.join(map(_describe, nearest))}?"
        return _make_finding(found_id, "unknown", why, nearest)

    def _find_nearest(self, found_id: FoundId) -> tuple[EntityPart, ...]:
        others = chain.from_iterable(other.entities.ids for other in self.other_sessions())
        known = chain(islice(self.session_ids.entities.ids, MAX_COMPARED_IDS), islice(others, MAX_COMPARED_IDS))
        distances = {part: _distance(found_id, part) for id, part in known if id != found_id.id}
        near = {part: distance for part, distance in distances.items() if distance is not None}
        order = sorted(near, key=lambda part: (near[part] + (0 if _has_type(part, found_id.type) else 0.5), part.id))
        return tuple(order[:MAX_NEAREST])

    def _type_mismatch_note(self, found_id: FoundId, known: EntityPart) -> str:
        """Note that an id has another type than its key says.

        Only if ids of the key's type are known, because a key may name a role.
        """
        if UNTYPED in (found_id.type, known.type) or _has_type(known, found_id.type):
            return ""
        expected = any(
            _has_type(part, found_id.type) for _, part in islice(self.session_ids.entities.ids, MAX_COMPARED_IDS)
        )
        return f", but its type is {known.type}, not {found_id.type}" if expected else ""


class _SeenIds:
    """The ids one session has seen. An ambiguous id is looked up together with its type."""

    def __init__(self, entities: Entities) -> None:
        self.entities = entities

    def find(self, found_id: FoundId) -> EntityPart | None:
        part = self.entities.ids.get(found_id.id)
        if part is None or _is_unmistakable(found_id.id) or _may_be_type(part, found_id.type):
            return part
        known = chain(_iter_parts(self.entities.window), _iter_parts(self.entities.evicted_entities))
        return next((one for one in known if one.id == found_id.id and _may_be_type(one, found_id.type)), None)

    def entity(self, found_id: FoundId, known: EntityPart) -> Entity | None:
        return self.entities.get(found_id.id, None if _is_unmistakable(found_id.id) else known.type)

    def in_window(self, found_id: FoundId) -> bool:
        parts = (part for part in _iter_parts(self.entities.window) if part.id == found_id.id)
        return any(_is_unmistakable(found_id.id) or _may_be_type(part, found_id.type) for part in parts)

    def find_respelling(self, found_id: FoundId) -> EntityPart | None:
        """Return a known id that a tool showed in another spelling, with a # or in capitals.

        A spelling of the user proves nothing.
        """
        if found_id.kind != "id":
            return None
        for spelling in spellings(found_id.id)[1:]:
            part = self.entities.ids.get(spelling)
            if part and _may_be_type(part, found_id.type):
                entity = self.entities.get(part.id)
                if entity is None or entity.action:
                    return part
        return None


def _iter_parts(entities: Iterable[Entity]) -> Iterator[EntityPart]:
    for entity in entities:
        yield EntityPart(entity.type, entity.id, entity.name)
        yield from entity.parts


def _reason_to_be_new(found_id: FoundId, tool: ToolName) -> str:
    """Return why a call may be the first to use this id, or ""."""
    if found_id.kind != "id":
        return f"{_with_article(found_id.kind)} may be new"
    is_own_id, at_top = key_meaning(found_id.key).role == "own", found_id.path == found_id.key
    # "add" takes existing ids: only a plain `id` belongs to the created entity.
    creates = tool.verb in _CREATE_VERBS or (tool.verb == "add" and is_own_id)
    if at_top and creates and (is_own_id or found_id.type == tool.type):
        return "a created entity may have a new id"
    key_words = split_words(found_id.key)
    # client_order_id; a client_id belongs to a client
    named_by_client = tool.verb in _START_VERBS and "client" in key_words[:-2]
    is_request_id = "request" in key_words and "request" not in tool.nouns
    if named_by_client or is_request_id or not _CALLER_CHOSEN_WORDS.isdisjoint(key_words):
        return f"the caller chooses the {found_id.key}"
    return ""


def _is_unmistakable(id: str) -> bool:
    """Return True if the shape can only be an id."""
    return handle_kind(id) is not None or (id.isdigit() and len(id) >= MIN_UNIQUE_DIGITS)


def _may_be_type(part: EntityPart, type: str) -> bool:
    """Return True if a known id can be meant by that type. A user can fill a role."""
    if UNTYPED in (part.type, type) or _has_type(part, type) or type_matches(type, {part.type}):
        return True
    return key_meaning(type).role == "person" and type_matches(part.type, {"user", *SYNONYMS["user"]})


def _with_article(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in tuple('aeio') else 'a'} {noun}"


def _make_finding(found_id: FoundId, status: IdStatus, why: str, nearest: tuple[EntityPart, ...] = ()) -> IdFinding:
    return IdFinding(path=found_id.path, id=found_id.id, type=found_id.type, status=status, why=why, nearest=nearest)


def _describe(part: EntityPart) -> str:
    name = f' "{part.name}"' if part.name and part.name != part.id else ""
    return f"{part.id} ({part.type}{name})"


def _has_type(part: EntityPart, type: str) -> bool:
    return canonical_type(part.type) == canonical_type(type) or type_matches(part.type, {type, *SYNONYMS.get(type, ())})


def _distance(found_id: FoundId, part: EntityPart) -> float | None:
    """Return the distance between two ids, or None if they are not near.

    A name instead of the id or another spelling is distance 0; otherwise the number of typing errors counts.
    """
    checked_id, known_id = found_id.id, part.id
    if part.name and part.name.casefold() == checked_id.casefold():
        return 0.0
    plain, other = _alphanumeric(checked_id), _alphanumeric(known_id)
    if plain and plain == other:
        return 0.0
    if min(len(plain), len(other)) >= 4 and (plain.endswith(other) or other.endswith(plain)):
        return 0.5
    allowed = 1 if len(checked_id) < 6 else 2 if len(checked_id) < 12 else 3
    if abs(len(checked_id) - len(known_id)) > allowed or len(set(checked_id) ^ set(known_id)) > 2 * allowed:
        return None
    distance = edit_distance(checked_id, known_id, max_distance=allowed)
    return float(distance) if distance <= allowed else None


def _alphanumeric(id: str) -> str:
    """Return letters and digits only: "W123" for "#W123", "order7" for "ORDER-7"."""
    return "".join(filter(str.isalnum, id)).casefold()
