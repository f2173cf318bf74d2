"""The index in PostgreSQL returns what the index of a home returns, after any damage."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from builders import assistant, user
from psycopg import sql

from inmind import Hit, Memory
from inmind.core.events import KINDS
from inmind.errors import NotFound, ReadOnly
from inmind.jobs.dream_input import Gatherer
from inmind.search.index import postgres
from inmind.search.index.base import VERSION, NearestPassages
from inmind.search.index.indexer import Indexer
from inmind.store.postgres import PostgresStore
from inmind.store.sqlite.store import SqliteStore
from inmind.testing import ManualClock

FERRY_TEXTS = ["The ferry is blue", "The ferry leaves at nine"]


@pytest.fixture
def memory(tenant_url: str, clock: ManualClock) -> Generator[Memory]:
    with Memory.open(tenant_url, clock=clock, embedder=None) as memory:
        yield memory


def take_notes(memory: Memory, resource: str = "ada") -> None:
    session = memory.session(f"of {resource}", resource=resource)
    session.note("The ferry leaves at nine")
    session.add([user("The ferry is blue")])


def find_ferries(memory: Memory, resource: str = "ada") -> list[str]:
    return sorted(hit.crystal.text for hit in memory.resource(resource).search("ferry"))


def execute(url: str, *statements: str) -> list[Any]:
    """Run in the tenant's schema."""
    with psycopg.connect(url, autocommit=True) as connection:
        path = sql.SQL("SET search_path TO {}, public").format(sql.Identifier(connection.info.user))
        connection.execute(path)
        answers = [connection.execute(statement.encode()) for statement in statements]
        return [answer.fetchall() if answer.description else [] for answer in answers]


def test_committed_text_is_found_by_every_process(tenant_url: str, memory: Memory) -> None:
    take_notes(memory)
    assert find_ferries(memory) == FERRY_TEXTS
    with Memory.open(tenant_url, embedder=None) as other:
        assert find_ferries(other) == FERRY_TEXTS
        other.session("of ada").note("The ferry is late")
        assert find_ferries(memory) == [FERRY_TEXTS[0], "The ferry is late", FERRY_TEXTS[1]]


def test_a_search_indexes_only_its_resource(tenant_url: str, memory: Memory) -> None:
    for name in ("ada", "bob", "eve"):
        take_notes(memory, name)
    engine = memory._context.search.engine  # pyright: ignore[reportPrivateUsage] -- as a worker does
    assert engine.stale_resources(limit=9) == ["ada", "bob", "eve"]
    assert find_ferries(memory, "bob") == FERRY_TEXTS
    assert engine.stale_resources(limit=9) == ["ada", "eve"]
    assert engine.stale_resources(after="ada", limit=9) == ["eve"]
    assert execute(tenant_url, "SELECT DISTINCT name FROM crystals JOIN resources ON resources.id = resource") == [
        [("bob",)]
    ]
    engine.catch_up()
    assert engine.stale_resources(limit=9) == []
    memory.session("of eve").note("The ferry is late")
    assert engine.stale_resources(limit=9) == ["eve"]


def test_a_pinned_crystal_of_an_anonymous_session_stays_pinned(memory: Memory) -> None:
    """The pin is in the anonymous stream, which is indexed separately."""
    session = memory.session("s")
    session.add([user("The ferry is blue")])
    id = f"session/s#{session.state.seq}"
    assert memory.pin(id).lifecycle == "frozen"
    assert [hit.crystal.lifecycle for hit in session.search("ferry")] == ["frozen"]
    assert memory.unpin(id).lifecycle != "frozen"


def test_pinning_a_crystal_that_is_not_indexed_yet(tenant_url: str, memory: Memory) -> None:
    session = memory.session("s")
    session.add([user("The ferry is blue")])
    id = f"session/s#{session.state.seq}"
    memory.pin(id)
    execute(tenant_url, "DROP TABLE resources")
    with Memory.open(tenant_url, embedder=None) as other:
        other._context.search.engine.catch_up(["default"])  # pyright: ignore[reportPrivateUsage] -- the anonymous owner first
        assert other.get(id).lifecycle == "frozen"


