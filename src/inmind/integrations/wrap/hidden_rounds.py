"""Put hidden rounds back into the host's list of messages.

To the host of a wrapped client a reply is one message. To the provider it was several: calls of memory tools, their
results, then the text; or a message with more calls than the host has. If the host's next list were sent as it is, it
would differ from the provider's cache. So the list is compared with the conversation in the journal, and
where both have the same reply to the same message, the journal's messages are used. The journal marks messages that
memory answered, so it does not matter which tools exist by now.

Texts and calls are compared. A host may keep a reply as the client's object, as bare text, in another provider's
format, or only the part that it has received.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from inmind.core.encoding import digest_of
from inmind.core.json import to_plain
from inmind.core.messages import FORMATS
from inmind.core.messages.cache_control import without_marks
from inmind.core.messages.format import Format
from inmind.core.messages.model import Call, Image, Message, Opaque, Part, Result, Role, Text
from inmind.history.history import Conversation, ConversationEntry
from inmind.history.sync import find_appended


class HiddenRounds:
    """Restores the messages of one conversation that the host was not shown.

    A list usually starts with the previous list. The result for that one is cached, so only new messages are parsed.
    """

    def __init__(self) -> None:
        self._previous: tuple[list[Any], list[Any]] = ([], [])

    def restore(self, conversation: Conversation, messages: Sequence[Any], fmt: Format, *, lead: int = 0) -> list[Any]:
        """The complete list. `lead`: number of messages before it, for indexes in errors."""
        plain = [to_plain(message, f"messages[{index}]") for index, message in enumerate(messages, start=lead)]
        if _starts_with_conversation(conversation, plain):
            return plain
        host_prefix, full_prefix = self._previous
        if plain[: len(host_prefix)] != host_prefix or conversation.wires[: len(full_prefix)] != _without_marks(
            full_prefix
        ):
            host_prefix, full_prefix = [], []
        journal_turns = list(_journal_turns(conversation[len(full_prefix) :]))
        full = [
            *full_prefix,
            *_merge_turns(journal_turns, list(_host_turns(plain[len(host_prefix) :], fmt, lead + len(host_prefix)))),
        ]
        own_format = frozenset({fmt.name})
        if (full_prefix or any(turn.formats != own_format for turn in journal_turns)) and not _starts_with_conversation(
            conversation, full
        ):
            # The host has edited the list, at any place. All of it has to be in this format then.
            full = _merge_turns(list(_journal_turns_in(own_format, conversation)), list(_host_turns(plain, fmt, lead)))
        # Without the last message, whose reply is still to come.
        self._previous = (plain[:-1], full[:-1]) if plain and plain[-1] is full[-1] else ([], [])
        return full


@dataclass(slots=True)
class Round:
    """Messages of the assistant up to an answer of memory, and that answer."""

    texts: list[str] = field(default_factory=list[str])
    wires: list[Any] = field(default_factory=list[Any])

    @property
    def letters(self) -> str:
        return _letters(self.texts)


@dataclass(slots=True)
class SpeakerTurn:
    """Consecutive messages of one speaker."""

    role: Role
    rounds: list[Round] = field(default_factory=lambda: [Round()])
    parts: tuple[Part, ...] = ()
    """Content, if the speaker is not the assistant."""
    calls: list[Call] = field(default_factory=list[Call])
    """Calls of the assistant that the host has to answer."""
    has_hidden_calls: bool = False
    """Memory answered calls in it, so the host did not see the whole turn."""
    ends_with_memory: bool = False
    """It ends with an answer of memory; the host has not seen the messages after it."""
    formats: frozenset[str] = frozenset()

    @property
    def wires(self) -> list[Any]:
        return _wires(self.rounds)

    @property
    def texts(self) -> list[str]:
        return [text for one in self.rounds for text in one.texts]

    @property
    def letters(self) -> str:
        return _letters(self.texts)

    @property
    def unseen_wires(self) -> list[Any]:
        """Messages of a reply that the host does not have.

        These are all messages if the host's call failed, or the messages before the visible calls if the host will not
        answer those.
        """
        if self.ends_with_memory:
            return self.wires
        return _wires(self.rounds[:-1]) if self.calls and not self.letters else []

    @property
    def key(self) -> Hashable:
        """Identifies a message of the host by its content and the calls that it answers."""
        return (self.role, *map(_part_key, self.parts))

    @property
    def is_reply(self) -> bool:
        return self.role == "assistant"


@dataclass(slots=True)
class MatchedRun:
    """A run of turns that both lists have: the messages to use, and where it ends in each list."""

    wires: list[Any]
    known_end: int
    host_end: int


def _starts_with_conversation(conversation: Conversation, messages: Sequence[Any]) -> bool:
    """True if a list starts with the whole conversation, ignoring cache marks."""
    return find_appended(conversation, _without_marks(messages)) is not None


def _without_marks(messages: Sequence[Any]) -> list[Any]:
    return [without_marks(wire) for wire in messages]


def _merge_turns(journal: Sequence[SpeakerTurn], host: Sequence[SpeakerTurn]) -> list[Any]:
    """The host's list, with the journal's messages where both have the same turn.

    Hosts drop messages at the start or in the middle, insert summaries, and edit. So after a difference each message is
    looked for in the rest of the journal, and of several places the one with the longest run is used. A reply is also
    identified by the message that it answers; on its own it counts only at the start of both lists.
    """
    indexes: defaultdict[Hashable, list[int]] = defaultdict(list)
    for index, turn in enumerate(journal):
        if not turn.is_reply:
            indexes[turn.key].append(index)
    merged: list[Any] = []
    journal_index = host_index = 0
    while host_index < len(host):
        starts = [0] if host_index == 0 and host[0].is_reply else indexes[host[host_index].key]
        run = _longest_run(journal, host, [index for index in starts if index >= journal_index], host_index)
        if run is None:
            merged += host[host_index].wires
            host_index += 1
        else:
            merged += run.wires
            journal_index, host_index = run.known_end, run.host_end
    return merged


def _longest_run(
    journal: Sequence[SpeakerTurn], host: Sequence[SpeakerTurn], starts: Sequence[int], host_start: int
) -> MatchedRun | None:
    best: MatchedRun | None = None
    length = 0
    for start in starts:
        if len(journal) - start < length:
            break
        run = _match_run(journal, host, start, host_start)
        matched = run.known_end - start
        if matched > length or (matched == length > 0 and run.known_end == len(journal)):
            best, length = run, matched
    return best


def _match_run(journal: Sequence[SpeakerTurn], host: Sequence[SpeakerTurn], start: int, host_start: int) -> MatchedRun:
    run = MatchedRun([], start, host_start)
    for turn in journal[start:]:
        host_turn = host[run.host_end] if run.host_end < len(host) else None
        merged = None if host_turn is None else _merge_turn(turn, host_turn)
        if merged is not None:
            run.wires += merged
            run.host_end += 1
        elif run.wires and turn.unseen_wires and _is_skipped(host_turn, journal[run.known_end + 1 : run.known_end + 2]):
            run.wires += turn.unseen_wires
        else:
            break
        run.known_end += 1
    return run


def _is_skipped(host_turn: SpeakerTurn | None, later: Sequence[SpeakerTurn]) -> bool:
    """True if the host's list continues like the journal but without a reply."""
    if host_turn is None or host_turn.is_reply:
        return host_turn is None and not later
    return not later or host_turn.key == later[0].key


