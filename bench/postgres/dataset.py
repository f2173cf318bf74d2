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

from bench.postgres.client_processes import Barrier, run_clients
from inmind.core.events.base import TRUST_BY_ORIGIN, Event, EventPayload, Origin
from inmind.core.events.crystals import NoteAdded
from inmind.core.events.session import MessageAdded, SessionOpened
from inmind.store.postgres import PostgresStore

FILL_PROCESSES = 2
WORDS, WORDS_IN_A_LINE = 30_000, (8, 28)
START = datetime(2026, 1, 5, 8, tzinfo=UTC)
_RESOURCES_PER_TRANSACTION = 10
"""Resources of one transaction."""

ResourceEvents = Callable[[str], Iterator[tuple[str, Origin, EventPayload]]]
"""What happened to a resource: in which stream, by whom, what."""


def fill_database(url: str, kind: str, resources: int, count: int) -> None:
    """Give so many resources their memories, each of so many lines."""
    PostgresStore.open(url).close()  # makes the schema
    run_clients(FILL_PROCESSES, _fill, url, kind, resources, count)


def resource_name(number: int) -> str:
    return f"r-{number:07}"


def lines(resource: str) -> Iterator[str]:
    """What is said to, by and of a resource: without end, and the same whenever it is asked for."""
    random = Random(resource)
    words, weights = _vocabulary()
    while True:
        chosen = random.choices(words, cum_weights=weights, k=random.randint(*WORDS_IN_A_LINE))
        yield f"{' '.join(chosen).capitalize()}."


def texts(resource: str, *lengths: int) -> Iterator[str]:
    """The same, in texts of these lengths, over and over."""
    line_source, rest = lines(resource), ""
    while True:
        for length in lengths:
            while len(rest) < length:
                rest += f"{next(line_source)} "
            yield rest[:length]
            rest = rest[length:]


def question_about(line: str) -> str:
    """A few of its rarest words."""
    rank = _ranks()
    rarest = sorted({*line.rstrip(".").lower().split()}, key=lambda word: -rank[word])
    return f"What about {' '.join(rarest[:4])}?"


def _message_events(resource: str, count: int) -> Iterator[tuple[str, Origin, EventPayload]]:
    stream = f"session/{resource}"
    yield stream, Origin.OPERATOR, SessionOpened(resource=resource, cwd="/bench")
    for number, line in zip(range(count), lines(resource), strict=False):
        role, origin = (("user", Origin.USER), ("assistant", Origin.ASSISTANT))[number % 2]
        yield stream, origin, MessageAdded(wire={"role": role, "content": line})


def _note_events(resource: str, count: int) -> Iterator[tuple[str, Origin, EventPayload]]:
    for number, line in zip(range(count), lines(resource), strict=False):
        text = f"{resource} keeps to this: {line}" if number == 0 else line
        yield f"resource/{resource}", Origin.USER, NoteAdded(text=text, importance=0.6)


EVENTS_BY_KIND = {"messages": _message_events, "notes": _note_events}


def _fill(number: int, barrier: Barrier, url: str, kind: str, resources: int, count: int) -> None:
    store = PostgresStore.open(url, seconds=600)
    barrier.wait()
    numbers = range(number, resources, FILL_PROCESSES)
    for start in range(0, len(numbers), _RESOURCES_PER_TRANSACTION):
        with store.bulk_import() as bulk:
            for resource in numbers[start : start + _RESOURCES_PER_TRANSACTION]:
                for event in _events(EVENTS_BY_KIND[kind](resource_name(resource), count)):
                    bulk.add_event(event)
    store.close()


def _events(events: Iterator[tuple[str, Origin, EventPayload]]) -> Iterator[Event]:
    for number, (stream, origin, payload) in enumerate(events):
        at = START + timedelta(minutes=20 * number)
        trust = TRUST_BY_ORIGIN[origin]
        yield Event(stream=stream, seq=number + 1, at=at, payload=payload, origin=origin, trust=trust)


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