DAMAGE: dict[str, str] = {
    "dropped": "DROP TABLE resources, followed, series, crystals, speakers, shown, passages, embedders, embedded",
    "without a table": "DROP TABLE crystals",
    "without another table": "DROP TABLE passages",
    "emptied": "TRUNCATE resources, followed, series, crystals, speakers, shown, passages, embedders, embedded",
    "without its crystals": "TRUNCATE crystals",
    "without its words": "TRUNCATE passages",
    "without a mark": "TRUNCATE followed",
    "with reset positions": "UPDATE resources SET upto = 0",
    "ahead of the journal": "UPDATE resources SET upto = upto + 1000",
    "of another journal": "UPDATE resources SET at = at + 1",
    "of another shape": "ALTER TABLE crystals RENAME TO other",
    "without a column": "ALTER TABLE crystals DROP COLUMN lineage",
    "of an older version": f"UPDATE followed SET version = {VERSION - 1}",
}


@pytest.mark.spec("M39", "J1")
@pytest.mark.parametrize("damage", DAMAGE)
def test_search_works_after_any_damage_to_the_tables(
    tenant_url: str, memory: Memory, clock: ManualClock, damage: str
) -> None:
    """For a process that had it open, and for a new one."""
    take_notes(memory)
    take_notes(memory, "bob")
    before = [(hit.crystal, hit.score) for hit in memory.resource("ada").search("ferry")]
    assert find_ferries(memory, "bob") == FERRY_TEXTS
    execute(tenant_url, DAMAGE[damage])
    with Memory.open(tenant_url, clock=clock, embedder=None) as other:
        assert [(hit.crystal, hit.score) for hit in other.resource("ada").search("ferry")] == before
        assert [(hit.crystal, hit.score) for hit in memory.resource("ada").search("ferry")] == before
        memory.session("of ada").note("The ferry is late")
        assert find_ferries(other) == [FERRY_TEXTS[0], "The ferry is late", FERRY_TEXTS[1]]
        assert find_ferries(other, "bob") == find_ferries(memory, "bob") == FERRY_TEXTS


@pytest.mark.spec("M39")
@pytest.mark.parametrize("name", ["ada", "session/s"])
def test_damage_to_one_owner_rebuilds_only_that_owner(tenant_url: str, memory: Memory, name: str) -> None:
    """Other owners may have millions of crystals. Pins of anonymous sessions are kept."""
    for one in ("ada", "bob"):
        take_notes(memory, one)
        assert find_ferries(memory, one) == FERRY_TEXTS
    session = memory.session("s")
    session.add([user("The ferry is blue")])
    id = f"session/s#{session.state.seq}"
    memory.pin(id)
    assert [hit.crystal.lifecycle for hit in session.search("ferry")] == ["frozen"]
    bobs = "SELECT made FROM crystals JOIN resources ON resources.id = resource WHERE name = 'bob' ORDER BY made"
    (before,) = execute(tenant_url, bobs)
    owner = f"(SELECT id FROM resources WHERE name LIKE '%{name}')"
    for damage in ("DELETE FROM crystals WHERE resource =", "UPDATE resources SET upto = 0 WHERE id ="):
        execute(tenant_url, f"{damage} {owner}")
        assert find_ferries(memory) == FERRY_TEXTS
        assert [(hit.passage, hit.crystal.lifecycle) for hit in session.search("ferry")] == [
            ("The ferry is blue", "frozen")
        ]
    assert execute(tenant_url, bobs) == [before]


