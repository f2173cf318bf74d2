"""A memory in a database: the same sessions, no live files; documents and settings are edited by calls."""

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
from inmind.core.events.base import Draft
from inmind.core.events.documents import SettingsWritten
from inmind.core.events.dreams import DreamCommitted, PageAdopted
from inmind.core.events.session import MessageAdded
from inmind.core.paths import DATABASE
from inmind.core.settings import Settings
from inmind.core.stream_names import SETTINGS_STREAM
from inmind.errors import Conflict, InvalidInput, InvalidPath, NotFound
from inmind.memory.documents import Page
from inmind.memory.postgres_backend import PostgresBackend
from inmind.search.index.sqlite import SqliteIndex
from inmind.store.in_memory import InMemoryStore
from inmind.store.sqlite.store import SqliteStore
from inmind.testing import ManualClock

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
    opened: list[Memory] = []
    place = StandIn(tmp_path) if request.param == "stand-in" else str(request.getfixturevalue("tenant_url"))

    def again() -> Memory:
        for memory in opened:
            memory.close()
        made = place.open(clock) if isinstance(place, StandIn) else Memory.open(place, clock=clock, embedder=None)
        opened.append(made)
        return made

    yield again
    for memory in opened:
        memory.close()


@pytest.fixture
def nowhere(reopen: Reopen) -> Memory:
    return reopen()


@pytest.fixture
def talk(nowhere: Memory) -> Session:
    session = nowhere.session("support-42", resource="ada", cwd="/website")
    session.prepare([user("Where is my order?"), assistant("On its way."), user("When?")])
    return session


def a_reply(model: str) -> dict[str, Any]:
    usage = {"prompt_tokens": 10, "completion_tokens": 2}
    return {"model": model, "choices": [{"index": 0, "message": assistant("Tomorrow.")}], "usage": usage}


def test_a_session_in_a_database_behaves_the_same_and_writes_no_file(
    talk: Session, nowhere: Memory, tmp_path: Path
) -> None:
    talk.write("overview.md", "# Mine\n- a fact\n")
    talk.note("Ada prefers tabs")
    talk.scratchpad.update("half way there")
    nowhere.flush()
    assert (nowhere.home, talk.overview, talk.resource) == (None, "# Mine\n- a fact\n", "ada")
    assert "Ada prefers tabs" in str(talk.prepare([user("Where is my order?")]).messages)
    assert [path.name for path in tmp_path.rglob("*") if not path.name.startswith("index.db")] == []


def test_stored_data_is_there_when_the_database_is_opened_again(talk: Session, reopen: Reopen) -> None:
    talk.write("overview.md", "# Mine\n- a fact\n")
    talk.write("detail/order.md", "W-118\n")
    again = reopen().session("support-42")
    assert again.overview.startswith("# Mine\n- a fact\n")
    assert again.read("detail/order.md") == "W-118\n"
    assert [entry.wire["content"] for entry in again.state.conversation] == [
        "Where is my order?",
        "On its way.",
        "When?",
    ]


def test_sessions_are_listed_from_the_journal(talk: Session, nowhere: Memory) -> None:
    talk.record(a_reply("some-model"))
    nowhere.session("quiet", resource="lin", cwd="/elsewhere")
    nowhere.session("stranger")
    [info] = nowhere.sessions(resource="ada")
    assert (info.id, info.title, info.model, info.messages, info.calls) == (
        "support-42",
        "Where is my order?",
        "some-model",
        4,
        1,
    )
    assert (info.folder, info.cwd, info.resource, info.legacy) == (None, "/website", "ada", False)
    assert {one.id for one in nowhere.sessions()} == {"support-42", "quiet", "stranger"}
    assert [one.id for one in nowhere.sessions(cwd="/elsewhere")] == ["quiet"]
    assert [one.id for one in nowhere.sessions(resource="default")] == ["stranger"]
    assert nowhere.resources() == ["ada", "lin"]
    assert [nowhere.has_resource(name) for name in ("ada", "lin", "adda", "default", "", "a\nb")] == [
        True,
        True,
    ] + 4 * [False]
    assert "support-42" in nowhere
    assert "support-43" not in nowhere
    talk.rename("The order of Ada")
    assert nowhere.sessions(resource="ada")[0].title == "The order of Ada"
    latest = nowhere.latest(cwd="/website")
    assert latest is not None
    assert latest.id == "support-42"


