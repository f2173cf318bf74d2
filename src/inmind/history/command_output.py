"""Which messages of a user are none: what a command answered, told by what came before it.

An agent that works by text alone writes its commands into its messages, and whoever runs them sends back what came of
it as if a user had said it. Some put a heading over that, many put none, and what a page or a file says there may well
read like an order. So it is told by its place: behind a command stands what the command answered. An agent that calls
tools has its answers from those, and there a user is always a person, whatever they paste.

Where a command might also be an example, handed to a person who goes on talking, all that is said there is looked at
together: a single page could talk itself out of anything. What may be either is taken for a person's where that costs
least, and for a page where that is safe: it begins a turn and is what was asked, and makes no rules.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from inmind.core.language.prose import asks, begins_as_output, compiled, is_headed, is_screen, speaks
from inmind.history.turns import TurnMessage, TurnResult

MIN_COMMAND_RATIO = 0.8
"""Of what an agent says ends in a command, if it works by them."""
MIN_MESSAGES = 3
"""Messages that end in code, below which that is no habit; and that ask for something, below which nobody is sure."""
MIN_REQUEST_RATIO = 0.9
"""Of what is said behind commands asks for something, if a person says it."""


class CommandOutputs(NamedTuple):
    """Places of messages in a user's name."""

    certain: frozenset[int] = frozenset()
    """They only say what a command answered."""
    possible: frozenset[int] = frozenset()
    """They may be that, or a person's words."""


def mark_command_output(
    messages: Sequence[TurnMessage], *, originals: Sequence[TurnMessage] | None = None
) -> list[TurnMessage]:
    """The same messages, but what a command answered is an answer and no word of a user's.

    `seen`: the messages as they were, where some are sent as stubs.
    """
    answers, doubtful = find_command_output(messages if originals is None else originals)
    marked = list(messages)
    for place in (*answers, *doubtful):
        message = messages[place]
        if message.starts_turn:
            marked[place] = _as_result(message) if place in answers else replace(message, maybe_output=True)
    return marked


def find_command_output(messages: Sequence[TurnMessage]) -> CommandOutputs:
    """Told by the commands before them: those that nobody writes to a person, and those that may be an example."""
    called = set(_after_command(messages, _TOOL_CALL))
    shown = set(_after_command(messages, _SHELL_COMMAND)) - called
    coded = set(_after_command(messages, _CODE_BLOCK)) - called - shown
    often = MIN_COMMAND_RATIO * sum(
        one.speaker == "assistant" and not (one.calls or _addresses_person(one.text)) for one in messages
    )
    if len(coded) < max(often, MIN_MESSAGES):
        coded.clear()
    commands = called | shown | coded
    if (calls := _count_tool_calls(messages)) and calls >= len(commands):
        return CommandOutputs()
    headed, screens = _user_messages(messages, is_headed), _user_messages(messages, is_screen)
    if not commands:  # there may still be some in words that nobody knows
        return CommandOutputs(headed, frozenset(_following_output(messages, headed, screens)) - headed)
    loop = len(commands) >= often
    pasted = screens | _user_messages(messages, begins_as_output)
    asked = [messages[place].text for place in (shown | coded) - pasted - headed]
    talked_to = 2 * sum(map(speaks, asked)) > len(shown | coded)
    people = len(asked) >= MIN_MESSAGES and sum(map(asks, asked)) >= MIN_REQUEST_RATIO * len(shown | coded)
    answers = called | headed | (shown & pasted)
    if not talked_to:
        answers |= shown if loop else {place for place in shown if not compiled(_SENTENCE).match(messages[place].text)}
    doubtful = _following_output(messages, answers, pasted)
    if not (people or (talked_to and not loop)):
        doubtful |= shown | coded
    return CommandOutputs(frozenset(answers), frozenset(doubtful - answers))


def _count_tool_calls(messages: Sequence[TurnMessage]) -> int:
    """How many tools were called, but for memory's own: any agent may be offered those."""
    return sum(not compiled(_MEMORY_TOOLS).fullmatch(call.tool) for one in messages for call in one.calls)


def _user_messages(messages: Sequence[TurnMessage], predicate: Callable[[str], bool]) -> frozenset[int]:
    """The places of messages in a user's name whose words are such; nothing was run before the first."""
    return frozenset(place for place, one in enumerate(messages) if place and one.starts_turn and predicate(one.text))


