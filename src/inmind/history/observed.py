"""Which messages of a user are none: what a command answered, told by what came before it.

An agent that works by text alone writes its commands into its messages, and whoever runs them sends back what came of
it as if a user had said it. Some put a heading over that, many put none, and what a page or a file says there may well
read like an order. So it is told by its place: behind a command stands what the command answered.

Only where a command might also be an example, handed to a person who goes on talking, is it told by what is said
there, and then by all of it together: a single page could talk itself out of anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from inmind.history.prose import compiled, is_screen, speaks
from inmind.history.spoken import Spoken


def observed(said: Sequence[Spoken]) -> frozenset[int]:
    """The places of messages that only say what a command answered."""
    screens = {place for place, one in enumerate(said) if one.begins_turn and is_screen(one.words)}
    if any(one.asks for one in said):
        return frozenset(screens)  # who calls tools does not write commands
    called = set(_behind(said, _CALL))
    shown = set(_behind(said, _COMMAND)) - called
    persons = sum(place not in screens and speaks(said[place].words) for place in shown)
    return frozenset(screens | called | (set() if 2 * persons > len(shown) else shown))


def _behind(said: Sequence[Spoken], command: str) -> Iterator[int]:
    """The places behind messages that end in such a command."""
    for place, (before, one) in enumerate(pairwise(said), start=1):
        if one.begins_turn and before.by == "assistant" and not before.asks:
            end = f"\n{before.words[-_LOOKED_AT:].rstrip()}"
            may_be = end.endswith(_ENDS) or any(map(end.__contains__, _HINTS))
            if may_be and compiled(command).search(end) and not compiled(_TO_A_PERSON).search(end):
                yield place


# Characters at the end of a message that a command is looked for in: commands are short.
_LOOKED_AT = 2_000
# Without one of these there is none: most messages are not looked at further.
_ENDS = ("```", "~~~", ">", "}")
_HINTS = ("Action", "ACTION", "action:", "Tool", "tool:", "Function", "function:", "\n$ ")

# Nobody writes these to a person: `Action: …`, and a call between tags that name a tool.
_CALL = (
    r"(?i)\n[*# ]*(?:action(?: input)?|(?:tool|function)(?: call)?)[* ]*:[^\n]*(?:\n[^\n]+)*\Z|"
    r"</(?:\w+_\w+|function|invoke|tool|command|cmd|bash|shell|terminal|run|execute|action|search|query)>[`\s]*\Z"
)
# These may be an example as well: a block of a shell, or a call as JSON. Code of any other kind is for a person.
_COMMAND = (
    r"(?i)\n(?:```|~~~)(?:bash|sh|shell|zsh|console|terminal|powershell|cmd|bat)?[ ]*\n"
    r"(?:(?!```|~~~)[^\n]*\n)+(?:```|~~~)\Z|"
    r'\{\s*"(?:thoughts?|command|action|tool|tool_name|function|name)"\s*:(?:(?!\n\n)[\s\S])*\}\s*(?:```)?\Z|'
    r"\n\$ [^\n]+\Z"
)
# What such a call hands to a person comes back with his own words.
_TO_A_PERSON = (
    r"(?i)(?:\baction[* ]*:\s*|\"(?:name|action|tool|tool_name|command|function)\"\s*:\s*\"|<)"
    r"(?:respond|reply|final[ _]answer|finish|answer|done|attempt_completion|ask_\w+|(?:send_)?message(?:_\w+)?|say)\b"
)
