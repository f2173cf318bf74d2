"""For any history and window, every id of a tool result stands in the prompt or at a place that the prompt names.

A prompt has about as many ids as the newest messages that fit its size, or more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from builders import a_call, a_result, assistant, user
from home_builders import temporary_home
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples
from strategies import entity_records, ids_in

from inmind import Memory, Prompt, Session
from inmind.core.text import contains_id
from inmind.documents.document import split_lines
from inmind.history.compaction.stubs import parse_location
from inmind.testing import ManualClock

pytestmark = pytest.mark.spec("B10", "B11", "E5", "E10")

RESERVE = 200
REMARK = "a remark of some length, "
WINDOWS = st.sampled_from([4_000, 6_000, 8_000, 16_000])
TEXTS = st.sampled_from(["{}", f"{REMARK * 20}The claim is {{}} since Monday. {REMARK * 20}", "{} was sent."])
SHAPES = st.one_of(
    entity_records(),
    st.lists(entity_records(), min_size=2, max_size=5).map(lambda orders: {"orders": orders}),
    st.integers(2, 80).map(lambda number: {"order_ids": ["1000000000"] * number}),
    TEXTS,
)
LOCATION = re.compile(r"(?:archive|detail)/[\w-]+(?:\.md)?(?::\d+-\d+)?")
PAGES = re.compile(r"(archive/\d+) to (archive/\d+)")
COUNTED = re.compile(
    r"\(\d+ more|\d+ more ids? only in the archive|\d+ more calls? only in the archive|\[pruned: |\[cut: "
)


@st.composite
def results(draw: st.DrawFn) -> list[str]:
    """Texts of tool results. Few are drawn, and many made from them, each with ids of its own."""
    shapes = draw(st.lists(st.tuples(SHAPES, st.sampled_from([0, 0, 4, 30])), min_size=1, max_size=5))
    ids = count(draw(st.integers(10**9, 2 * 10**9)), 7919)
    repeated = shapes * draw(st.integers(1, 45 // len(shapes)))
    return [as_text(renumbered(shape, ids), REMARK * remarks) for shape, remarks in repeated]


def renumbered(value: Any, ids: Iterator[int]) -> Any:
    """The same shape with other ids."""
    if isinstance(value, dict):
        return {key: renumbered(item, ids) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list):
        return [renumbered(item, ids) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, str) and "{}" in value:
        return value.format(f"CLM-{next(ids)}")
    return str(next(ids)) if isinstance(value, str) and value.isdigit() else value


def as_text(value: Any, remark: str) -> str:
    if isinstance(value, str):
        return value
    return json.dumps({**value, "note": remark} if remark else value)


def ids_of(text: str) -> set[str]:
    return set(re.findall(r"CLM-\d+", text)) or ids_in(json.loads(text))


def a_talk(texts: list[str], *, rounds: int) -> list[list[dict[str, Any]]]:
    """The host's list before each call of the model; a turn has `rounds` rounds."""
    talk: list[dict[str, Any]] = [user("Look at the orders.")]
    lists: list[list[dict[str, Any]]] = []
    for number, text in enumerate(texts):
        arguments = json.dumps({"page": number})
        talk += [a_call(f"call_{number % 3}", "get_orders", arguments), a_result(f"call_{number % 3}", text)]
        if number % rounds == rounds - 1:
            talk += [assistant(f"Seen {number}."), user(f"And the next, {number}?")]
        lists.append(list(talk))
    return lists


def places_in(prompt: str) -> set[str]:
    """Locations in a prompt, with those of a range of pages."""
    ranges = [
        f"archive/{number:03}"
        for first, last in PAGES.findall(prompt)
        for number in range(int(first[8:]), int(last[8:]) + 1)
    ]
    return {*LOCATION.findall(prompt), *ranges}


def text_at(session: Session, location: str) -> str:
    path, lines = parse_location(location, session.documents())
    if path not in session.documents():
        return ""
    page = split_lines(session.read(path))
    return "\n".join(page if lines is None else page[lines[0] - 1 : lines[1]])


def check_prompt(session: Session, prompt: Prompt, texts: list[str], window: int) -> None:
    assert prompt.report.tokens_used <= window - RESERVE
    request = json.dumps(prompt.request)
    missing = {id for text in texts for id in ids_of(text) if not contains_id(request, id)}
    if not missing:
        return
    assert COUNTED.search(request), f"{len(missing)} ids are left out without a word"
    archived = "\n".join(text_at(session, place) for place in places_in(request))
    assert [id for id in missing if not contains_id(archived, id)] == [], "no place in the prompt leads to them"


def trimmed(talk: list[dict[str, Any]], size: int) -> str:
    """The newest messages within a number of characters; the last one always."""
    kept: list[str] = []
    for message in map(json.dumps, reversed(talk)):
        if kept and sum(map(len, kept)) + len(message) > size:
            break
        kept.append(message)
    return "\n".join(kept)


def check_against_trimming(prompt: Prompt, talk: list[dict[str, Any]], texts: list[str]) -> None:
    request = json.dumps(prompt.messages)
    without = trimmed(talk, len(request))
    ids = {id for text in texts for id in ids_of(text)}
    kept, kept_without = (sum(contains_id(text, id) for id in ids) for text in (request, without))
    assert kept >= 0.9 * kept_without, "less only what the records need"


@settings(max_examples=examples(36, at_most=300))
@given(texts=results(), window=WINDOWS, rounds=st.sampled_from([1, 2, 5, 100]), every=st.sampled_from([2, 10, 100]))
def test_every_id_is_in_the_prompt_or_at_a_place_that_it_names_and_about_as_many_as_trimming_keeps(
    texts: list[str], window: int, rounds: int, every: int
) -> None:
    with temporary_home("sqlite") as home, Memory.open(home, clock=ManualClock()) as memory:
        session = memory.session("s", window=window, reserve=RESERVE, memory_tools=False)
        lists = a_talk(texts, rounds=rounds)
        for number, talk in enumerate(lists, start=1):
            if number % every == 0 or number == len(lists):
                prompt = session.prepare(talk)
                check_prompt(session, prompt, texts[:number], window)
                check_against_trimming(prompt, talk, texts[:number])
