"""Folders of sessions: listing, finding and resuming."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from builders import assistant, turns, user

from inmind import Memory, Session
from inmind.core.events.session import SessionTitled
from inmind.errors import Closed, InvalidInput
from inmind.memory.backends import FolderBackend
from inmind.store.protocol import StreamSummary
from inmind.testing import InMemoryStore, ManualClock

pytestmark = [pytest.mark.spec("E1"), pytest.mark.embedded]


def meta_of(session: Session, home: Path) -> Path:
    (file,) = home.glob(f"sessions/*/{session.id}/meta.json")
    return file


def read_meta(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text())


def numbers(memory: Memory) -> dict[str, tuple[int, int]]:
    return {info.id: (info.messages, info.calls) for info in memory.sessions()}


# -- meta.json ---------------------------------------------------------------------------------------------


def test_meta_json_describes_the_session(home: Path, clock: ManualClock) -> None:
    created = clock.now.isoformat()
    with Memory.open(home, clock=clock) as memory:
        session = memory.session("support-42", resource="ada", cwd="/website", language="zh")
        clock.advance(seconds=60)
        session.prepare([user("Create a page\nabout us"), assistant("Done"), user("Add a hero")])
        first_call = clock.now.isoformat()
        clock.advance(seconds=60)
        session.prepare([user("Create a page\nabout us"), assistant("Done"), user("No hero")])
        session.write("archive/old.md", "talk\n")
        file, now, version = meta_of(session, home), clock.now.isoformat(), session.state.seq
    assert first_call != now
    assert read_meta(file) == {
        "id": "support-42",
        "title": "Create a page about us",
        "model": "",
        "resource": "ada",
        "cwd": "/website",
        "language": "zh",
        "parent": None,
        "imported": None,
        "messages": 4,
        "messages_in_history": 3,
        "calls": 2,
        "compactions": 0,
        "archives": 1,
        "created": created,
        "updated": now,
        "asked": now,
        "version": version,
    }


def test_meta_json_of_a_child_names_its_parent(session: Session, home: Path) -> None:
    assert read_meta(meta_of(session.spawn("helper"), home))["parent"] == "support-42"


def test_the_title_is_written_after_the_first_message(session: Session, home: Path) -> None:
    assert read_meta(meta_of(session, home))["title"] == ""
    session.prepare([user("Create a page")])
    assert read_meta(meta_of(session, home))["title"] == "Create a page"


def test_a_stale_meta_file_is_corrected_in_lists_and_by_the_next_opening(home: Path) -> None:
    killed = Memory.open(home)
    session = killed.session("s", cwd="/w")
    session.prepare(turns(2))
    session.prepare([*turns(2), assistant("so"), user("more")])
    assert read_meta(meta_of(session, home))["messages"] == 5
    with Memory.open(home) as memory:
        assert numbers(memory) == {"s": (7, 2)}
        memory.session("s")
        assert (read_meta(meta_of(session, home))["messages"], read_meta(meta_of(session, home))["calls"]) == (7, 2)
    killed.close()


def test_an_edited_title_is_used_and_other_edits_are_overwritten(home: Path) -> None:
    with Memory.open(home) as memory:
        session = memory.session("s", resource="ada")
        session.prepare([user("Create a page")])
        file = meta_of(session, home)
    before = read_meta(file)
    edited = {**before, "title": "About us", "resource": "eve", "calls": 99, "mine": True}
    file.write_text(json.dumps(edited))
    with Memory.open(home) as memory:
        (info,) = memory.sessions(resource="ada")
        assert info.title == "About us"
        assert memory.sessions(resource="eve") == []
        assert memory.session("s").state.title == "About us"
        assert [event.payload for event in memory.session("s").events() if event.kind == SessionTitled.kind] == [
            SessionTitled("About us")
        ]
    assert read_meta(file) == {
        **before,
        "title": "About us",
        "version": before["version"] + 1,
        "updated": check_updated(file),
    }


def check_updated(file: Path) -> str:
    updated = read_meta(file)["updated"]
    assert datetime.fromisoformat(updated).tzinfo is not None
    return updated


def empty_file(file: Path) -> None:
    file.write_bytes(b"")


def garble_file(file: Path) -> None:
    file.write_bytes(b'{"title": "\xff')


def write_list(file: Path) -> None:
    file.write_text("[1]")


def nest_deeply(file: Path) -> None:
    file.write_text("[" * 100_000)


def write_other_types(file: Path) -> None:
    file.write_text('{"title": 7, "model": [], "version": "1", "messages": true, "calls": -4, "updated": null}')


def remove_file(file: Path) -> None:
    file.unlink()


def replace_by_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def replace_by_link(file: Path) -> None:
    file.unlink()
    other = file.with_name("elsewhere.json")
    other.write_text('{"title": "not ours", "version": 2}')
    file.symlink_to(other)


DAMAGE = [
    empty_file,
    garble_file,
    write_list,
    nest_deeply,
    write_other_types,
    remove_file,
    replace_by_folder,
    replace_by_link,
]


@pytest.mark.spec("C05")
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_meta_file_is_never_fatal(home: Path, damage: Callable[[Path], None]) -> None:
    with Memory.open(home) as memory:
        session = memory.session("s")
        session.prepare([user("Create a page")])
        file = meta_of(session, home)
    before = file.read_bytes()
    damage(file)
    with Memory.open(home) as memory:
        assert numbers(memory) == {"s": (1, 1)}
        assert [info.title for info in memory.sessions()] == ["Create a page"]
        assert memory.session("s").state.title == "Create a page"
    if damage not in (replace_by_folder, replace_by_link):  # the replaced file is not removed
        assert file.read_bytes() == before


def test_a_title_that_cannot_be_stored_does_not_prevent_opening(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Memory.open(home) as memory:
        session = memory.session("s")
        session.prepare([user("Create a page")])
        file = meta_of(session, home)
    file.write_text(json.dumps({**read_meta(file), "title": "About us"}))
    monkeypatch.setattr(
        "inmind.store.sqlite.connection.MIGRATIONS", ("0001_journal",)
    )  # the home was written by a newer version: read-only
    with Memory.open(home) as memory:
        assert memory.session("s").state.title == "Create a page"
    assert "the title in" in caplog.text


# -- listing and resuming ----------------------------------------------------------------------------------


@pytest.fixture
def three_sessions(memory: Memory, clock: ManualClock) -> Memory:
    """Sessions of two resources in two folders, used one after the other."""
    for id, resource, cwd in (("one", "ada", "/a"), ("two", "bob", "/a"), ("three", "ada", "/b-c")):
        clock.advance(seconds=0.001)
        memory.session(id, resource=resource, cwd=cwd).add([user(f"begin {id}")])
    return memory


def test_sessions_are_listed_with_titles_most_recent_first(three_sessions: Memory) -> None:
    assert [(info.id, info.title) for info in three_sessions.sessions()] == [
        ("three", "begin three"),
        ("two", "begin two"),
        ("one", "begin one"),
    ]


def test_sessions_of_a_folder_or_of_a_resource_are_found(three_sessions: Memory) -> None:
    assert [info.id for info in three_sessions.sessions(cwd="/a")] == ["two", "one"]
    assert [info.id for info in three_sessions.sessions(cwd=Path("/a/"))] == ["two", "one"]
    assert [info.id for info in three_sessions.sessions(resource="ada")] == ["three", "one"]
    assert [info.id for info in three_sessions.sessions(cwd="/a", resource="ada")] == ["one"]
    assert three_sessions.sessions(cwd="/b/c") == []  # its folder has the same name as that of /b-c
    assert three_sessions.sessions(resource="eve") == []


def test_the_last_session_of_a_folder_is_resumed(three_sessions: Memory, clock: ManualClock) -> None:
    assert (latest := three_sessions.latest(cwd="/a")) is not None
    assert latest.id == "two"
    clock.advance(seconds=0.001)
    three_sessions.session("one").add([assistant("done")])
    assert (latest := three_sessions.latest(cwd="/a")) is not None
    assert latest.id == "one"
    assert (latest := three_sessions.latest(cwd="/a", resource="bob")) is not None
    assert latest.id == "two"
    assert three_sessions.latest(cwd="/nowhere") is None


def test_without_a_name_the_folder_is_the_current_one(
    three_sessions: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert three_sessions.latest() is None
    three_sessions.session("here")
    assert (latest := three_sessions.latest()) is not None
    assert (latest.id, [info.id for info in three_sessions.sessions(cwd=".")]) == ("here", ["here"])


def test_the_latest_session_is_never_a_child_session(three_sessions: Memory, clock: ManualClock) -> None:
    clock.advance(seconds=1)
    three_sessions.session("two").spawn("helper").add([user("look it up")])
    assert three_sessions.sessions(cwd="/a")[0].id == "helper"
    assert (latest := three_sessions.latest(cwd="/a")) is not None
    assert latest.id == "two"


def test_checking_for_a_session_does_not_create_it(three_sessions: Memory, home: Path) -> None:
    (home / "sessions" / "--w--").mkdir()
    (home / "sessions" / "--w--" / "old.jsonl").write_text(json.dumps(user("hello")))
    assert [id in three_sessions for id in ("one", "old", "four", "", "\ud800", "a\x00b", 7)] == [
        True,
        True,
        *[False] * 5,
    ]
    assert len(three_sessions.sessions()) == 4


class NoCountingStore(InMemoryStore):
    """A store that refuses to count a whole stream."""

    counting = True

    def summary(self, stream: str) -> StreamSummary:
        assert self.counting
        return super().summary(stream)


def test_listing_does_not_read_journals_of_up_to_date_folders(home: Path) -> None:
    store = NoCountingStore()
    memory = Memory(FolderBackend(home, store))
    for n in range(20):
        session = memory.session(f"s{n}")
        session.prepare(turns(3))
        session.close()
    store.counting = False
    assert set(numbers(memory).values()) == {(7, 1)}


@pytest.mark.spec("J3")
@pytest.mark.parametrize(
    ("filters", "field"),
    [
        ({"cwd": 7}, "cwd"),
        ({"cwd": "a\x00b"}, "cwd"),
        ({"cwd": "\ud800"}, "cwd"),
        ({"resource": ""}, "resource"),
        ({"resource": " ada"}, "resource"),
        ({"resource": 7}, "resource"),
    ],
)
def test_an_invalid_folder_or_resource_is_rejected(three_sessions: Memory, filters: Any, field: str) -> None:
    for call in (three_sessions.sessions, three_sessions.latest):
        with pytest.raises(InvalidInput) as error:
            call(**filters)
        assert error.value.field == field


def test_a_closed_memory_lists_nothing(home: Path) -> None:
    memory = Memory.open(home)
    memory.close()
    calls: list[Callable[[], object]] = [memory.sessions, memory.latest, lambda: "s" in memory]
    for call in calls:
        with pytest.raises(Closed):
            call()


# -- legacy sessions ---------------------------------------------------------------------------------------


def write_legacy(home: Path, *lines: Any, name: str = "old", meta: Any = None, folder: str = "--website--") -> Path:
    file = home / "sessions" / folder / f"{name}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    if meta is not None:
        file.with_name(f"{name}.meta.json").write_text(json.dumps(meta))
    return file


META = {
    "id": "old",
    "name": "website",
    "title": "The About page",
    "model": "glm-4.6",
    "cwd": "/website",
    "createdAt": "2025-01-15T10:30:00.123456789+08:00",
}


def test_a_legacy_session_is_listed_with_its_metadata(home: Path) -> None:
    write_legacy(home, user("Create a page"), meta=META)
    with Memory.open(home) as memory:
        (info,) = memory.sessions()
    assert (info.title, info.model, info.cwd, info.legacy) == ("The About page", "glm-4.6", "/website", True)
    assert datetime.fromisoformat(info.created) == datetime(2025, 1, 15, 2, 30, 0, 123456, UTC)


def test_opening_a_legacy_session_keeps_its_metadata(home: Path) -> None:
    file = write_legacy(home, user("Create a page"), assistant("Done"), meta=META)
    with Memory.open(home) as memory:
        (before,) = memory.sessions()
        session = memory.session("old")
        assert (session.state.title, session.state.model) == ("The About page", "glm-4.6")
        (info,) = memory.sessions()
        assert (info.title, info.model, info.created) == (before.title, before.model, before.created)
        assert (info.messages, info.legacy) == (2, False)
        assert home / read_meta(meta_of(session, home))["imported"] == file


def test_a_legacy_session_without_a_title_gets_its_first_words(home: Path) -> None:
    write_legacy(home, user("Create a page"))
    with Memory.open(home) as memory:
        assert memory.session("old").state.title == "Create a page"


def test_the_meta_file_of_a_legacy_session_counts_until_it_is_opened(
    home: Path,
) -> None:
    file = write_legacy(
        home, {"type": "session_info", "title": "of a line"}, user("Create a page"), meta={"title": "of the meta file"}
    )
    with Memory.open(home) as memory:
        assert [info.title for info in memory.sessions()] == ["of the meta file"]
        memory.session("old").rename("renamed")
        file.with_name("old.meta.json").write_text(json.dumps({"title": "too late"}))
        assert [info.title for info in memory.sessions()] == ["renamed"]
    with Memory.open(home) as memory:
        assert memory.session("old").state.title == "renamed"


def test_a_session_has_one_title_in_its_journal_its_folder_and_in_lists(home: Path) -> None:
    with Memory.open(home) as memory:
        session = memory.session("s")
        session.prepare([user("Create a page")])
        file = meta_of(session, home)
        file.write_text(json.dumps({**read_meta(file), "title": "by hand"}))
        assert [info.title for info in memory.sessions()] == ["by hand"]
        session.rename("by name")
        assert [session.state.title, read_meta(file)["title"], memory.sessions()[0].title] == ["by name"] * 3
    with Memory.open(home) as memory:
        assert memory.session("s").state.title == "by name"


def test_info_lines_of_a_legacy_session_are_not_messages(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    header = {"type": "session", "id": "old", "timestamp": "2025-01-15T10:30:00Z", "cwd": "/website"}
    info_line = {"type": "session_info", "id": "e1", "timestamp": "2025-02-01T00:00:00Z", "title": "The About page"}
    message_line = {"type": "message", "id": "e2", "message": user("Create a page")}
    write_legacy(home, header, info_line, message_line)
    with Memory.open(home) as memory:
        (info,) = memory.sessions()
        assert (info.cwd, info.title, info.messages) == ("/website", "The About page", 1)
        assert info.created == "2025-01-15T10:30:00+00:00"
    assert caplog.text == ""


@pytest.mark.parametrize("created", ["", "soon", 7, None, "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_an_invalid_time_is_replaced_by_the_file_time(home: Path, created: Any) -> None:
    file = write_legacy(home, user("Create a page"), meta={"createdAt": created})
    with Memory.open(home) as memory:
        (info,) = memory.sessions()
    assert datetime.fromisoformat(info.created).timestamp() == pytest.approx(file.stat().st_mtime, abs=0.001)


def test_of_two_legacy_sessions_with_one_id_the_one_of_the_folder_is_opened(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_legacy(home, user("in a"), folder="--a--")
    legacy_file = write_legacy(home, user("in b"), folder="--b--", meta={"cwd": "/b"})
    before = legacy_file.read_bytes()
    for cwd, text, other in (("/b", "in b", "--a--"), ("/a", "in a", "--b--"), ("/c", "in a", "--b--")):
        with Memory(FolderBackend(home, InMemoryStore())) as memory:
            assert len(memory.sessions()) == 2
            assert [wire["content"] for wire in memory.session("old", cwd=cwd).state.conversation.wires] == [text]
        (record,) = caplog.records
        assert record.getMessage().startswith(
            f"sessions/{other}/old.jsonl was not imported: another session has this id"
        )
        caplog.clear()
    assert legacy_file.read_bytes() == before


def test_legacy_sessions_in_linked_folders_are_not_read(home: Path, tmp_path: Path) -> None:
    write_legacy(tmp_path / "outside", user("not yours to read"))
    (home / "sessions").mkdir(parents=True)
    (home / "sessions" / "--website--").symlink_to(tmp_path / "outside" / "sessions" / "--website--")
    with Memory.open(home) as memory:
        assert (memory.sessions(), "old" in memory) == ([], False)


def test_legacy_sessions_are_found_by_their_cwd_or_their_folder(home: Path) -> None:
    write_legacy(home, user("a"), name="by-cwd", meta={"cwd": "/web/site"}, folder="--elsewhere--")
    write_legacy(home, user("b"), name="by-folder", folder="--web-site--")
    write_legacy(home, user("c"), name="other", meta={"cwd": "/web-site"}, folder="--web-site--")
    with Memory.open(home) as memory:
        assert {info.id for info in memory.sessions(cwd="/web/site")} == {"by-cwd", "by-folder"}
        assert memory.sessions(resource="ada") == []


def test_an_imported_legacy_session_is_not_read_again(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = write_legacy(home, user("Create a page"))
    with Memory.open(home) as memory:
        memory.session("old")
        file.write_text("no message\n")
        assert [info.id for info in memory.sessions()] == ["old"]
    assert caplog.text == ""


def test_messages_of_a_legacy_session_are_read_when_it_is_opened(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = {"type": "session", "title": "The About page", "cwd": "/website"}
    write_legacy(home, about, *turns(20), {"type": "session_info", "title": "The page"})
    with Memory.open(home) as memory:
        parsed: list[bytes] = []

        def parse_and_count(line: bytes) -> Any:
            parsed.append(line)
            return json.loads(line)

        monkeypatch.setattr("inmind.session.legacy_files._parse_line", parse_and_count)
        (info,) = memory.sessions()
        assert (info.messages, info.title, "old" in memory) == (41, "The page", True)
        assert len(parsed) == 4  # two info lines, once for each caller
        assert len(memory.session("old").state.conversation) == info.messages


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_legacy_session_may_have_a_bom_and_any_line_ends(home: Path, end: str) -> None:
    lines = [{"type": "session", "title": "The About page"}, user("Create a page"), assistant("Done")]
    file = write_legacy(home)
    file.write_text("\ufeff" + end.join(map(json.dumps, lines)), "utf-8", newline="")
    with Memory.open(home) as memory:
        (info,) = memory.sessions()
        assert (info.title, info.messages, len(memory.session("old").state.conversation)) == ("The About page", 2, 2)
