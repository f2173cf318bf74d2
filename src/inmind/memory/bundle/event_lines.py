"""Events and idempotency keys as lines of JSON, and back. Lines are untrusted input.

A line has only plain values. It and its payload are read with every type checked. Then the values of the payload are
checked as those of a call are: one message that cannot be parsed would break every later reader of the conversation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

from inmind.core.encoding import MAX_NUMBER, decode, to_json
from inmind.core.events import DECODE_ERRORS, KINDS, decode_payload, encode_payload
from inmind.core.events.base import TRUST_BY_ORIGIN, Event, EventId, EventPayload, Origin, Trust
from inmind.core.events.crystals import NoteWithdrawn
from inmind.core.events.documents import DocumentWritten, ScratchpadStarted, ScratchpadWritten, SettingsWritten
from inmind.core.events.dreams import PageLine
from inmind.core.events.session import EntitySighting, MessageAdded, Stub, SystemSet
from inmind.core.frozen import frozen
from inmind.core.messages import get_format
from inmind.core.paths import check_name, working_directory
from inmind.documents.document import resolve_path, validate_text
from inmind.documents.overview.page import LANGUAGES
from inmind.dreams.page.page import Section
from inmind.errors import Damaged, InvalidInput
from inmind.search.crystal import KINDS as KINDS_OF_CRYSTALS
from inmind.search.extract import parse_time
from inmind.store.protocol import AppendResult, Key, Receipt

L = TypeVar("L")


@frozen
class EventLine:
    """The members of an event's line."""

    position: int
    stream: str
    seq: int
    at: str
    kind: str
    origin: str
    trust: int
    opens: bool
    sources: tuple[str, ...]
    body: str


@frozen
class ReceiptLine:
    """The members of an idempotency key's line."""

    stream: str
    key: str
    request: str
    first: int
    last: int
    at: str


def encode_event_line(position: int, event: Event) -> str:
    at, origin, body = event.at.isoformat(), event.origin.value, encode_payload(event.payload)
    head = (position, event.stream, event.seq, at, event.kind, origin, int(event.trust), event.starts_batch)
    return to_json(EventLine(*head, event.sources, body))


def decode_event_line(line: bytes) -> tuple[int, Event]:
    """The position and the event of a line. Raises ValueError for an invalid line."""
    record = _decode_line(EventLine, line)
    if record.kind not in KINDS:
        raise ValueError(f"unknown kind {record.kind!r}: upgrade inmind if a newer version wrote this bundle")
    if any(map(_INVALID_SOURCE.search, record.sources)):
        raise ValueError("sources are not a list of ids")
    event = Event(
        stream=record.stream,
        seq=_check_count(record.seq),
        at=parse_timestamp(record.at),
        payload=_decode_checked_payload(record.kind, record.body),
        origin=Origin(record.origin),
        trust=Trust(record.trust),
        starts_batch=record.opens,
        sources=record.sources,
    )
    if event.trust > TRUST_BY_ORIGIN[event.origin]:
        raise ValueError(f"origin {record.origin} cannot have trust {event.trust.name.lower()}")
    if _ESCAPE in line:
        to_json([event.stream, event.sources, event.payload]).encode()
    return _check_count(record.position), event


def encode_receipt_line(receipt: Receipt) -> str:
    key, appended = receipt.key, receipt.appended
    at = appended.at.isoformat()
    return to_json(ReceiptLine(receipt.stream, key.value, key.request, appended.first, appended.last, at))


def decode_receipt_line(line: bytes) -> Receipt:
    record = _decode_line(ReceiptLine, line)
    if not _check_count(record.first) - 1 <= record.last:
        raise ValueError(f"invalid range of events, {record.first} to {record.last}")
    if _ESCAPE in line:
        to_json([record.stream, record.key, record.request]).encode()
    appended = AppendResult(first=record.first, last=record.last, at=parse_timestamp(record.at))
    return Receipt(record.stream, Key(record.key, record.request), appended)


_ESCAPE = b"\\u"
"""Only a JSON escape can spell an unpaired surrogate, which no store accepts."""

