"""A memory in a database: no live files, so calls edit its documents and settings."""

from __future__ import annotations

from collections.abc import Callable, Generator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from builders import assistant, user
from psycopg import sql

from inmind import Memory, Origin, Session, Trust
from inmind.core.events.base import Draft, Event
from inmind.core.events.documents import SettingsWritten
from inmind.core.events.dreams import DreamCommitted, PageAdopted
from inmind.core.events.session import MessageAdded
from inmind.core.paths import DATABASE, SETTINGS_STREAM
from inmind.core.settings import Settings
from inmind.errors import Conflict, InvalidInput, InvalidPath, NotFound
from inmind.memory.backends import PostgresBackend
from inmind.memory.documents import Page
from inmind.search.index.sqlite import SqliteIndex
from inmind.store.sqlite.store import SqliteImport, SqliteStore
from inmind.testing import InMemoryStore, ManualClock

Reopen = Callable[[], Memory]


class StandIn:
    """A store without a folder or a server, which outlives the memory that uses it."""

    def __init__(self, folder: Path) -> None:
        self.store = InMemoryStore()
        self._index = folder / "index.db"

    def open(self, clock: ManualClock) -> Memory:
        self.store._closed = False  # pyright: ignore[reportPrivateUsage] -- as if it were opened again
        place = PostgresBackend(
            self.store, location="in memory", index=lambda read: SqliteIndex(self._index, self.store, read)
        )
        return Memory(place, clock=clock, embedder=None)


