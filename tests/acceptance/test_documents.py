"""Documents as live files: edits are read, and damage is never fatal."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
from pathlib import Path

import pytest
from builders import Home, user

from inmind import Memory, Origin, Session
from inmind.core.events.documents import DocumentSetAside, DocumentWritten
from inmind.errors import Conflict, InvalidInput, InvalidPath, NotFound
from inmind.memory.backends import FolderBackend
from inmind.store.protocol import PublishedVersion
from inmind.testing import InMemoryStore

pytestmark = pytest.mark.both_stores


@pytest.fixture
def page(session: Session, home: Path) -> Path:
    session.write("overview.md", "written by the agent\n")
    return home / "sessions/--website--/support-42/working-memory/overview.md"


def last_document(session: Session) -> tuple[str, Origin]:
    written = [
        (event.payload, event.origin) for event in session.events() if isinstance(event.payload, DocumentWritten)
    ]
    written_document, origin = written[-1]
    return written_document.text, origin


def save_in_place(file: Path, text: str) -> None:
    file.write_text(text)


def save_by_rename(file: Path, text: str) -> None:
    file.with_suffix(".swp").write_text(text)
    os.replace(file.with_suffix(".swp"), file)


def save_after_a_backup(file: Path, text: str) -> None:
    file.rename(file.with_name("overview.md~"))
    file.write_text(text)


def save_at_the_same_time_and_size(file: Path, text: str) -> None:
    status = file.stat()
    file.write_text(text.ljust(status.st_size)[: status.st_size])
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.embedded
@pytest.mark.spec("A5")
@pytest.mark.parametrize("save", [save_in_place, save_by_rename, save_after_a_backup, save_at_the_same_time_and_size])
def test_an_edit_is_read_at_the_next_call_however_it_was_saved(session: Session, page: Path, save: object) -> None:
    session.prepare([user("look at it once, so that the file is known")])
    assert callable(save)
    save(page, "typed by a person")
    prompt = session.prepare([user("hi")])
    text, origin = last_document(session)
    assert (text.strip(), origin) == ("typed by a person", Origin.FILE)
    assert "typed by a person" in str(prompt.messages)


@pytest.mark.embedded
def test_a_new_file_in_detail_becomes_a_document(session: Session, page: Path) -> None:
    (page.parent / "detail").mkdir(exist_ok=True)
    (page.parent / "detail" / "plan.md").write_text("step one")
    (page.parent / "detail" / ".plan.md.swp").write_text("not a document")
    assert session.read("detail/plan.md") == "step one"
    assert list(session.documents()) == ["detail/plan.md", "overview.md"]


@pytest.mark.embedded
@pytest.mark.spec("A5")
def test_a_new_file_is_found_by_the_call_after_a_listing_that_failed(
    session: Session, page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inmind.store.file_operations.MIN_SIGNATURE_AGE_NANOSECONDS", -(10**9))
    session.documents()
    (page.parent / "detail" / "plan.md").write_text("a plan\n")

    def scandir(_: int) -> None:
        monkeypatch.setattr(os, "scandir", list_folder)
        raise OSError(errno.EMFILE, "too many open files")

    list_folder = os.scandir
    monkeypatch.setattr(os, "scandir", scandir)
    assert "detail/plan.md" not in session.documents()
    assert os.scandir is list_folder
    assert session.read("detail/plan.md") == "a plan\n"


@pytest.mark.embedded
@pytest.mark.spec("F4", "A5")
def test_a_page_with_windows_line_ends_keeps_them(session: Session, page: Path) -> None:
    lines = ["---", "current_state:", "  task: ship it  # today", "---", "# Mine", "", "## Key decisions", "- tabs", ""]
    page.write_bytes(("\ufeff" + "\r\n".join(lines)).encode())
    prefix = str(session.prepare([user("hi")]).messages[0]["content"])
    assert "\n# Mine\n\n## Key decisions\n- tabs\n" in prefix
    assert "ufeff" not in ascii(prefix)
    assert "\r" not in prefix
    assert session.front_matter == {"current_state": {"task": "ship it"}}
    session.update_front_matter({"current_state": {"status": "done"}})
    session.event("decision_made", "no spaces")
    session.write("detail/plan.md", "# Plan\n")
    text = page.read_bytes().decode()
    assert text == session.overview
    assert text.split("\r\n")[:6] == ["\ufeff---", *lines[1:3], "  status: done", *lines[3:5]]
    assert ("no spaces" in text, "detail/plan.md" in text) == (True, True)
    assert text.count("\n") == text.count("\r\n")


@pytest.mark.embedded
@pytest.mark.spec("A5")
@pytest.mark.parametrize("damage", [b"", b"caf\xc3", b"a\x00b"])
def test_a_damaged_file_is_set_aside_and_the_last_text_restored(
    session: Session, page: Path, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    page.write_bytes(damage)
    prompt = session.prepare([user("hi")])
    assert page.read_text() == session.overview == "written by the agent\n"
    (kept,) = page.parent.glob("overview.md.damaged-*")
    assert kept.read_bytes() == damage
    assert [notice for notice in prompt.report.notices if "was damaged" in notice]
    assert caplog.text.count("was damaged") == 1
    assert session.prepare([user("hi")]).report.notices == ()


@pytest.mark.embedded
def test_a_deleted_file_is_restored_and_reported(session: Session, page: Path) -> None:
    """F1: a missing overview is written again with its text."""
    page.unlink()
    assert session.overview == "written by the agent\n"
    assert page.exists()
    assert any("was missing" in notice for notice in session.prepare([user("hi")]).report.notices)


@pytest.mark.embedded
def test_an_empty_document_is_not_a_damaged_file(session: Session, page: Path) -> None:
    session.write("overview.md", "")
    before = session.state.seq
    assert session.prepare([user("hi")]).report.notices == ()
    assert session.overview == page.read_text() == ""
    assert [event.kind for event in session.events(after=before)].count("set_aside") == 0


@pytest.mark.embedded
@pytest.mark.parametrize("kind", ["folder", "link", "fifo"])
def test_a_path_that_is_not_a_regular_file_is_never_replaced(session: Session, page: Path, kind: str) -> None:
    page.unlink()
    {"folder": page.mkdir, "link": lambda: page.symlink_to("/etc/passwd"), "fifo": lambda: os.mkfifo(page)}[kind]()
    prompt = session.prepare([user("hi")])
    assert session.overview == "written by the agent\n"
    (notice,) = prompt.report.notices
    reason = "it is a link, and links are not followed" if kind == "link" else "it is not a plain file"
    assert notice == f"overview.md cannot be read ({reason}); the last good version is used"
    assert "root:" not in str(prompt.messages)
    assert not stat.S_ISREG(page.lstat().st_mode)
    session.write("overview.md", "newer\n")
    (notice,) = notices(session)
    assert notice.startswith("overview.md has a newer version in memory")
    session.write("overview.md", "newest\n")
    assert (notices(session), session.overview) == ((), "newest\n")


@pytest.mark.embedded
@pytest.mark.usefixtures("no_editor_grace")
def test_a_too_large_page_is_reported(session: Session, page: Path) -> None:
    page.write_text("a line\n" * 200_000)
    (notice,) = notices(session)
    assert notice.startswith("overview.md was damaged (the file is too large: a page has at most 1,048,576 bytes)")


@pytest.fixture
def no_editor_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for slow editors."""
    monkeypatch.setattr("inmind.session.live_files._EDITOR_GRACE_NANOSECONDS", 0)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret.md"
    file.write_text("not yours to read\n")
    return file


