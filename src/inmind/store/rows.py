"""Events and receipts as database rows, the same for SQLite and PostgreSQL.

Anyone with write access to the database may have changed a row, so a row that is not a valid event raises Damaged with
its place.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any, cast

from inmind.core.encoding import from_microseconds, to_json, to_microseconds
from inmind.core.events.base import Event, Origin, Trust
from inmind.core.events.codec import KINDS, decode_payload, encode_payload
from inmind.errors import Damaged, short_repr
from inmind.store.protocol import AppendResult, Batch, Key, Receipt, StreamInfo

log = logging.getLogger("inmind")


def batch_rows(batch: Batch, stamp: int) -> list[tuple[object, ...]]:
    """Rows of a batch: seq, at, kind, origin, trust, starts_batch, sources, body."""
    return [
        (
            batch.expected + 1 + n,
            stamp,
            draft.payload.kind,
            draft.origin.value,
            int(draft.effective_trust),
            n == 0,
            _encode_sources(draft.sources),
            encode_payload(draft.payload),
        )
        for n, draft in enumerate(batch.drafts)
    ]


def event_row(event: Event) -> tuple[object, ...]:
    """The row of a stored event. Two events are equal if their rows are, even with NaN."""
    return (
        event.seq,
        to_microseconds(event.at),
        event.kind,
        event.origin.value,
        int(event.trust),
        event.starts_batch,
        _encode_sources(event.sources),
        encode_payload(event.payload),
    )


def stream_info_from_row(row: Sequence[Any]) -> StreamInfo:
    stream, version, updated, *first = row
    return StreamInfo(first=event_from_row(stream, first), version=version, updated=from_microseconds(updated))


def receipt_from_row(stream: str, key: str, row: Sequence[Any]) -> Receipt:
    request, first, last, at = row
    return Receipt(stream, Key(key, request), AppendResult(first=first, last=last, at=from_microseconds(at)))


def event_or_none(stream: str, row: Sequence[Any]) -> Event | None:
    """Decode an event while reading all streams; a damaged one is logged and returned as None."""
    try:
        return event_from_row(stream, row)
    except Damaged as error:
        log.warning("skipping an event: %s", error)
        return None


def event_from_row(stream: str, row: Sequence[Any]) -> Event:
    seq, at, kind, origin, trust, starts_batch, sources, body = row
    place = f"event {stream}#{seq}"
    if kind not in KINDS:
        raise Damaged(
            place=place, reason=f"unknown kind {short_repr(kind)}, perhaps of a newer inmind: upgrade inmind to read it"
        )
    try:
        return Event(
            stream=stream,
            seq=seq,
            at=from_microseconds(at),
            payload=decode_payload(kind, body),
            origin=Origin(origin),
            trust=Trust(trust),
            starts_batch=bool(starts_batch),
            sources=_decode_sources(sources) if sources else (),
        )
    except Damaged as error:
        raise Damaged(place=place, reason=error.reason) from error
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise Damaged(place=place, reason=str(error)) from error


def _encode_sources(sources: tuple[str, ...]) -> str | None:
    return to_json(sources) if sources else None


def _decode_sources(text: str) -> tuple[str, ...]:
    sources: Any = json.loads(text)
    if not isinstance(sources, list) or not all(isinstance(source, str) for source in cast(list[Any], sources)):
        raise ValueError(f"sources must be a list of texts, not {short_repr(text)}")
    return tuple(cast(list[str], sources))
