"""The event for a provider's own compaction."""

from __future__ import annotations

import pytest
from builders import an_event, assistant, user

from inmind.core.events.base import EventPayload
from inmind.core.events.session import Compacted, MessageAdded, Stub
from inmind.core.messages import FORMATS
from inmind.core.tokens import estimator
from inmind.history.compaction.build import compaction_by_provider
from inmind.history.history import History
from inmind.history.turns import turn_messages
from inmind.history.view import TokenMeter

ITEM = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"}


def events_for(*payloads: EventPayload) -> list[EventPayload]:
    """The events for the item in the third message."""
    history = History()
    for seq, payload in enumerate(payloads, start=1):
        history = history.apply(an_event(payload, seq))
    meter = TokenMeter(estimator())
    messages = turn_messages(history, lambda entry: FORMATS[entry.format].read(entry.wire), meter)
    drafts = compaction_by_provider(history, messages, history.messages[2], request=None, meter=meter)
    return [draft.payload for draft in drafts]


@pytest.mark.spec("E12")
def test_an_item_that_an_older_version_archived_compacts_nothing() -> None:
    messages = [MessageAdded(wire=wire, format="responses") for wire in (user("hi"), assistant("hello"), ITEM)]
    (compacted,) = events_for(*messages)
    assert isinstance(compacted, Compacted)
    assert (compacted.provider_item, compacted.stubs[0].message_ranges) == (3, ((1, 2),))
    archived = Compacted("all", "full", (Stub(((1, 3),), (user("archived"),), "responses", is_block=True),))
    assert events_for(*messages, archived) == []
    cut = Compacted("all", "full", (Stub(((3, 3),), (user("cut"),), "responses"),))
    assert events_for(*messages, cut) == []