def notices(session: Session) -> tuple[str, ...]:
    return session.prepare([user("hi")]).report.notices


@pytest.mark.embedded
@pytest.mark.spec("F54")
@pytest.mark.usefixtures("no_editor_grace")
def test_a_hard_link_is_ignored_with_one_notice(session: Session, page: Path, secret: Path) -> None:
    page.unlink()
    os.link(secret, page)
    new_page = page.parent / "detail" / "plan.md"
    os.link(secret, new_page)
    prompt = session.prepare([user("hi")])
    assert "not yours" not in str(prompt.messages)
    assert "detail/plan.md" not in session.documents()
    assert session.overview == "written by the agent\n"
    assert [notice.partition(" ")[0] for notice in prompt.report.notices] == ["overview.md", "detail/plan.md"]
    assert "hard link" in prompt.report.notices[0]
    session.write("overview.md", "newer\n")
    assert (notices(session), page.samefile(secret), secret.read_text()) == ((), True, "not yours to read\n")
    secret.unlink()  # no other name links to the files from here on
    new_page.unlink()
    assert session.overview == page.read_text() == "not yours to read\n"
    assert "newer\n" in [event.payload.text for event in session.events() if isinstance(event.payload, DocumentWritten)]


@pytest.mark.embedded
@pytest.mark.spec("F54", "A5")
def test_an_editor_that_links_a_backup_loses_nothing(
    session: Session, page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup = page.with_name("overview.md~")

    def saved(_: float) -> None:
        backup.unlink()

    page.write_text("typed by a person\n")
    os.link(page, backup)
    monkeypatch.setattr(
        "inmind.session.live_files.time.sleep", saved
    )  # replaces the wait for a file that was just written
    assert session.overview == "typed by a person\n"
    assert notices(session) == ()


@pytest.mark.embedded
@pytest.mark.spec("F54", "A5")
@pytest.mark.usefixtures("no_editor_grace")
def test_a_home_backed_up_with_hard_links_works_and_the_backup_stays(
    session: Session, page: Path, tmp_path: Path
) -> None:
    session.add([user("hello")])
    folder = page.parents[1]
    shutil.copytree(folder, tmp_path / "backup", copy_function=os.link)
    before = {file: file.read_bytes() for file in (tmp_path / "backup").rglob("*") if file.is_file()}
    session.add([user("hello again")])
    session.write("overview.md", "newer\n")
    assert len((folder / "messages.jsonl").read_text().splitlines()) == len(session.state.conversation) == 2
    assert (page.read_text(), page.stat().st_nlink, notices(session)) == ("newer\n", 1, ())
    assert {file: file.read_bytes() for file in before} == before


@pytest.mark.embedded
@pytest.mark.spec("F54")
def test_a_linked_page_folder_is_not_followed_with_one_notice(session: Session, page: Path, tmp_path: Path) -> None:
    detail, outside = page.parent / "detail", tmp_path / "outside"
    session.write("detail/one.md", "one")
    session.write("detail/two.md", "two")
    shutil.move(detail, outside)
    (outside / "secret.md").write_text("not yours to read")
    detail.symlink_to(outside)
    (notice,) = notices(session)
    assert notice.startswith("working-memory/detail is not a folder, and links are not followed")
    assert list(session.documents()) == ["detail/one.md", "detail/two.md", "overview.md"]
    session.write("detail/one.md", "newer")
    assert (notices(session), session.read("detail/one.md")) == ((), "newer")
    assert (outside / "one.md").read_text() == "one"
    detail.unlink()
    shutil.move(outside, detail)
    assert session.read("detail/secret.md") == "not yours to read"
    assert (detail / "one.md").read_text() == session.read("detail/one.md") == "newer"


@pytest.mark.embedded
@pytest.mark.spec("F2")
@pytest.mark.parametrize("linked", ["", "working-memory", "../s", "../../--w--", "../../../sessions"])
def test_linked_parent_folders_are_not_followed_and_nothing_is_lost(home: Path, tmp_path: Path, linked: str) -> None:
    """Only the home may be a link."""
    with Memory.open(home) as memory:
        memory.session("s", cwd="/w").write("detail/one.md", "one")
    place = home if not linked else Path(os.path.normpath(home / "sessions/--w--/s" / linked))
    outside = tmp_path / "outside"
    outside.mkdir()
    if linked:
        shutil.rmtree(place)
    else:
        shutil.move(home, outside / "home")
    place.symlink_to(outside if linked else outside / "home")
    with Memory.open(home) as memory:
        session = memory.session("s", cwd="/w")
        session.write("detail/two.md", "two")
        first_notices = notices(session)
        assert (session.read("detail/one.md"), session.read("detail/two.md")) == ("one", "two")
        assert [info.id for info in memory.sessions()] == ["s"]
        session.add([user("more")])
        assert notices(session) == ()
    if linked:
        assert "is not a folder, and links are not followed" in first_notices[0]
        assert list(outside.iterdir()) == []
    else:
        assert first_notices == ()
        assert (home / "sessions/--w--/s/working-memory/detail/two.md").read_text() == "two"


@pytest.mark.embedded
def test_a_resource_whose_folder_is_a_link_keeps_its_documents_in_memory(home: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "MEMORY.md").write_text("not yours to read")
    (home / "resources").mkdir(parents=True)
    (home / "resources" / "ada").symlink_to(outside)
    with Memory.open(home) as memory:
        session = memory.session("s", resource="ada")
        session.write("memory/scratch.md", "mine")
        assert list(session.documents()) == ["memory/scratch.md", "overview.md"]
        assert [notice.partition(" ")[0] for notice in notices(session)] == ["resources/ada"]
    assert [file.name for file in outside.iterdir()] == ["MEMORY.md"]


# -- files of the host's own tools -------------------------------------------------------------------------


@pytest.mark.embedded
@pytest.mark.spec("F2")
@pytest.mark.parametrize("name", ["_notes.md", "it's.md", "it\u2019s.md", "a&b!.md", "two words.md", "设计（一）.md"])
def test_a_page_name_may_have_spaces_punctuation_and_unicode(session: Session, page: Path, name: str) -> None:
    (page.parent / "detail" / name).write_text("# Plan\n\nfirst things first\n")
    prompt = session.prepare([user("hi")])
    assert f"detail/{name} (1 KB): Plan" in str(prompt.messages[0]["content"])
    assert prompt.report.notices == ()
    assert session.overview.count("first things first") == 1
    session.event("decision_made", "tabs")
    assert session.overview.count("first things first") == 1


@pytest.mark.embedded
@pytest.mark.spec("F2")
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("notes.md", "pages are overview.md and the files in detail/ and archive/"),
        ("MEMORY.md", "pages are overview.md and the files in detail/ and archive/"),
        ("notes/x.md", "it is a folder"),
        ("detail/sub/x.md", "it is a folder"),
        ("detail/a:b.md", "a page name has at most 120 letters"),
        ("archive/" + "n" * 130, "a page name has at most 120 letters"),
    ],
)
def test_a_file_that_is_not_a_page_is_ignored_with_one_notice(
    session: Session, page: Path, name: str, why: str
) -> None:
    file = page.parent / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("words")
    (notice,) = notices(session)
    place = name.removesuffix("/x.md")
    assert notice.startswith(f"{place} is ignored: {why}")
    session.write("overview.md", "newer\n")
    assert (notices(session), file.read_text(), list(session.documents())) == ((), "words", ["overview.md"])


