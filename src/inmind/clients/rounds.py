"""The host's own list of messages, with the rounds that it was not shown.

To a host that a wrapped client talks to, a reply is one message. To the provider it was several: calls of memory, their
answers, and then the words; or a message with a call more than the host has. The host's next list says it the host's
way, and sent like that it would differ from what the provider has seen and has in its cache. So the list is laid beside
the line, and wherever both tell of the same reply to the same message, the line's way of telling it is put in. What was
hidden is what memory has answered itself: the journal says so, whatever tools there are by now.

What is compared is what was said: words and calls. A host may keep a reply as the client's object, as bare text, in
another provider's form, or only as far as it has heard it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from inmind.history import Entry, Line, added_to
from inmind.journal import digest_of
from inmind.prompt.formats import FORMATS
from inmind.prompt.formats.parts import Call, Format, Image, Message, Opaque, Part, Result, Text
from inmind.prompt.formats.values import plain

# Items without a role that the assistant never says.
_SAID_BY_HOSTS = frozenset({"additional_tools", "compaction_trigger", "item_reference", "mcp_approval_response"})
_AUDIO = "audio"


class Rounds:
    """Puts back into the lists of one conversation what the host was not shown of it.

    A list mostly begins with the one before it. How that one was told is remembered, so that what stands in both is
    compared and not read again.
    """

    def __init__(self) -> None:
        self._before: tuple[list[Any], list[Any]] = ([], [])

    def put_back(self, line: Line, theirs: Sequence[Any], spoken: Format, *, lead: int = 0) -> list[Any]:
        """The list to go on with. `lead`: how many messages stood before it, for the places in errors."""
        said = [plain(given, f"messages[{place}]") for place, given in enumerate(theirs, start=lead)]
        if added_to(line, said) is not None:
            return said
        known, told = self._before
        if said[: len(known)] != known or line.wires[: len(told)] != told:
            known, told = [], []
        new = _heard(said[len(known) :], spoken, lead + len(known))
        full = [*told, *_woven(list(_known(line[len(told) :])), list(new))]
        if added_to(line, full) is None:
            # An edit, which may lie anywhere; and all of the list will have to be in this format.
            ours = [one for one in _known(line) if one.message is not None or one.formats == {spoken.name}]
            full = _woven(ours, list(_heard(said, spoken, lead)))
        # Up to the last message: what was answered to it is still to come.
        self._before = (said[:-1], full[:-1]) if said and said[-1] is full[-1] else ([], [])
        return full


@dataclass(slots=True)
class Round:
    """What the assistant says up to where memory answers it, and the answers."""

    words: str = ""
    wires: list[Any] = field(default_factory=list[Any])

    @property
    def bare(self) -> str:
        """Hosts strip what they are told, and put all kinds of spaces between its parts."""
        return "".join(self.words.split())


@dataclass(slots=True)
class Utterance:
    """What one side says before the other does."""

    rounds: list[Round]
    formats: set[str]
    message: Hashable = None
    """What it says, where it is not the assistant's: one message."""
    calls: list[Call] = field(default_factory=list[Call])
    """The assistant's calls that are the host's to answer."""
    audio: bool = False
    unheard: bool = False
    """It stops at an answer of memory's: the host has not been told what follows."""

    @property
    def wires(self) -> list[Any]:
        return [wire for one in self.rounds for wire in one.wires]


@dataclass(slots=True)
class Run:
    """As far as both go on with the same: what to put, and where each of them then is."""

    put: list[Any]
    known: int
    heard: int


def _woven(known: Sequence[Utterance], heard: Sequence[Utterance]) -> list[Any]:
    """The host's list, told the line's way wherever the line tells it too.

    Hosts drop the beginning of a list or its middle, put a summary there, and edit. So where the two part, each message
    is looked for in all of the line that is left; and of several places, that one is it from which most goes on.
    """
    places: defaultdict[Hashable, list[int]] = defaultdict(list)
    for place, utterance in enumerate(known):
        # A reply is known by what it answers: alone it counts only where both begin with it.
        if utterance.message is not None or place == 0:
            places[utterance.message].append(place)
    put: list[Any] = []
    ours = theirs = 0
    while theirs < len(heard):
        begins = places[heard[theirs].message] if theirs == 0 or heard[theirs].message is not None else []
        run = _longest(known, heard, [place for place in begins if place >= ours], theirs)
        if run is None:
            put += heard[theirs].wires
            theirs += 1
        else:
            put += run.put
            ours, theirs = run.known, run.heard
    return put


def _longest(known: Sequence[Utterance], heard: Sequence[Utterance], begins: Sequence[int], at: int) -> Run | None:
    best: Run | None = None
    length = 0
    for begin in begins:
        if len(known) - begin < length:
            break
        run = _run(known, heard, begin, at)
        gone = run.known - begin
        if gone > length or (gone == length > 0 and run.known == len(known)):
            best, length = run, gone
    return best


def _run(known: Sequence[Utterance], heard: Sequence[Utterance], begin: int, at: int) -> Run:
    run = Run([], begin, at)
    for utterance in known[begin:]:
        theirs = heard[run.heard] if run.heard < len(heard) else None
        told = None if theirs is None else _told(utterance, theirs)
        if told is not None:
            run.put += told
            run.heard += 1
        elif utterance.unheard and run.put and _is_left_out(known[run.known + 1 :], theirs):
            run.put += utterance.wires
        else:
            break
        run.known += 1
    return run


