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
from inmind.history.command_output import mark_command_output
from inmind.history.compaction.rule_detection import agrees, find_proposals, find_rules, has_rule_cue
from inmind.history.compaction.select import CompactionSelection
from inmind.history.token_meter import TokenMeter
from inmind.history.turn_messages import with_archived
from inmind.history.turns import TurnMessage

Kind = Literal["goal", "pinned", "decision", "rule", "request"]

MAX_GOAL_CHARACTERS = 800
"""Characters of a goal, and of a request. Beyond them it is cut behind a sentence, and says so."""


# Messages among which the last request mostly is.
_RECENT_MESSAGES = 8


class RetainedItems(NamedTuple):
    """The items that stay, in the order in which they are told, and those that their room was too small for."""

    kept: list[RetainedItem]
    dropped: list[RetainedItem]


def extract_items(
    messages: Sequence[TurnMessage], *, first: bool, places: Collection[int] | None = None
) -> list[RetainedItem]:
    """What messages ask to be kept: all of them, or those at these places, each as an answer to what stands before.

    What commands answered has to be told apart from what people say.
    `first`: nothing has stated the goal before. The first message that says more than hello does.
    """
    is_selected: Callable[[int], bool] = (
        places.__contains__ if places is not None else range(len(messages)).__contains__
    )
    found: list[RetainedItem] = []
    for place, message in enumerate(messages):
        if not _is_from_person(message):
            continue
        states_goal = first and message.starts_turn and not is_greeting(message.text)
        first = first and not states_goal
        before = messages[place - 1] if place and messages[place - 1].speaker == "assistant" else None
        if before and (is_selected(place) or is_selected(place - 1)) and agrees(message.text):
            found += (RetainedItem("decision", text, before.seq) for text in find_proposals(before.text))
        if is_selected(place) and states_goal:
            found.append(RetainedItem("goal", beginning(message.text, MAX_GOAL_CHARACTERS), message.seq))
        if is_selected(place) and has_rule_cue(message.text):
            found += (RetainedItem(kind, text, message.seq) for kind, text in find_rules(message.text))
    return _deduplicate(found)


def last_request(newest_first: Iterable[TurnMessage]) -> RetainedItem | None:
    """The last thing that a user asked for, however far back that is. Most of the time the first message tells."""
    remaining = iter(newest_first)
    messages = list(islice(remaining, _RECENT_MESSAGES))[::-1]
    place = _last_request_index(messages)
    if not place and (earlier := list(remaining)[::-1]):  # also where only what came before it can tell what it is
        messages = [*earlier, *messages]
        place = _last_request_index(messages)
    return (
        None
        if place is None
        else RetainedItem("request", beginning(messages[place].text, MAX_GOAL_CHARACTERS), messages[place].seq)
    )


def merge_items(
    earlier: Sequence[RetainedItem], later: Sequence[RetainedItem], *, max_tokens: int, count: Counter
) -> RetainedItems:
    """One list over all compactions so far, with so much room for rules and decisions.

    Of those the newest stay, in one queue: many of the one kind must not crowd out all of the other. The goal, as it
    was stated first, and what the host has pinned stay beside them whatever they cost: in a room that they could fill
    no rule would be left. What the goal says itself is not said again.
    """
    goal = [item for item in (*earlier, *later) if item.kind == "goal"][:1]
    items = _deduplicate([*goal, *(item for item in (*earlier, *later) if item.kind != "goal")])
    kept = [item for item in items if item.kind in ("goal", "pinned")]
    queue = [item for item in items if item.kind not in ("goal", "pinned")]
    dropped: list[RetainedItem] = []
    for item in sorted(missing_items(queue, goal[0].text) if goal else queue, key=lambda item: item.seq, reverse=True):
        tokens = count(f"- {item.text}\n")
        (kept if tokens <= max_tokens else dropped).append(item)
        max_tokens -= tokens if tokens <= max_tokens else 0
    return RetainedItems(sorted(kept, key=_display_order), sorted(dropped, key=_display_order))