def test_title_and_model_are_found_in_a_long_session(talk: Session, nowhere: Memory) -> None:
    talk.record(a_reply("old-model"))
    for turn in range(60):
        talk.add([assistant(f"answer {turn}"), user(f"question {turn}")])
        talk.observe("get_order", {"id": "W-118"}, {"order": {"id": "W-118", "name": f"{turn}"}})
    [info] = nowhere.sessions()
    assert (info.title, info.model, info.messages) == (talk.state.title, "old-model", 124)


# -- pages -------------------------------------------------------------------------------------------------


def test_an_edited_page_has_the_origin_of_an_edited_file(talk: Session, nowhere: Memory) -> None:
    page = nowhere.page("overview.md", session="support-42")
    assert (page.text, page.version > 0) == (talk.overview, True)
    edited = nowhere.edit(page, "# Mine\n")
    assert nowhere.page("overview.md", session="support-42") == edited
    assert talk.overview == "# Mine\n"
    last = talk.events()[-1]
    assert (last.origin, last.trust) == (Origin.FILE, Trust.PERSON)
    assert nowhere.edit(edited, "# Mine\n").version == edited.version


@pytest.mark.spec("J3")
def test_a_conflicting_edit_gets_both_texts_and_overwrites_nothing(talk: Session, nowhere: Memory) -> None:
    page = nowhere.page("overview.md", session="support-42")
    nowhere.edit(page, "# Theirs\n")
    with pytest.raises(Conflict) as told:
        nowhere.edit(page, "# Mine\n")
    assert (told.value.mine, told.value.theirs, told.value.code) == ("# Mine\n", "# Theirs\n", "CONFLICT")
    assert talk.overview == "# Theirs\n"


def test_a_new_page_is_created_once(nowhere: Memory) -> None:
    blank = nowhere.page("MEMORY.md", resource="ada")
    assert (blank.text, blank.version, nowhere.has_resource("ada")) == ("", 0, False)
    nowhere.edit(blank, "# Ada\n")
    assert nowhere.page("MEMORY.md", resource="ada").text == "# Ada\n"
    with pytest.raises(Conflict):
        nowhere.edit(blank, "# Another\n")
    nowhere.session("s", resource="ada")
    assert nowhere.page("MEMORY.md", session="s").resource == "ada"
    detail = nowhere.edit(nowhere.page("detail/x.md", session="s"), "x\n")
    assert nowhere.session("s").read("detail/x.md") == detail.text


def test_notes_without_a_resource_are_a_page_of_their_session(nowhere: Memory) -> None:
    nowhere.session("alone").note("likes tea")
    page = nowhere.page("memory/scratch.md", session="alone")
    assert (page.session, page.resource) == ("alone", "")
    assert "likes tea" in page.text


def test_saving_a_page_with_lines_of_a_dream_does_not_raise_their_trust(nowhere: Memory) -> None:
    nowhere.resource("ada").note("Ada lives in Berlin", importance=0.9)
    assert nowhere.dream("ada").status == "done"
    page = nowhere.page("MEMORY.md", resource="ada")
    nowhere.edit(page, f"{page.text}\n- by hand\n")
    assert nowhere.resource("ada").state.documents.by_path["MEMORY.md"].trust is Trust.AGENT


