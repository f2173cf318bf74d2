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
from inmind.history.turns import Answered, Spoken

LOOP = 0.8
"""Of what an agent says ends in a command, if it works by them."""
FEW = 3
"""Messages that end in code, below which that is no habit; and that ask for something, below which nobody is sure."""
MOSTLY = 0.9
"""Of what is said behind commands asks for something, if a person says it."""


class Observed(NamedTuple):
    """Places of messages in a user's name."""

    answers: frozenset[int] = frozenset()
    """They only say what a command answered."""
    doubtful: frozenset[int] = frozenset()
    """They may be that, or a person's words."""


def told_apart(said: Sequence[Spoken], *, seen: Sequence[Spoken] | None = None) -> list[Spoken]:
    """The same messages, but what a command answered is an answer and no word of a user's.

    `seen`: the messages as they were, where some are sent as stubs.
    """
    answers, doubtful = observed(said if seen is None else seen)
    told = list(said)
    for place in (*answers, *doubtful):
        one = said[place]
        if one.begins_turn:
            told[place] = _as_answer(one) if place in answers else replace(one, doubtful=True)
    return told


def observed(said: Sequence[Spoken]) -> Observed:
    """Told by the commands before them: those that nobody writes to a person, and those that may be an example."""
    called = set(_behind(said, _CALL))
    shown = set(_behind(said, _COMMAND)) - called
    coded = set(_behind(said, _CODE)) - called - shown
    often = LOOP * sum(one.by == "assistant" and not (one.asks or _addresses(one.words)) for one in said)
    if len(coded) < max(often, FEW):
        coded.clear()
    commands = called | shown | coded
    if (calls := _calls(said)) and calls >= len(commands):
        return Observed()
    headed, screens = _users(said, is_headed), _users(said, is_screen)
    if not commands:  # there may still be some in words that nobody knows
        return Observed(headed, frozenset(_in_their_wake(said, headed, screens)) - headed)
    loop = len(commands) >= often
    pasted = screens | _users(said, begins_as_output)
    asked = [said[place].words for place in (shown | coded) - pasted - headed]
    talked_to = 2 * sum(map(speaks, asked)) > len(shown | coded)
    people = len(asked) >= FEW and sum(map(asks, asked)) >= MOSTLY * len(shown | coded)
    answers = called | headed | (shown & pasted)
    if not talked_to:
        answers |= shown if loop else {place for place in shown if not compiled(_SENTENCE).match(said[place].words)}
    doubtful = _in_their_wake(said, answers, pasted)
    if not (people or (talked_to and not loop)):
        doubtful |= shown | coded
    return Observed(frozenset(answers), frozenset(doubtful - answers))


def _calls(said: Sequence[Spoken]) -> int:
    """How many tools were called, but for memory's own: any agent may be offered those."""
    return sum(not compiled(_OURS).fullmatch(call.tool) for one in said for call in one.asks)


def _users(said: Sequence[Spoken], are: Callable[[str], bool]) -> frozenset[int]:
    """The places of messages in a user's name whose words are such; nothing was run before the first."""
    return frozenset(place for place, one in enumerate(said) if place and one.begins_turn and are(one.words))


def _in_their_wake(said: Sequence[Spoken], answers: Container[int], pasted: Container[int]) -> set[int]:
    """What follows an answer in the same name, what looks like one behind any words of the agent's, and what it is told
    when it has handed its work in."""
    found: set[int] = set()
    for place, (before, one) in enumerate(pairwise(said), start=1):
        told = place in pasted or (_hands_in(before.words) and not speaks(one.words))
        if one.begins_turn and (place - 1 in answers or (before.by == "assistant" and told)):
            found.add(place)
    return found


def _as_answer(one: Spoken) -> Spoken:
    """No call has an id that it could be found by."""
    return replace(one, by="tool", words="", answers=(Answered("", one.words, one.tokens),))


def _behind(said: Sequence[Spoken], command: str) -> Iterator[int]:
    """The places behind messages that end in such a command."""
    for place, (before, one) in enumerate(pairwise(said), start=1):
        if one.begins_turn and before.by == "assistant" and not before.asks and _ends_in(before.words, command):
            yield place


