"""An event as a line of text, and a line as an event: the same both ways, or refused.

A line is whatever somebody has put there. It says what it is by plain values alone; the payload is made by the
journal's own decoder, of the kinds that there are, and has to be what it is declared as (`shape`) and make sense
(`sense`).
"""

from __future__ import annotations

import json
import re
from typing import Any, cast

from inmind.core.encoding import to_json
from inmind.core.events.base import TRUST_BY_ORIGIN, Event, EventPayload, Origin, Trust
from inmind.core.events.codec import DECODE_ERRORS, KINDS, decode_payload, encode_payload
from inmind.errors import Damaged, InvalidInput
from inmind.memory.bundle.check_types import MOST_NUMBER, misshapen
from inmind.memory.bundle.check_values import moment_with_zone, refuse_nonsense
from inmind.store.protocol import AppendResult, Key, Receipt


def line_of_event(position: int, event: Event) -> str:
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


def event_of_line(line: bytes) -> tuple[int, Event]:
    """With its position. ValueError says what is wrong with it."""
    said = _said(line, _EVENT)
    kind, origin = said["kind"], said["origin"]
    if kind not in KINDS:
        raise ValueError(f"kind {kind!r} may be a newer inmind's: upgrade inmind to read it")
    sources = cast(list[object], said["sources"])
    if not all(isinstance(source, str) and not _NO_ID.search(source) for source in sources):
        raise ValueError("sources are not a list of ids")
    event = Event(
        stream=said["stream"],
        seq=_counted(said["seq"]),
        at=moment_with_zone(said["at"]),
        payload=_payload(kind, said["body"]),
        origin=Origin(origin),
        trust=Trust(said["trust"]),
        starts_batch=said["opens"],
        sources=tuple(cast(list[str], sources)),
    )
    if event.trust > TRUST_BY_ORIGIN[event.origin]:
        raise ValueError(f"words of {origin} are trusted like {event.trust.name.lower()}")
    if _ESCAPE in line:
        to_json([event.stream, event.sources, encode_payload(event.payload)]).encode()
    return _counted(said["position"]), event


def line_of_receipt(receipt: Receipt) -> str:
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


def receipt_of_line(line: bytes) -> Receipt:
    said = _said(line, _RECEIPT)
    first, last = _counted(said["first"]), said["last"]
    if not first - 1 <= last < MOST_NUMBER:
        raise ValueError(f"an append from {first} to {last}")
    if _ESCAPE in line:
        to_json([said["stream"], said["key"], said["request"]]).encode()
    appended = AppendResult(first=first, last=last, at=moment_with_zone(said["at"]))
    return Receipt(said["stream"], Key(said["key"], said["request"]), appended)


_ESCAPE = b"\\u"
"""Half a surrogate pair can be spelt in JSON, by this alone, and stands in no store."""

_NO_ID = re.compile(r"#\d{19}|\x00")
"""No event of any stream has such a number."""

_EVENT: dict[str, type[object]] = {
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
_RECEIPT: dict[str, type[object]] = {"stream": str, "key": str, "request": str, "first": int, "last": int, "at": str}


def _said(line: bytes, members: dict[str, type[object]]) -> dict[str, Any]:
    try:
        said: Any = json.loads(line.decode())
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(said, dict) or {name: type(value) for name, value in cast(Any, said).items()} != members:
        raise ValueError(f"it is not an object of {', '.join(members)}, each of its own type")
    return cast(dict[str, Any], said)


def _counted(number: int) -> int:
    if not 0 < number < MOST_NUMBER:
        raise ValueError(f"{number} counts nothing")
    return number


def _payload(kind: str, body: str) -> EventPayload:
    try:
        what = decode_payload(kind, body)
        if wrong := misshapen(what):
            raise ValueError(wrong)
        refuse_nonsense(what)
    except Damaged as error:
        raise ValueError(f"no payload of kind {kind!r}: {error.reason}") from error
    except (InvalidInput, *DECODE_ERRORS) as error:
        raise ValueError(f"no payload of kind {kind!r}: {error}") from error
    return what