@pytest.mark.embedded
def test_a_link_among_the_pages_is_reported(session: Session, page: Path, secret: Path) -> None:
    (page.parent / "detail" / "plan.md").symlink_to(secret)
    assert notices(session) == ("detail/plan.md is ignored: it is a link, and links are not followed",)


@pytest.mark.embedded
@pytest.mark.parametrize("name", ["detail/.hidden.md", "detail/plan.md~", "detail/#plan.md#", ".DS_Store"])
def test_temporary_files_of_editors_are_ignored_silently(session: Session, page: Path, name: str) -> None:
    (page.parent / name).write_text("words")
    assert notices(session) == ()


@pytest.mark.embedded
@pytest.mark.spec("J4")
@pytest.mark.parametrize("name", [b"\x1b[31mred.md", b"two\nlines.md", b"caf\xe9.md"])
def test_a_file_name_is_escaped_in_notices(session: Session, page: Path, name: bytes) -> None:
    Path(os.fsdecode(os.fsencode(page.parent / "detail") + b"/" + name)).write_text("words")
    (notice,) = notices(session)
    assert notice.isprintable()


@pytest.mark.embedded
def test_many_files_that_are_not_pages_are_counted(session: Session, page: Path) -> None:
    for number in range(12):
        (page.parent / "detail" / f"{number}:00.md").write_text("words")
    *named, more = notices(session)
    assert (len(named), more) == (5, "7 more files in detail/ are ignored")


