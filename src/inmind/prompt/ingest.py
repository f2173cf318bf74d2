"""Validates the input of `prepare` and derives its journal events.

All input from a host passes here: messages of any provider, as plain objects or as objects of the provider's client,
system prompts, tools. Only new messages are copied and validated; known ones cost one comparison. Later code does not
validate again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from inmind.core.encoding import digest_of
from inmind.core.events.base import Draft, Origin, Trust
from inmind.core.events.session import HistorySpliced, MessageAdded, SystemSet, ToolsSet
from inmind.core.frozen import frozen
from inmind.core.json import check_json, copy_json_value, is_object, peek, to_plain
from inmind.core.messages import FORMATS
from inmind.core.messages.cache_control import (
    CacheMarks,
    find_marks,
    own_mark_before,
    relocate_marks,
    with_plain_text,
    without_marks,
)
from inmind.core.messages.format import Format
from inmind.core.messages.model import Image, Message, Opaque, Part, PromptHead, Wire
from inmind.errors import InvalidInput, KeyReused
from inmind.history.history import Conversation, ConversationEntry, EntriesByRange, History
from inmind.history.sync import find_appended, find_position, match_messages
from inmind.history.view import View
from inmind.prompt.state import PromptState, System
from inmind.prompt.templates import memory_text, strip_memory, strip_tail


@frozen
class PrepareInput:
    """The arguments of `prepare`, as the host passed them."""

    system: Any
    tools: Any
    system_count: int
    """Number of leading messages that are the system prompt."""
    wires: Sequence[Any] | None
    """The messages after those; None to use the history in the journal."""
    thread: str = ""
    """The reply or conversation at the provider that the messages continue."""
    held_count: int = 0
    """Number of messages of the conversation that the provider holds in the thread. The list does not have them."""

    @classmethod
    def of(cls, messages: Any, system: Any, tools: Any, fmt: Format, thread: Any = None) -> PrepareInput:
        thread = _check_thread(thread, fmt)
        if messages is None:
            return cls(system, tools, 0, None, thread)
        wires = _require_list(messages, "messages")
        if fmt.rules.has_instructions:
            wires = [wire for wire in wires if not _is_memory(wire, fmt)]
        leading = (i for i, wire in enumerate(wires) if not (is_object(wire) and fmt.is_system(wire)))
        system_count = next(leading, len(wires))
        if system_count and (system is not None or thread) and fmt.rules.has_instructions:
            return cls(system, tools, 0, wires, thread)
        if system_count and system is not None:
            raise InvalidInput(field="system", value=system, expected="None, since messages begin with a system prompt")
        return cls(
            wires[:system_count] if system_count else system,
            tools,
            system_count,
            wires[system_count:] if system_count else wires,
            thread,
        )


def continue_thread(inputs: PrepareInput, conversation: Conversation, fmt: Format) -> PrepareInput:
    """Return the input with the number of messages that the provider holds.

    Results of memory tools that the provider does not hold yet come before the new messages.
    """
    if not inputs.thread:
        return inputs
    new = None if inputs.wires is None else [_plain(wire) for wire in copy_messages(inputs.wires, fmt)]
    position = find_position(conversation, inputs.thread, new)
    unsent = conversation.wires[position.held_count : position.end]
    if new is None or inputs.wires is None or new[: len(unsent)] == unsent:
        return replace(inputs, held_count=position.held_count)
    return replace(inputs, held_count=position.held_count, wires=[*unsent, *inputs.wires])


def ingest_events(
    state: PromptState, history: History, inputs: PrepareInput, layer_tools: Sequence[Any], fmt: Format
) -> list[Draft]:
    """Return the events that bring the journal up to date with the host's input.

    With the journal's history, a system prompt or tools that are not passed stay unchanged.
    """
    drafts = _new_message_drafts(history, inputs, fmt)
    uses_journal = inputs.wires is None
    if not (uses_journal and inputs.system is None):
        system = _parse_system(inputs, state, fmt)
        if not _sends_same_system(system, state, fmt):
            drafts.append(Draft(payload=SystemSet(system=system, format=fmt.name), origin=Origin.OPERATOR))
    tools = state.tools if uses_journal and inputs.tools is None else inputs.tools
    if tools is not None:
        for index, tool in enumerate(_require_list(tools, "tools")):
            fmt.check_tool(tool if is_object(tool) else to_plain(tool, "tools"), field=f"tools[{index}]")
        tools = _without_own_tools(tools, state, layer_tools)
    if (tools if tools is None else list(tools)) != state.tools or layer_tools != state.layer_tools:
        tools_set = ToolsSet(
            tools=_copy_objects(tools, "tools"), layer_tools=_copy_objects(layer_tools, "offered") or ()
        )
        if (tools_set.tools, tools_set.layer_tools) != (state.tools, state.layer_tools):
            # Providers require unique names, and a layer's tool may have the name of a host tool.
            names = Counter(tool_names([*(tools_set.tools or ()), *tools_set.layer_tools]))
            if duplicates := sorted(name for name, count in names.items() if count > 1):
                expected = "unique tool names, including tools of layers"
                raise InvalidInput(field="tools", value=duplicates, expected=expected)
            drafts.append(Draft(payload=tools_set, origin=Origin.OPERATOR))
    return drafts


def cache_marks(inputs: PrepareInput, conversation: Conversation, view: View) -> CacheMarks:
    """Return the cache marks of the host's list, at their positions in the sent messages."""
    if inputs.wires is None or list(inputs.wires) == conversation.wires:
        return ()  # the fast path, one comparison: stored messages have no marks
    marks = find_marks(inputs.wires)
    if FORMATS[view.format].rules.uses_cache_marks:
        marks = _drop_own_marks(marks, inputs.wires)
    for index, path, mark in marks:
        check_json(mark, f"messages[{inputs.system_count + index}].{path[-1]}")
    if not marks:
        return ()
    # The conversation ends with the host's list, and is longer if the list leaves out what was compacted.
    more = len(conversation) - len(inputs.wires)
    marks = tuple((index + more, path, mark) for index, path, mark in marks if index + more >= 0)
    return relocate_marks(
        marks, [FORMATS[view.format].strip_local_fields(wire) for wire in conversation.wires], view.wires
    )