def missing_items(items: Sequence[RetainedItem], text: str) -> list[RetainedItem]:
    """The items that do not stand in a text that will be sent, however it is wrapped, indented or made inert there.

    They stand there as whole words: "0 words" is not said by "10 words". One that was cut stands where its beginning
    does.
    """
    line = _collapse_whitespace(text)
    return [item for item in items if not any(_contains_item(said, line) for said in {item.text, inert(item.text)})]


def _is_from_person(one: TurnMessage) -> bool:
    """What stands beside the answers of tools in one message is said by whoever sends it."""
    return not (one.stub or one.maybe_output) and (
        one.speaker in ("user", "operator") or bool(one.results and one.text)
    )


def _last_request_index(messages: Sequence[TurnMessage]) -> int | None:
    people = mark_command_output(messages)
    return next((place for place in reversed(range(len(messages))) if _is_request(people[place])), None)


def _is_request(one: TurnMessage) -> bool:
    """Beside the answers of tools many hosts put remarks of their own, between tags."""
    if one.starts_turn:
        return not one.stub and bool(one.text.strip())
    return one.speaker != "operator" and _is_from_person(one) and any(own_words(one.text))


def _display_order(item: RetainedItem) -> tuple[int, int]:
    return _ORDER.index(item.kind), item.seq


_ORDER: tuple[Kind, ...] = ("goal", "pinned", "decision", "rule", "request")


def _deduplicate(items: Sequence[RetainedItem]) -> list[RetainedItem]:
    """Each item once, where it was said last; but a goal stays the goal, and what is pinned stays pinned."""
    last: dict[str, RetainedItem] = {}
    for item in items:
        key = " ".join(compiled(_WORDS).findall(item.text.casefold()))
        known = last.pop(key, item)
        last[key] = known if known.kind in ("goal", "pinned") else item
    return list(last.values())


def _contains_item(said: str, line: str) -> bool:
    words = _collapse_whitespace(said).removesuffix("…").rstrip()
    cut = words != _collapse_whitespace(said)
    place = line.find(words)
    while place >= 0:
        end = place + len(words)
        if not _is_inside_word(line[place - 1 : place + 1]) and (cut or not _is_inside_word(line[end - 1 : end + 1])):
            return True
        place = line.find(words, end)
    return False


def _is_inside_word(border: str) -> bool:
    """Is a word going on between these two characters?"""
    return len(border) == 2 and border.isalnum()


def _collapse_whitespace(text: str) -> str:
    return " ".join(text.split())


_WORDS = r"[^\W_]+"


MAX_RETAINED_TOKENS = 8_000
"""Tokens of rules and decisions that are kept over all compactions; how many a prompt shows is its own matter."""


MAX_PINNED_CHARACTERS = 1_000
"""Characters of a text that a host declares."""


def check_pinned_text(text: object) -> str:
    """A text that may be retained: it will stand in every prompt, so it has to be short."""
    checked = validate_text(text)
    if not checked.strip() or len(checked) > MAX_PINNED_CHARACTERS:
        raise InvalidInput(field="text", value=checked, expected=f"1 to {MAX_PINNED_CHARACTERS} characters")
    return checked


def retained_items(
    history: History, messages: Sequence[TurnMessage], selection: CompactionSelection, meter: TokenMeter
) -> RetainedItems:
    """What must survive, and what there is no room for."""
    seen = with_archived(history, messages, meter)
    gone = {place for place in (*selection.removed, *selection.cut) if not seen[place].stub}
    earlier = (*history.dropped, *history.items)
    # One that was released has been stated all the same: what is said next is no goal.
    stated = any(item.kind == "goal" for one in history.compactions for item in one.payload.items)
    found = extract_items(seen, first=not stated, places=gone)
    fresh = [item for item in found if item.text not in history.released]
    return merge_items(earlier, fresh, max_tokens=MAX_RETAINED_TOKENS, count=meter.count)


def unsent_items(
    items: Sequence[RetainedItem], messages: Sequence[TurnMessage], selection: CompactionSelection
) -> list[RetainedItem]:
    """Those of the items that no message will say any more."""
    touched = {messages[place].seq for place in selection.changed}
    stay = {one.seq for one in messages if not one.stub} - touched
    return [item for item in items if item.seq not in stay]
