"""Names of streams, and the resource that owns a stream."""

from __future__ import annotations

from inmind.core.events.base import Event, EventPayload
from inmind.core.events.session import SessionOpened

SESSION_PREFIX, RESOURCE_PREFIX = "session/", "resource/"
"""Prefixes of stream names."""


SETTINGS_STREAM = "settings"
"""The stream of settings of a memory without a folder."""

ANONYMOUS = "default"
"""The resource of sessions that name none. Such sessions share nothing: orders of one customer must not appear in the
session of another."""

PRIVATE = "\x01"
"""Prefix of an owner that is one session. No resource name can start with it, and unlike NUL every database can store
it."""


def owner_of(stream: str, resource: str) -> str:
    """The owner of a session's crystals: its resource, or the session itself if it has none."""
    return f"{PRIVATE}{stream}" if resource == ANONYMOUS else resource


def owner_from_first_event(stream: str, first: EventPayload) -> str:
    """The owner of a stream, derived from its first event. Empty if that event names none."""
    if stream.startswith(RESOURCE_PREFIX):
        return stream.removeprefix(RESOURCE_PREFIX)
    return owner_of(stream, first.resource) if isinstance(first, SessionOpened) else ""


def opened_by(first: Event) -> SessionOpened:
    """The opening event of a session, or an empty one for other streams."""
    return first.payload if isinstance(first.payload, SessionOpened) else SessionOpened(resource="", cwd="")


def resource_of(first: Event) -> str:
    """The resource that a stream belongs to, derived from its first event."""
    is_resource_stream = first.stream.startswith(RESOURCE_PREFIX)
    return first.stream.removeprefix(RESOURCE_PREFIX) if is_resource_stream else opened_by(first).resource