def copy_messages(messages: Any, fmt: Format, *, first_index: int = 0) -> list[Wire]:
    """Return plain copies of messages, validated for this format."""
    wires: list[Wire] = []
    for index, message in enumerate(_require_list(messages, "messages"), start=first_index):
        wire = to_plain(message, f"messages[{index}]")
        fmt.check(wire, field=f"messages[{index}]")
        wires.append(wire)
    return wires


def message_draft(wire: Wire, fmt: Format, *, is_memory_reply: bool = False, reply_id: str = "") -> Draft:
    """Return the event of a message with origin and trust.

    `is_memory_reply`: result of a memory tool. `reply_id`: the provider's id of the reply that it is from.
    """
    message = fmt.read(wire)
    origin = Origin.TOOL if message.results else _ORIGINS[message.role]
    mixed = bool(message.results) and len(message.results) < len(message.parts)
    payload = MessageAdded(wire=wire, format=fmt.name, from_memory=is_memory_reply, reply_id=reply_id)
    return Draft(payload=payload, origin=origin, trust=Trust.DATA if mixed else None)


def tool_names(tools: Sequence[Wire]) -> list[str]:
    """Return the names of tools in any provider's format; a few kinds have none."""
    nested = ((tool, peek(tool.get("function"), "name") or peek(tool.get("custom"), "name")) for tool in tools)
    return [name for tool, inner in nested if isinstance(name := tool.get("name", inner), str)]


def new_messages(conversation: Conversation, wires: Sequence[Wire], fmt: Format) -> list[Wire]:
    """Return the messages whose id is not known, and results of calls without a result.

    The same id with other content is refused.
    """
    fresh = _drop_repeated_results(conversation, wires, fmt)
    return _drop_known_ids(conversation, fresh) if any("id" in wire for wire in fresh) else fresh


def _drop_repeated_results(conversation: Conversation, wires: Sequence[Wire], fmt: Format) -> list[Wire]:
    """Drop messages that only have results of calls that have a result already.

    A known id alone is not enough: some servers number calls from zero in every turn.
    """
    messages = [fmt.read(wire) for wire in wires]
    if not any(message.results for message in messages):
        return list(wires)
    waiting: Counter[str] = Counter()
    for entry in conversation:
        _count_calls(waiting, FORMATS[entry.format].read(entry.wire))
    fresh: list[Wire] = []
    for wire, message in zip(wires, messages, strict=True):
        ids = [result.id for result in message.results]
        if ids and len(ids) == len(message.parts) and all(id in waiting and waiting[id] <= 0 for id in ids):
            continue
        _count_calls(waiting, message)
        fresh.append(wire)
    return fresh


