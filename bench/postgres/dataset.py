"""Bulk import of generated events for many resources into a database.

The texts are generated from words with the frequencies of conversations: about 450 different words in the first 10,000
characters and 1,450 in 60,000, as in LongMemEval. So the index has a realistic size, and a question with the rarer
words of a line has one best answer.
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

ResourceEvents = Callable[[str], Iterator[tuple[str, Origin, EventPayload]]]
"""Yields stream, origin and payload of each event of a resource."""


def fill_database(url: str, kind: str, resources: int, count: int) -> None:
    """Create resources with this many lines each."""
    PostgresStore.open(url).close()  # makes the schema
    run_clients(FILL_PROCESSES, _fill, url, kind, resources, count)


def resource_name(number: int) -> str:
    return f"r-{number:07}"


def lines(resource: str) -> Iterator[str]:
    """Endless lines of a resource, the same in each call."""
    random = Random(resource)
    words, weights = _vocabulary()
    while True:
        chosen = random.choices(words, cum_weights=weights, k=random.randint(*WORDS_IN_A_LINE))
        yield f"{' '.join(chosen).capitalize()}."


def texts(resource: str, *lengths: int) -> Iterator[str]:
    """The lines as endless texts of these lengths, in rotation."""
    line_source, rest = lines(resource), ""
    while True:
        for length in lengths:
            while len(rest) < length:
                rest += f"{next(line_source)} "
            yield rest[:length]
            rest = rest[length:]


def question_about(line: str) -> str:
    """Return a question with the rarest words of a line."""
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
    """Return made-up words, most frequent first, and their cumulative weights."""
    random, syllables = Random(1), [a + b for a in "bcdfghklmnprstvwz" for b in ("a", "e", "i", "o", "u", "ai", "ou")]
    seen = dict[str, None]()
    while len(seen) < WORDS:
        length = bisect((0.15, 0.65, 0.93), random.random()) + 1
        seen["".join(random.choice(syllables) for _ in range(length))] = None
    return list(seen), list(accumulate(1 / (rank + 10) ** 1.5 for rank in range(WORDS)))


@cache
def _ranks() -> dict[str, int]:
    return {word: rank for rank, word in enumerate(_vocabulary()[0])}
