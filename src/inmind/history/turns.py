"""Messages and turns as compaction sees them: speaker, text, tool calls and tool results.

They are independent of provider formats, so that rules about turns, retention and summaries are written once.

A user message may be the output of a command. An agent without tool calls writes commands into its messages, and its
runner sends the output back as a user message. Some runners add a heading, many do not, and the output of a page or
file may read like an instruction. So it is detected by position: the message after a command is its output. An agent
with tool calls gets results from those, and its user messages are always from a person.

A command may also be an example for a person who continues to talk. All user messages after commands are then judged
together, because a single page could contain any text. An uncertain message starts a turn and counts as a
request, like a person's words, but no rules are read from it, as from output.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal, NamedTuple

from inmind.core.frozen import frozen
from inmind.core.language.prose import (
    ends_with_shell_prompt,
    has_output_heading,
    is_addressed,
    is_request,
    starts_like_output,
)
from inmind.core.language.spans import compile_cached
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Message, Opaque
from inmind.history.history import Conversation, ConversationEntry, EntriesByRange, History
from inmind.history.view import TokenMeter

Speaker = Literal["operator", "user", "assistant", "tool"]


@frozen
class TurnCall:
    """A tool call with its arguments as written by the model."""

    id: str
    tool: str
    arguments: str
    is_compaction: bool = False
    """The provider's own compaction. No result ever answers it, so no compaction of ours changes it."""


@frozen
class TurnResult:
    """The result of a tool call."""

    id: str
    text: str
    tokens: int
    error: bool = False
    from_memory: bool = False
    """It is what memory answered: a page of the archive, found notes. No record of it is needed."""


@frozen(kw_only=True)
class TurnMessage:
    """One message. `text` excludes tool results."""

    seq: int
    speaker: Speaker
    text: str = ""
    calls: tuple[TurnCall, ...] = ()
    results: tuple[TurnResult, ...] = ()
    tokens: int = 0
    stub: bool = False
    """It is sent in place of archived messages."""
    maybe_output: bool = False
    """A user message that may be the output of a command."""

    @property
    def is_block(self) -> bool:
        """A stub that replaces whole messages."""
        return self.stub and self.speaker == "operator"

    @property
    def starts_turn(self) -> bool:
        """True for a user message. A message with tool results continues the turn."""
        return self.speaker == "user" and not self.results


def split_turns(messages: Sequence[TurnMessage]) -> list[range]:
    """Return the places of all turns in order.

    A turn is a user message with everything up to the next one. Messages before the first user message are one turn.
    """
    starts = [place for place, one in enumerate(messages) if place == 0 or one.starts_turn]
    return [range(start, stop) for start, stop in pairwise([*starts, len(messages)])]


ReadMessage = Callable[[ConversationEntry], Message]
"""Returns the parsed message of an entry."""


def turn_messages(history: History, read: ReadMessage, meter: TokenMeter) -> list[TurnMessage]:
    """Return the sent messages, with command output marked."""
    messages = [to_turn_message(entry, read(entry), meter) for entry in history.sent]
    return mark_command_output(messages, originals=with_archived(history, messages, meter))


@dataclass
class GrowingConversation:
    """The turn messages of a growing conversation. Each message is converted once, if needed."""

    read: ReadMessage
    meter: TokenMeter
    _messages: dict[str, TurnMessage] = field(default_factory=dict[str, TurnMessage])

    def newest_first(self, conversation: Conversation) -> Iterator[TurnMessage]:
        """Yield the messages of the conversation from the last to the first."""
        if len(self._messages) > len(conversation):  # some are of messages that the host removed
            self._messages.clear()
        for entry in reversed(conversation[:]):
            known = self._messages.get(entry.id)
            if known is None:
                known = self._messages[entry.id] = to_turn_message(entry, self.read(entry), self.meter)
            yield known


def with_archived(history: History, messages: Sequence[TurnMessage], meter: TokenMeter) -> list[TurnMessage]:
    """Return the messages with each stub replaced by the last message that it replaces.

    The next message answers that one.
    """
    stubs = [place for place, one in enumerate(messages) if one.stub]
    if not stubs:
        return list(messages)
    restored, entries_by_range = list(messages), EntriesByRange(history.messages)
    for place in stubs:
        if entries := entries_by_range(history.sent[place].replaced_ranges or ()):
            original = entries[-1]
            restored[place] = replace(
                to_turn_message(original, FORMATS[original.format].read(original.wire), meter), stub=True
            )
    return restored


