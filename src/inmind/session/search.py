"""Search in a session, by the host and by the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from inmind.core.events.base import Draft, Origin
from inmind.core.events.crystals import SearchRecorded
from inmind.core.stream_names import owner_of
from inmind.history.view import ViewBuilder
from inmind.session.context import SessionContext
from inmind.store.stream import key_for

if TYPE_CHECKING:
    from inmind.search.query import Hit, Query


class SessionSearch:
    """Searches the session's resource; an anonymous session searches only itself."""

    def __init__(self, context: SessionContext, view: ViewBuilder) -> None:
        self._context, self._stream, self._view = context, context.stream, view

    def run(self, query: str, limit: int, filters: Mapping[str, Any], key: str | None) -> list[Hit]:
        """Search and record the search, so that hits last longer and misses become gaps."""
        from inmind.search.query import validate_query

        checked = validate_query(query, **{"limit": limit, **filters})
        hits = self._search(checked)
        searched = SearchRecorded(checked.text, tuple(hit.crystal.id for hit in hits), checked.limit)
        self._stream.append(Draft(payload=searched, origin=Origin.OPERATOR), key=key_for(key, "search", query, filters))
        return hits

    def search_by_model(self, query: Query) -> list[Hit]:
        """Search without the current user message, which would always rank first."""
        newest_first = reversed(self._stream.state.conversation[:])
        messages = ((entry, self._view.read_message(entry)) for entry in newest_first)
        current = next((entry.id for entry, message in messages if message.role == "user" and message.text), "")
        return self._search(replace(query, excluded_events=frozenset({current})))

    def _search(self, query: Query) -> list[Hit]:
        return self._context.search(query, [owner_of(self._stream.name, self._context.resource_name)])