@pytest.mark.embedded
@pytest.mark.spec("A5")
def test_a_moved_page_exists_in_both_places(session: Session, page: Path) -> None:
    session.write("detail/plan.md", "step one")
    shutil.move(page.parent / "detail/plan.md", page.parent / "archive/plan.md")
    assert (session.read("detail/plan.md"), session.read("archive/plan.md")) == ("step one", "step one")


# -- front matter ------------------------------------------------------------------------------------------

BROKEN = "---\nmeta: [1\n---\n# Mine\n"


@pytest.mark.embedded
@pytest.mark.spec("F4")
def test_invalid_front_matter_is_reported_once(session: Session, page: Path) -> None:
    page.write_text(BROKEN)
    (notice,) = notices(session)
    assert notice.startswith("overview.md: front_matter: expected YAML (line 2: ")
    assert "got 'meta: [1'" in notice
    session.event("decision_made", "tabs")  # the page changes, and its front matter does not
    assert notices(session) == ()
    page.write_text(BROKEN.replace("[1", "{version: []}"))
    (notice,) = notices(session)
    assert notice.startswith("overview.md: front_matter.meta.version: expected a text")
    page.write_text("---\nmeta: {version: 1}\n---\n")
    assert (notices(session), session.front_matter) == ((), {"meta": {"version": 1}})


