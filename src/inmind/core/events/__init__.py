"""All kinds of events, and the encoding of their payloads as JSON."""

from __future__ import annotations

import json

from inmind.core.encoding import decode, to_json
from inmind.core.events import crystals, documents, dreams, session
from inmind.core.events.base import EventPayload
from inmind.core.events.session import EntitySightings
from inmind.errors import Damaged

PAYLOAD_MODULES = (session, documents, crystals, dreams)
"""The modules that define payloads. They must be imported before `KINDS` is built."""

KINDS: dict[str, type[EventPayload]] = {
    kind.kind: kind
    for kind in (*EventPayload.__subclasses__(), *EntitySightings.__subclasses__())
    if hasattr(kind, "kind")
}

KINDS_SKIPPED_BY_UNDO = frozenset(
    "anchor opened prompt reverted searched set_aside system tail titled tools usage wording".split()
)
"""Kinds that `undo` does not count as a step: they record prompts, searches and setup, not changes to the memory."""


def encode_payload(payload: EventPayload) -> str:
    """Return the JSON text of a payload, without fields that have their default value."""
    return to_json(payload)


def decode_payload(kind: str, body: str, *, strict: bool = False) -> EventPayload:
    """Return the payload for a stored kind and JSON text.

    `strict` checks the types of all fields.
    Rows are data: a kind only selects a class from `KINDS`, so a row cannot create any other object.
    """
    try:
        return decode(KINDS[kind], json.loads(body), strict=strict)
    except (KeyError, TypeError, ValueError) as error:
        raise Damaged(place=f"an event of kind {kind!r}", reason=str(error)) from error


DECODE_ERRORS = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""Exceptions raised by reading a payload whose values do not have the declared types.

`decode_payload` does not check the types of fields. Code that reads imported events must catch these and continue."""
