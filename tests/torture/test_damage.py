"""Live files that were damaged, replaced or edited: never read as empty, never fatal.

The tables of faults call the damage C05. The journal has the last good text of a document: it is written again,
the damaged file is saved aside, and this is reported once. The edit of a user is read, with any way of saving.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from torture import crashes
from torture.harness import ask

from inmind import Memory
from inmind.core.events.base import Origin
from inmind.core.events.documents import DocumentSetAside
from inmind.documents.document import MAX_DOCUMENT_BYTES
from inmind.errors import NotFound
from inmind.session.session import Session

GOOD = "# Ada\n- prefers tea — really\n- zwölf Kartons\n"
NEWER = "# Ada\n- prefers coffee\n"

DAMAGE: dict[str, bytes] = {
    "empty": b"",
    "cut in a character": GOOD.encode()[: GOOD.encode().index("ö".encode()) + 1],
    "NUL bytes": GOOD.encode()[:10] + bytes(20),
    "nothing but NUL bytes": bytes(len(GOOD.encode())),
    "not UTF-8": b"\xff\xfe" + GOOD.encode("utf-16-le"),
    "too large": b"x" * (MAX_DOCUMENT_BYTES + 1),
    "far too large": b"x" * (5 * MAX_DOCUMENT_BYTES),
}
PATHS = ("overview.md", "MEMORY.md", "detail/boxes.md", "memory/scratch.md")


class Home:
    """A home that can be closed and opened again."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.memory = Memory.open(place)
        self.session = self._session()

    def _session(self) -> Session:
        return self.memory.session("s", resource="ada", cwd="/w")

    def file(self, path: str) -> Path:
        of_resource = path in ("MEMORY.md", "memory/scratch.md")
        folder = Path("resources/ada") if of_resource else Path("sessions/--w--/s/working-memory")
        return self.place / folder / path

    def close_memory(self) -> None:
        self.memory.close()

    def reopen(self) -> Session:
        self.memory = Memory.open(self.place)
        self.session = self._session()
        return self.session

    def notices(self) -> tuple[str, ...]:
        return self.session.prepare([{"role": "user", "content": "hello"}]).report.notices

    def kept_aside(self) -> list[Path]:
        return sorted(self.place.rglob("*.damaged-*"))

    def leftovers(self) -> list[Path]:
        return sorted(self.place.rglob(".inmind-*"))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    monkeypatch.setattr("inmind.session.live_files._EDITOR_GRACE_NANOSECONDS", 5_000_000)  # no slow saves here
    home = Home(tmp_path / "home")
    yield home
    home.memory.close()


def warnings(log: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in log.records if record.levelno >= logging.WARNING]


# -- damage ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["at start-up", "between calls"])
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_restored_saved_aside_and_reported_once(
    home: Home, damage: str, path: str, when: str, caplog: pytest.LogCaptureFixture
) -> None:
    """C05, A5: not read as a deletion, neither by the next start nor by the next call."""
    home.session.write(path, GOOD)
    if when == "at start-up":
        home.close_memory()
    home.file(path).write_bytes(DAMAGE[damage])
    if when == "at start-up":
        home.reopen()
    assert home.session.read(path) == GOOD
    assert home.file(path).read_text("utf-8") == GOOD
    (kept,) = home.kept_aside()
    assert kept.read_bytes() == DAMAGE[damage]
    assert kept.parent == home.file(path).parent
    assert len(warnings(caplog)) == 1
    assert path in warnings(caplog)[0]
    assert kept.name in warnings(caplog)[0]
    (notice,) = home.notices()
    assert warnings(caplog)[0].endswith(notice)
    for _ in range(2):
        assert home.session.read(path) == GOOD
        assert home.notices() == ()
    home.close_memory()
    assert home.reopen().read(path) == GOOD
    assert home.notices() == ()
    assert len(warnings(caplog)) == 1
    assert home.kept_aside() == [kept]
    assert path + ".damaged" not in " ".join(home.session.documents())


def test_damage_is_an_event_and_not_a_version(home: Home) -> None:
    """A5: the journal records what was found and where it was saved; the document is unchanged."""
    version = home.session.write("overview.md", GOOD)
    home.file("overview.md").write_bytes(b"")
    assert home.session.documents()["overview.md"] == version
    events = [event for event in home.session.events() if isinstance(event.payload, DocumentSetAside)]
    assert [event.origin for event in events] == [Origin.FILE]
    assert (home.file("overview.md").parent / str(events[0].payload).split("saved_as='")[1].split("'")[0]).exists()


