"""Events and idempotency keys as lines of JSON, and back. Lines are untrusted input.

A line has only plain values. It and its payload are read with every type checked, and then the payload is checked for
meaningful values (`check_values`).
"""

from __future__ import annotations

import json
import re
from typing import TypeVar

from inmind.core.encoding import MAX_NUMBER, decode, to_json
from inmind.core.events.base import TRUST_BY_ORIGIN, Event, EventPayload, Origin, Trust
from inmind.core.events.codec import DECODE_ERRORS, KINDS, decode_payload, encode_payload
from inmind.core.frozen import frozen
from inmind.errors import Damaged, InvalidInput
from inmind.memory.bundle.check_values import check_payload, parse_timestamp
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
    return to_json(
        EventLine(
            position=position,
            stream=event.stream,
            seq=event.seq,
            at=event.at.isoformat(),
            kind=event.kind,
            origin=event.origin.value,
            trust=int(event.trust),
            opens=event.starts_batch,
            sources=event.sources,
            body=encode_payload(event.payload),
        )
    )


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
        check_payload(payload)
    except Damaged as error:
        raise ValueError(f"invalid payload of kind {kind!r}: {error.reason}") from error
    except (InvalidInput, *DECODE_ERRORS) as error:
        raise ValueError(f"invalid payload of kind {kind!r}: {error}") from error
    return payload