def _merge_turn(journal: SpeakerTurn, host: SpeakerTurn) -> list[Any] | None:
    """The messages for a turn that both lists have; None if the turns differ.

    The host's messages keep the host's form: it may move a cache mark or clear tool results. If the formats differ and
    the content is the same, the journal's messages are used.
    """
    if journal.is_reply and host.is_reply:
        return _merge_reply(journal, host)
    if journal.key != host.key:
        return None
    return journal.wires if journal.formats != host.formats and journal.parts == host.parts else host.wires


def _merge_reply(journal: SpeakerTurn, host: SpeakerTurn) -> list[Any] | None:
    """The messages for a reply that both lists have; None if the replies differ.

    The host's version may start at a later round, if an earlier call failed or only the last round was shown. It may
    end early. The calls of the last round may be missing, if the reply was cut off or the host will not run them. The
    host's version of that round is then used.
    """
    calls_dropped = bool(journal.calls) and not host.calls
    if not calls_dropped and list(map(_call_key, journal.calls)) != list(map(_call_key, host.calls)):
        return None
    if not journal.has_hidden_calls:
        return None if calls_dropped else _merge_plain_reply(journal, host)
    letters = host.letters
    partial: list[Any] | None = None
    for start in range(len(journal.rounds)):
        end, rest = start, letters
        while end < len(journal.rounds) - calls_dropped and rest.startswith(journal.rounds[end].letters):
            rest = rest.removeprefix(journal.rounds[end].letters)
            end += 1
        is_complete = end == len(journal.rounds)
        if is_complete and not rest:
            return journal.wires
        if partial is None and (letters or calls_dropped) and not host.calls:
            ends_here = journal.ends_with_memory if is_complete else journal.rounds[end].letters.startswith(rest)
            partial = (
                [*_wires(journal.rounds[:end]), *_text_after(host, len(letters) - len(rest))] if ends_here else None
            )
    return partial


