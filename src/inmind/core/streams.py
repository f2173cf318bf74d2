"""Names of streams, and which resource owns one."""

from __future__ import annotations

from inmind.core.events.base import Event, EventPayload
from inmind.core.events.session import SessionOpened

SESSION_PREFIX, RESOURCE_PREFIX = "session/", "resource/"
"""How the names of streams begin."""


SETTINGS_STREAM = "settings"
"""The stream of settings, where there is no folder for them."""

ANONYMOUS = "default"
"""The resource of sessions that name none. It is nobody in particular, so its sessions are strangers to each other:
what one customer has ordered must not come up in the talk with the next."""

PRIVATE = "\x01"
"""In front of the name of whom crystals belong to that are one session's own. No resource can be called like that, and
every database can hold it, unlike NUL."""


def owner_of(stream: str, resource: str) -> str:
    """Whose crystals those of a session are: of nobody in particular, its own."""
    return f"{PRIVATE}{stream}" if resource == ANONYMOUS else resource


def owner_from_first_event(stream: str, first: EventPayload) -> str:
    """Whose a stream is, by what happened first in it; nobody's in particular where that does not tell."""
    if stream.startswith(RESOURCE_PREFIX):
        return stream.removeprefix(RESOURCE_PREFIX)
    return owner_of(stream, first.resource) if isinstance(first, SessionOpened) else ""


def opened_by(first: Event) -> SessionOpened:
    return first.payload if isinstance(first.payload, SessionOpened) else SessionOpened(resource="", cwd="")


def resource_of(first: Event) -> str:
    """Whose a stream is, by its first event."""
    own = first.stream.startswith(RESOURCE_PREFIX)
    return first.stream.removeprefix(RESOURCE_PREFIX) if own else opened_by(first).resource
