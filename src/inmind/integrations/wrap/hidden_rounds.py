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
from dataclasses import dataclass, field, replace
from typing import Any

from inmind.core.encoding import digest_of
from inmind.core.json import plain
from inmind.core.messages import FORMATS
from inmind.core.messages.cache_control import unmarked
from inmind.core.messages.model import Call, Format, Image, Message, Opaque, Part, Result, Role, Text
from inmind.history import Conversation, ConversationEntry, find_appended


class Rounds:
    """Puts back into the lists of one conversation what the host was not shown of it.

    A list mostly begins with the one before it. How that one was told is remembered, so that what stands in both is
    compared and not read again.
    """

    def __init__(self) -> None:
        self._before: tuple[list[Any], list[Any]] = ([], [])

    def put_back(self, line: Conversation, theirs: Sequence[Any], fmt: Format, *, lead: int = 0) -> list[Any]:
        """The list to go on with. `lead`: how many messages stood before it, for the places in errors."""
        said = [plain(given, f"messages[{place}]") for place, given in enumerate(theirs, start=lead)]
        if _begins(line, said):
            return said
        known, told = self._before
        if said[: len(known)] != known or line.wires[: len(told)] != _unmarked(told):
            known, told = [], []
        ours = list(_known(line[len(told) :]))
        full = [*told, *_woven(ours, list(_heard(said[len(known) :], fmt, lead + len(known))))]
        own = frozenset({fmt.name})
        if (told or any(one.formats != own for one in ours)) and not _begins(line, full):
            # An edit, which may lie anywhere; and all of the list has to be in this format then.
            full = _woven(list(_known_in(own, line)), list(_heard(said, fmt, lead)))
        # Up to the last message: what was answered to it is still to come.
        self._before = (said[:-1], full[:-1]) if said and said[-1] is full[-1] else ([], [])
        return full


@dataclass(slots=True)
class Round:
    """What the assistant says up to where memory answers it, and the answers."""

    texts: list[str] = field(default_factory=list[str])
    wires: list[Any] = field(default_factory=list[Any])

    @property
    def bare(self) -> str:
        return _bare(self.texts)


@dataclass(slots=True)
class Utterance:
    """What one side says before the other does."""

    role: Role
    rounds: list[Round] = field(default_factory=lambda: [Round()])
    parts: tuple[Part, ...] = ()
    """What it says, where that is not the assistant's."""
    calls: list[Call] = field(default_factory=list[Call])
    """The assistant's calls that are the host's to answer."""
    hides: bool = False
    """Memory has answered in it, so the host was not told all of it."""
    unheard: bool = False
    """It stops at an answer of memory's: the host has not been told what follows."""
    formats: frozenset[str] = frozenset()

    @property
    def wires(self) -> list[Any]:
        return _wires(self.rounds)

    @property
    def texts(self) -> list[str]:
        return [text for one in self.rounds for text in one.texts]

    @property
    def bare(self) -> str:
        return _bare(self.texts)

    @property
    def untold(self) -> list[Any]:
        """What is there of a reply that a host has nothing of: all of it, where its call failed on the way; where there
        are only calls to see, which it will not answer, what was before them."""
        if self.unheard:
            return self.wires
        return _wires(self.rounds[:-1]) if self.calls and not self.bare else []

    @property
    def key(self) -> Hashable:
        """By what a message of the host's is known: what it says, and which calls it answers, whatever with."""
        return (self.role, *map(_part_key, self.parts))

    @property
    def is_reply(self) -> bool:
        return self.role == "assistant"


@dataclass(slots=True)
class Run:
    """As far as both go on with the same: what to put, and where each of them then is."""

    put: list[Any]
    known: int
    heard: int


def _begins(line: Conversation, said: Sequence[Any]) -> bool:
    """Does a list begin with all of the line? A host may mark it for the cache as it likes."""
    return find_appended(line, _unmarked(said)) is not None


def _unmarked(said: Sequence[Any]) -> list[Any]:
    return [unmarked(wire) for wire in said]


def _woven(known: Sequence[Utterance], heard: Sequence[Utterance]) -> list[Any]:
    """The host's list, told the line's way wherever the line tells it too.

    Hosts drop the beginning of a list or its middle, put a summary there, and edit. So where the two part, each message
    is looked for in all of the line that is left; and of several places, that one is it from which most goes on. A
    reply is known by what it answers too: alone it counts only where both begin with it.
    """
    places: defaultdict[Hashable, list[int]] = defaultdict(list)
    for place, utterance in enumerate(known):
        if not utterance.is_reply:
            places[utterance.key].append(place)
    put: list[Any] = []
    ours = theirs = 0
    while theirs < len(heard):
        begins = [0] if theirs == 0 and heard[0].is_reply else places[heard[theirs].key]
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
        elif run.put and utterance.untold and _is_passed_over(theirs, known[run.known + 1 : run.known + 2]):
            run.put += utterance.untold
        else:
            break
        run.known += 1
    return run


def _is_passed_over(theirs: Utterance | None, later: Sequence[Utterance]) -> bool:
    """Does the host's list go on like the line, without telling of a reply?"""
    if theirs is None or theirs.is_reply:
        return theirs is None and not later
    return not later or theirs.key == later[0].key


def _told(known: Utterance, theirs: Utterance) -> list[Any] | None:
    """What the host's list tells here, told the line's way; None where that is something else.

    The host's own messages keep the host's own form: it may move a cache mark on, or clear the results of tools. In
    another format they can only say the same, and what came first stands.
    """
    if known.is_reply and theirs.is_reply:
        return _reply_told(known, theirs)
    if known.key != theirs.key:
        return None
    return known.wires if known.formats != theirs.formats and known.parts == theirs.parts else theirs.wires