def _merge_plain_reply(journal: SpeakerTurn, host: SpeakerTurn) -> list[Any] | None:
    """The messages for a reply without hidden calls. Here a changed space is an edit."""
    if _has_same_letters(journal.texts, "".join(host.texts)):
        return journal.wires
    is_beginning = bool(host.letters) and not host.calls and journal.letters.startswith(host.letters)
    return host.wires if is_beginning or journal.letters == host.letters else None


def _has_same_letters(texts: Sequence[str], joined: str) -> bool:
    """True if `joined` is these texts, with at most spaces between them."""
    rest = joined
    for index, text in enumerate(texts):
        before, match, rest = rest.partition(text)
        if not match or before.strip() or (before and not index):
            return False
    return not rest


def _text_after(host: SpeakerTurn, length: int) -> list[Any]:
    """The host's text of a reply after a number of letters."""
    if not length:
        return host.wires
    text = "".join(host.texts)
    ends = [place for place, letter in enumerate(text, start=1) if not letter.isspace()]
    rest = text[ends[length - 1] :].strip()
    return [{"role": "assistant", "content": rest}] if rest else []


def _letters(texts: Iterable[str]) -> str:
    """The text without spaces. Hosts strip texts and join rounds with different spaces."""
    return "".join("".join(texts).split())


def _wires(rounds: Iterable[Round]) -> list[Any]:
    return [wire for item in rounds for wire in item.wires]


def _journal_turns(entries: Iterable[ConversationEntry]) -> Iterator[SpeakerTurn]:
    messages = (
        (entry.wire, FORMATS[entry.format].read(entry.wire), entry.format, entry.is_memory_reply) for entry in entries
    )
    return _speaker_turns(messages)


def _journal_turns_in(own_format: frozenset[str], conversation: Conversation) -> Iterator[SpeakerTurn]:
    """The journal's turns without replies in other formats.

    Messages of the host stay, in the host's form.
    """
    for turn in _journal_turns(conversation):
        if turn.formats == own_format or not turn.is_reply:
            yield replace(turn, formats=own_format)


def _host_turns(messages: Sequence[Any], fmt: Format, start: int) -> Iterator[SpeakerTurn]:
    for index, wire in enumerate(messages, start=start):
        fmt.check(wire, field=f"messages[{index}]")
    return _speaker_turns((wire, fmt.read(without_marks(wire)), fmt.name, False) for wire in messages)


def _speaker_turns(messages: Iterable[tuple[Any, Message, str, bool]]) -> Iterator[SpeakerTurn]:
    """Group messages by speaker.

    Consecutive messages of the assistant, with memory's answers among them, are one turn. So are consecutive tool
    results: some providers want them in one message, others in several.
    """
    current: SpeakerTurn | None = None
    for wire, message, format, from_memory in messages:
        continues = current is not None and (
            current.role == message.role in ("assistant", "tool") or (from_memory and current.is_reply)
        )
        if current is None or not continues:
            if current is not None:
                yield current
            current = SpeakerTurn(message.role)
        if current.ends_with_memory and not from_memory:
            current.rounds.append(Round())
        current.formats |= {format}
        current.rounds[-1].wires.append(wire)
        if not current.is_reply:
            current.parts += message.parts
        elif from_memory:
            for result in message.results:  # some servers give several calls the same id
                answered = next((call for call in current.calls if call.id == result.id), None)
                if answered is not None:
                    current.calls.remove(answered)
            current.has_hidden_calls, current.ends_with_memory = True, not current.calls
        else:
            current.ends_with_memory = False
            current.rounds[-1].texts += [part.text for part in message.parts if isinstance(part, Text) and part.text]
            current.calls += message.calls
    if current is not None:
        yield current


def _part_key(part: Part) -> Hashable:
    match part:
        case Text(text):
            return text
        case Result(id):
            return ("answers", id)
        case Call() | Image():
            return part
        case Opaque(_, kind, body):
            return ("answers", part.answered_id) if part.answered_id else (kind, digest_of(body))


def _call_key(call: Call) -> tuple[str, str, object]:
    """A call with parsed arguments: providers write them as text or as an object."""
    arguments: object = call.arguments
    with suppress(ValueError, RecursionError):
        arguments = json.loads(call.arguments)
    return call.id, call.name, arguments
