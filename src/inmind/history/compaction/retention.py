"""Retained items, which no compaction may lose: goal, rules, decisions, pinned texts.

A summary may omit anything. These items are copied verbatim from messages that are about to be
archived, checked one by one against the messages to be sent, and added to the prompt if they are missing.

Only people make rules. Tool results and command output are never read, and pasted text (code, logs, mails, quotes) is
separated from a person's own words. A sentence is a rule by its form: an instruction that applies beyond this moment,
in English or Chinese. A few facts about the user bind like rules: a diet, an allergy, a budget, a deadline.
Contradicting rules are both kept, newer last; the model sees the order and decides.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Literal, NamedTuple

from inmind.core.events.session import RetainedItem
from inmind.core.language.prose import own_words
from inmind.core.language.spans import compile_cached, first_sentences
from inmind.core.messages import FORMATS
from inmind.core.text import escape_markup
from inmind.core.tokens import Counter
from inmind.documents.document import validate_text
from inmind.errors import InvalidInput
from inmind.history.compaction.detection import (
    MAX_GOAL_CHARACTERS,
    agrees,
    answers_open_decision,
    find_choices,
    find_goals,
    find_open_decisions,
    find_proposals,
    find_rules,
    has_rule_cue,
    is_filler,
    opens_with_next,
)
from inmind.history.compaction.select import CompactionSelection
from inmind.history.history import History
from inmind.history.turns import TurnMessage, mark_command_output, with_archived
from inmind.history.view import TokenMeter

Kind = Literal["goal", "earlier_goal", "request", "pinned", "decision", "open_decision", "rule"]

MAX_EARLIER_GOAL_CHARACTERS = 160
"""Longest beginning of the goal before the current one."""

MIN_REQUEST_CHARACTERS = 160
"""Longest beginning of a request that must stay of it in a message that was cut."""

_GOAL_KINDS = ("goal", "earlier_goal")
_SINGLE_KINDS = (*_GOAL_KINDS, "request")
_UNLIMITED_KINDS = (*_SINGLE_KINDS, "pinned")

# The last request is usually among this many messages.
_RECENT_MESSAGES = 8


class RetainedItems(NamedTuple):
    """Items that are kept, in display order, and those that did not fit."""

    kept: list[RetainedItem]
    dropped: list[RetainedItem]


def extract_items(
    messages: Sequence[TurnMessage],
    *,
    first: bool,
    places: Collection[int] | None = None,
    goals: Sequence[RetainedItem] | None = None,
    open_decisions: Sequence[str] = (),
) -> list[RetainedItem]:
    """Return the items of all messages, or of those at `places`, given the message before each.

    Command output must be marked already. `first`: no goal was stated before; the first message beyond a greeting
    states it. `goals`: the goals of the messages, if they are known already. `open_decisions`: those before them.
    """
    chosen = set(range(len(messages)) if places is None else places)
    if goals is None:
        place_of = {one.seq: place for place, one in enumerate(messages)}
        goals = _goals(messages, None if first else RetainedItem("goal", ""), place_of)
    seqs = {messages[place].seq for place in chosen}
    items = [goal for goal in goals if goal.seq in seqs]
    questions: list[str] = list(open_decisions)
    for place, message in enumerate(messages):
        is_reply = message.speaker == "assistant" and not message.stub
        is_from_person = _is_from_person(message)
        texts = list(find_open_decisions(message.text)) if is_reply or is_from_person else []
        questions += texts
        if is_reply and place in chosen:
            items += (RetainedItem("open_decision", text, message.seq) for text in texts)
        if not is_from_person:
            continue
        before = messages[place - 1] if place and messages[place - 1].speaker == "assistant" else None
        if before and not chosen.isdisjoint((place, place - 1)) and agrees(message.text):
            items += (RetainedItem("decision", text, before.seq) for text in find_proposals(before.text))
        if place in chosen and has_rule_cue(message.text):
            items += (RetainedItem(kind, text, message.seq) for kind, text in find_rules(message.text))
        choices = list(find_choices(message.text, questions)) if questions else []
        questions = [one for one in questions if not any(answers_open_decision(text, one) for text in choices)]
        if place in chosen:
            items += (RetainedItem("decision", text, message.seq) for text in choices)
    return _deduplicate(items)


def last_request(newest_first: Iterable[TurnMessage]) -> RetainedItem | None:
    """Return the user's last request, of any age. Usually it is in the newest messages.

    A message that asks for nothing, such as "continue", is returned only if there is no other.
    """
    remaining = iter(newest_first)
    messages = list(islice(remaining, _RECENT_MESSAGES))[::-1]
    place = _last_request_index(messages)
    # At index 0 the messages before are needed to classify it.
    if (not place or is_filler(messages[place].text)) and (earlier := list(remaining)[::-1]):
        messages = [*earlier, *messages]
        place = _last_request_index(messages)
    if place is None:
        return None
    return RetainedItem("request", first_sentences(messages[place].text, MAX_GOAL_CHARACTERS), messages[place].seq)


def merge_items(
    earlier: Sequence[RetainedItem], later: Sequence[RetainedItem], *, max_tokens: int, count: Counter
) -> RetainedItems:
    """Merge the items of all compactions, with at most `max_tokens` of rules and decisions.

    The newest rules and decisions stay, in one queue, so that one kind cannot displace the other. The newest goal, the
    beginning of the goal before it, the newest request and pinned items stay regardless of their size; sharing the
    limit, they could leave no room for rules. Items contained in the goal are not repeated. A decision closes the open
    decisions that it answers.
    """
    items = [*earlier, *later]
    goal, former = _split_goals(items)
    # The rules in a former goal were not repeated. They stay when the goal does not.
    queue = [
        RetainedItem(kind, text, one.seq) for one in former if one.kind == "goal" for kind, text in find_rules(one.text)
    ]
    queue += (item for item in items if item.kind not in _SINGLE_KINDS)
    requests = [item for item in items if item.kind == "request"][-1:]
    items = _without_closed(_deduplicate([*goal, *queue]))
    kept = [item for item in items if item.kind in _UNLIMITED_KINDS]
    queue = [item for item in items if item.kind not in _UNLIMITED_KINDS]
    for one in goal:
        requests, queue = missing_items(requests, one.text), missing_items(queue, one.text)
    kept += requests
    # A message that only says "now …" may be a step of the task before it, which stays through any number of them.
    for one in [*(one for one in former if not opens_with_next(one.text)), *former][:1]:
        kept.append(RetainedItem("earlier_goal", first_sentences(one.text, MAX_EARLIER_GOAL_CHARACTERS), one.seq))
    dropped: list[RetainedItem] = []
    for item in sorted(queue, key=lambda item: item.seq, reverse=True):
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


def _goals(
    messages: Sequence[TurnMessage], known: RetainedItem | None, place_of: Mapping[int, int]
) -> list[RetainedItem]:
    replies = ("", *(one.text if one.speaker == "assistant" else "" for one in messages))
    people = [(one, reply) for one, reply in zip(messages, replies, strict=False) if _is_from_person(one)]
    return list(find_goals(people, known, place_of=lambda seq: place_of.get(seq, 0)))


def _without_closed(items: Sequence[RetainedItem]) -> list[RetainedItem]:
    """Return the items without the open decisions that a decision since then answers."""
    decisions = [item for item in items if item.kind == "decision"]

    def is_closed(item: RetainedItem) -> bool:
        return any(one.seq >= item.seq and answers_open_decision(one.text, item.text) for one in decisions)

    return [item for item in items if item.kind != "open_decision" or not is_closed(item)]


def _split_goals(items: Sequence[RetainedItem]) -> tuple[list[RetainedItem], list[RetainedItem]]:
    """Return the newest goal, if there is one, and the goals before it, newest first."""
    goals = sorted((item for item in items if item.kind in _GOAL_KINDS), key=lambda item: (item.seq, item.kind))
    by_key: dict[str, RetainedItem] = {}
    for item in reversed(goals):
        by_key.setdefault(_comparison_key(item), item)
    newest_first = list(by_key.values())
    return [item._replace(kind="goal") for item in newest_first[:1]], newest_first[1:]


def _last_request_index(messages: Sequence[TurnMessage]) -> int | None:
    """Return the place of the last request that asks for something, else of the last one."""
    people = mark_command_output(messages)
    places = [place for place in reversed(range(len(messages))) if _is_request(people[place])]
    return next((place for place in places if not is_filler(messages[place].text)), places[0] if places else None)


def _is_request(one: TurnMessage) -> bool:
    """True for a request. Remarks between tags, which many hosts add to tool results, are none."""
    if one.starts_turn:
        return not one.stub and bool(one.text.strip())
    return one.speaker != "operator" and _is_from_person(one) and any(own_words(one.text))


def _display_order(item: RetainedItem) -> tuple[int, int]:
    return _ORDER.index(item.kind), item.seq


_ORDER: tuple[Kind, ...] = ("goal", "earlier_goal", "request", "pinned", "decision", "open_decision", "rule")


def _deduplicate(items: Sequence[RetainedItem]) -> list[RetainedItem]:
    """Keep each item once, at its last position.

    A goal stays the goal and a pinned item stays pinned.
    """
    last: dict[str, RetainedItem] = {}
    for item in items:
        key = _comparison_key(item)
        known = last.pop(key, item)
        last[key] = known if known.kind in _UNLIMITED_KINDS else item
    return list(last.values())


def _comparison_key(item: RetainedItem) -> str:
    return " ".join(compile_cached(_WORDS).findall(item.text.casefold()))


def _contains_item(item: str, line: str) -> bool:
    collapsed = _collapse_whitespace(item)
    words = collapsed.removesuffix("…").rstrip()
    if words not in line:
        return False
    before = r"(?<![^\W_])" if words[:1].isalnum() else ""
    after = r"(?![^\W_])" if words[-1:].isalnum() and words == collapsed else ""
    return re.search(f"{before}{re.escape(words)}{after}", line) is not None


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
    history: History,
    messages: Sequence[TurnMessage],
    selection: CompactionSelection,
    meter: TokenMeter,
    *,
    request: RetainedItem | None,
) -> RetainedItems:
    """Return the items to retain after this compaction, and those that do not fit.

    A goal in a message that stays replaces an earlier one and is not listed itself. `request`: the last request; it is
    not listed if its message stays.
    """
    seen = with_archived(history, messages, meter)
    changed = {place for place in (*selection.removed, *selection.cut) if not seen[place].stub}
    staying = {one.seq for place, one in enumerate(seen) if place not in changed and not one.stub}
    earlier = (*history.dropped, *history.items)
    # A released goal was still stated: the next message is not a goal.
    first = not any(item.kind in _GOAL_KINDS for one in history.compactions for item in one.payload.items)
    known = next((item for item in history.items if item.kind in _GOAL_KINDS), RetainedItem("goal", ""))
    place_of = {entry.seq: place for place, entry in enumerate(history.messages)}
    goals = _goals(seen, None if first else known, place_of)
    questions = [item.text for item in earlier if item.kind == "open_decision"]
    fresh = extract_items(seen, first=first, places=changed, goals=goals, open_decisions=questions)
    fresh += _settling_decisions(seen, changed, [*earlier, *fresh])
    fresh += (goal for goal in goals if goal.seq in staying)
    fresh += [request] if request else []
    merged = merge_items(
        earlier,
        [item for item in fresh if item.text not in history.released],
        max_tokens=MAX_RETAINED_TOKENS,
        count=meter.count,
    )
    removed = set(selection.removed)
    sent = {one.seq for place, one in enumerate(messages) if place not in removed and not one.is_block}
    # A cut message still begins with its request.
    # The earlier goal is listed while its message stays too: when that leaves, it may no longer be taken for a goal.
    replaced = {"goal": staying, "request": sent}
    return RetainedItems(
        [
            item
            for item in merged.kept
            if item.seq not in replaced.get(item.kind, ()) and item.text not in history.released
        ],
        merged.dropped,
    )


def _settling_decisions(
    seen: Sequence[TurnMessage], changed: Collection[int], items: Sequence[RetainedItem]
) -> list[RetainedItem]:
    """Decisions in messages that stay and that close an open decision.

    They are items from now on: without the question, they may no longer be taken for decisions.
    """
    questions = [item.text for item in items if item.kind == "open_decision"]
    if not questions:
        return []
    stay = [place for place in range(len(seen)) if place not in changed]
    candidates = extract_items(seen, first=False, places=stay, goals=(), open_decisions=questions)
    return [
        item
        for item in candidates
        if item.kind == "decision" and any(answers_open_decision(item.text, one) for one in questions)
    ]


def items_in_memory(history: History, request: RetainedItem | None) -> list[RetainedItem]:
    """Return the items that no sent message contains.

    `request`: the last request.
    """
    if not history.compactions:
        return list(history.items)
    visible = history.visible
    sent = {entry.seq for entry in visible if not entry.is_stub}
    items = [item for item in history.items if item.seq not in sent]
    if request is None or request.seq in sent or request.text in history.released:
        return items
    if any(one.payload.is_thread and one.overlaps([(request.seq, request.seq)]) for one in history.compactions):
        return items
    stubs = (FORMATS[one.format].read(one.wire).text for one in visible if one.seq == request.seq and not one.is_block)
    goals = (item.text for item in items if item.kind == "goal")
    beginning = request._replace(text=f"{request.text[:MIN_REQUEST_CHARACTERS]}…")
    is_cut = any(not missing_items([beginning], text) for text in stubs)
    return items if is_cut or any(not missing_items([request], goal) for goal in goals) else [*items, request]


def unsent_items(
    items: Sequence[RetainedItem], messages: Sequence[TurnMessage], selection: CompactionSelection
) -> list[RetainedItem]:
    """Return the items that no sent message will contain."""
    touched = {messages[place].seq for place in selection.changed}
    unchanged = {one.seq for one in messages if not one.stub} - touched
    return [item for item in items if item.seq not in unchanged]