_INVALID_SOURCE = re.compile(r"#\d{19}|\x00")
"""Event numbers have at most 18 digits."""


def _decode_line(kind: type[L], line: bytes) -> L:
    try:
        return decode(kind, json.loads(line.decode()), strict=True)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    except TypeError as error:  # a member is missing or unknown
        raise ValueError(str(error)) from error


def _check_count(number: int) -> int:
    if not 0 < number < MAX_NUMBER:
        raise ValueError(f"{number} is out of range")
    return number


def _decode_checked_payload(kind: str, body: str) -> EventPayload:
    try:
        payload = decode_payload(kind, body, strict=True)
        _check_values(payload)
    except (Damaged, InvalidInput, *DECODE_ERRORS) as error:
        reason = error.reason if isinstance(error, Damaged) else error
        raise ValueError(f"invalid payload of kind {kind!r}: {reason}") from error
    return payload


def parse_timestamp(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    try:
        return at.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{text!r} is not a timestamp") from error


def _check_values(value: Any) -> None:
    """Raise ValueError or InvalidInput for an invalid payload, or an invalid part of one."""
    match value:
        case SettingsWritten():
            raise ValueError("settings are not an event of a session or a resource")
        case MessageAdded():
            get_format(value.format).check(value.wire, field="wire")
        case SystemSet():
            get_format(value.format).check_system(value.system, field="system")
        case Stub():
            for wire in value.messages:
                get_format(value.format).check(wire, field="stubs")
        case DocumentWritten(path=path, text=text):
            resolve_path(path)
            validate_text(text)
        case ScratchpadWritten(text=text) | ScratchpadStarted(state=str(text)):
            validate_text(text)
        case EntitySighting():
            texts = (value.type, value.id, value.name, value.action, *value.aliases, *(value.parent or ()))
            validate_text("".join(texts) + "".join(text for part in value.parts for text in part[:3]))
        case NoteWithdrawn():
            _check_ids([value.note])
        case PageLine():
            Section(value.section)
            Trust(value.trust)
        case _:
            pass
    for name in getattr(value, "__match_args__", ()):
        inner = getattr(value, name)
        if name in _CHECKS:
            _CHECKS[name](inner)
        elif isinstance(inner, tuple):
            for part in cast(tuple[object, ...], inner):
                _check_values(part)


def _check_time(text: str) -> None:
    """A timestamp, or empty."""
    if text and parse_time(text) is None:
        raise ValueError(f"{text[:50]!r} is not a timestamp")


def _check_ids(ids: Iterable[str]) -> None:
    for id in ids:
        if EventId.parse(id) is None:
            raise ValueError(f"{id[:50]!r} is not the id of a note")


def _one_of(*accepted: str) -> Callable[[str], None]:
    def check(value: str) -> None:
        if value not in accepted:
            raise ValueError(f"{value[:50]!r} is not one of {', '.join(accepted)}")

    return check


def _check_amount(amount: str) -> None:
    """An exact amount of limited length."""
    if not re.fullmatch(r"[0-9]{1,40}(?:\.[0-9]{1,40})?", amount):
        raise ValueError(f"{amount[:50]!r} is not an amount")


def _between(least: int, most: int) -> Callable[[float], None]:
    def check(number: float) -> None:
        if not least <= number <= most:
            raise ValueError(f"{number} is not between {least} and {most}")

    return check


_CHECKS: Mapping[str, Callable[[Any], object]] = {
    **dict.fromkeys(("lease_until", "as_of", "since", "last_seen", "last_used"), parse_timestamp),
    **dict.fromkeys(("at", "date"), _check_time),
    "amount": _check_amount,
    "category": _one_of(*KINDS_OF_CRYSTALS),
    "cwd": working_directory,
    "format": get_format,
    "importance": _between(0, 1),
    "language": _one_of(*LANGUAGES),
    "notes": _check_ids,
    "resource": lambda name: check_name(name, "resource"),
    "valence": _between(-1, 1),
}
"""Checks by the name of the field: a name means the same in every payload."""
