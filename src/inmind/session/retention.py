"""Texts that must survive every compaction."""

from __future__ import annotations

from datetime import datetime

from inmind.core.events.base import Draft, Origin
from inmind.core.events.session import Retained, RetainedItem
from inmind.errors import InvalidInput, NotFound
from inmind.history.compaction.retention import check_pinned_text, retained_items
from inmind.history.compaction.select import CompactionSelection
from inmind.history.view import TokenMeter
from inmind.session.compaction import Compactor
from inmind.session.context import SessionContext
from inmind.session.state import SessionState
from inmind.store.stream import Decision, key_for

MAX_RETAINED_CHARACTERS = 4_000
"""Total length of the texts that a host may retain: they are in every prompt."""


class Retention:
    """The items of one session that every compaction keeps."""

    def __init__(self, context: SessionContext, compactor: Compactor, meter: TokenMeter) -> None:
        self._stream, self._compactor, self._meter = context.stream, compactor, meter

    def items(self, state: SessionState) -> tuple[RetainedItem, ...]:
        """The items that would be kept if the whole conversation were compacted now.

        Without the last request, which every new one replaces.
        """
        messages = self._compactor.messages(state.history)
        everything = CompactionSelection(runs=(tuple(range(len(messages))),))
        return tuple(retained_items(state.history, messages, everything, self._meter, request=None).kept)

    def change(self, text: str, key: str | None, *, retain: bool) -> None:
        """Add a retained text, or release an item."""
        item = RetainedItem("pinned", check_pinned_text(text))

        def decide(state: SessionState, _: datetime) -> Decision[SessionState, None]:
            pinned = state.history.pinned
            known = any(one.text == item.text for one in (pinned if retain else self.items(state)))
            if not retain and not known:
                raise NotFound(what="retained text", name=item.text, hint="session.retained lists them")
            if retain and not known:
                used = self._declared_characters(state)
                remaining = MAX_RETAINED_CHARACTERS - used
                if remaining < len(item.text):
                    expected = f"at most {max(remaining, 0)} characters: {used} of {MAX_RETAINED_CHARACTERS} are in use"
                    raise InvalidInput(field="text", value=item.text, expected=expected)
            changed = Draft(payload=Retained(item, retain), origin=Origin.OPERATOR)
            return Decision([] if known == retain else [changed], None)

        self._stream.commit(decide, key=key_for(key, "retain" if retain else "release", text))

    def _declared_characters(self, state: SessionState) -> int:
        """Characters retained by this session. Items inherited from the parent do not count."""
        inherited = (
            self._stream.state_at(state.opening_end).history.pinned if state.opened and state.opened.parent else ()
        )
        return sum(len(one.text) for one in state.history.pinned if one not in inherited)
