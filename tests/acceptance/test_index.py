"""The index is derived: after any damage search works again and nothing is lost.

Fault M39.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from builders import Home, user
from torture import searching
from torture.harness import RunningActor, ask, run_together

from inmind import Memory
from inmind.errors import NotFound, UnsafeStorage
from inmind.search.index.base import VERSION
from inmind.search.index.sqlite import SqliteIndex

pytestmark = [pytest.mark.spec("M39"), pytest.mark.both_stores]

FERRY_TEXTS = ["The ferry is blue", "The ferry leaves at nine"]


def open_index(home: Path) -> Any:
    connection: Any = apsw.Connection(str(home / "index.db"))
    connection.set_busy_timeout(10_000)
    return connection


def execute(home: Path, *statements: str) -> None:
    connection = open_index(home)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def overwrite(home: Path, content: bytes) -> None:
    (home / "index.db").write_bytes(content)


def flip_bytes(home: Path) -> None:
    file = home / "index.db"
    content = bytearray(file.read_bytes())
    content[4_096:] = bytes(byte ^ 0x5A for byte in content[4_096:])
    file.write_bytes(content)


def remove_all(home: Path) -> None:
    for file in home.glob("index.db*"):
        file.unlink()


def drop_tables(home: Path) -> None:
    connection = open_index(home)
    names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE '%SHADOW%'")
    for name in [name for (name,) in names.fetchall() if "_" not in name]:
        connection.execute(f"DROP TABLE IF EXISTS {name}")
    connection.close()


def replace_with_foreign_database(home: Path) -> None:
    other = home.parent / "other"
    other.mkdir()
    execute(other, "CREATE TABLE mine (a)", f"PRAGMA user_version = {VERSION}")
    (other / "index.db").rename(home / "index.db")


DAMAGE: dict[str, Callable[[Path], object]] = {
    "deleted": lambda home: (home / "index.db").unlink(),
    "deleted with its side files": remove_all,
    "empty": lambda home: overwrite(home, b""),
    "text": lambda home: overwrite(home, b"this is no database\n" * 1_000),
    "bytes": lambda home: overwrite(home, os.urandom(50_000)),
    "NUL bytes": lambda home: overwrite(home, bytes(50_000)),
    "cut": lambda home: os.truncate(home / "index.db", (home / "index.db").stat().st_size // 2 + 7),
    "flipped in the middle": flip_bytes,
    "without its tables": drop_tables,
    "of an older version": lambda home: execute(home, "PRAGMA user_version = 99"),
    "of another shape": lambda home: execute(home, "ALTER TABLE crystals RENAME TO other"),
    "of another program": replace_with_foreign_database,
    "with a foreign log": lambda home: (home / "index.db-wal").write_bytes(os.urandom(9_000)),
}


def take_notes(home: Home) -> None:
    with Memory.open(home, embedder=None) as memory:
        session = memory.session("s", resource="ada", cwd="/w")
        session.note("The ferry leaves at nine")
        session.add([user("The ferry is blue")])
        find_ferries(memory)


def find_ferries(memory: Memory) -> list[str]:
    return sorted(hit.crystal.text for hit in memory.resource("ada").search("ferry"))


@pytest.mark.embedded
@pytest.mark.parametrize("damage", DAMAGE)
def test_search_works_and_notes_are_intact_after_any_damage_to_the_index(home: Path, damage: str) -> None:
    take_notes(home)
    DAMAGE[damage](home)
    with Memory.open(home, embedder=None) as memory:
        assert find_ferries(memory) == FERRY_TEXTS
        assert memory.get("resource/ada#1").text == "The ferry leaves at nine"
        session = memory.session("s")
        assert "The ferry leaves at nine" in session.read("memory/scratch.md")
        session.note("The ferry is late")
        assert find_ferries(memory) == [*FERRY_TEXTS[:1], "The ferry is late", *FERRY_TEXTS[1:]]


@pytest.mark.embedded
@pytest.mark.spec("N67")
def test_a_note_of_an_unknown_kind_is_found_and_one_out_of_range_is_not(home: Path) -> None:
    take_notes(home)
    with Memory.open(home, embedder=None) as memory:
        memory.session("s").note("The ferry is loud")
        memory.session("s").note("The ferry is fast")
    journal: Any = apsw.Connection(str(home / "inmind.db"))
    for words, field, value in (("loud", "$.about", "zzz"), ("fast", "$.importance", 1e308)):
        journal.execute(
            "UPDATE events SET body = json_set(body, ?, ?) WHERE kind = 'note' AND body LIKE ?",
            (field, value, f"%{words}%"),
        )
        assert journal.changes() == 1
    journal.close()
    with Memory.open(home, embedder=None) as memory:
        assert find_ferries(memory) == [FERRY_TEXTS[0], "The ferry is loud", FERRY_TEXTS[1]]


UNREADABLE_EVENTS: dict[str, str] = {
    "an unknown role": '{"wire":{"role":"zzz","content":"the ferry sank"}}',
    "a role that is a list": '{"wire":{"role":["user"],"content":"the ferry sank"}}',
    "content of null": '{"wire":{"role":"user","content":[null]}}',
    "an unknown format": '{"wire":{"role":"user","content":"the ferry sank"},"format":"zzz"}',
    "a message that is a text": '{"wire":"the ferry sank"}',
}


@pytest.mark.embedded
@pytest.mark.spec("N67")
@pytest.mark.parametrize("case", UNREADABLE_EVENTS)
def test_an_unreadable_event_is_skipped_and_logged_once(
    home: Path, caplog: pytest.LogCaptureFixture, case: str
) -> None:
    """Everything before and after it is found, in its stream and in others."""
    take_notes(home)
    with Memory.open(home, embedder=None) as memory:
        other = memory.session("other", resource="mallory", cwd="/w")
        other.add([user("poison"), user("The ferry of mallory")])
        memory.session("s").add([user("The ferry is long")])
    journal: Any = apsw.Connection(str(home / "inmind.db"))
    journal.execute("UPDATE events SET body = ? WHERE body LIKE '%poison%'", (UNREADABLE_EVENTS[case],))
    assert journal.changes() == 1
    journal.close()
    remove_all(home)
    for _ in range(2):
        with Memory.open(home, embedder=None) as memory:
            assert find_ferries(memory) == [FERRY_TEXTS[0], "The ferry is long", FERRY_TEXTS[1]]
            assert [hit.crystal.text for hit in memory.resource("mallory").search("ferry")] == ["The ferry of mallory"]
            memory.run_upkeep()
    warnings = [record.message for record in caplog.records if "is not indexed" in record.message]
    assert len(warnings) == 1
    assert "event session/other#3 cannot be read" in warnings[0]


@pytest.mark.embedded
@pytest.mark.spec("J1")
@pytest.mark.parametrize("damage", DAMAGE)
def test_an_index_damaged_while_in_use_is_rebuilt(home: Path, damage: str) -> None:
    """This process damages the index while another one has it open."""
    take_notes(home)
    actor = RunningActor(searching.search_again, home=str(home))
    assert actor.receive_until("found") == [FERRY_TEXTS]
    DAMAGE[damage](home)
    actor.resume()
    assert actor.receive_until("found") == [sorted([*FERRY_TEXTS, "The ferry was late again"])]
    assert ask(searching.search_texts, home=str(home), query="ferry") == sorted(
        [*FERRY_TEXTS, "The ferry was late again"]
    )
    actor.resume()
    assert actor.finish().answer == sorted([*FERRY_TEXTS, "The ferry was late again", "and again the ferry"])
    assert len(ask(searching.search_texts, home=str(home), query="ferry")) == 4


def rebuild_index(home: Path) -> None:
    """Rebuild the index as another process would: valid, and with nothing indexed yet."""
    connection = open_index(home)
    with connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
            connection.execute(f'DELETE FROM "{name}"')
        connection.execute("INSERT INTO followed VALUES (0, '', 0, randomblob(16))")
    connection.close()


@pytest.mark.embedded
@pytest.mark.spec("J2")
@pytest.mark.parametrize("question", ["search", "crystal"])
def test_a_query_is_repeated_if_another_process_rebuilds_the_index(
    home: Path, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    take_notes(home)
    original, rebuilds = SqliteIndex.catch_up, list[Path]()

    def catch_up_then_rebuild(index: SqliteIndex, resources: Any = None) -> bool:
        news = original(index, resources)
        if len(rebuilds) < 2:
            rebuilds.append(home)
            rebuild_index(home)
        return news

    with Memory.open(home, embedder=None) as memory:
        assert find_ferries(memory) == FERRY_TEXTS
        monkeypatch.setattr(SqliteIndex, "catch_up", catch_up_then_rebuild)
        if question == "search":
            assert find_ferries(memory) == FERRY_TEXTS
        else:
            assert memory.get("resource/ada#1").text in FERRY_TEXTS
            with pytest.raises(NotFound):
                memory.get("resource/ada#999")
    assert len(rebuilds) == 2, "the index was not rebuilt"


CALLS: dict[str, Callable[[Memory], object]] = {
    "crystal": lambda memory: memory.get("resource/ada#1"),
    "freeze": lambda memory: memory.pin("resource/ada#1"),
    "consolidate": lambda memory: memory.resource("ada").consolidate(),
    "upkeep": lambda memory: memory.run_upkeep(),
}


@pytest.mark.embedded
@pytest.mark.parametrize("call", CALLS)
def test_other_calls_survive_a_rebuild(home: Path, call: str) -> None:
    take_notes(home)
    with Memory.open(home, embedder=None) as memory:
        find_ferries(memory)
        drop_tables(home)
        CALLS[call](memory)
        assert find_ferries(memory) == FERRY_TEXTS


@pytest.mark.embedded
def test_an_index_that_cannot_be_rebuilt_raises(home: Path) -> None:
    take_notes(home)
    remove_all(home)
    (home / "index.db").mkdir()
    with Memory.open(home, embedder=None) as memory:
        with pytest.raises(UnsafeStorage, match=r"index\.db"):
            find_ferries(memory)
        memory.session("s").note("The ferry is late")
        (home / "index.db").rmdir()
        assert len(find_ferries(memory)) == 3


@pytest.mark.embedded
@pytest.mark.spec("J1")
def test_an_index_of_another_journal_is_rebuilt(home: Path, tmp_path: Path) -> None:
    """A home restored from a copy: the same positions hold other events."""
    take_notes(home)
    shutil.copytree(home, tmp_path / "copy", ignore=shutil.ignore_patterns("index.db*"))
    with Memory.open(home, embedder=None) as memory:
        memory.session("s").note("The ferry sinks")
        assert len(find_ferries(memory)) == 3
    for file in home.glob("inmind.db*"):
        file.unlink()
    shutil.copy(tmp_path / "copy" / "inmind.db", home / "inmind.db")
    with Memory.open(home, embedder=None) as memory:
        memory.session("s").note("The ferry floats")
        assert find_ferries(memory) == ["The ferry floats", *FERRY_TEXTS]


@pytest.mark.spec("J2")
def test_threads_find_everything_written_before(home: Home) -> None:
    with Memory.open(home, embedder=None) as memory:
        wrong: list[object] = []

        def work(name: int) -> None:
            try:
                session = memory.session(f"s{name}", resource="ada")
                for n in range(15):
                    id = session.note(f"ferry {name} trip {n}").id
                    if id not in [hit.crystal.id for hit in session.search(f"ferry {name} trip {n}", limit=200)]:
                        wrong.append(id)
            except Exception as error:
                wrong.append(error)

        threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
        assert wrong == []
        assert len(memory.search("ferry", limit=200)) == 60


@pytest.mark.spec("J2")
def test_processes_find_their_own_text_at_once_and_all_text_in_the_end(home: Home) -> None:
    """On a home without an index: one process creates it, and no process fails by a lock."""
    actors = [RunningActor(searching.note_and_search, home=str(home), name=name, number=12) for name in ("a", "b", "c")]
    run_together(actors)
    assert len(ask(searching.search, home=str(home), query="ferry", resource="ada", limit=100)) == 36


@pytest.mark.spec("J2")
def test_parent_and_child_of_a_fork_can_search(home: Home) -> None:
    result = RunningActor(searching.search_in_both, fresh=True, home=str(home)).finish()
    assert result.code == 0, result.output
    assert result.all("found") == [[["before", "by the child", "by the parent"]]]


@pytest.mark.embedded
@pytest.mark.spec("M39", "J1")
def test_a_damaged_event_hides_only_itself(home: Path) -> None:
    with Memory.open(home, embedder=None) as memory:
        session = memory.session("s", resource="ada")
        session.add([user("The ferry leaves at nine"), user("The ferry is late today"), user("The ferry is blue")])
    journal: Any = apsw.Connection(str(home / "inmind.db"))
    journal.execute("UPDATE events SET body = '{' WHERE body LIKE '%late%'")
    assert journal.changes() == 1
    journal.close()
    with Memory.open(home, embedder=None) as memory:
        assert sorted(hit.crystal.text for hit in memory.search("ferry")) == sorted(FERRY_TEXTS)
        memory.session("t", resource="ada").note("The ferry has a new captain")
        assert len(memory.search("ferry")) == 3


def test_a_full_series_continues_in_another(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inmind.search.index.record._POSITION_BITS", 2)
    with Memory.open(home, embedder=None) as memory:
        session = memory.session("s", resource="ada")
        lines = [f"The ferry has number {number}" for number in range(11)]
        session.add([user(line) for line in lines])
        for line in lines:
            session.note(f"Noted: {line}")
        hits = memory.search("ferry", limit=50)
        assert sorted(hit.crystal.text for hit in hits) == sorted([*lines, *(f"Noted: {line}" for line in lines)])
        [middle] = [hit for hit in hits if hit.crystal.text == lines[9]]
        assert (middle.before, middle.after) == (f"user: {lines[8]}", f"user: {lines[10]}")