def _count_calls(waiting: Counter[str], message: Message) -> None:
    waiting.update(call.id for call in message.calls)
    waiting.subtract(result.id for result in message.results)


def _drop_known_ids(conversation: Conversation, wires: Sequence[Wire]) -> list[Wire]:
    known = {entry.wire["id"]: entry.wire for entry in conversation if "id" in entry.wire}
    fresh: list[Wire] = []
    for wire in wires:
        id = wire.get("id")
        if id is not None and not isinstance(id, str):
            raise InvalidInput(field="messages.id", value=id, expected="a string")
        if id is not None and id in known:
            if known[id] != wire:
                raise KeyReused(key=str(id), what="message id")
            continue
        if id is not None:
            known[id] = wire
        fresh.append(wire)
    return fresh


_ORIGINS = {
    "system": Origin.OPERATOR,
    "developer": Origin.OPERATOR,
    "user": Origin.USER,
    "assistant": Origin.ASSISTANT,
    "tool": Origin.TOOL,
}


def _new_message_drafts(history: History, inputs: PrepareInput, fmt: Format) -> list[Draft]:
    """Drafts of the messages that are not in the journal."""
    conversation = history.messages
    if inputs.wires is None:
        return []
    held = conversation.wires[: inputs.held_count]
    added = find_appended(conversation, [*held, *inputs.wires] if held else inputs.wires)
    if added is None:
        unmarked = [without_marks(wire) if is_object(wire) else wire for wire in inputs.wires]
        added = find_appended(conversation, [*held, *unmarked])
    if added is not None:
        fresh = copy_messages(added, fmt, first_index=inputs.system_count + len(conversation) - len(held))
        return [message_draft(_plain(wire), fmt) for wire in fresh]
    # An edit, cache marks, objects of a provider's client, or a list made from our last prompt.
    host_wires = [_plain(wire) for wire in copy_messages(inputs.wires, fmt, first_index=inputs.system_count)]
    if held:
        messages = [*held, *host_wires]
    else:
        restored = _restore_compacted(_restore_archived(host_wires, history), conversation, fmt)
        messages = _replace_copies(restored, conversation, fmt)
    sync = match_messages(conversation, messages)
    answered = {entry.digest for entry in conversation if entry.is_memory_reply}
    drafts = [message_draft(wire, fmt, is_memory_reply=digest_of(wire) in answered) for wire in sync.inserted]
    if sync.has_edit:
        spliced = HistorySpliced(sync.start, sync.stop, len(sync.inserted))
        drafts.append(Draft(payload=spliced, origin=Origin.OPERATOR))
    return drafts + [message_draft(wire, fmt) for wire in sync.appended]


def _plain(wire: Wire) -> Wire:
    """A message as it is stored: without cache marks and without our tail."""
    return strip_tail(without_marks(wire))


def _restore_archived(messages: Sequence[Wire], history: History) -> list[Wire]:
    """Replace stubs by their messages, in a list made from our last prompt."""
    if not history.stub_ranges:
        return list(messages)
    entries_in = EntriesByRange(history.messages)
    restored: list[Wire] = []
    for wire in messages:
        ranges = history.stub_ranges.get(digest_of(wire))
        restored += [wire] if ranges is None else (entry.wire for entry in entries_in(ranges))
    return restored


def _restore_compacted(messages: list[Wire], conversation: Conversation, fmt: Format) -> list[Wire]:
    """Put back what a list leaves out because it begins with the provider's compaction of it."""
    if not messages or not fmt.read(messages[0]).has_compaction:
        return messages
    known = conversation.wires
    places = [place for place, wire in enumerate(known) if wire == messages[0]]
    return [*known[: places[-1] if places else len(known)], *messages]


def _drop_own_marks(marks: CacheMarks, wires: Sequence[Any]) -> CacheMarks:
    """Drop the mark that we set before the tail, in a list made from our last prompt.

    If it were treated as a mark of the host, it would stay, and every call would add one more.
    """
    last = {index: (index, path, mark) for index, path, mark in marks if len(path) == len(("content", 0, "mark"))}
    own_marks = [entry for index, entry in last.items() if strip_tail(wires[index]) is not wires[index]]
    return tuple(entry for entry in marks if entry not in own_marks or entry[2] != own_mark_before(()))