def _is_left_out(later: Sequence[Utterance], theirs: Utterance | None) -> bool:
    """Rounds of a call that failed on the way: nothing in the host's list tells of them, and it goes on behind them."""
    if not later:
        return theirs is None or theirs.message is not None
    return theirs is not None and theirs.message is not None and theirs.message == later[0].message


def _told(known: Utterance, theirs: Utterance) -> list[Any] | None:
    """What the host's list tells here, told the line's way; None where that is something else.

    The host's own messages keep the host's own form: it may move a cache mark on, or clear the results of tools. A
    reply may be told from a later round on, where a call failed before it or only the last one was shown; and only up
    to where the host has left it.
    """
    if known.message is not None or theirs.message is not None:
        return theirs.wires if known.message == theirs.message else None
    if list(map(_meant, known.calls)) != list(map(_meant, theirs.calls)):
        return None
    if theirs.audio and known.audio:  # is given out as sound, and taken back by its id
        return [*(wire for one in known.rounds[:-1] for wire in one.wires), *theirs.wires]
    words = Round("".join(one.words for one in theirs.rounds)).bare
    left: list[Any] | None = None
    for begin in range(len(known.rounds)):
        told, rest = begin, words
        while told < len(known.rounds) and rest.startswith(known.rounds[told].bare):
            rest = rest.removeprefix(known.rounds[told].bare)
            told += 1
        whole = told == len(known.rounds)
        if whole and not rest:
            return known.wires
        if theirs.calls or left is not None or not words:
            continue
        if known.unheard if whole else known.rounds[told].bare.startswith(rest):
            left = [wire for one in known.rounds[:told] for wire in one.wires] + _behind(theirs, len(words) - len(rest))
    return left


def _behind(theirs: Utterance, length: int) -> list[Any]:
    """What a host has of a reply behind so many letters of it."""
    if not length:
        return theirs.wires
    text = "".join(one.words for one in theirs.rounds)
    letters = (place for place, letter in enumerate(text, start=1) if not letter.isspace())
    end = next(place for number, place in enumerate(letters, start=1) if number == length)
    rest = text[end:].strip()
    return [{"role": "assistant", "content": rest}] if rest else []


def _known(entries: Iterable[Entry]) -> Iterator[Utterance]:
    """The line. Messages of the assistant in a row are one utterance, with memory's answers among them."""
    said = ((entry.wire, FORMATS[entry.format].read(entry.wire), entry.format, entry.ours) for entry in entries)
    return _utterances(said)


def _heard(said: Sequence[Any], spoken: Format, begin: int) -> Iterator[Utterance]:
    for place, wire in enumerate(said, start=begin):
        spoken.check(wire, field=f"messages[{place}]")
    return _utterances((wire, spoken.read(wire), spoken.name, False) for wire in said)


def _utterances(said: Iterable[tuple[Any, Message, str, bool]]) -> Iterator[Utterance]:
    speaking: Utterance | None = None
    for wire, message, format, ours in said:
        if not (ours and speaking) and not _is_assistants(message):
            if speaking is not None:
                yield speaking
                speaking = None
            yield Utterance([Round(wires=[wire])], {format}, _key(message))
            continue
        if speaking is None:
            speaking = Utterance([Round()], {format})
        elif speaking.unheard and not ours:
            speaking.rounds.append(Round())
        speaking.formats.add(format)
        speaking.rounds[-1].wires.append(wire)
        if ours:
            _answer(speaking, message)
        else:
            _speak(speaking, message)
    if speaking is not None:
        yield speaking


def _speak(speaking: Utterance, message: Message) -> None:
    speaking.unheard = False
    speaking.rounds[-1].words += "".join(part.text for part in message.parts if isinstance(part, Text))
    speaking.calls += message.calls
    speaking.audio = any(isinstance(part, Opaque) and part.kind == _AUDIO for part in message.parts)


def _answer(speaking: Utterance, message: Message) -> None:
    """Calls that memory has answered are none of the host's. Some servers give all calls the same id."""
    for result in message.results:
        answered = next((call for call in speaking.calls if call.id == result.id), None)
        if answered is not None:
            speaking.calls.remove(answered)
    speaking.unheard = not speaking.calls


def _is_assistants(message: Message) -> bool:
    return message.role == "assistant" and not any(
        isinstance(part, Opaque) and part.kind in _SAID_BY_HOSTS for part in message.parts
    )


def _key(message: Message) -> Hashable:
    """What makes a message of the host's the same: what it says, and which calls it answers, whatever with."""
    return (message.role, *map(_part_key, message.parts))


def _part_key(part: Part) -> Hashable:
    match part:
        case Text(text):
            return text
        case Result(id):
            return ("answers", id)
        case Call() | Image():
            return part
        case Opaque(_, kind, body):
            return (kind, digest_of(body))


def _meant(call: Call) -> tuple[str, str, object]:
    """A call, however its arguments are spelt: one provider gives them as text, another as an object."""
    meant: object = call.arguments
    with suppress(ValueError, RecursionError):
        meant = json.loads(call.arguments)
    return call.id, call.name, meant
