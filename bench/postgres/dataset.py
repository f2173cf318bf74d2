"""Memories of many, put into a database quickly: real events with times of their own, adopted as an import does.

What is said is made up, of words that come up as often as in conversations: some 450 different ones in the first 10,000
characters and 1,450 in 60,000, like LongMemEval has. So an index of them is as large as it would be, and a question for
the rarer ones of a line has one best answer.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import accumulate
from random import Random

from bench.postgres.client_processes import Together, crowd
from inmind.core.events.base import TRUST_BY_ORIGIN, Event, EventPayload, Origin
from inmind.core.events.crystals import NoteAdded
from inmind.core.events.session import MessageAdded, SessionOpened
from inmind.store.postgres import PostgresStore

FILLERS = 2
WORDS, WORDS_IN_A_LINE = 30_000, (8, 28)
BEGAN = datetime(2026, 1, 5, 8, tzinfo=UTC)
_TOGETHER = 10
"""Resources of one transaction."""

Memory = Callable[[str], Iterator[tuple[str, Origin, EventPayload]]]
"""What happened to a resource: in which stream, by whom, what."""


def filled(url: str, kind: str, resources: int, each: int) -> None:
    """Give so many resources their memories, each of so many lines."""
    PostgresStore.open(url).close()  # makes the schema
    crowd(FILLERS, _fill, url, kind, resources, each)


def resource_named(number: int) -> str:
    return f"r-{number:07}"


def lines(resource: str) -> Iterator[str]:
    """What is said to, by and of a resource: without end, and the same whenever it is asked for."""
    random = Random(resource)
    words, weights = _vocabulary()
    while True:
        said = random.choices(words, cum_weights=weights, k=random.randint(*WORDS_IN_A_LINE))
        yield f"{' '.join(said).capitalize()}."


def said(resource: str, *lengths: int) -> Iterator[str]:
    """The same, in texts of these lengths, over and over."""
    random, left = lines(resource), ""
    while True:
        for length in lengths:
            while len(left) < length:
                left += f"{next(random)} "
            yield left[:length]
            left = left[length:]


def question(line: str) -> str:
    """A few of its rarest words."""
    rank = _ranks()
    rarest = sorted({*line.rstrip(".").lower().split()}, key=lambda word: -rank[word])
    return f"What about {' '.join(rarest[:4])}?"


def _talk(resource: str, each: int) -> Iterator[tuple[str, Origin, EventPayload]]:
    stream = f"session/{resource}"
    yield stream, Origin.OPERATOR, SessionOpened(resource=resource, cwd="/bench")
    for number, line in zip(range(each), lines(resource), strict=False):
        role, origin = (("user", Origin.USER), ("assistant", Origin.ASSISTANT))[number % 2]
        yield stream, origin, MessageAdded(wire={"role": role, "content": line})


def _notes(resource: str, each: int) -> Iterator[tuple[str, Origin, EventPayload]]:
    for number, line in zip(range(each), lines(resource), strict=False):
        text = f"{resource} keeps to this: {line}" if number == 0 else line
        yield f"resource/{resource}", Origin.USER, NoteAdded(text=text, importance=0.6)


KINDS = {"talk": _talk, "notes": _notes}


def _fill(number: int, together: Together, url: str, kind: str, resources: int, each: int) -> None:
    store = PostgresStore.open(url, seconds=600)
    together.wait()
    mine = range(number, resources, FILLERS)
    for start in range(0, len(mine), _TOGETHER):
        with store.bulk_import() as adoption:
            for resource in mine[start : start + _TOGETHER]:
                for event in _events(KINDS[kind](resource_named(resource), each)):
                    adoption.add_event(event)
    store.close()


def _events(happened: Iterator[tuple[str, Origin, EventPayload]]) -> Iterator[Event]:
    for number, (stream, origin, what) in enumerate(happened):
        at = BEGAN + timedelta(minutes=20 * number)
        trust = TRUST_BY_ORIGIN[origin]
        yield Event(stream=stream, seq=number + 1, at=at, payload=what, origin=origin, trust=trust)


@cache
def _vocabulary() -> tuple[list[str], list[float]]:
    """Made-up words, the most frequent first, and how much of all that is said they are together with those before."""
    random, syllables = Random(1), [a + b for a in "bcdfghklmnprstvwz" for b in ("a", "e", "i", "o", "u", "ai", "ou")]
    seen = dict[str, None]()
    while len(seen) < WORDS:
        length = bisect((0.15, 0.65, 0.93), random.random()) + 1
        seen["".join(random.choice(syllables) for _ in range(length))] = None
    return list(seen), list(accumulate(1 / (rank + 10) ** 1.5 for rank in range(WORDS)))


@cache
def _ranks() -> dict[str, int]:
    return {word: rank for rank, word in enumerate(_vocabulary()[0])}