def _replace_copies(messages: Sequence[Wire], conversation: Conversation, fmt: Format) -> list[Wire]:
    """Return the host's list with copies of stored messages replaced by the stored ones."""
    result: list[Wire] = []
    for wire, entry in zip(messages, conversation, strict=False):
        follows = not result or result[-1] == conversation[len(result) - 1].wire
        result.append(entry.wire if _is_copy(wire, entry, fmt, same_predecessor=follows) else wire)
    return [*result, *messages[len(result) :]]


def _is_copy(wire: Wire, entry: ConversationEntry, fmt: Format, *, same_predecessor: bool) -> bool:
    """True if the host's message has the same content.

    The copy may be bare, have marks, or be the client's object with nulls. A message with more or fewer provider
    specific parts is an edit by the host. The same index is not always the same reply, since hosts insert a summary or
    drop old messages, and two replies may have the same text. `same_predecessor`: the messages before are equal in both
    lists.
    """
    if entry.format != fmt.name or wire == entry.wire:
        return False
    if with_plain_text(wire) == with_plain_text(entry.wire):
        return True
    ids = (wire.get("id"), entry.wire.get("id"))
    if ids[0] != ids[1] and (None not in ids or not same_predecessor):
        return False
    stored_message, host_message = fmt.read(entry.wire), fmt.read(wire)
    if stored_message.role != "assistant" or host_message.role != "assistant":
        return False
    if not (same_predecessor or host_message.text or host_message.calls):  # empty messages are always equal
        return False
    from inmind.core.messages import text_and_calls  # imported here: only needed if the host keeps copies

    return _opaque_parts(stored_message) == _opaque_parts(host_message) and text_and_calls(
        [wire], fmt.name
    ) == text_and_calls([entry.wire], fmt.name)


def _opaque_parts(message: Message) -> list[Part]:
    return [part for part in message.parts if isinstance(part, Opaque | Image)]


def _is_memory(wire: Any, fmt: Format) -> bool:
    """True for the message of a request of ours that holds memory."""
    return is_object(wire) and fmt.is_system(wire) and strip_memory(wire) is None


def _parse_system(inputs: PrepareInput, state: PromptState, fmt: Format) -> System:
    """Return the host's system prompt, without memory's part of a request that was handed back."""
    if inputs.system is None or inputs.system == state.system:
        return state.system if inputs.system is not None else None
    if inputs.system_count:
        system: Any = copy_messages(inputs.system, fmt)
    else:
        system = copy_json_value(inputs.system, "system")
        fmt.check_system(system, field="system")
    if isinstance(system, str):
        # A request in a thread has memory at the end of its system prompt.
        memory = memory_text(state.wording, state.blocks) if state.last_prompt.thread else ""
        system = system.removesuffix(memory).removesuffix("\n\n") if memory and system.endswith(memory) else system
    else:
        system = [item for given in system if (item := strip_memory(given)) is not None]
    return system or None


def _sends_same_system(system: System, state: PromptState, fmt: Format) -> bool:
    """True if the provider gets the same system prompt.

    A text, a message with it and a block with it are equal.
    """
    current = state.system_in(fmt.name)
    requests = (fmt.request(PromptHead(system=one or None, memory=""), (), None) for one in (system, current))
    return next(requests) == next(requests)


def _without_own_tools(tools: Sequence[Any], state: PromptState, own: Sequence[Any]) -> Sequence[Any] | None:
    """Return the host's tools, without memory's in a request that was handed back."""
    remaining = [tool for tool in tools if tool not in own]
    return state.tools if len(remaining) < len(tools) and not remaining and not state.tools else remaining


def _check_thread(thread: Any, fmt: Format) -> str:
    if not isinstance(thread, str | None):
        raise InvalidInput(field="thread", value=thread, expected="the id of a reply or of a conversation")
    if thread and not fmt.rules.has_threads:
        raise InvalidInput(field="thread", value=thread, expected="None, or the format responses")
    return thread or ""


def _require_list(value: Any, field: str) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise InvalidInput(field=field, value=value, expected="a list")
    return cast(Sequence[Any], value)


def _copy_objects(value: Any, field: str) -> list[dict[str, Any]] | None:
    if value is None:
        return None
    objects = [copy_json_value(item, f"{field}[{index}]") for index, item in enumerate(_require_list(value, field))]
    for index, item in enumerate(objects):
        if not is_object(item):
            raise InvalidInput(field=f"{field}[{index}]", value=item, expected="an object")
    return objects
