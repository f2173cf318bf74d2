"""Actors on a PostgreSQL store. They write pages of one stream, each with its name as text."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from torture.harness import ActorChannel

from inmind.core.events.base import Draft, Event, Origin, Trust
from inmind.core.events.documents import DocumentWritten
from inmind.errors import Conflict, OutcomeUnknown, StoreError, StoreUnavailable
from inmind.session.state import ResourceFold, ResourceState
from inmind.store.postgres import PostgresStore
from inmind.store.protocol import AppendResult, Batch, BulkImport, Key, Store
from inmind.store.stream import Decision, Stream

STREAM = "resource/ada"
PATH = "MEMORY.md"


def page_draft(text: str) -> Draft:
    return Draft(payload=DocumentWritten(path=PATH, text=text), origin=Origin.USER)


def make_key(name: str) -> Key:
    return Key(value=f"write {name}", request=name)


def now() -> datetime:
    return datetime.now(UTC)


def put(store: Store, name: str, *, keyed: bool, stream: str = STREAM, companion: str = "") -> AppendResult:
    """Append a page: read, decide, append; retry on a conflict."""
    key = make_key(name) if keyed else None
    while True:
        other = Batch(companion, [page_draft(name)], store.version(companion)) if companion else None
        try:
            return store.append(
                Batch(stream, [page_draft(name)], store.version(stream)), at=now(), key=key, companion=other
            )
        except Conflict:
            continue


def adopt(store: PostgresStore, stream: str) -> None:
    """Import three pages."""
    with store.bulk_import() as adoption:
        add_pages(adoption, stream)


def add_pages(adoption: BulkImport, stream: str) -> None:
    for seq in (1, 2, 3):
        what = DocumentWritten(path=PATH, text=f"from elsewhere {seq}")
        adoption.add_event(
            Event(stream=stream, seq=seq, at=now(), payload=what, origin=Origin.USER, trust=Trust.PERSON)
        )


def names(store: Store, stream: str = STREAM) -> list[str]:
    """Names of all pages, complete, in order and without gaps."""
    events = store.read(stream)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    return [_text(event) for event in events]


def census(channel: ActorChannel, *, url: str, stream: str = STREAM) -> list[str]:
    """The content as a new process sees it."""
    store = PostgresStore.open(url)
    texts = names(store, stream)
    places = [position for position, _ in store.events_since(0, kinds=["document"], limit=1_000_000)]
    assert places == sorted(set(places))
    assert all(count == version for count, version in _tables(store))
    store.close()
    channel.report("counted")
    return texts


def _tables(store: PostgresStore) -> list[tuple[int, int]]:
    """Events and recorded version of each stream."""
    query = store.database.in_schema(
        "SELECT count(events.seq), version FROM tenant.streams LEFT JOIN tenant.events ON events.stream = streams.id "
        "GROUP BY streams.id, version"
    )
    return store.database.read(lambda connection: connection.execute(query).fetchall())


def _text(event: Event) -> str:
    assert isinstance(event.payload, DocumentWritten)
    return event.payload.text


# -- with kills --------------------------------------------------------------------------------------------


def write_forever(channel: ActorChannel, *, url: str, name: str, seed: int) -> None:
    """Write until killed, also while the server is down, and report the result of each write.

    A write with a key is retried until there is a result.
    """
    rng = random.Random(seed)
    store = _open_with_retries(lambda: PostgresStore.open(url, seconds=5))
    channel.wait()
    number = 0
    while True:
        number += 1
        id, keyed = f"{name}-{number}", rng.random() < 0.5
        companion = f"resource/{name}" if rng.random() < 0.3 else ""
        while True:
            try:
                put(store, id, keyed=keyed, companion=companion)
                channel.report("wrote", id)
                break
            except OutcomeUnknown:
                if not keyed:
                    channel.report("unknown", id)
                    break
                channel.report("again", id)
            except StoreError as error:
                if not keyed:
                    channel.report("refused", id, error.code)
                    break
                channel.report("again", id)
            time.sleep(0.01)


def _open_with_retries(open: Callable[[], PostgresStore]) -> PostgresStore:
    until = time.monotonic() + 30
    while True:
        try:
            return open()
        except StoreUnavailable:
            assert time.monotonic() < until
            time.sleep(0.02)


# -- concurrent clients ------------------------------------------------------------------------------------------


def count_up(channel: ActorChannel, *, url: str, threads: int, each: int) -> int:
    """Threads that read a number, add one and write it, with the commit loop."""
    store = PostgresStore.open(url, max_connections=threads)
    decided = [0] * threads
    channel.wait()

    def count(thread: int) -> None:
        stream = Stream(store, STREAM, ResourceFold(STREAM), now)

        def decide(state: ResourceState, _: datetime) -> Decision[ResourceState, None]:
            decided[thread] += 1
            return Decision([page_draft(str(int(state.documents.text(PATH) or 0) + 1))], None)

        for _ in range(each):
            stream.commit(decide)

    _all_of([threading.Thread(target=count, args=(n,)) for n in range(threads)])
    store.close()
    return sum(decided)


def cross(channel: ActorChannel, *, url: str, first: str, second: str, name: str, each: int, pairs: int) -> None:
    """Append to two streams at once; several pairs one after another."""
    store = PostgresStore.open(url)
    channel.wait()
    for pair in range(pairs):
        for n in range(each):
            put(
                store, f"{name}-{n}", keyed=n % 2 == 0, stream=f"{first}{pair or ''}", companion=f"{second}{pair or ''}"
            )
    store.close()


def open_fresh(channel: ActorChannel, *, url: str) -> list[str]:
    """Open a schema that does not exist yet, several at once."""
    channel.wait()
    store = PostgresStore.open(url)
    put(store, f"by {os.getpid()}", keyed=True)
    steps = store.database.in_schema("SELECT name FROM tenant.inmind_steps ORDER BY number")
    rows: list[tuple[Any, ...]] = store.database.read(lambda connection: connection.execute(steps).fetchall())
    store.close()
    return [step for (step,) in rows]


def _all_of(threads: list[threading.Thread], running: Sequence[threading.Thread] = ()) -> None:
    for thread in threads:
        thread.start()
    for thread in [*threads, *running]:
        thread.join(timeout=60)
        assert not thread.is_alive(), "a thread hangs"


# -- forks -------------------------------------------------------------------------------------------------


def both_write(channel: ActorChannel, *, url: str, number: int, exit: str) -> None:
    """Parent and child continue with the store that was open before the fork."""
    store = PostgresStore.open(url)
    put(store, "before", keyed=False)
    pid = os.fork()
    name = "parent" if pid else "child"
    for n in range(number):
        put(store, f"{name}-{n}", keyed=n % 2 == 0)
    if not pid:
        if exit == "closed":
            store.close()
        if exit != "killed":
            sys.exit(0)  # runs the destructors of everything inherited
        os.kill(os.getpid(), signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == (-signal.SIGKILL if exit == "killed" else 0)
    put(store, "after", keyed=False)
    store.close()
    channel.report("done")


def fork_during_writes(channel: ActorChannel, *, url: str, forks: int) -> int:
    """Fork while other threads write."""
    store = PostgresStore.open(url)
    stop, written = threading.Event(), [0, 0]

    def write(thread: int) -> None:
        while not stop.is_set():
            put(store, f"thread{thread}-{written[thread]}", keyed=False)
            written[thread] += 1

    threads = [threading.Thread(target=write, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    pids: list[int] = []
    for n in range(forks):
        time.sleep(0.003)
        if not (pid := os.fork()):
            put(store, f"child-{n}", keyed=True)
            os._exit(0)
        pids.append(pid)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    stop.set()
    _all_of([], threads)
    store.close()
    assert codes == [0] * forks
    channel.report("done")
    return sum(written)


def fork_in_a_transaction(channel: ActorChannel, *, url: str) -> dict[str, list[str]]:
    """The child leaves the block of the parent's transaction, and then writes."""
    store = PostgresStore.open(url)
    put(store, "before", keyed=False)
    reader, writer = os.pipe()
    pid, codes = 0, list[str]()
    try:
        with store.bulk_import() as adoption:
            add_pages(adoption, "resource/parent")
            pid = os.fork()
            if pid:
                os.waitpid(pid, 0)
    except StoreError as error:
        codes.append(error.code)
    if not pid:
        put(store, "by the child", keyed=False)
        os.write(writer, json.dumps([*codes, "wrote"]).encode())
        os._exit(0)
    assert not codes, "the parent's transaction was ended"
    store.close()
    channel.report("done")
    return {"child": json.loads(os.read(reader, 1_000))}


def die_with_a_lock(channel: ActorChannel, *, url: str) -> None:
    """Die inside a transaction; the child stays alive."""
    store = PostgresStore.open(url)
    put(store, "before", keyed=False)
    hold = store.database.in_schema("SELECT FROM tenant.streams FOR UPDATE")
    with store.database.transaction() as connection:
        connection.execute(hold)
        parent = os.getpid()
        if os.fork():
            time.sleep(60)
        os.kill(parent, signal.SIGKILL)
        while os.getppid() == parent:
            time.sleep(0.001)
        channel.wait()
        channel.report("child alive")
        os._exit(0)