@pytest.mark.embedded
@pytest.mark.spec("F4")
def test_without_the_library_front_matter_is_text_until_it_is_read(
    session: Session, page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ruamel.yaml", None)
    assert session.front_matter is None
    page.write_text(BROKEN)
    assert notices(session) == ()
    with pytest.raises(InvalidInput, match=r'pip install "inmind\[yaml\]"'):
        _ = session.front_matter


class CountingStore(InMemoryStore):
    """A store that counts reads of published versions."""

    reads = 0

    def published_versions(self, stream: str) -> dict[str, PublishedVersion]:
        self.reads += 1
        return super().published_versions(stream)


@pytest.mark.embedded
@pytest.mark.spec("B45")
def test_hundreds_of_pages_are_synced_with_few_reads_of_published_versions(home: Path) -> None:
    """Each read returns one row per page."""
    store = CountingStore()
    session = Memory(FolderBackend(home, store)).session("s", cwd="/w")
    for number in range(200):
        (home / f"sessions/--w--/s/working-memory/detail/{number}.md").write_text(f"page {number}")
    store.reads = 0
    assert len(session.documents()) == 201
    assert store.reads < 10


@pytest.mark.embedded
@pytest.mark.spec("A5")
@pytest.mark.usefixtures("no_editor_grace")
def test_damaged_files_with_the_same_start_are_all_kept(session: Session, page: Path) -> None:
    damaged = [b"x" * 1_100_000 + end for end in (b"one", b"two", b"the third")]
    for data in damaged:
        page.write_bytes(data)
        assert session.overview == page.read_text() == "written by the agent\n"
    assert sorted(kept.read_bytes()[1_100_000:] for kept in page.parent.glob("overview.md.damaged-*")) == [
        b"one",
        b"the third",
        b"two",
    ]
    aside = [event.payload.saved_as for event in session.events() if isinstance(event.payload, DocumentSetAside)]
    assert [(page.parent / kept).read_bytes() for kept in aside] == damaged


@pytest.mark.embedded
@pytest.mark.spec("J1")
def test_files_and_folders_are_private(session: Session, home: Path) -> None:
    old = os.umask(0)
    try:
        session.write("detail/x.md", "x")
    finally:
        os.umask(old)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in [home, *home.rglob("*")]}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}


@pytest.mark.spec("A3")
def test_a_stale_writer_gets_a_conflict_with_both_texts(home: Home) -> None:
    with Memory.open(home) as one, Memory.open(home) as two:
        mine, theirs = one.session("s"), two.session("s")
        mine.read("overview.md")
        theirs.write("overview.md", "theirs")
        with pytest.raises(Conflict) as caught:
            mine.write("overview.md", "mine")
        conflict = caught.value
        assert (conflict.mine, conflict.theirs) == ("mine", "theirs")
        assert conflict.actual == theirs.documents()["overview.md"] > conflict.expected
        assert mine.read("overview.md") == "theirs"
        mine.write("overview.md", "mine, after reading theirs")