def test_the_page_before_the_first_dream_is_stored_in_its_event(nowhere: Memory) -> None:
    text = "# Ada\n\n- likes tea\n- lives in Berlin\n"
    nowhere.edit(nowhere.page("MEMORY.md", resource="ada"), text)
    nowhere.resource("ada").note("Ada has moved to Hamburg", importance=0.9)
    assert nowhere.dream("ada").status == "done"
    [seeded] = nowhere._context.store.read("resource/ada", kind=PageAdopted.kind)  # pyright: ignore[reportPrivateUsage] -- no call shows it
    assert seeded.payload == PageAdopted(
        text=text, backup="", chunks=seeded.payload.chunks if isinstance(seeded.payload, PageAdopted) else 0
    )


@pytest.mark.spec("J3")
@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (("overview.md", None, None), InvalidInput),
        (("overview.md", None, "ada"), InvalidInput),
        (("overview.md", "nobody-here", None), NotFound),
        (("MEMORY.md", "support-42", "ada"), InvalidInput),
        (("../config.toml", "support-42", None), InvalidPath),
        (("MEMORY.md", None, "default"), InvalidInput),
        (("config.toml", "support-42", None), InvalidInput),
        (("config.toml", None, "ada"), InvalidInput),
    ],
)
def test_an_invalid_page_is_refused(
    talk: Session, nowhere: Memory, asked: tuple[str, str | None, str | None], error: type[Exception]
) -> None:
    path, session, resource = asked
    before = talk.events()
    with pytest.raises(error):
        nowhere.page(path, session=session, resource=resource)
    assert talk.events() == before


@pytest.mark.spec("J3", "P34")
@pytest.mark.parametrize("text", ["a\x00b", "\ud800", "x" * 1_048_577])
@pytest.mark.usefixtures("talk")
def test_an_invalid_text_is_refused_and_nothing_is_written(nowhere: Memory, text: str) -> None:
    for path, session in (("overview.md", "support-42"), ("config.toml", None)):
        page = nowhere.page(path, session=session)
        with pytest.raises(InvalidInput):
            nowhere.edit(page, text)
        assert nowhere.page(path, session=session) == page
    with pytest.raises(InvalidInput, match="page: expected a Page"):
        nowhere.edit("overview.md", "x")  # pyright: ignore[reportArgumentType] -- hosts are not all typed


# -- settings ----------------------------------------------------------------------------------------------


def test_settings_are_a_document_shared_by_all_processes(nowhere: Memory, reopen: Reopen) -> None:
    assert nowhere.settings == Settings()
    first = nowhere.edit(nowhere.page("config.toml"), "[dream]\nenabled = false\n")
    with pytest.raises(Conflict) as told:
        nowhere.edit(Page(path="config.toml", text="", version=0), "[dream]\nenabled = true\n")
    assert told.value.theirs == first.text
    second = nowhere.edit(first, "[dream]\nenabled = false\nmin_crystals = 9\n")
    assert (second.version > first.version, nowhere.page("config.toml")) == (True, second)
    if isinstance(place := nowhere._context.backend.store, InMemoryStore):  # pyright: ignore[reportPrivateUsage] -- which of the two
        assert place.version("settings") == 2
        return
    assert (reopen().settings.dream.enabled, reopen().settings.dream.min_crystals) == (False, 9)


@pytest.mark.embedded
@pytest.mark.spec("J3")
@pytest.mark.parametrize("text", ["dream = [", "[dream]\nenabeld = true\n", '[dream]\nenabled = "no"\n'])
def test_unknown_settings_are_refused_as_in_a_file(nowhere: Memory, home: Path, text: str) -> None:
    with pytest.raises(InvalidInput) as told:
        nowhere.edit(nowhere.page("config.toml"), text)
    home.mkdir()
    (home / "config.toml").write_text(text)
    with pytest.raises(InvalidInput) as said:
        Memory.open(home)
    assert str(told.value) == str(said.value)
    assert nowhere.page("config.toml").version == 0


def test_settings_are_not_a_session_resource_or_crystal(nowhere: Memory) -> None:
    nowhere.edit(nowhere.page("config.toml"), "[dream]\nenabled = false # teapot\n")
    assert (nowhere.sessions(), nowhere.resources()) == ([], [])
    assert nowhere.search("teapot") == []


