"""Retained items, which no compaction may lose: goal, rules, decisions, pinned texts.

A summary may omit anything. These items are copied verbatim from messages that are about to be
archived, checked one by one against the messages to be sent, and added to the prompt if they are missing.

Only people make rules. Tool results and command output are never read, and pasted text (code, logs, mails, quotes) is
separated from a person's own words. A sentence is a rule by its form: an instruction that applies beyond this moment,
in English or Chinese. A few facts about the user bind like rules: a diet, an allergy, a budget, a deadline.
Contradicting rules are both kept, newer last; the model sees the order and decides.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import islice
from typing import Literal, NamedTuple

from inmind.core.events.session import RetainedItem
from inmind.core.language.prose import compile_cached, first_sentences, is_greeting, own_words
from inmind.core.text import escape_markup
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
"""Longest goal or request. A longer one is cut after a sentence and marked."""


# The last request is usually among this many messages.
_RECENT_MESSAGES = 8


class RetainedItems(NamedTuple):
    """Items that are kept, in display order, and those that did not fit."""

    kept: list[RetainedItem]
    dropped: list[RetainedItem]


def extract_items(
    messages: Sequence[TurnMessage], *, first: bool, places: Collection[int] | None = None
) -> list[RetainedItem]:
    """Return the items of all messages, or of those at `places`, given the message before each.

    Command output must be marked already. `first`: no goal was stated before; the first message beyond a greeting
    states it.
    """
    is_selected: Callable[[int], bool] = (
        places.__contains__ if places is not None else range(len(messages)).__contains__
    )
    items: list[RetainedItem] = []
    for place, message in enumerate(messages):
        if not _is_from_person(message):
            continue
        states_goal = first and message.starts_turn and not is_greeting(message.text)
        first = first and not states_goal
        before = messages[place - 1] if place and messages[place - 1].speaker == "assistant" else None
        if before and (is_selected(place) or is_selected(place - 1)) and agrees(message.text):
            items += (RetainedItem("decision", text, before.seq) for text in find_proposals(before.text))
        if is_selected(place) and states_goal:
            items.append(RetainedItem("goal", first_sentences(message.text, MAX_GOAL_CHARACTERS), message.seq))
        if is_selected(place) and has_rule_cue(message.text):
            items += (RetainedItem(kind, text, message.seq) for kind, text in find_rules(message.text))
    return _deduplicate(items)


def last_request(newest_first: Iterable[TurnMessage]) -> RetainedItem | None:
    """Return the user's last request, of any age. Usually it is in the newest messages."""
    remaining = iter(newest_first)
    messages = list(islice(remaining, _RECENT_MESSAGES))[::-1]
    place = _last_request_index(messages)
    if not place and (earlier := list(remaining)[::-1]):  # at index 0 the messages before are needed to classify it
        messages = [*earlier, *messages]
        place = _last_request_index(messages)
    return (
        None
        if place is None
        else RetainedItem("request", first_sentences(messages[place].text, MAX_GOAL_CHARACTERS), messages[place].seq)
    )


def merge_items(
    earlier: Sequence[RetainedItem], later: Sequence[RetainedItem], *, max_tokens: int, count: Counter
) -> RetainedItems:
    """Merge the items of all compactions, with at most `max_tokens` of rules and decisions.

    The newest rules and decisions stay, in one queue, so that one kind cannot displace the other. The first goal and
    pinned items stay regardless of their size; sharing the limit, they could leave no room for rules. Items contained
    in the goal are not repeated.
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
    """Return the items that a text does not contain, ignoring white space and escaping.

    Items match as whole words: "10 words" does not contain "0 words". An item that was cut matches by its beginning.
    """
    line = _collapse_whitespace(text)
    return [
        item for item in items if not any(_contains_item(form, line) for form in {item.text, escape_markup(item.text)})
    ]


def _is_from_person(one: TurnMessage) -> bool:
    """True for messages by user or operator, and for text next to tool results in one message."""
    return not (one.stub or one.maybe_output) and (
        one.speaker in ("user", "operator") or bool(one.results and one.text)
    )


def _last_request_index(messages: Sequence[TurnMessage]) -> int | None:
    people = mark_command_output(messages)
    return next((place for place in reversed(range(len(messages))) if _is_request(people[place])), None)


def _is_request(one: TurnMessage) -> bool:
    """True for a request. Remarks between tags, which many hosts add to tool results, are none."""
    if one.starts_turn:
        return not one.stub and bool(one.text.strip())
    return one.speaker != "operator" and _is_from_person(one) and any(own_words(one.text))


def _display_order(item: RetainedItem) -> tuple[int, int]:
    return _ORDER.index(item.kind), item.seq


_ORDER: tuple[Kind, ...] = ("goal", "pinned", "decision", "rule", "request")


def _deduplicate(items: Sequence[RetainedItem]) -> list[RetainedItem]:
    """Keep each item once, at its last position.

    A goal stays the goal and a pinned item stays pinned.
    """
    last: dict[str, RetainedItem] = {}
    for item in items:
        key = " ".join(compile_cached(_WORDS).findall(item.text.casefold()))
        known = last.pop(key, item)
        last[key] = known if known.kind in ("goal", "pinned") else item
    return list(last.values())


def _contains_item(item: str, line: str) -> bool:
    words = _collapse_whitespace(item).removesuffix("…").rstrip()
    cut = words != _collapse_whitespace(item)
    place = line.find(words)
    while place >= 0:
        end = place + len(words)
        if not _is_inside_word(line[place - 1 : place + 1]) and (cut or not _is_inside_word(line[end - 1 : end + 1])):
            return True
        place = line.find(words, end)
    return False


def _is_inside_word(border: str) -> bool:
    """True if both characters belong to one word."""
    return len(border) == 2 and border.isalnum()


def _collapse_whitespace(text: str) -> str:
    return " ".join(text.split())


_WORDS = r"[^\W_]+"


MAX_RETAINED_TOKENS = 8_000
"""Rules and decisions kept over all compactions; the prompt may show fewer."""


MAX_PINNED_CHARACTERS = 1_000
"""Longest text that a host can pin."""


def check_pinned_text(text: object) -> str:
    """Return a text that may be pinned; it is in every prompt, so it must be short."""
    checked = validate_text(text)
    if not checked.strip() or len(checked) > MAX_PINNED_CHARACTERS:
        raise InvalidInput(field="text", value=checked, expected=f"1 to {MAX_PINNED_CHARACTERS} characters")
    return checked


def retained_items(
    history: History, messages: Sequence[TurnMessage], selection: CompactionSelection, meter: TokenMeter
) -> RetainedItems:
    """Return the items to retain after this compaction, and those that do not fit."""
    seen = with_archived(history, messages, meter)
    changed = {place for place in (*selection.removed, *selection.cut) if not seen[place].stub}
    earlier = (*history.dropped, *history.items)
    # A released goal was still stated: the next message is not a goal.
    stated = any(item.kind == "goal" for one in history.compactions for item in one.payload.items)
    extracted = extract_items(seen, first=not stated, places=changed)
    fresh = [item for item in extracted if item.text not in history.released]
    return merge_items(earlier, fresh, max_tokens=MAX_RETAINED_TOKENS, count=meter.count)


def unsent_items(
    items: Sequence[RetainedItem], messages: Sequence[TurnMessage], selection: CompactionSelection
) -> list[RetainedItem]:
    """Return the items that no sent message will contain."""
    touched = {messages[place].seq for place in selection.changed}
    unchanged = {one.seq for one in messages if not one.stub} - touched
    return [item for item in items if item.seq not in unchanged]
