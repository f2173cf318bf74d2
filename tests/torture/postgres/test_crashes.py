"""Repeated server crashes: acknowledged events survive.

Servers that could lose them are refused. The tables of faults call this P30.
"""

from __future__ import annotations

import threading
from collections import Counter

import pytest
from postgres import Run
from torture.harness import RunningActor, ask, seeded_random
from torture.postgres.actors import census, put, write_forever
from torture.postgres.conftest import OwnServer

from inmind.errors import UnsafeStorage
from inmind.store.postgres import PostgresStore

WRITERS = 3


class WriterLog:
    """A writer and its reports so far, received by a thread."""

    def __init__(self, url: str, name: str, seed: int) -> None:
        self.reports: list[list[str]] = []
        self._actor = RunningActor(write_forever, url=url, name=name, seed=seed)
        self._actor.receive_until("waiting")
        self._thread = threading.Thread(target=self._receive)
        self._more = threading.Condition()
        self._actor.resume()
        self._thread.start()

    def wait_for(self, number: int) -> None:
        """Wait until this many more writes were acknowledged."""
        wanted = self.count("wrote") + number
        with self._more:
            assert self._more.wait_for(lambda: self.count("wrote") >= wanted, timeout=60), (
                "the writer makes no progress"
            )

    def count(self, word: str) -> int:
        return sum(words[0] == word for words in self.reports)

    def end(self) -> None:
        self._actor.kill()
        self._thread.join()
        assert self._actor.finish().killed

    def _receive(self) -> None:
        while (words := self._actor.receive()) is not None:
            with self._more:
                self.reports.append(words)
                self._more.notify_all()


def crash(run: Run, *, times: int) -> None:
    rng = seeded_random()
    with run.server() as server:
        server.start()
        own = OwnServer(server)
        url = own.tenant("ada")
        PostgresStore.open(url).close()
        writers = [WriterLog(url, f"w{n}", rng.randrange(1 << 32)) for n in range(WRITERS)]
        try:
            for _ in range(times):
                for writer in writers:
                    writer.wait_for(rng.randrange(1, 8))
                if rng.random() < 0.5:
                    server.kill_postmaster()
                else:
                    server.stop("immediate")
                server.start()
            for writer in writers:
                writer.wait_for(1)
        finally:
            for writer in writers:
                writer.end()
        crashed = server.log.count("was not properly shut down")
        assert crashed == times, f"{crashed} recoveries after {times} crashes"
        check(ask(census, url=url), [words for writer in writers for words in writer.reports], times)


def check(names: list[str], reports: list[list[str]], times: int) -> None:
    stored = set(names)
    by_word = {word: {words[1] for words in reports if words[0] == word} for word in ("wrote", "unknown", "refused")}
    assert len(names) == len(stored), "an event is stored twice"
    assert by_word["wrote"] <= stored, f"lost: {sorted(by_word['wrote'] - stored)[:5]}"
    assert not by_word["refused"] & stored, "a refused event is stored"
    unreported = stored - {words[1] for words in reports}
    assert len(unreported) <= WRITERS, "a killed writer has at most one unreported write"
    words = Counter(words[0] for words in reports)
    assert words["unknown"] + words["refused"] + words["again"], "no writer noticed a crash"
    print(f"{times} crashes, {len(by_word['wrote'])} acknowledged, none lost; {dict(words)}")


@pytest.mark.spec("P30", "J1")
def test_acknowledged_events_survive_crashes_of_the_server(postgres_run: Run) -> None:
    crash(postgres_run, times=3)


@pytest.mark.torture
@pytest.mark.spec("P30", "J1")
def test_acknowledged_events_survive_a_hundred_crashes(postgres_run: Run) -> None:
    crash(postgres_run, times=100)


@pytest.mark.spec("P30")
@pytest.mark.parametrize("setting", ["fsync", "synchronous_commit", "full_page_writes"])
def test_a_server_that_may_lose_commits_is_refused(own: OwnServer, setting: str) -> None:
    """The error names the setting, and nothing is created; a corrected server is accepted."""
    url = own.tenant(f"lost {setting}")
    own.server.settings[setting] = "off"
    own.server.restart()
    try:
        with pytest.raises(UnsafeStorage, match=f"{setting} is off"):
            PostgresStore.open(url)
        schemas_query = f"SELECT FROM pg_namespace WHERE nspname = 'lost {setting}'"
        assert own.query(schemas_query) == []
    finally:
        own.server.settings[setting] = "on"
        own.server.restart()
    store = PostgresStore.open(url)
    put(store, "safe", keyed=True)
    store.close()


@pytest.mark.spec("P30")
def test_a_role_that_may_lose_commits_is_refused(own: OwnServer) -> None:
    """On a safe server: by settings of the role or of the URL, checked for each new connection."""
    url = own.tenant("hasty")
    own.execute("ALTER ROLE hasty SET synchronous_commit = off")
    with pytest.raises(UnsafeStorage, match="synchronous_commit is off"):
        PostgresStore.open(url)
    own.execute("ALTER ROLE hasty RESET synchronous_commit")
    store = PostgresStore.open(url)
    put(store, "one", keyed=False)
    own.execute("ALTER ROLE hasty SET synchronous_commit = off")
    own.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'hasty'")
    with pytest.raises(UnsafeStorage, match="synchronous_commit is off"):
        put(store, "two", keyed=False)
    own.execute("ALTER ROLE hasty RESET synchronous_commit")
    put(store, "three", keyed=False)
    store.close()
    assert ask(census, url=url) == ["one", "three"]
    with pytest.raises(UnsafeStorage, match="synchronous_commit is off"):
        PostgresStore.open(own.url("hasty", options="-csynchronous_commit=off"))
