"""How payloads are stored: one JSON object for each event, and the table of kinds that picks its class."""

from __future__ import annotations

import json

from inmind.core.encoding import decode_fields, encode_fields, to_json
from inmind.core.events import crystals, documents, dreams, entities, prompt, session
from inmind.core.events.base import EventPayload
from inmind.core.events.entities import EntitySightings
from inmind.errors import Damaged

PAYLOAD_MODULES = (session, documents, entities, prompt, crystals, dreams)
"""The modules that define payloads: a payload is known once its module is imported."""

KINDS: dict[str, type[EventPayload]] = {
    kind.kind: kind
    for kind in (*EventPayload.__subclasses__(), *EntitySightings.__subclasses__())
    if hasattr(kind, "kind")
}

KINDS_SKIPPED_BY_UNDO = frozenset(
    {
        "anchor",
        "opened",
        "prompt",
        "reverted",
        "searched",
        "set_aside",
        "system",
        "tail",
        "titled",
        "tools",
        "usage",
        "wording",
    }
)
"""Kinds that `undo` steps over: what was done with the state and what a host is set up with, not changes to it."""


def encode_payload(payload: EventPayload) -> str:
    """A payload as the journal stores it: fields that have their default are not written."""
    return to_json(encode_fields(payload))


def decode_payload(kind: str, body: str) -> EventPayload:
    """A payload out of the journal. Rows are data: a kind picks a class from `KINDS`, nothing else is made."""
    try:
        return decode_fields(KINDS[kind], json.loads(body))
    except (KeyError, TypeError, ValueError) as error:
        raise Damaged(place=f"an event of kind {kind!r}", reason=str(error)) from error


DECODE_ERRORS = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""All that comes of reading a payload which is not what its fields are declared as: `decode` does not look into them,
and whoever takes events of others in has to go on."""