def test_a_repeated_write_returns_its_version_and_hides_no_later_one(home: Home) -> None:
    """K25, K17: a retry is not a read, so a later write of another process is still a conflict."""
    with Memory.open(home) as one, Memory.open(home) as two:
        mine, theirs = one.session("s"), two.session("s")
        first = mine.write("overview.md", "mine", key="k")
        theirs.read("overview.md")
        theirs.write("overview.md", "theirs")
        assert mine.write("overview.md", "mine", key="k") == first
        with pytest.raises(Conflict):
            mine.write("overview.md", "mine again")


@pytest.mark.embedded
def test_an_edit_by_hand_is_not_overwritten_by_a_stale_write(session: Session, page: Path) -> None:
    page.write_text("typed by a person")
    with pytest.raises(Conflict) as caught:
        session.write("overview.md", "by the agent")
    assert caught.value.theirs == page.read_text() == "typed by a person"


@pytest.mark.embedded
def test_a_prompt_sets_the_base_of_the_next_write(session: Session, page: Path) -> None:
    session.prepare([user("hi")])
    page.write_text("typed by a person")
    with pytest.raises(Conflict):
        session.write("overview.md", "by the agent, who has not seen that")
    session.prepare([user("hi")])
    session.write("overview.md", "by the agent, who has")


def test_a_blind_write_over_what_another_process_wrote_is_a_conflict(home: Home) -> None:
    with Memory.open(home) as one, Memory.open(home) as two:
        mine, theirs = one.session("s"), two.session("s")
        theirs.write("overview.md", "theirs")
        theirs.write("detail/plan.md", "theirs")
        for path in ("overview.md", "detail/plan.md"):
            with pytest.raises(Conflict):
                mine.write(path, "mine")


def test_a_prompt_sets_the_base_only_of_documents_in_it(home: Home) -> None:
    """A3, K17: the caller has not seen a document that no layer rendered."""
    with Memory.open(home) as one, Memory.open(home) as two:
        mine, theirs = one.session("s"), two.session("s")
        theirs.write("detail/plan.md", "theirs")
        theirs.write("overview.md", "theirs")
        mine.prepare([user("hi")])
        mine.write("overview.md", "mine, after it was shown")
        with pytest.raises(Conflict):
            mine.write("detail/plan.md", "mine")


def test_a_write_can_name_its_base(session: Session) -> None:
    version = session.documents()["overview.md"]
    assert session.write("overview.md", "next", base=version) > version
    with pytest.raises(Conflict):
        session.write("overview.md", "again", base=version)


def test_writing_the_same_text_changes_nothing(session: Session) -> None:
    session.write("overview.md", "written by the agent\n")
    before = session.state.seq
    session.write("overview.md", "written by the agent\n")
    assert session.state.seq == before


@pytest.mark.embedded
def test_documents_of_a_resource_are_shared_by_its_sessions(memory: Memory, session: Session, home: Path) -> None:
    session.write("MEMORY.md", "Ada prefers tabs.")
    other = memory.session("another", resource="ada")
    assert other.read("MEMORY.md") == "Ada prefers tabs."
    assert (home / "resources/ada/MEMORY.md").read_text() == "Ada prefers tabs."
    with pytest.raises(NotFound):
        memory.session("third", resource="bob").read("MEMORY.md")


@pytest.mark.embedded
@pytest.mark.parametrize("path", ["../../../etc/passwd", "detail/../../x", "/etc/passwd", "detail/"])
def test_no_path_leaves_the_memory(session: Session, home: Path, path: str) -> None:
    before = sorted(home.rglob("*"))
    for call in (lambda: session.read(path), lambda: session.write(path, "x")):
        with pytest.raises(InvalidPath):
            call()
    assert sorted(home.rglob("*")) == before


def test_a_text_that_is_too_large_is_refused_when_written(session: Session) -> None:
    session.write("overview.md", "written by the agent\n")
    with pytest.raises(InvalidInput, match="at most 1048576 bytes"):
        session.write("overview.md", "x" * 1_048_577)
    assert session.overview == "written by the agent\n"


@pytest.mark.spec("A5")
def test_an_emptied_page_is_not_damaged(session: Session) -> None:
    session.write("overview.md", "")
    session.write("overview.md", "whole")
    assert session.prepare([user("hi")]).report.notices == ()
    assert session.overview == "whole"
