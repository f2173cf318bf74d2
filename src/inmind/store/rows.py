"""Events as database rows, and named queries of SQL files, for both databases.

Anyone with write access to the database may have changed a row, so a row that is not a valid event raises Damaged with
its place. The files of PostgreSQL are in the folder `sql/postgres`.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, cast

from inmind.core.encoding import from_microseconds, to_json, to_microseconds
from inmind.core.events import KINDS, decode_payload, encode_payload
from inmind.core.events.base import Event, Origin, Trust
from inmind.errors import Damaged, short_repr

log = logging.getLogger("inmind")


def event_row(event: Event) -> tuple[object, ...]:
    """The row of an event: seq, at, kind, origin, trust, starts_batch, sources, body.

    Two events are equal if their rows are, even with NaN.
    """
    return (
        event.seq,
        to_microseconds(event.at),
        event.kind,
        event.origin.value,
        int(event.trust),
        event.starts_batch,
        to_json(event.sources) if event.sources else None,
        encode_payload(event.payload),
    )


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


def _decode_sources(text: str) -> tuple[str, ...]:
    sources: Any = json.loads(text)
    if not isinstance(sources, list) or not all(isinstance(source, str) for source in cast(list[Any], sources)):
        raise ValueError(f"sources must be a list of texts, not {short_repr(text)}")
    return tuple(cast(list[str], sources))


@cache
def load_script(name: str) -> str:
    """Return the text of a SQL file."""
    from pkgutil import get_data  # importlib.resources takes much longer to import

    return cast(bytes, get_data("inmind.store", f"sql/{name}.sql")).decode()


def load_queries(*files: str, for_sqlite: bool = False) -> Callable[[str], str]:
    """Return a function that looks up the queries of these files by name.

    `for_sqlite`: translate the queries that both databases share.
    """

    @cache
    def queries() -> dict[str, str]:
        text = "\n".join(map(load_script, files))
        if for_sqlite:
            text = _ARRAY.sub(r"IN (SELECT value FROM json_each($\1))", text).replace("tenant.", "").replace("$", "?")
        parts = re.split(r"^-- name: (\w+)$", text, flags=re.MULTILINE)[1:]
        return {
            name: "\n".join(line for line in text.splitlines() if not line.startswith("--")).strip()
            for name, text in zip(parts[::2], parts[1::2], strict=True)
        }

    return lambda name: queries()[name]


_ARRAY = re.compile(r"= ANY \(\$(\d+)::\w+\[\]\)")
