"""What must survive every rewrite of the conversation, as declared data.

A summary is somebody's opinion of what mattered. The goal, the rules that people gave, what was decided, the last
request and what the host has pinned are no matter of opinion: they are taken down word for word from the messages
that are about to leave, checked item by item against what will be sent, and attached where they are missing.

Only people make rules. What a tool answered is never read here, nor what a command answered that stands in a user's
place, and what a person merely pasted (code, logs, mails, quotes) is told apart from what they say themselves. A
sentence counts by its form: an order that holds beyond this moment, in English or Chinese. A few facts about the
speaker bind like one, whatever will be looked for: a diet, an allergy, what may be spent, a deadline. Two rules
that contradict each other both stay, the newer last: which one holds is for the model to judge, who sees them in order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import islice
from typing import Literal, NamedTuple

from inmind.core.events.session import RetainedItem
from inmind.core.language.prose import beginning, compiled, is_greeting, own_words
from inmind.core.text import inert
from inmind.core.tokens import Counter
from inmind.documents.document import validate_text
from inmind.errors import InvalidInput
from inmind.history import History
from inmind.history.command_output import told_apart
from inmind.history.compaction.rule_detection import agrees, is_cued, orders_in, proposed_in
from inmind.history.compaction.select import Leaving
from inmind.history.token_meter import Meter
from inmind.history.turn_messages import in_context
from inmind.history.turns import Spoken

Kind = Literal["goal", "pinned", "decision", "rule", "request"]

MOST_GOAL = 800
"""Characters of a goal, and of a request. Beyond them it is cut behind a sentence, and says so."""


# Messages among which the last request mostly is.
_NEAR = 8


class Merged(NamedTuple):
    """The items that stay, in the order in which they are told, and those that their room was too small for."""

    kept: list[RetainedItem]
    left_out: list[RetainedItem]


def items_of(said: Sequence[Spoken], *, first: bool, at: Collection[int] | None = None) -> list[RetainedItem]:
    """What messages ask to be kept: all of them, or those at these places, each as an answer to what stands before.

    What commands answered has to be told apart from what people say.
    `first`: nothing has stated the goal before. The first message that says more than hello does.
    """
    leaves: Callable[[int], bool] = at.__contains__ if at is not None else range(len(said)).__contains__
    found: list[RetainedItem] = []
    for place, one in enumerate(said):
        if not _by_a_person(one):
            continue
        states_goal = first and one.begins_turn and not is_greeting(one.words)
        first = first and not states_goal
        before = said[place - 1] if place and said[place - 1].by == "assistant" else None
        if before and (leaves(place) or leaves(place - 1)) and agrees(one.words):
            found += (RetainedItem("decision", text, before.seq) for text in proposed_in(before.words))
        if leaves(place) and states_goal:
            found.append(RetainedItem("goal", beginning(one.words, MOST_GOAL), one.seq))
        if leaves(place) and is_cued(one.words):
            found += (RetainedItem(kind, text, one.seq) for kind, text in orders_in(one.words))
    return _once(found)


def request_of(newest_first: Iterable[Spoken]) -> RetainedItem | None:
    """The last thing that a user asked for, however far back that is. Most of the time the first message tells."""
    back = iter(newest_first)
    said = list(islice(back, _NEAR))[::-1]
    place = _asked_last(said)
    if not place and (earlier := list(back)[::-1]):  # also where only what came before it can tell what it is
        said = [*earlier, *said]
        place = _asked_last(said)
    return None if place is None else RetainedItem("request", beginning(said[place].words, MOST_GOAL), said[place].seq)


def merged(
    earlier: Sequence[RetainedItem], later: Sequence[RetainedItem], *, most_tokens: int, count: Counter
) -> Merged:
    """One list over all compactions so far, with so much room for rules and decisions.

    Of those the newest stay, in one queue: many of the one kind must not crowd out all of the other. The goal, as it
    was stated first, and what the host has pinned stay beside them whatever they cost: in a room that they could fill
    no rule would be left. What the goal says itself is not said again.
    """
    goal = [item for item in (*earlier, *later) if item.kind == "goal"][:1]
    items = _once([*goal, *(item for item in (*earlier, *later) if item.kind != "goal")])
    kept = [item for item in items if item.kind in ("goal", "pinned")]
    queue = [item for item in items if item.kind not in ("goal", "pinned")]
    left_out: list[RetainedItem] = []
    for item in sorted(missing(queue, goal[0].text) if goal else queue, key=lambda item: item.seq, reverse=True):
        tokens = count(f"- {item.text}\n")
        (kept if tokens <= most_tokens else left_out).append(item)
        most_tokens -= tokens if tokens <= most_tokens else 0
    return Merged(sorted(kept, key=_told), sorted(left_out, key=_told))


def missing(items: Sequence[RetainedItem], text: str) -> list[RetainedItem]:
    """The items that do not stand in a text that will be sent, however it is wrapped, indented or made inert there.

    They stand there as whole words: "0 words" is not said by "10 words". One that was cut stands where its beginning
    does.
    """
    line = _on_one_line(text)
    return [item for item in items if not any(_stands(said, line) for said in {item.text, inert(item.text)})]


def _by_a_person(one: Spoken) -> bool:
    """What stands beside the answers of tools in one message is said by whoever sends it."""
    return not (one.stub or one.doubtful) and (one.by in ("user", "operator") or bool(one.answers and one.words))


def _asked_last(said: Sequence[Spoken]) -> int | None:
    people = told_apart(said)
    return next((place for place in reversed(range(len(said))) if _asks(people[place])), None)


def _asks(one: Spoken) -> bool:
    """Beside the answers of tools many hosts put remarks of their own, between tags."""
    if one.begins_turn:
        return not one.stub and bool(one.words.strip())
    return one.by != "operator" and _by_a_person(one) and any(own_words(one.words))


def _told(item: RetainedItem) -> tuple[int, int]:
    return _ORDER.index(item.kind), item.seq


_ORDER: tuple[Kind, ...] = ("goal", "pinned", "decision", "rule", "request")


def _once(items: Sequence[RetainedItem]) -> list[RetainedItem]:
    """Each item once, where it was said last; but a goal stays the goal, and what is pinned stays pinned."""
    last: dict[str, RetainedItem] = {}
    for item in items:
        key = " ".join(compiled(_WORDS).findall(item.text.casefold()))
        known = last.pop(key, item)
        last[key] = known if known.kind in ("goal", "pinned") else item
    return list(last.values())


def _stands(said: str, line: str) -> bool:
    words = _on_one_line(said).removesuffix("…").rstrip()
    cut = words != _on_one_line(said)
    place = line.find(words)
    while place >= 0:
        end = place + len(words)
        if not _goes_on(line[place - 1 : place + 1]) and (cut or not _goes_on(line[end - 1 : end + 1])):
            return True
        place = line.find(words, end)
    return False


def _goes_on(border: str) -> bool:
    """Is a word going on between these two characters?"""
    return len(border) == 2 and border.isalnum()


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


_WORDS = r"[^\W_]+"


MOST_KEPT = 8_000
"""Tokens of rules and decisions that are kept over all compactions; how many a prompt shows is its own matter."""


MOST_DECLARED = 1_000
"""Characters of a text that a host declares."""


def checked_item(text: object) -> str:
    """A text that may be retained: it will stand in every prompt, so it has to be short."""
    checked = validate_text(text)
    if not checked.strip() or len(checked) > MOST_DECLARED:
        raise InvalidInput(field="text", value=checked, expected=f"1 to {MOST_DECLARED} characters")
    return checked


def survivors(history: History, said: Sequence[Spoken], leaving: Leaving, meter: Meter) -> Merged:
    """What must survive, and what there is no room for."""
    seen = in_context(history, said, meter)
    gone = {place for place in (*leaving.whole, *leaving.cut) if not seen[place].stub}
    earlier = (*history.left_out, *history.items)
    # One that was released has been stated all the same: what is said next is no goal.
    stated = any(item.kind == "goal" for one in history.compactions for item in one.what.items)
    found = items_of(seen, first=not stated, at=gone)
    fresh = [item for item in found if item.text not in history.released]
    return merged(earlier, fresh, most_tokens=MOST_KEPT, count=meter.count)


def unsaid(items: Sequence[RetainedItem], said: Sequence[Spoken], leaving: Leaving) -> list[RetainedItem]:
    """Those of the items that no message will say any more."""
    touched = {said[place].seq for place in leaving.touched}
    stay = {one.seq for one in said if not one.stub} - touched
    return [item for item in items if item.seq not in stay]
