"""Events and idempotency keys as lines of JSON, and back. Lines are untrusted input.

A line has only plain values. The payload is decoded by the decoder of the journal, and then checked against its types
(`check_types`) and for meaningful values (`check_values`).
"""

from __future__ import annotations

import json
import re
from typing import Any, cast

from inmind.core.encoding import to_json
from inmind.core.events.base import TRUST_BY_ORIGIN, Event, EventPayload, Origin, Trust
from inmind.core.events.codec import DECODE_ERRORS, KINDS, decode_payload, encode_payload
from inmind.errors import Damaged, InvalidInput
from inmind.memory.bundle.check_types import MAX_NUMBER, find_type_error
from inmind.memory.bundle.check_values import check_payload, parse_timestamp
from inmind.store.protocol import AppendResult, Key, Receipt


def encode_event_line(position: int, event: Event) -> str:
    return to_json(
        {
            "position": position,
            "stream": event.stream,
            "seq": event.seq,
            "at": event.at.isoformat(),
            "kind": event.kind,
            "origin": event.origin.value,
            "trust": int(event.trust),
            "opens": event.starts_batch,
            "sources": event.sources,
            "body": encode_payload(event.payload),
        }
    )


def decode_event_line(line: bytes) -> tuple[int, Event]:
    """The position and the event of a line. Raises ValueError for an invalid line."""
    record = _parse_record(line, _EVENT_MEMBERS)
    kind, origin = record["kind"], record["origin"]
    if kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r}: upgrade inmind if a newer version wrote this bundle")
    sources = cast(list[object], record["sources"])
    if not all(isinstance(source, str) and not _INVALID_SOURCE.search(source) for source in sources):
        raise ValueError("sources are not a list of ids")
    event = Event(
        stream=record["stream"],
        seq=_check_count(record["seq"]),
        at=parse_timestamp(record["at"]),
        payload=_decode_checked_payload(kind, record["body"]),
        origin=Origin(origin),
        trust=Trust(record["trust"]),
        starts_batch=record["opens"],
        sources=tuple(cast(list[str], sources)),
    )
    if event.trust > TRUST_BY_ORIGIN[event.origin]:
        raise ValueError(f"origin {origin} cannot have trust {event.trust.name.lower()}")
    if _ESCAPE in line:
        to_json([event.stream, event.sources, encode_payload(event.payload)]).encode()
    return _check_count(record["position"]), event


def encode_receipt_line(receipt: Receipt) -> str:
    key, appended = receipt.key, receipt.appended
    return to_json(
        {
            "stream": receipt.stream,
            "key": key.value,
            "request": key.request,
            "first": appended.first,
            "last": appended.last,
            "at": appended.at.isoformat(),
        }
    )


def decode_receipt_line(line: bytes) -> Receipt:
    record = _parse_record(line, _RECEIPT_MEMBERS)
    first, last = _check_count(record["first"]), record["last"]
    if not first - 1 <= last < MAX_NUMBER:
        raise ValueError(f"invalid range of events, {first} to {last}")
    if _ESCAPE in line:
        to_json([record["stream"], record["key"], record["request"]]).encode()
    appended = AppendResult(first=first, last=last, at=parse_timestamp(record["at"]))
    return Receipt(record["stream"], Key(record["key"], record["request"]), appended)


_ESCAPE = b"\\u"
"""Only a JSON escape can spell an unpaired surrogate, which no store accepts."""

_INVALID_SOURCE = re.compile(r"#\d{19}|\x00")
"""Event numbers have at most 18 digits."""

_EVENT_MEMBERS: dict[str, type[object]] = {
    "position": int,
    "stream": str,
    "seq": int,
    "at": str,
    "kind": str,
    "origin": str,
    "trust": int,
    "opens": bool,
    "sources": list,
    "body": str,
}
_RECEIPT_MEMBERS: dict[str, type[object]] = {
    "stream": str,
    "key": str,
    "request": str,
    "first": int,
    "last": int,
    "at": str,
}


def _parse_record(line: bytes, members: dict[str, type[object]]) -> dict[str, Any]:
    try:
        record: Any = json.loads(line.decode())
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(record, dict) or {name: type(value) for name, value in cast(Any, record).items()} != members:
        raise ValueError(f"not an object with {', '.join(members)} of the right types")
    return cast(dict[str, Any], record)


def _check_count(number: int) -> int:
    if not 0 < number < MAX_NUMBER:
        raise ValueError(f"{number} is out of range")
    return number


def _decode_checked_payload(kind: str, body: str) -> EventPayload:
    try:
        payload = decode_payload(kind, body)
        if message := find_type_error(payload):
            raise ValueError(message)
        check_payload(payload)
    except Damaged as error:
        raise ValueError(f"invalid payload of kind {kind!r}: {error.reason}") from error
    except (InvalidInput, *DECODE_ERRORS) as error:
        raise ValueError(f"invalid payload of kind {kind!r}: {error}") from error
    return payload