@pytest.fixture(params=["stand-in", "postgres"])
def reopen(
    request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> Generator[Reopen]:
    """Opens the memory, and closes the one before."""
    monkeypatch.chdir(tmp_path)
    memories: list[Memory] = []
    place = StandIn(tmp_path) if request.param == "stand-in" else str(request.getfixturevalue("tenant_url"))

    def open_again() -> Memory:
        for memory in memories:
            memory.close()
        new_memory = place.open(clock) if isinstance(place, StandIn) else Memory.open(place, clock=clock, embedder=None)
        memories.append(new_memory)
        return new_memory

    yield open_again
    for memory in memories:
        memory.close()


@pytest.fixture
def db_memory(reopen: Reopen) -> Memory:
    return reopen()


@pytest.fixture
def talk(db_memory: Memory) -> Session:
    session = db_memory.session("support-42", resource="ada", cwd="/website")
    session.prepare([user("Where is my order?"), assistant("On its way."), user("When?")])
    return session


def a_reply(model: str) -> dict[str, Any]:
    usage = {"prompt_tokens": 10, "completion_tokens": 2}
    return {"model": model, "choices": [{"index": 0, "message": assistant("Tomorrow.")}], "usage": usage}


def test_a_session_in_a_database_behaves_the_same_and_writes_no_file(
    talk: Session, db_memory: Memory, tmp_path: Path
) -> None:
    talk.write("overview.md", "# Mine\n- a fact\n")
    talk.note("Ada prefers tabs")
    talk.scratchpad.update("half way there")
    db_memory.flush()
    assert (db_memory.home, talk.overview, talk.resource) == (None, "# Mine\n- a fact\n", "ada")
    assert "Ada prefers tabs" in str(talk.prepare([user("Where is my order?")]).messages)
    assert [path.name for path in tmp_path.rglob("*") if not path.name.startswith("index.db")] == []


def test_stored_data_is_there_when_the_database_is_opened_again(talk: Session, reopen: Reopen) -> None:
    talk.write("overview.md", "# Mine\n- a fact\n")
    talk.write("detail/order.md", "W-118\n")
    reopened = reopen().session("support-42")
    assert reopened.overview.startswith("# Mine\n- a fact\n")
    assert reopened.read("detail/order.md") == "W-118\n"
    assert [entry.wire["content"] for entry in reopened.state.conversation] == [
        "Where is my order?",
        "On its way.",
        "When?",
    ]


def test_sessions_are_listed_from_the_journal(talk: Session, db_memory: Memory) -> None:
    talk.record(a_reply("some-model"))
    db_memory.session("quiet", resource="lin", cwd="/elsewhere")
    db_memory.session("anonymous")
    [info] = db_memory.sessions(resource="ada")
    assert (info.id, info.title, info.model, info.messages, info.calls) == (
        "support-42",
        "Where is my order?",
        "some-model",
        4,
        1,
    )
    assert (info.folder, info.cwd, info.resource, info.legacy) == (None, "/website", "ada", False)
    assert {one.id for one in db_memory.sessions()} == {"support-42", "quiet", "anonymous"}
    assert [one.id for one in db_memory.sessions(cwd="/elsewhere")] == ["quiet"]
    assert [one.id for one in db_memory.sessions(resource="default")] == ["anonymous"]
    assert db_memory.resources() == ["ada", "lin"]
    assert [db_memory.has_resource(name) for name in ("ada", "lin", "adda", "default", "", "a\nb")] == [
        True,
        True,
    ] + 4 * [False]
    assert "support-42" in db_memory
    assert "support-43" not in db_memory
    talk.rename("The order of Ada")
    assert db_memory.sessions(resource="ada")[0].title == "The order of Ada"
    latest = db_memory.latest(cwd="/website")
    assert latest is not None
    assert latest.id == "support-42"


def test_title_and_model_are_found_in_a_long_session(talk: Session, db_memory: Memory) -> None:
    talk.record(a_reply("old-model"))
    for turn in range(60):
        talk.add([assistant(f"answer {turn}"), user(f"question {turn}")])
        talk.observe("get_order", {"id": "W-118"}, {"order": {"id": "W-118", "name": f"{turn}"}})
    [info] = db_memory.sessions()
    assert (info.title, info.model, info.messages) == (talk.state.title, "old-model", 124)


# -- pages -------------------------------------------------------------------------------------------------


def test_an_edited_page_has_the_origin_of_an_edited_file(talk: Session, db_memory: Memory) -> None:
    page = db_memory.page("overview.md", session="support-42")
    assert (page.text, page.version > 0) == (talk.overview, True)
    edited = db_memory.edit(page, "# Mine\n")
    assert db_memory.page("overview.md", session="support-42") == edited
    assert talk.overview == "# Mine\n"
    last = talk.events()[-1]
    assert (last.origin, last.trust) == (Origin.FILE, Trust.PERSON)
    assert db_memory.edit(edited, "# Mine\n").version == edited.version


@pytest.mark.spec("J3")
def test_a_conflicting_edit_gets_both_texts_and_overwrites_nothing(talk: Session, db_memory: Memory) -> None:
    page = db_memory.page("overview.md", session="support-42")
    db_memory.edit(page, "# Theirs\n")
    with pytest.raises(Conflict) as conflict:
        db_memory.edit(page, "# Mine\n")
    assert (conflict.value.mine, conflict.value.theirs, conflict.value.code) == ("# Mine\n", "# Theirs\n", "CONFLICT")
    assert talk.overview == "# Theirs\n"


def test_a_new_page_is_created_once(db_memory: Memory) -> None:
    blank = db_memory.page("MEMORY.md", resource="ada")
    assert (blank.text, blank.version, db_memory.has_resource("ada")) == ("", 0, False)
    db_memory.edit(blank, "# Ada\n")
    assert db_memory.page("MEMORY.md", resource="ada").text == "# Ada\n"
    with pytest.raises(Conflict):
        db_memory.edit(blank, "# Another\n")
    db_memory.session("s", resource="ada")
    assert db_memory.page("MEMORY.md", session="s").resource == "ada"
    detail = db_memory.edit(db_memory.page("detail/x.md", session="s"), "x\n")
    assert db_memory.session("s").read("detail/x.md") == detail.text


def test_notes_without_a_resource_are_a_page_of_their_session(db_memory: Memory) -> None:
    db_memory.session("alone").note("likes tea")
    page = db_memory.page("memory/scratch.md", session="alone")
    assert (page.session, page.resource) == ("alone", "")
    assert "likes tea" in page.text


def test_saving_a_page_with_lines_of_a_dream_does_not_raise_their_trust(db_memory: Memory) -> None:
    db_memory.resource("ada").note("Ada lives in Berlin", importance=0.9)
    assert db_memory.dream("ada").status == "done"
    page = db_memory.page("MEMORY.md", resource="ada")
    db_memory.edit(page, f"{page.text}\n- by hand\n")
    assert db_memory.resource("ada").state.documents.by_path["MEMORY.md"].trust is Trust.AGENT


def test_the_page_before_the_first_dream_is_stored_in_its_event(db_memory: Memory) -> None:
    text = "# Ada\n\n- likes tea\n- lives in Berlin\n"
    db_memory.edit(db_memory.page("MEMORY.md", resource="ada"), text)
    db_memory.resource("ada").note("Ada has moved to Hamburg", importance=0.9)
    assert db_memory.dream("ada").status == "done"
    [seeded] = db_memory._context.store.read("resource/ada", kind=PageAdopted.kind)  # pyright: ignore[reportPrivateUsage] -- no call shows it
    assert seeded.payload == PageAdopted(
        text=text, backup="", chunks=seeded.payload.chunks if isinstance(seeded.payload, PageAdopted) else 0
    )


@pytest.mark.spec("J3")
@pytest.mark.parametrize(
    ("address", "error"),
    [
        (("overview.md", None, None), InvalidInput),
        (("overview.md", None, "ada"), InvalidInput),
        (("overview.md", "unknown", None), NotFound),
        (("MEMORY.md", "support-42", "ada"), InvalidInput),
        (("../config.toml", "support-42", None), InvalidPath),
        (("MEMORY.md", None, "default"), InvalidInput),
        (("config.toml", "support-42", None), InvalidInput),
        (("config.toml", None, "ada"), InvalidInput),
    ],
)
def test_an_invalid_page_is_refused(
    talk: Session, db_memory: Memory, address: tuple[str, str | None, str | None], error: type[Exception]
) -> None:
    path, session, resource = address
    before = talk.events()
    with pytest.raises(error):
        db_memory.page(path, session=session, resource=resource)
    assert talk.events() == before


@pytest.mark.spec("J3", "P34")
@pytest.mark.parametrize("text", ["a\x00b", "\ud800", "x" * 1_048_577])
@pytest.mark.usefixtures("talk")
def test_an_invalid_text_is_refused_and_nothing_is_written(db_memory: Memory, text: str) -> None:
    for path, session in (("overview.md", "support-42"), ("config.toml", None)):
        page = db_memory.page(path, session=session)
        with pytest.raises(InvalidInput):
            db_memory.edit(page, text)
        assert db_memory.page(path, session=session) == page
    with pytest.raises(InvalidInput, match="page: expected a Page"):
        db_memory.edit("overview.md", "x")  # pyright: ignore[reportArgumentType] -- hosts are not all typed


# -- settings ----------------------------------------------------------------------------------------------


def test_settings_are_a_document_shared_by_all_processes(db_memory: Memory, reopen: Reopen) -> None:
    assert db_memory.settings == Settings()
    first = db_memory.edit(db_memory.page("config.toml"), "[dream]\nenabled = false\n")
    with pytest.raises(Conflict) as conflict:
        db_memory.edit(Page(path="config.toml", text="", version=0), "[dream]\nenabled = true\n")
    assert conflict.value.theirs == first.text
    second = db_memory.edit(first, "[dream]\nenabled = false\nmin_crystals = 9\n")
    assert (second.version > first.version, db_memory.page("config.toml")) == (True, second)
    if isinstance(place := db_memory._context.backend.store, InMemoryStore):  # pyright: ignore[reportPrivateUsage] -- stand-in or server
        assert place.version("settings") == 2
        return
    assert (reopen().settings.dream.enabled, reopen().settings.dream.min_crystals) == (False, 9)


@pytest.mark.embedded
@pytest.mark.spec("J3")
@pytest.mark.parametrize("text", ["dream = [", "[dream]\nenabeld = true\n", '[dream]\nenabled = "no"\n'])
def test_unknown_settings_are_refused_as_in_a_file(db_memory: Memory, home: Path, text: str) -> None:
    with pytest.raises(InvalidInput) as database_error:
        db_memory.edit(db_memory.page("config.toml"), text)
    home.mkdir()
    (home / "config.toml").write_text(text)
    with pytest.raises(InvalidInput) as file_error:
        Memory.open(home)
    assert str(database_error.value) == str(file_error.value)
    assert db_memory.page("config.toml").version == 0


def test_settings_are_not_a_session_resource_or_crystal(db_memory: Memory) -> None:
    db_memory.edit(db_memory.page("config.toml"), "[dream]\nenabled = false # teapot\n")
    assert (db_memory.sessions(), db_memory.resources()) == ([], [])
    assert db_memory.search("teapot") == []


@pytest.mark.spec("M40")
def test_read_positions_of_dreams_are_exported_with_all_events(db_memory: Memory, tmp_path: Path) -> None:
    """Two resources were active in turns; a database returns their events one after the other."""
    names = ("ada", "ben", "eve")
    for word in ("first", "second"):
        for name in names:
            db_memory.session(f"of {name}", resource=name).add([user(f"The {word} tide is at nine")])
            db_memory.resource(name).note(f"{name} waits for the {word} tide")
        for name in names:
            assert db_memory.dream(name).status == "done"
            db_memory.session(f"of {name}").add([user(f"After the {word}")])
    exported = db_memory.export(tmp_path / "all.inmind")
    with Memory.open(tmp_path / "elsewhere", embedder=None) as there:
        assert there.import_bundle(exported.path).events == exported.events
    store = SqliteStore(tmp_path / "elsewhere" / DATABASE)
    for name in names:
        dreams = [
            event.payload for event in store.read(f"resource/{name}") if isinstance(event.payload, DreamCommitted)
        ]
        news = [
            [event.payload.wire["content"] for _, event in batch if event and isinstance(event.payload, MessageAdded)]
            for committed in dreams
            for batch in [
                store.events_since(committed.journal_position, kinds=[MessageAdded.kind], limit=99, owner=name)
            ]
        ]
        later = ["The second tide is at nine", "After the second"]
        assert news == [["After the first", *later], ["After the second"]]
    store.close()


# -- the settings of a bundle -------------------------------------------------------------------------------


@pytest.fixture
def with_settings(tmp_path: Path) -> Path:
    """The bundle of a home with settings."""
    with Memory.open(tmp_path / "there", embedder=None) as memory:
        memory.session("shop", resource="ada", cwd="/w").add([user("Is the boat ready?")])
        (tmp_path / "there" / "config.toml").write_text(BUNDLE_SETTINGS)
        return memory.export(tmp_path / "there.inmind").path


BUNDLE_SETTINGS = "[dream]\nenabled = false\n"


def test_the_settings_of_a_bundle_are_stored_in_the_same_transaction(with_settings: Path, tenant_url: str) -> None:
    """Both are stored, or neither."""
    with Memory.open(tenant_url, embedder=None) as memory:
        assert memory.import_bundle(with_settings).extra_files == ("config.toml.imported",)
        assert (memory.page("config.toml.imported").text, memory.page("config.toml").text) == (BUNDLE_SETTINGS, "")
        assert memory.import_bundle(with_settings).extra_files == ()
    with psycopg.connect(tenant_url) as connection:
        events = sql.SQL("SELECT count(*), count(DISTINCT xmin::text) FROM {}.events")
        row = connection.execute(events.format(sql.Identifier(connection.info.user))).fetchone()
    assert row is not None
    assert (row[0] > 2, row[1]) == (True, 1)


class ChangingSettingsStore(InMemoryStore):
    """A store whose settings change whenever their version is read."""

    def version(self, stream: str) -> int:
        current = super().version(stream)
        if stream == SETTINGS_STREAM:
            payload = SettingsWritten(path="config.toml", text=f"# {current}\n")
            written = Event(
                stream=stream,
                seq=current + 1,
                at=datetime(2026, 1, 1, tzinfo=UTC),
                payload=payload,
                origin=Origin.OPERATOR,
                trust=Draft(payload=payload, origin=Origin.OPERATOR).effective_trust,
            )
            SqliteImport(self._connection).add_event(written)  # also inside of an import
        return current


def test_an_import_succeeds_if_settings_change_meanwhile(with_settings: Path, tmp_path: Path) -> None:
    store = ChangingSettingsStore()
    place = PostgresBackend(
        store, location="in memory", index=lambda read: SqliteIndex(tmp_path / "index.db", store, read)
    )
    with Memory(place, embedder=None) as memory:
        assert memory.import_bundle(with_settings).extra_files == ("config.toml.imported",)
        assert (memory.page("config.toml.imported").text, memory.page("config.toml").text) == (BUNDLE_SETTINGS, "# 0\n")
        assert "shop" in memory