def test_damage_that_happens_twice_is_reported_twice(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    """C05: different damage is reported again; the same damage in the same process is not."""
    home.session.write("overview.md", GOOD)
    for damage in (b"", b"\x00", b""):
        home.file("overview.md").write_bytes(damage)
        assert home.session.overview == GOOD
    assert len(warnings(caplog)) == 2
    assert sorted(kept.read_bytes() for kept in home.kept_aside()) == [b"", b"\x00"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("when", ["at start-up", "between calls"])
def test_a_deleted_file_is_restored(home: Home, path: str, when: str) -> None:
    """C05, A5: a missing file is not a decision to forget."""
    home.session.write(path, GOOD)
    if when == "at start-up":
        home.close_memory()
    home.file(path).unlink()
    if when == "at start-up":
        home.reopen()
    assert home.session.read(path) == GOOD
    assert home.file(path).read_text("utf-8") == GOOD
    assert all(path in notice for notice in home.notices())
    assert home.notices() == ()


def test_deleted_files_are_all_restored(home: Home) -> None:
    """C05, J1: the database alone is the complete memory."""
    for path in PATHS:
        home.session.write(path, GOOD)
    home.session.add([{"role": "user", "content": "hello"}])
    home.close_memory()
    contents = {file: file.read_bytes() for file in _live_files(home)}
    for file in contents:
        file.unlink()
    home.reopen()
    home.close_memory()
    assert {file: file.read_bytes() for file in _live_files(home)} == contents


def _live_files(home: Home) -> list[Path]:
    return sorted(f for f in home.place.rglob("*") if f.is_file() and f.suffix in {".md", ".jsonl", ".json"})


# -- special files ---------------------------------------------------------------------------


def create_folder(file: Path) -> None:
    (file / "inner").mkdir(parents=True)


def create_link(file: Path) -> None:
    secret = file.parents[3] / "secret.md"
    secret.write_text("not yours to read")
    file.symlink_to(secret)


def create_dangling_link(file: Path) -> None:
    file.symlink_to(file.parent / "nowhere")


def create_pipe(file: Path) -> None:
    os.mkfifo(file)


def create_socket(file: Path) -> None:
    os.mknod(file, stat.S_IFSOCK | 0o600)


SPECIAL: list[Callable[[Path], None]] = [create_folder, create_link, create_dangling_link, create_pipe, create_socket]


@pytest.mark.parametrize("when", ["at start-up", "between calls"])
@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("path", ["overview.md", "MEMORY.md"])
def test_a_special_file_is_left_alone_and_nothing_hangs(
    tmp_path: Path, special: Callable[[Path], None], path: str, when: str
) -> None:
    """C05, F54: in a separate process, since a failure would be a call that never returns."""
    place = str(tmp_path / "home")
    file = crashes.file_of(place, path)
    ask(crashes.begin, home=place, path=path, texts=[GOOD])
    file.unlink()
    special(file)
    before = os.lstat(file)
    result = ask(crashes.use_special_file, home=place, path=path, again=when == "between calls", newer=NEWER)
    assert result["texts"] == [GOOD, NEWER, NEWER]
    assert len([notice for notice in result["notices"] if path in notice]) >= 1
    assert len(result["notices"]) == len(set(result["notices"])), "each is reported once"
    assert (os.lstat(file).st_ino, os.lstat(file).st_mode) == (before.st_ino, before.st_mode)
    if special is create_link:
        assert os.path.realpath(file).endswith("secret.md")
        assert Path(os.path.realpath(file)).read_text() == "not yours to read"
    if file.is_dir() and not file.is_symlink():
        (file / "inner").rmdir()
        file.rmdir()
    else:
        file.unlink()
    assert ask(crashes.look, home=place, path=path)["file"] == NEWER


@pytest.mark.parametrize("name", ["messages.jsonl", "meta.json", ".lock"])
@pytest.mark.parametrize("special", SPECIAL)
def test_no_live_file_can_make_a_call_hang_or_fail(tmp_path: Path, special: Callable[[Path], None], name: str) -> None:
    """C05: a file may lag, a call must not fail."""
    place = str(tmp_path / "home")
    ask(crashes.begin, home=place, path="overview.md", texts=[GOOD])
    file = Path(place, "sessions/--w--/s", name)
    file.unlink(missing_ok=True)
    special(file)
    result = ask(crashes.use_special_file, home=place, path="overview.md", again=False, newer=NEWER)
    assert result["texts"] == [GOOD, NEWER, NEWER]


@pytest.mark.skipif(os.geteuid() == 0, reason="a file's mode does not keep root from reading it")
def test_an_unreadable_file_does_not_count_as_empty(home: Home) -> None:
    """C05: the last good version is used until it can be read again."""
    home.session.write("overview.md", GOOD)
    home.file("overview.md").chmod(0)
    home.close_memory()
    assert home.reopen().overview == GOOD
    assert any(os.strerror(errno.EACCES) in notice for notice in home.notices())


# -- files of users -----------------------------------------------------------------------------------


def test_a_new_empty_file_is_not_damage(home: Home) -> None:
    """A5: editors and `touch` create an empty file first; it is not removed."""
    file = home.file("detail/plan.md")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    assert "detail/plan.md" not in home.session.documents()
    assert (file.read_bytes(), home.kept_aside(), home.notices()) == (b"", [], ())
    file.write_text("the plan\n")
    assert home.session.read("detail/plan.md") == "the plan\n"


def test_an_image_among_the_documents_stays(home: Home) -> None:
    """A5: a file that cannot be a document is reported once and left alone."""
    file = home.file("detail/photo.png")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    assert "detail/photo.png" not in home.session.documents()
    assert len(home.notices()) == 1
    assert home.notices() == ()
    assert (file.read_bytes(), home.kept_aside()) == (b"\x89PNG\r\n\x1a\n\x00\x00", [])


def test_the_same_text_after_an_undo_is_a_new_document(home: Home) -> None:
    """C04, A5: an undo removed the file; a user who creates it again wants it."""
    home.session.write("detail/plan.md", "the plan\n")
    home.session.undo()
    file = home.file("detail/plan.md")
    assert not file.exists()
    file.write_text("the plan\n")
    assert home.session.read("detail/plan.md") == "the plan\n"
    assert file.read_text() == "the plan\n"
    home.close_memory()
    assert home.reopen().read("detail/plan.md") == "the plan\n"


# -- ways to save -------------------------------------------------------------------------------------


def in_place(file: Path, text: str) -> None:
    descriptor = os.open(file, os.O_WRONLY)
    os.write(descriptor, text.encode())
    os.ftruncate(descriptor, len(text.encode()))
    os.close(descriptor)


def emptied_first(file: Path, text: str) -> None:
    file.write_text(text)


def renamed_over(file: Path, text: str) -> None:
    temporary = file.with_name(file.name + ".tmp")
    temporary.write_text(text)
    os.replace(temporary, file)


def deleted_and_created(file: Path, text: str) -> None:
    file.unlink()
    file.write_text(text)


def with_the_old_times(file: Path, text: str) -> None:
    """Same size and modification time, like a copy that preserves times."""
    times = os.stat(file)
    renamed_over(file, text)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def in_place_with_the_old_times(file: Path, text: str) -> None:
    times = os.stat(file)
    in_place(file, text)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


TICK = 0.011
"""The coarsest clock that a Linux file system stamps files with."""

EDITS = [
    in_place,
    emptied_first,
    renamed_over,
    deleted_and_created,
    with_the_old_times,
    in_place_with_the_old_times,
]


@pytest.mark.parametrize("settled", [True, False], ids=["settled", "young"])
@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("path", ["overview.md", "MEMORY.md"])
def test_an_edit_is_read_however_the_editor_writes(
    home: Home, edit: Callable[[Path, str], None], path: str, settled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A5, C04: also with the same length, and if only the change time of the file differs."""
    if settled:  # as if the file were old enough for its times to be trusted
        monkeypatch.setattr("inmind.store.file_operations.MIN_SIGNATURE_AGE_NANOSECONDS", -1)
    home.session.write(path, GOOD)
    for text in (GOOD.replace("tea", "ale"), GOOD.replace("tea", "gin"), GOOD, "short\n"):
        home.session.read(path)
        if settled:
            time.sleep(TICK)
        edit(home.file(path), text)
        assert home.session.read(path) == text
        assert home.file(path).read_text() == text
    home.close_memory()
    edit(home.file(path), NEWER)
    assert home.reopen().read(path) == NEWER
    assert home.kept_aside() == []
    assert home.leftovers() == []
    assert home.notices() == ()


def test_an_editor_that_truncates_before_writing_is_given_time(home: Home) -> None:
    """C05, A5: a half-saved file looks damaged; replacing it would lose the rest."""
    home.session.write("overview.md", GOOD)
    result = ask(crashes.save_slowly, file=str(home.file("overview.md")), home=str(home.place), text=NEWER)
    assert result == {"text": NEWER, "file": NEWER, "aside": []}


@pytest.mark.parametrize("path", ["overview.md", "MEMORY.md"])
def test_an_edit_is_an_event_with_its_origin(home: Home, path: str) -> None:
    """A1, A5: origin file, so that it is not attributed to the model."""
    home.session.write(path, GOOD, origin=Origin.ASSISTANT)
    renamed_over(home.file(path), NEWER)
    home.session.read(path)
    assert crashes.versions(home.session, path)[-2:] == [[GOOD, "assistant"], [NEWER, "file"]]


def test_a_file_of_an_unknown_document_is_not_created(home: Home) -> None:
    """J3: reading creates no file."""
    with pytest.raises(NotFound):
        home.session.read("detail/none.md")
    assert not home.file("detail/none.md").exists()