@pytest.mark.spec("M40")
def test_read_positions_of_dreams_are_exported_with_all_events(nowhere: Memory, tmp_path: Path) -> None:
    """Two resources were active in turns; a database returns their events one after the other."""
    names = ("ada", "ben", "eve")
    for word in ("first", "second"):
        for name in names:
            nowhere.session(f"of {name}", resource=name).add([user(f"The {word} tide is at nine")])
            nowhere.resource(name).note(f"{name} waits for the {word} tide")
        for name in names:
            assert nowhere.dream(name).status == "done"
            nowhere.session(f"of {name}").add([user(f"Behind the {word}")])
    exported = nowhere.export(tmp_path / "all.inmind")
    with Memory.open(tmp_path / "elsewhere", embedder=None) as there:
        assert there.import_bundle(exported.path).events == exported.events
    store = SqliteStore(tmp_path / "elsewhere" / DATABASE)
    for name in names:
        dreamt = [
            event.payload for event in store.read(f"resource/{name}") if isinstance(event.payload, DreamCommitted)
        ]
        news = [
            [event.payload.wire["content"] for _, event in found if event and isinstance(event.payload, MessageAdded)]
            for what in dreamt
            for found in [store.events_since(what.journal_position, kinds=[MessageAdded.kind], limit=99, owner=name)]
        ]
        later = ["The second tide is at nine", "Behind the second"]
        assert news == [["Behind the first", *later], ["Behind the second"]]
    store.close()


# -- the settings of a bundle -------------------------------------------------------------------------------


@pytest.fixture
def with_settings(tmp_path: Path) -> Path:
    """The bundle of a home with settings."""
    with Memory.open(tmp_path / "there", embedder=None) as memory:
        memory.session("shop", resource="ada", cwd="/w").add([user("Is the boat ready?")])
        (tmp_path / "there" / "config.toml").write_text(THEIRS)
        return memory.export(tmp_path / "there.inmind").path


THEIRS = "[dream]\nenabled = false\n"


def test_the_settings_of_a_bundle_are_stored_in_the_same_transaction(with_settings: Path, tenant_url: str) -> None:
    """Both are stored, or neither."""
    with Memory.open(tenant_url, embedder=None) as memory:
        assert memory.import_bundle(with_settings).extra_files == ("config.toml.imported",)
        assert (memory.page("config.toml.imported").text, memory.page("config.toml").text) == (THEIRS, "")
        assert memory.import_bundle(with_settings).extra_files == ()
    with psycopg.connect(tenant_url) as connection:
        events = sql.SQL("SELECT count(*), count(DISTINCT xmin::text) FROM {}.events")
        found = connection.execute(events.format(sql.Identifier(connection.info.user))).fetchone()
    assert found is not None
    assert (found[0] > 2, found[1]) == (True, 1)


class Configuring(InMemoryStore):
    """A store whose settings change whenever their version is read."""

    def version(self, stream: str) -> int:
        asked = super().version(stream)
        if stream == SETTINGS_STREAM:
            draft = Draft(payload=SettingsWritten(path="config.toml", text=f"# {asked}\n"), origin=Origin.OPERATOR)
            self.append(stream, [draft], expected=asked, at=datetime(2026, 1, 1, tzinfo=UTC))
        return asked


def test_an_import_succeeds_if_settings_change_meanwhile(with_settings: Path, tmp_path: Path) -> None:
    store = Configuring()
    place = PostgresBackend(
        store, location="in memory", index=lambda read: SqliteIndex(tmp_path / "index.db", store, read)
    )
    with Memory(place, embedder=None) as memory:
        assert memory.import_bundle(with_settings).extra_files == ("config.toml.imported",)
        assert (memory.page("config.toml.imported").text, memory.page("config.toml").text) == (THEIRS, "# 0\n")
        assert "shop" in memory