def _ends_in(words: str, command: str) -> bool:
    end = _end(words)
    if not (end.endswith(_ENDS) or any(map(end.__contains__, _HINTS))):
        return False
    found = compiled(command).search(end)
    if found is None or _addresses(words):
        return False
    tag = found.groupdict().get("tag")
    return tag is None or f"<{tag}" in words


def _addresses(words: str) -> bool:
    """Does a message end in a command that is for a person: a question, an answer, the work itself?"""
    end = _end(words)
    commands = end.endswith(_ENDS) or any(map(end.__contains__, _HINTS))
    return commands and (bool(compiled(_TO_A_PERSON).search(end)) or _hands_in(words))


def _hands_in(words: str) -> bool:
    """Does a message end in the command that hands the work in?"""
    end = _end(words)
    return end.endswith(_ENDS) and bool(compiled(_ENDS_THE_WORK).search(end))


def _end(words: str) -> str:
    return f"\n{words[-_LOOKED_AT:].rstrip()}"


# Characters at the end of a message that a command is looked for in: commands are short.
_LOOKED_AT = 2_000
# Without one of these there is none: most messages are not looked at further.
_ENDS = ("```", "~~~", ">", "}")
_HINTS = ("Action", "ACTION", "action:", "Tool", "tool:", "Function", "function:", "\n$ ")

_OURS = r"(?:working[_-])?memory[_/]\w+|updateWorkingMemory|compact_history|resolve_reference"

# Nobody writes these to a person: `Action: …`, and a call between tags that name a tool.
_CALL = (
    r"(?i)\n[*# ]*(?:action(?: input)?|(?:tool|function)(?: call)?)[* ]*:[^\n]*(?:\n[^\n]+)*\Z|"
    r"</(?P<tag>\w+_\w+|function|invoke|tool|command|cmd|bash|shell|terminal|run|execute|action|search|query)>[`\s]*\Z"
)
# These may be an example as well: a block of a shell, or a call as JSON. Code of any other kind is for a person.
_COMMAND = (
    r"(?i)\n(?:```|~~~)(?:bash|sh|shell|zsh|console|terminal|powershell|cmd|bat)?[ ]*\n"
    r"(?:(?!```|~~~)[^\n]*\n)+(?:```|~~~)\Z|"
    r'\{\s*"(?:thoughts?|command|action|tool|tool_name|function|name)"\s*:(?:(?!\n\n)[\s\S])*\}\s*(?:```)?\Z|'
    r"\n\$ [^\n]+\Z"
)
# One line that begins and ends like a sentence.
_SENTENCE = r"[\s\"'“]*[A-Z\u4e00-\u9fff][^\n]*[.!?。！？…][\s\"'”]*\Z"
# Code that a person is given; or that is run, where an agent says hardly anything else.
_CODE = r"\n(?:```|~~~)\Z"
_ENDS_THE_WORK = r"(?i)\n\s*(?:submit|finish|final_answer|complete_task)\b[^\n;|&]*\n?\s*(?:```|~~~|</\w+>)\s*\Z"
# What such a call hands to a person comes back with his own words. "Confirm" is said to a person by itself; what is
# confirmed by name, as an order, is confirmed to a program. A tag inside a call is no call, but one of its arguments.
_ADDRESSED = (
    r"(?:ask(?:_\w+|user\w*|human\w*)?|question|clarify|confirm(?:\s+with|(?!\s+\w))|human(?:_?(?:input|feedback))?|"
    r"(?:\w+_)?user_?input|request_(?:approval|clarification|confirmation|feedback|human\w*|input|permission)|"
    r"(?:consult|contact|notify|prompt|(?:escalate|talk|turn)_to|wait_for)_(?:the_)?(?:human|user))\b"
)
_TO_A_PERSON = (
    r"(?i)(?:\baction[* ]*:\s*|\"(?:name|action|tool|tool_name|command|function)\"\s*:\s*\"|<)"
    r"(?:respond|reply|final[ _]answer|finish|answer|done|attempt_completion|ask_\w+|(?:send_)?message(?:_\w+)?|say)\b|"
    rf"(?:\baction[* ]*:\s*|\"(?:name|action|tool|tool_name|command|function)\"\s*:\s*\"){_ADDRESSED}|"
    rf"</{_ADDRESSED}>[`\s]*\Z"
)