def _reply_told(known: Utterance, theirs: Utterance) -> list[Any] | None:
    """A host may tell of a reply from a later round on, where a call failed before that or only the last one was
    shown; only up to where it has left it; and without the calls of the last round, which it will not answer: the reply
    was cut, or the call is not to be made. That round is told the host's way then."""
    dropped = bool(known.calls) and not theirs.calls
    if not dropped and list(map(_meant, known.calls)) != list(map(_meant, theirs.calls)):
        return None
    if not known.hides:
        return None if dropped else _plain_reply_told(known, theirs)
    words = theirs.bare
    left: list[Any] | None = None
    for begin in range(len(known.rounds)):
        told, rest = begin, words
        while told < len(known.rounds) - dropped and rest.startswith(known.rounds[told].bare):
            rest = rest.removeprefix(known.rounds[told].bare)
            told += 1
        whole = told == len(known.rounds)
        if whole and not rest:
            return known.wires
        if left is None and (words or dropped) and not theirs.calls:
            ends_here = known.unheard if whole else known.rounds[told].bare.startswith(rest)
            left = [*_wires(known.rounds[:told]), *_behind(theirs, len(words) - len(rest))] if ends_here else None
    return left


def _plain_reply_told(known: Utterance, theirs: Utterance) -> list[Any] | None:
    """Where nothing was hidden the host knows every letter, and a space that it has changed is an edit."""
    if _is_spelt(known.texts, "".join(theirs.texts)):
        return known.wires
    left = bool(theirs.bare) and not theirs.calls and known.bare.startswith(theirs.bare)
    return theirs.wires if left or known.bare == theirs.bare else None


def _is_spelt(texts: Sequence[str], said: str) -> bool:
    """Are these the same letters? Between texts there may be spaces, where a host keeps them as one."""
    for place, text in enumerate(texts):
        before, found, said = said.partition(text)
        if not found or before.strip() or (before and not place):
            return False
    return not said


def _behind(theirs: Utterance, length: int) -> list[Any]:
    """What a host has of a reply behind so many letters of it."""
    if not length:
        return theirs.wires
    text = "".join(theirs.texts)
    ends = [place for place, letter in enumerate(text, start=1) if not letter.isspace()]
    rest = text[ends[length - 1] :].strip()
    return [{"role": "assistant", "content": rest}] if rest else []


def _bare(texts: Iterable[str]) -> str:
    """Words without spaces. Hosts strip what they are told, and put all kinds of spaces between its rounds."""
    return "".join("".join(texts).split())


def _wires(rounds: Iterable[Round]) -> list[Any]:
    return [wire for one in rounds for wire in one.wires]


def _known(entries: Iterable[ConversationEntry]) -> Iterator[Utterance]:
    said = (
        (entry.wire, FORMATS[entry.format].read(entry.wire), entry.format, entry.is_memory_reply) for entry in entries
    )
    return _utterances(said)


def _known_in(own: frozenset[str], line: Conversation) -> Iterator[Utterance]:
    """The line without replies of other formats. Messages of the host's stay, to be told in the host's form."""
    for utterance in _known(line):
        if utterance.formats == own or not utterance.is_reply:
            yield replace(utterance, formats=own)


def _heard(said: Sequence[Any], fmt: Format, begin: int) -> Iterator[Utterance]:
    for place, wire in enumerate(said, start=begin):
        fmt.check(wire, field=f"messages[{place}]")
    return _utterances((wire, fmt.read(unmarked(wire)), fmt.name, False) for wire in said)


def _utterances(said: Iterable[tuple[Any, Message, str, bool]]) -> Iterator[Utterance]:
    """Messages of the assistant in a row are one utterance, with memory's answers among them; results in a row are one
    too, since one provider wants them in one message and another apart."""
    now: Utterance | None = None
    for wire, message, format, ours in said:
        goes_on = now is not None and (now.role == message.role in ("assistant", "tool") or (ours and now.is_reply))
        if now is None or not goes_on:
            if now is not None:
                yield now
            now = Utterance(message.role)
        if now.unheard and not ours:
            now.rounds.append(Round())
        now.formats |= {format}
        now.rounds[-1].wires.append(wire)
        if not now.is_reply:
            now.parts += message.parts
        elif ours:
            _answer(now, message)
        else:
            _speak(now, message)
    if now is not None:
        yield now


def _speak(now: Utterance, message: Message) -> None:
    now.unheard = False
    now.rounds[-1].texts += [part.text for part in message.parts if isinstance(part, Text) and part.text]
    now.calls += message.calls


def _answer(now: Utterance, message: Message) -> None:
    """Calls that memory has answered are none of the host's. Some servers give several the same id."""
    for result in message.results:
        answered = next((call for call in now.calls if call.id == result.id), None)
        if answered is not None:
            now.calls.remove(answered)
    now.hides, now.unheard = True, not now.calls


def _part_key(part: Part) -> Hashable:
    match part:
        case Text(text):
            return text
        case Result(id):
            return ("answers", id)
        case Call() | Image():
            return part
        case Opaque(_, kind, body):
            return ("answers", part.answers) if part.answers else (kind, digest_of(body))


def _meant(call: Call) -> tuple[str, str, object]:
    """A call, however its arguments are spelt: one provider gives them as text, another as an object."""
    meant: object = call.arguments
    with suppress(ValueError, RecursionError):
        meant = json.loads(call.arguments)
    return call.id, call.name, meant
