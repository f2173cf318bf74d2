"""Which messages of a user are none: what a command answered, told by what came before it.

An agent that works by text alone writes its commands into its messages, and whoever runs them sends back what came of
it as if a user had said it. Some put a heading over that, many put none, and what a page or a file says there may well
read like an order. So it is told by its place: behind a command stands what the command answered.

Only where a command might also be an example, handed to a person who goes on talking, is it told by what is said
there, and then by all of it together: a single page could talk itself out of anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from inmind.history.prose import compiled, is_headed, is_screen, speaks
from inmind.history.spoken import Answered, Spoken


def told_apart(said: Sequence[Spoken]) -> list[Spoken]:
    """The same messages, but what a command answered is an answer and no word of a user's."""
    places = observed(said)
    return [as_answer(one) if place in places else one for place, one in enumerate(said)]


def as_answer(one: Spoken) -> Spoken:
    """A message that only says what a command answered. No call has an id that it could be found by."""
    return replace(one, by="tool", words="", answers=(Answered("", one.words, one.tokens),))


def observed(said: Sequence[Spoken]) -> frozenset[int]:
    """The places of messages that only say what a command answered."""
    screens = _screens(said)
    if any(one.asks for one in said):
        return frozenset(screens)  # who calls tools does not write commands
    called = set(_behind(said, _CALL))
    shown = set(_behind(said, _COMMAND)) - called
    persons = sum(place not in screens and speaks(said[place].words) for place in shown)
    return frozenset(screens | called | (set() if 2 * persons > len(shown) else shown))


def _screens(said: Sequence[Spoken]) -> set[int]:
    """The places of what looks like an answer by itself. A prompt at its end counts only where something was run: who
    hands over a task may well show the terminal that it begins at."""
    found: set[int] = set()
    for place, (before, one) in enumerate(pairwise(said), start=1):
        if not one.begins_turn:
            continue
        ran = place - 1 in found or (before.by == "assistant" and not _hands_in(before.words))
        if is_headed(one.words) or (ran and is_screen(one.words)):
            found.add(place)
    return found


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
    if found is None or compiled(_TO_A_PERSON).search(end) or _hands_in(words):
        return False
    tag = found.groupdict().get("tag")
    return tag is None or f"<{tag}" in words


def _hands_in(words: str) -> bool:
    """Does a message end in the command that hands the work in? Behind it somebody asks for the next."""
    end = _end(words)
    return end.endswith(_ENDS) and bool(compiled(_ENDS_THE_WORK).search(end))


def _end(words: str) -> str:
    return f"\n{words[-_LOOKED_AT:].rstrip()}"


# Characters at the end of a message that a command is looked for in: commands are short.
_LOOKED_AT = 2_000
# Without one of these there is none: most messages are not looked at further.
_ENDS = ("```", "~~~", ">", "}")
_HINTS = ("Action", "ACTION", "action:", "Tool", "tool:", "Function", "function:", "\n$ ")

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
_ENDS_THE_WORK = r"(?i)\n\s*(?:submit|finish|final_answer|complete_task)\b[^\n;|&]*\n?\s*(?:```|~~~|</\w+>)\s*\Z"
# What such a call hands to a person comes back with his own words.
_TO_A_PERSON = (
    r"(?i)(?:\baction[* ]*:\s*|\"(?:name|action|tool|tool_name|command|function)\"\s*:\s*\"|<)"
    r"(?:respond|reply|final[ _]answer|finish|answer|done|attempt_completion|ask_\w+|(?:send_)?message(?:_\w+)?|say)\b"
)