def test_a_read_only_database_returns_what_is_indexed(
    tenant_url: str, postgres_admin: str, memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    """As on a standby server: new text is found later, and the log says so."""
    take_notes(memory)
    assert find_ferries(memory) == FERRY_TEXTS
    memory.session("of ada").note("The ferry is late")
    with read_only(tenant_url, postgres_admin), Memory.open(tenant_url, embedder=ToyEmbedder("toy")) as other:
        assert sorted(find_ferries(other)) == sorted(FERRY_TEXTS)
        assert other.get("resource/ada#1").text
        engine = other._context.search.engine  # pyright: ignore[reportPrivateUsage] -- what `inmind status` asks
        assert engine.stale_resources(limit=9) == ["ada"]
        assert engine.count_without_vectors(9) == 0
    assert [record.message for record in caplog.records if "cannot be indexed" in record.message]
    assert "The ferry is late" in find_ferries(memory)


@contextmanager
def read_only(url: str, admin: str) -> Generator[None]:
    role = sql.Identifier(urlsplit(url).username or "")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(sql.SQL("ALTER ROLE {} SET default_transaction_read_only = on").format(role))
        try:
            yield
        finally:
            connection.execute(sql.SQL("ALTER ROLE {} RESET default_transaction_read_only").format(role))


CALLS: dict[str, Callable[[Memory], object]] = {
    "crystal": lambda memory: memory.get("resource/ada#1"),
    "freeze": lambda memory: memory.pin("resource/ada#1"),
    "consolidate": lambda memory: memory.resource("ada").consolidate(),
}


@pytest.mark.spec("M39")
@pytest.mark.parametrize("call", CALLS)
def test_other_calls_survive_a_rebuild(tenant_url: str, memory: Memory, call: str) -> None:
    take_notes(memory)
    assert find_ferries(memory) == FERRY_TEXTS
    execute(tenant_url, DAMAGE["dropped"])
    CALLS[call](memory)
    assert find_ferries(memory) == FERRY_TEXTS
    with pytest.raises(NotFound):
        memory.get("resource/ada#999")


@pytest.mark.spec("M39")
def test_after_a_rebuild_every_unindexed_owner_is_stale(tenant_url: str, memory: Memory) -> None:
    for name in ("ada", "bob", "eve"):
        take_notes(memory, name)
    engine = memory._context.search.engine  # pyright: ignore[reportPrivateUsage] -- as a worker does
    engine.catch_up()
    assert engine.stale_resources(limit=9) == []
    execute(tenant_url, DAMAGE["dropped"])
    assert find_ferries(memory, "bob") == FERRY_TEXTS
    assert engine.stale_resources(limit=9) == ["ada", "eve"]


def test_an_index_of_a_newer_version_is_not_changed(tenant_url: str, memory: Memory) -> None:
    take_notes(memory)
    assert find_ferries(memory) == FERRY_TEXTS
    execute(tenant_url, f"UPDATE followed SET version = {VERSION + 1}")
    with Memory.open(tenant_url, embedder=None) as other, pytest.raises(ReadOnly, match="upgrade inmind"):
        find_ferries(other)
    assert execute(tenant_url, "SELECT version FROM followed") == [[(VERSION + 1,)]]


@pytest.mark.spec("N67")
@pytest.mark.parametrize("wire", ['"the ferry sank"', '{"role":"zzz","content":"the ferry sank"}'])
def test_an_unreadable_event_is_skipped_and_logged_once(
    tenant_url: str, memory: Memory, caplog: pytest.LogCaptureFixture, wire: str
) -> None:
    take_notes(memory)
    session = memory.session("of ada")
    session.add([user("poison")])
    session.add([user("The ferry is long")])
    execute(tenant_url, f"UPDATE events SET body = '{{\"wire\":{wire}}}' WHERE body LIKE '%poison%'")
    for _ in range(2):
        assert find_ferries(memory) == [FERRY_TEXTS[0], "The ferry is long", FERRY_TEXTS[1]]
    assert [record.message.partition(": ")[0].partition(" cannot")[2] for record in caplog.records] == [
        " be read and is not indexed"
    ]


@pytest.mark.spec("N67")
def test_a_failing_batch_is_bisected(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its words were written already and are rolled back."""
    take_notes(memory)
    session = memory.session("of ada")
    session.add([user("The ferry sank")])
    sank = f"session/of ada#{session.state.seq}"
    original = Indexer._flush  # pyright: ignore[reportPrivateUsage] -- its last step

    def flush_then_fail(indexer: Indexer) -> None:
        crystals = str(indexer._crystals)  # pyright: ignore[reportPrivateUsage]
        original(indexer)
        if sank in crystals:
            raise ValueError("as if it could not be read")

    monkeypatch.setattr(Indexer, "_flush", flush_then_fail)
    assert find_ferries(memory) == FERRY_TEXTS
    assert find_ferries(memory) == FERRY_TEXTS
    assert len([record for record in caplog.records if f"{sank} cannot be read" in record.message]) == 1
    assert not [record for record in caplog.records if "damaged" in record.message]


# -- the same as in a home -------------------------------------------------------------------------------------


def sample_events(memory: Memory, clock: ManualClock) -> None:
    """A sample of everything that is indexed."""
    for number, name in enumerate(("ada", "bob", None)):
        session = memory.session(f"s{number}", resource=name)
        for turn in range(6):
            clock.advance(seconds=3_600)
            question = user(f"Ada: Where does ferry {turn} go? Is it the blue one, 还是港口的那艘?")
            session.add([question, assistant(f"Ferry {turn} goes to island {turn % 3}, and returns at {turn + 9}.")])
        session.note("The blue ferry leaves at nine", kind="fact", importance=0.9)
        session.note("The blue ferry leaves at nine", kind="fact")
        session.write("detail/page.md", "# Ferries\n\nBlue ones.\n\n# Islands\n\nThree of them.\n")
        session.write("detail/page.md", "# Ferries\n\nRed ones.\n\n# Islands\n\nThree of them.\n")
        session.add([user("Forget it, " * 500)])
        session.search("ferry to the island")
        session.undo()
        clock.advance(seconds=60)
    memory.resource("ada").consolidate()


def copy_journal(home: Path, url: str) -> None:
    """Copy the journal of a home, event by event."""
    source, target = SqliteStore(home / "inmind.db"), PostgresStore.open(url)
    with target.bulk_import() as adoption:
        for _, event in source.events_since(0, kinds=tuple(KINDS), limit=10_000):
            assert event
            adoption.add_event(event)
    source.close()
    target.close()


QUESTIONS: list[dict[str, Any]] = [
    {"query": "which ferry goes to island 2"},
    {"query": "blue ferry", "resource": "ada"},
    {"query": "港口", "resource": "bob"},
    {"query": "ferry", "resource": "ada", "sources": ["memory"]},
    {"query": "ferry", "session": "s1"},
    {"query": "what did Ada ask yesterday"},
    {"query": "", "resource": "ada", "kinds": ["fact"]},
    {"query": "red ones"},
    {"query": "ferry", "as_of": datetime(2026, 1, 1, 9, tzinfo=UTC)},
]


def search_hits(memory: Memory, *, resource: str | None = None, **options: Any) -> list[Hit]:
    scope = memory if resource is None else memory.resource(resource)
    return scope.search(**options, limit=100)


def all_hits(memory: Memory) -> list[Any]:
    return [
        [(repr(hit.crystal), hit.score, dict(hit.parts), hit.passage, hit.before, hit.after) for hit in hits]
        for hits in (search_hits(memory, **question) for question in QUESTIONS)
    ]


@pytest.mark.parametrize("embedder", [None, "auto"], ids=["by words", "with vectors"])
def test_the_same_journal_gives_the_same_hits_in_a_home_and_a_database(
    tenant_url: str, tmp_path: Path, embedder: str | None
) -> None:
    home, clock = tmp_path / "home", ManualClock()
    with Memory.open(home, clock=clock, embedder=None) as memory:
        sample_events(memory, clock)
    copy_journal(home, tenant_url)
    answers: list[Any] = []
    for place in (home, tenant_url):
        with Memory.open(place, clock=clock, embedder=embedder) as memory:
            assert memory._context.search.engine.embed()  # pyright: ignore[reportPrivateUsage] -- so that every search has vectors
            answers.append(all_hits(memory))
    assert answers[0] == answers[1]
    assert [question for question, hits in zip(QUESTIONS, answers[0], strict=True) if not hits] == []


def test_cosines_equal_those_of_a_home(tenant_url: str, tmp_path: Path) -> None:
    home, clock = tmp_path / "home", ManualClock()
    with Memory.open(home, clock=clock, embedder=None) as memory:
        sample_events(memory, clock)
    copy_journal(home, tenant_url)
    near: list[NearestPassages] = []
    for place in (home, tenant_url):
        with Memory.open(place, clock=clock, embedder="auto") as memory:
            engine = memory._context.search.engine  # pyright: ignore[reportPrivateUsage] -- cosines are not public
            assert engine.embed()
            assert engine.crystal_embedder
            (scope,) = engine._index.scopes(["ada"])  # pyright: ignore[reportPrivateUsage]
            vector = engine.crystal_embedder.embed_query("which ferry goes to the island")
            assert vector
            index = engine._index  # pyright: ignore[reportPrivateUsage]
            near.append(index.nearest(engine.crystal_embedder.name, scope, vector, 1_000))
    assert near[0].total == near[1].total > 10
    assert near[0].passages == near[1].passages


# -- vectors ---------------------------------------------------------------------------------------------------


@pytest.fixture
def plain(postgres_admin: str, tenant_url: str) -> Generator[DatabaseWithoutPgvector]:
    """A database on the same server without pgvector."""
    name = f"plain_{urlsplit(tenant_url).username}"
    to = urlsplit(postgres_admin)._replace(path=f"/{name}")
    execute(postgres_admin, f"CREATE DATABASE {name}", f"GRANT CREATE ON DATABASE {name} TO PUBLIC")
    yield DatabaseWithoutPgvector(urlunsplit(urlsplit(tenant_url)._replace(path=f"/{name}")), urlunsplit(to))
    execute(postgres_admin, f"DROP DATABASE {name} WITH (FORCE)")


class DatabaseWithoutPgvector(NamedTuple):
    tenant: str
    admin: str


def meaning_scores(memory: Memory) -> list[float]:
    return [hit.parts["meaning"] for hit in memory.resource("ada").search("boats")]


def test_without_pgvector_search_uses_words_and_logs_once(
    plain: DatabaseWithoutPgvector, caplog: pytest.LogCaptureFixture
) -> None:
    with Memory.open(plain.tenant, embedder=ToyEmbedder("toy")) as memory:
        take_notes(memory)
        assert find_ferries(memory) == FERRY_TEXTS
        assert find_ferries(memory) == FERRY_TEXTS
        assert meaning_scores(memory) == []
    (warning,) = [record.message for record in caplog.records if "pgvector" in record.message]
    assert warning.endswith("has no pgvector: searching by words only")
    assert str(urlsplit(plain.tenant).password) not in warning


def test_pgvector_may_be_installed_and_removed_at_any_time(
    plain: DatabaseWithoutPgvector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "PGVECTOR_CHECK_SECONDS", 0.0)
    with Memory.open(plain.tenant, embedder=ToyEmbedder("toy")) as memory:
        take_notes(memory)
        assert meaning_scores(memory) == []
        execute(plain.admin, 'CREATE SCHEMA "odd. name"; CREATE EXTENSION vector SCHEMA "odd. name"')
        assert meaning_scores(memory) == []  # only its owner may use that schema
        execute(plain.admin, 'GRANT USAGE ON SCHEMA "odd. name" TO PUBLIC')
        assert memory._context.search.engine.embed()  # pyright: ignore[reportPrivateUsage] -- so that every search has vectors
        assert len(meaning_scores(memory)) == 2
        execute(plain.admin, "DROP EXTENSION vector CASCADE")
        assert meaning_scores(memory) == []
        assert find_ferries(memory) == FERRY_TEXTS
        execute(plain.admin, "CREATE EXTENSION vector")
        assert memory._context.search.engine.embed()  # pyright: ignore[reportPrivateUsage]
        assert len(meaning_scores(memory)) == 2


def test_vectors_of_an_embedder_unused_for_a_day_are_deleted(tenant_url: str) -> None:
    """While machines are updated one by one, both embedders are in use."""
    clock, names = ManualClock(), "SELECT name FROM embedders ORDER BY name"
    for name in ("toy one", "toy two"):
        with Memory.open(tenant_url, clock=clock, embedder=ToyEmbedder(name)) as memory:
            take_notes(memory)
            memory.run_upkeep()
    assert execute(tenant_url, names) == [[("toy one#3",), ("toy two#3",)]]
    clock.advance(seconds=20 * 3600)
    with Memory.open(tenant_url, clock=clock, embedder=ToyEmbedder("toy one")) as memory:
        memory.resource("ada").search("anything")
    clock.advance(seconds=20 * 3600)
    with Memory.open(tenant_url, clock=clock, embedder=ToyEmbedder("toy two")) as memory:
        memory.run_upkeep()
        assert execute(tenant_url, names) == [[("toy one#3",), ("toy two#3",)]]
        clock.advance(seconds=20 * 3600)
        memory.run_upkeep()
    assert execute(tenant_url, names) == [[("toy two#3",)]]
    rows = "SELECT count(DISTINCT embedder), count(*) FROM vectors"
    assert execute(tenant_url, rows, "SELECT count(*) FROM passages") == [[(1, 4)], [(4,)]]


class ToyEmbedder:
    dimensions = 3

    def __init__(self, name: str) -> None:
        self.name = name

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[0.6, 0.0, 0.8] for _ in texts]


def test_every_resource_without_vectors_is_found(tenant_url: str) -> None:
    """Resources from before the embedder, new ones, and grown ones."""
    with Memory.open(tenant_url, embedder=None) as memory:
        take_notes(memory)
        memory._context.search.engine.catch_up()  # pyright: ignore[reportPrivateUsage] -- what a worker does
    with Memory.open(tenant_url, embedder=ToyEmbedder("toy")) as memory:
        engine = memory._context.search.engine  # pyright: ignore[reportPrivateUsage]
        assert engine.embed()
        take_notes(memory, "bob")
        memory.session("of ada").note("The ferry is late")
        engine.catch_up()
        assert engine.embed()
    rows = "SELECT count(*), count(*) FILTER (WHERE newest > upto) FROM embedded"
    assert execute(tenant_url, rows, "SELECT count(*) FROM vectors") == [[(2, 0)], [(5,)]]


def _return_nothing(*_: object) -> Any:
    """Replaces further queries, whose results may differ."""


def test_the_same_journal_makes_the_same_dream_in_a_home_and_in_a_database(tenant_url: str, tmp_path: Path) -> None:
    home, clock = tmp_path / "home", ManualClock()
    with Memory.open(home, clock=clock, embedder=None) as memory:
        sample_events(memory, clock)
    copy_journal(home, tenant_url)
    gathered: list[Any] = []
    pages: list[str] = []
    for place in (home, tenant_url):
        with Memory.open(place, clock=clock, embedder=None) as memory:
            stream = memory._context.resource_stream("ada")  # pyright: ignore[reportPrivateUsage] -- as a dream does
            gatherer = Gatherer("ada", memory._context.store, memory._context.search.engine)  # pyright: ignore[reportPrivateUsage]
            gathered_input = gatherer.gather(stream.state, last_seq=stream.version, now=clock())
            gathered.append(replace(gathered_input, search=_return_nothing, get_crystal=_return_nothing))
            assert memory.dream("ada").status == "done"
            pages.append(memory._context.resource_stream("ada").state.documents.text("MEMORY.md"))  # pyright: ignore[reportPrivateUsage]
    assert gathered[0] == gathered[1]
    assert gathered[0].crystals
    assert pages[0] == pages[1] != ""
