"""Compactions by the provider itself: an item in the conversation, or a thread.

The item is opaque and only its provider reads it, so it never is the only copy: the messages before it stay in the
journal. They are not sent, since the model does not see them, and their retained items move to memory. A prompt in
another format has no use for the item and sends the messages again.

The provider holds the messages of a thread and adds them to the prompt itself, so they are not sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from inmind.core.events.base import Draft, Origin, Trust
from inmind.core.events.session import THREAD, Compacted, CompactionUndone, RetainedItem, Stub
from inmind.core.messages import FORMATS, Message
from inmind.core.messages.replies import ProviderEdit
from inmind.history import Conversation, ConversationEntry, History
from inmind.history.compaction.retention import RetainedItems, retained_items
from inmind.history.compaction.select import CompactionSelection
from inmind.history.turns import TurnMessage
from inmind.history.view import TokenMeter, View

BY_PROVIDER = "by the provider"
_PEOPLE = ("user", "operator")


@dataclass
class ProviderItems:
    """Finds the last compaction of each provider in a growing conversation.

    Each message is read once.
    """

    read: Callable[[ConversationEntry], Message]
    _length: int = 0
    _digest: str = ""
    _last: dict[str, ConversationEntry] = field(default_factory=dict[str, ConversationEntry])

    def last(self, conversation: Conversation, format: str) -> ConversationEntry | None:
        """The last message with a compaction that a provider of this format understands."""
        if not conversation.begins_with(self._length, self._digest):
            self._length, self._last = 0, {}
        for entry in conversation[self._length :]:
            if self.read(entry).has_compaction:
                self._last[entry.format] = entry
        self._length, self._digest = len(conversation), conversation.prefix_digest()
        return self._last.get(format)


def compaction_by_provider(
    history: History,
    messages: Sequence[TurnMessage],
    item: ConversationEntry,
    *,
    request: RetainedItem | None,
    meter: TokenMeter,
) -> list[Draft]:
    """Return the event for a provider's compaction; none if its item is not sent.

    `messages`: the sent messages, as in `history.sent`.
    """
    item_places = [place for place, one in enumerate(messages) if one.seq == item.seq and not one.stub]
    if not item_places:  # older versions have archived such items
        return []
    before = messages[: _first_kept(messages, item_places[0])]
    places = tuple(range(len(before)))
    selection = CompactionSelection(runs=(places,))
    retained = retained_items(history, messages, selection, meter, request=request)
    if FORMATS[item.format].rules.compaction_keeps_users and all(one.speaker in _PEOPLE for one in before):
        before, places = (), ()
    ranges, tokens = history.ranges_at(places), sum(one.tokens for one in before)
    stubs = (Stub(ranges, (), item.format),) if ranges else ()
    return [_draft(history, retained, item, stubs, strategy="compaction", messages=len(before), tokens=tokens)]


def _draft(
    history: History,
    retained: RetainedItems,
    last: ConversationEntry,
    stubs: tuple[Stub, ...],
    *,
    strategy: str,
    messages: int,
    tokens: int,
) -> Draft:
    compacted = Compacted(
        target="conversation",
        reason=BY_PROVIDER,
        strategy=strategy,
        stubs=stubs,
        messages=messages,
        tokens=tokens,
        items=tuple(retained.kept),
        left_out=tuple(one for one in retained.dropped if one not in history.dropped),
        provider_item=last.seq,
    )
    return Draft(payload=compacted, origin=Origin.OPERATOR, sources=(last.id,), trust=Trust.DATA)


def thread_events(
    history: History,
    held_count: int,
    format: str,
    *,
    messages: Callable[[History], Sequence[TurnMessage]],
    meter: TokenMeter,
) -> list[Draft]:
    """Return the event for a thread that the provider holds; usually none.

    It holds the first messages of the conversation. With `held_count` 0 the request continues no thread: the one before
    ends, and its messages are sent again.
    """
    threads = [one for one in history.compactions if one.payload.is_thread]
    entries = history.messages[:held_count]
    last = entries[-1] if entries else None
    if last is None:
        return [Draft(payload=CompactionUndone(one.seq), origin=Origin.OPERATOR) for one in threads]
    if [one.payload.provider_item for one in threads] == [last.seq]:
        return []
    held_seqs, sent = {entry.seq for entry in entries}, messages(history)
    places = tuple(place for place, one in enumerate(sent) if one.seq in held_seqs)
    # The model sees the last request in the thread, so memory does not repeat it.
    retained = retained_items(history, sent, CompactionSelection(runs=(places,)), meter, request=None)
    tokens = held_tokens(history) + sum(sent[place].tokens for place in places)
    stubs = (Stub(history.ranges_of(held_seqs), (), format),)
    return [_draft(history, retained, last, stubs, strategy=THREAD, messages=held_count, tokens=tokens)]


def held_tokens(history: History) -> int:
    """Tokens of the messages that the provider holds in a thread."""
    return sum(one.payload.tokens for one in history.compactions if one.payload.is_thread)


def clearing_by_provider(edit: ProviderEdit) -> Draft:
    """Return the event for content that a provider left out of one prompt.

    It changes nothing that is sent.
    """
    target = "tools" if "tool" in edit.kind else "thinking"
    cleared = Compacted(target, BY_PROVIDER, (), strategy=edit.kind, messages=edit.count, tokens=edit.tokens)
    return Draft(payload=cleared, origin=Origin.OPERATOR)


def memory_index(history: History, view: View) -> int:
    """Number of messages before memory: the provider may drop what comes before its compaction."""
    format = FORMATS[view.format]
    if not format.rules.has_instructions or not any(one.payload.provider_item for one in history.compactions):
        return 0
    return 1 + max((place for place, wire in enumerate(view.wires) if format.read(wire).has_compaction), default=-1)


def _first_kept(messages: Sequence[TurnMessage], item: int) -> int:
    """Place of the first message that stays: the item, or a round whose results come after it."""
    reply = _reply_start(messages, item)
    waiting: dict[str, int] = {}
    first = item
    for place, one in enumerate(messages):
        for result in one.results:
            call_place = waiting.pop(result.id, item)
            first = min(first, call_place) if place > item else first
        waiting.update((call.id, place) for call in one.calls if not call.is_compaction)
    first = min([first, *(place for place in waiting.values() if place >= reply)])
    return _reply_start(messages, first) if first < item else item


def _reply_start(messages: Sequence[TurnMessage], place: int) -> int:
    while place and messages[place - 1].speaker == "assistant":
        place -= 1
    return place
