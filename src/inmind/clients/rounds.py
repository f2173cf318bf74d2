"""The host's own list of messages, with the rounds that it was not shown.

To a host that a wrapped client talks to, a reply is one message. To the provider it was several: calls of memory, their
answers, and then the words; or a message with a call more than the host has. The host's next list says it the host's
way, and sent like that it would differ from what the provider has seen and has in its cache. So the list is walked
beside the line, and wherever both tell of the same reply, the line's way of telling it is put in.

What is compared is what was said: words and calls. A host may keep a reply as the client's object, as bare text, or
with the words of all its rounds in one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from inmind.history import Line, added_to
from inmind.prompt.formats.parts import Call, Format, Message, Result, Text, Wire
from inmind.prompt.formats.values import is_object, plain


@dataclass(slots=True)
class Utterance:
    """What one side says before the other does."""

    wires: list[Any]
    message: Message | None = None
    """What it says, where it is not the assistant's: one message."""
    rounds: list[str] = field(default_factory=list[str])
    """The assistant's words, round by round."""
    calls: list[Call] = field(default_factory=list[Call])
    """The assistant's calls that are the host's to answer."""
    unheard: bool = False
    """It stops at an answer of memory's own: the call of the host that it belongs to has failed on the way."""


def completed(line: Line, theirs: list[Any], spoken: Format, hidden: Callable[[str], bool]) -> list[Any]:
    """The list to go on with. From the first real difference on, an edit or another answer, it is the host's own."""
    lead = next((at for at, wire in enumerate(theirs) if not _is_system(wire, spoken)), len(theirs))
    if added_to(line, theirs[lead:]) is not None:
        return theirs
    known = list(_utterances(_in_format(line, spoken), hidden))
    heard = list(_utterances(_given(theirs, lead, spoken), hidden))
    for begin in range(len(known)):
        put, at, to_the_end = _beside(known[begin:], heard)
        # A host that drops the beginning of its list still goes on from all that stands behind it.
        if at and (begin == 0 or to_the_end):
            return [*theirs[:lead], *put, *(wire for utterance in heard[at:] for wire in utterance.wires)]
    return theirs


def _beside(known: Sequence[Utterance], heard: Sequence[Utterance]) -> tuple[list[Any], int, bool]:
    """As much of the line as the host's list tells too, how far that list went along, and whether the line did to
    its end."""
    put: list[Any] = []
    at = 0
    for utterance in known:
        theirs = heard[at] if at < len(heard) else None
        if theirs is not None and _same(utterance, theirs):
            put += utterance.wires if utterance.message is None else theirs.wires
            at += 1
        elif utterance.unheard and (theirs is None or theirs.message is not None):
            put += utterance.wires
        else:
            return put, at, False
    return put, at, True


def _same(known: Utterance, theirs: Utterance) -> bool:
    """A host has heard all rounds of a streamed reply, the last of another, and none from before a call that failed."""
    if known.message is not None or theirs.message is not None:
        return known.message == theirs.message
    words = "".join(theirs.rounds)
    tellings = ("".join(known.rounds[begin:]) for begin in range(len(known.rounds)))
    return known.calls == theirs.calls and any(
        told == words or _without_spaces(told) == _without_spaces(words) for told in tellings
    )


def _without_spaces(text: str) -> str:
    """Hosts strip what they are told, and put all kinds of spaces between its parts."""
    return "".join(text.split())


def _utterances(said: Iterator[tuple[Any, Message]], hidden: Callable[[str], bool]) -> Iterator[Utterance]:
    """Messages of the assistant in a row are one utterance, with the answers to its hidden calls among them."""
    speaking: Utterance | None = None
    answered: set[str] = set()
    for wire, message in said:
        if message.role == "assistant":
            if speaking is None:
                speaking, answered = Utterance([]), set()
            if speaking.unheard or not speaking.rounds:
                speaking.rounds.append("")
            speaking.rounds[-1] += "".join(part.text for part in message.parts if isinstance(part, Text))
            speaking.unheard = False
            answered |= {call.id for call in message.calls if hidden(call.name)}
            speaking.calls += [call for call in message.calls if not hidden(call.name)]
        elif speaking is not None and _answers(message, answered):
            speaking.unheard = not speaking.calls
        else:
            if speaking is not None:
                yield speaking
                speaking = None
            yield Utterance([wire], message)
            continue
        speaking.wires.append(wire)
    if speaking is not None:
        yield speaking


def _answers(message: Message, ids: set[str]) -> bool:
    """Is it made of answers to these calls alone?"""
    parts = message.parts
    return bool(parts) and all(isinstance(part, Result) and part.id in ids for part in parts)


def _in_format(line: Line, spoken: Format) -> Iterator[tuple[Wire, Message]]:
    """The line as far as it was told in this format; from there on it could not be sent as it is."""
    for entry in line:
        if entry.format != spoken.name:
            return
        yield entry.wire, spoken.read(entry.wire)


def _given(theirs: Sequence[Any], lead: int, spoken: Format) -> Iterator[tuple[Wire, Message]]:
    for at, given in enumerate(theirs[lead:], start=lead):
        wire = plain(given, f"messages[{at}]")
        spoken.check(wire, field=f"messages[{at}]")
        yield wire, spoken.read(wire)


def _is_system(wire: Any, spoken: Format) -> bool:
    return is_object(wire) and spoken.is_system(wire)