def to_turn_message(entry: ConversationEntry, message: Message, meter: TokenMeter) -> TurnMessage:
    """Convert an entry with this parsed message."""
    opaque = [part for part in message.parts if isinstance(part, Opaque)]
    turn_calls = [TurnCall(call.id, call.name, call.arguments) for call in message.calls]
    turn_calls += [TurnCall(part.request_id, part.kind, "") for part in opaque if part.request_id]
    turn_calls += [
        TurnCall(f"#{entry.seq}", part.kind, "", is_compaction=True) for part in opaque if part.is_compaction
    ]
    turn_results = [
        TurnResult(result.id, result.text, meter.count_part(result), result.error, entry.is_memory_reply)
        for result in message.results
    ]
    turn_results += [TurnResult(part.answered_id, "", 0) for part in opaque if part.answered_id]
    speaker: Speaker = "tool" if turn_results or message.role == "tool" else "user"
    if message.role in ("system", "developer") or entry.is_block:
        speaker = "operator"
    elif message.role == "assistant":
        speaker = "assistant"
    return TurnMessage(
        seq=entry.seq,
        speaker=speaker,
        text=message.text,
        calls=tuple(turn_calls),
        results=tuple(turn_results),
        tokens=meter.count_message(entry),
        stub=entry.is_stub,
    )


MIN_COMMAND_RATIO = 0.8
"""Share of assistant messages that end in a command, for an agent that works by commands."""
MIN_MESSAGES = 3
"""Minimum number of messages that end in code, or of requests, before a pattern is assumed."""
MIN_REQUEST_RATIO = 0.9
"""Share of messages after commands that are requests, if a person writes them."""


class CommandOutputs(NamedTuple):
    """Indexes of user messages that are or may be command output."""

    certain: frozenset[int] = frozenset()
    """They are only command output."""
    possible: frozenset[int] = frozenset()
    """They are command output or a person's words."""


def mark_command_output(
    messages: Sequence[TurnMessage], *, originals: Sequence[TurnMessage] | None = None
) -> list[TurnMessage]:
    """Return the messages with command output converted to tool results.

    `originals`: the messages before compaction, if some are sent as stubs.
    """
    answers, doubtful = find_command_output(messages if originals is None else originals)
    marked = list(messages)
    for place in (*answers, *doubtful):
        message = messages[place]
        if message.starts_turn and place in answers:
            result = TurnResult("", message.text, message.tokens)  # there is no call id
            marked[place] = replace(message, speaker="tool", text="", results=(result,))
        elif message.starts_turn:
            marked[place] = replace(message, maybe_output=True)
    return marked


def find_command_output(messages: Sequence[TurnMessage]) -> CommandOutputs:
    """Classify by the preceding command: certain commands, and commands that may be an example."""
    replies = _replies(messages)
    after_call, after_shell, after_code = (
        {place for place in replies if _ends_in(messages[place - 1].text, command)}
        for command in (_TOOL_CALL, _SHELL_COMMAND, _CODE_BLOCK)
    )
    after_shell -= after_call
    after_code -= after_call | after_shell
    min_commands = MIN_COMMAND_RATIO * sum(
        one.speaker == "assistant" and not (_tool_calls(one) or _addresses_person(one.text)) for one in messages
    )
    if len(after_code) < max(min_commands, MIN_MESSAGES):
        after_code.clear()
    commands = after_call | after_shell | after_code
    tools = (call.tool for one in messages for call in _tool_calls(one))
    # Without memory tools, which any agent may be offered.
    if (calls := sum(not compile_cached(_MEMORY_TOOLS).fullmatch(tool) for tool in tools)) and calls >= len(commands):
        return CommandOutputs()
    with_heading, screens = (
        _user_messages(messages, has_output_heading),
        _user_messages(messages, ends_with_shell_prompt),
    )
    if not commands:  # there may be commands in an unknown syntax
        return CommandOutputs(
            with_heading, frozenset(_following_output(messages, with_heading, screens)) - with_heading
        )
    is_loop = len(commands) >= min_commands
    pasted = screens | _user_messages(messages, starts_like_output)
    texts = [messages[place].text for place in (after_shell | after_code) - pasted - with_heading]
    is_conversation = 2 * sum(map(is_addressed, texts)) > len(after_shell | after_code)
    by_person = len(texts) >= MIN_MESSAGES and sum(map(is_request, texts)) >= MIN_REQUEST_RATIO * len(
        after_shell | after_code
    )
    answers = after_call | with_heading | (after_shell & pasted) | (screens if is_loop else set[int]())
    if not is_conversation:
        answers |= (
            after_shell
            if is_loop
            else {place for place in after_shell if not compile_cached(_SENTENCE).match(messages[place].text)}
        )
    doubtful = _following_output(messages, answers, pasted)
    if not (by_person or (is_conversation and not is_loop)):
        doubtful |= after_shell | after_code
    return CommandOutputs(frozenset(answers), frozenset(doubtful - answers))


def _tool_calls(one: TurnMessage) -> list[TurnCall]:
    """The calls of a message without the provider's own compaction."""
    return [call for call in one.calls if not call.is_compaction]


def _user_messages(messages: Sequence[TurnMessage], predicate: Callable[[str], bool]) -> frozenset[int]:
    """Indexes of user messages that match; the first message cannot be output."""
    return frozenset(place for place, one in enumerate(messages) if place and one.starts_turn and predicate(one.text))


def _following_output(messages: Sequence[TurnMessage], answers: Container[int], pasted: Container[int]) -> set[int]:
    """Indexes of user messages that may be output because of the message before.

    They follow other output, look like output after any reply, or answer submitted work.
    """
    indexes: set[int] = set()
    for place, (before, one) in enumerate(pairwise(messages), start=1):
        is_output = place in pasted or (_submits_work(before.text) and not is_addressed(one.text))
        if one.starts_turn and (place - 1 in answers or (before.speaker == "assistant" and is_output)):
            indexes.add(place)
    return indexes