def _following_output(messages: Sequence[TurnMessage], answers: Container[int], pasted: Container[int]) -> set[int]:
    """What follows an answer in the same name, what looks like one behind any words of the agent's, and what it is told
    when it has handed its work in."""
    found: set[int] = set()
    for place, (before, one) in enumerate(pairwise(messages), start=1):
        told = place in pasted or (_submits_work(before.text) and not speaks(one.text))
        if one.starts_turn and (place - 1 in answers or (before.speaker == "assistant" and told)):
            found.add(place)
    return found


def _as_result(message: TurnMessage) -> TurnMessage:
    """No call has an id that it could be found by."""
    return replace(message, speaker="tool", text="", results=(TurnResult("", message.text, message.tokens),))


def _after_command(messages: Sequence[TurnMessage], command: str) -> Iterator[int]:
    """The places behind messages that end in such a command."""
    for place, (before, one) in enumerate(pairwise(messages), start=1):
        if one.starts_turn and before.speaker == "assistant" and not before.calls and _ends_in(before.text, command):
            yield place


def _ends_in(words: str, command: str) -> bool:
    end = _end(words)
    if not (end.endswith(_COMMAND_ENDINGS) or any(map(end.__contains__, _COMMAND_HINTS))):
        return False
    found = compiled(command).search(end)
    if found is None or _addresses_person(words):
        return False
    tag = found.groupdict().get("tag")
    return tag is None or f"<{tag}" in words


def _addresses_person(words: str) -> bool:
    """Does a message end in a command that is for a person: a question, an answer, the work itself?"""
    end = _end(words)
    commands = end.endswith(_COMMAND_ENDINGS) or any(map(end.__contains__, _COMMAND_HINTS))
    return commands and (bool(compiled(_PERSON_CALL).search(end)) or _submits_work(words))


def _submits_work(words: str) -> bool:
    """Does a message end in the command that hands the work in?"""
    end = _end(words)
    return end.endswith(_COMMAND_ENDINGS) and bool(compiled(_SUBMIT_COMMAND).search(end))


def _end(words: str) -> str:
    return f"\n{words[-_SCANNED_CHARACTERS:].rstrip()}"


# Characters at the end of a message that a command is looked for in: commands are short.
_SCANNED_CHARACTERS = 2_000
# Without one of these there is none: most messages are not looked at further.
_COMMAND_ENDINGS = ("```", "~~~", ">", "}")
_COMMAND_HINTS = ("Action", "ACTION", "action:", "Tool", "tool:", "Function", "function:", "\n$ ")

_MEMORY_TOOLS = r"(?:working[_-])?memory[_/]\w+|updateWorkingMemory|compact_history|resolve_reference"

# Nobody writes these to a person: `Action: …`, and a call between tags that name a tool.
_TOOL_CALL = (
    r"(?i)\n[*# ]*(?:action(?: input)?|(?:tool|function)(?: call)?)[* ]*:[^\n]*(?:\n[^\n]+)*\Z|"
    r"</(?P<tag>\w+_\w+|function|invoke|tool|command|cmd|bash|shell|terminal|run|execute|action|search|query)>[`\s]*\Z"
)
# These may be an example as well: a block of a shell, or a call as JSON. Code of any other kind is for a person.
_SHELL_COMMAND = (
    r"(?i)\n(?:```|~~~)(?:bash|sh|shell|zsh|console|terminal|powershell|cmd|bat)?[ ]*\n"
    r"(?:(?!```|~~~)[^\n]*\n)+(?:```|~~~)\Z|"
    r'\{\s*"(?:thoughts?|command|action|tool|tool_name|function|name)"\s*:(?:(?!\n\n)[\s\S])*\}\s*(?:```)?\Z|'
    r"\n\$ [^\n]+\Z"
)
# One line that begins and ends like a sentence.
_SENTENCE = r"[\s\"'“]*[A-Z\u4e00-\u9fff][^\n]*[.!?。！？…][\s\"'”]*\Z"
# Code that a person is given; or that is run, where an agent says hardly anything else.
_CODE_BLOCK = r"\n(?:```|~~~)\Z"
_SUBMIT_COMMAND = r"(?i)\n\s*(?:submit|finish|final_answer|complete_task)\b[^\n;|&]*\n?\s*(?:```|~~~|</\w+>)\s*\Z"
# What such a call hands to a person comes back with his own words. "Confirm" is said to a person by itself; what is
# confirmed by name, as an order, is confirmed to a program. A tag inside a call is no call, but one of its arguments.
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