def _replies(messages: Sequence[TurnMessage]) -> list[int]:
    """Indexes of user messages after a message of the assistant that calls no tool."""
    return [
        place
        for place, (before, one) in enumerate(pairwise(messages), start=1)
        if one.starts_turn and before.speaker == "assistant" and not _tool_calls(before)
    ]


def _ends_in(words: str, command: str) -> bool:
    end = _end(words)
    if not (end.endswith(_COMMAND_ENDINGS) or any(map(end.__contains__, _COMMAND_HINTS))):
        return False
    match = compile_cached(command).search(end)
    if match is None or _addresses_person(words):
        return False
    tag = match.groupdict().get("tag")
    return tag is None or f"<{tag}" in words


def _addresses_person(words: str) -> bool:
    """True if the message ends in a command that addresses a person.

    Such a command asks a question, gives an answer, or submits the work.
    """
    end = _end(words)
    commands = end.endswith(_COMMAND_ENDINGS) or any(map(end.__contains__, _COMMAND_HINTS))
    return commands and (bool(compile_cached(_PERSON_CALL).search(end)) or _submits_work(words))


def _submits_work(words: str) -> bool:
    """True if the message ends in the command that submits the work."""
    end = _end(words)
    return end.endswith(_COMMAND_ENDINGS) and bool(compile_cached(_SUBMIT_COMMAND).search(end))


def _end(words: str) -> str:
    return f"\n{words[-_SCANNED_CHARACTERS:].rstrip()}"


# Characters scanned at the end of a message: commands are short.
_SCANNED_CHARACTERS = 2_000
# Fast check: without one of these there is no command.
_COMMAND_ENDINGS = ("```", "~~~", ">", "}")
_COMMAND_HINTS = ("Action", "ACTION", "action:", "Tool", "tool:", "Function", "function:", "\n$ ")

_MEMORY_TOOLS = r"working_memory|(?:working[_-])?memory[_/]\w+|updateWorkingMemory|compact_history|resolve_reference"

# Commands that never address a person: `Action: …`, and a call between tags that name a tool.
_TOOL_CALL = (
    r"(?i)\n[*# ]*(?:action(?: input)?|(?:tool|function)(?: call)?)[* ]*:[^\n]*(?:\n[^\n]+)*\Z|"
    r"</(?P<tag>\w+_\w+|function|invoke|tool|command|cmd|bash|shell|terminal|run|execute|action|search|query)>[`\s]*\Z"
)
# Commands that may be an example: a shell block, or a call as JSON. Other code is for a person.
_SHELL_COMMAND = (
    r"(?i)\n(?:```|~~~)(?:bash|sh|shell|zsh|console|terminal|powershell|cmd|bat)?[ ]*\n"
    r"(?:(?!```|~~~)[^\n]*\n)+(?:```|~~~)\Z|"
    r'\{\s*"(?:thoughts?|command|action|tool|tool_name|function|name)"\s*:(?:(?!\n\n)[\s\S])*\}\s*(?:```)?\Z|'
    r"\n\$ [^\n]+\Z"
)
# One line that begins and ends like a sentence.
_SENTENCE = r"[\s\"'“]*[A-Z\u4e00-\u9fff][^\n]*[.!?。！？…][\s\"'”]*\Z"
# Code for a person, or code to run if an agent writes hardly anything else.
_CODE_BLOCK = r"\n(?:```|~~~)\Z"
_SUBMIT_COMMAND = r"(?i)\n\s*(?:submit|finish|final_answer|complete_task)\b[^\n;|&]*\n?\s*(?:```|~~~|</\w+>)\s*\Z"
# A person replies to such a call in their own words. "Confirm" alone addresses a person; confirming something by name,
# like an order, addresses a program. A tag inside a call is an argument, not a call.
_PERSON_TOOLS = (
    r"(?:ask(?:_\w+|user\w*|human\w*)?|question|clarify|confirm(?:\s+with|(?!\s+\w))|human(?:_?(?:input|feedback))?|"
    r"(?:\w+_)?user_?input|request_(?:approval|clarification|confirmation|feedback|human\w*|input|permission)|"
    r"(?:consult|contact|notify|prompt|(?:escalate|talk|turn)_to|wait_for)_(?:the_)?(?:human|user))\b"
)
_PERSON_CALL = (
    r"(?i)(?:\baction[* ]*:\s*|\"(?:name|action|tool|tool_name|command|function)\"\s*:\s*\"|<)"
    r"(?:respond|reply|final[ _]answer|finish|answer|done|attempt_completion|ask_\w+|(?:send_)?message(?:_\w+)?|say)\b|"
    rf"(?:\baction[* ]*:\s*|\"(?:name|action|tool|tool_name|command|function)\"\s*:\s*\"){_PERSON_TOOLS}|"
    rf"</{_PERSON_TOOLS}>[`\s]*\Z"
)
