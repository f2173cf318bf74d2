"""Export and import of a home: complete, all or nothing, and never a mix of diverged streams."""

from __future__ import annotations

import json
import os
import resource
import stat
import subprocess
import sys
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest
from bundle_builders import (
    JOURNAL,
    MANIFEST,
    change_events,
    events_by_stream,
    export_home,
    fill_home,
    import_into_home,
    read_entries,
    read_events,
    read_keys,
)
from terminal import command, run_in_process

from inmind import Memory
from inmind.core.events.base import Event
from inmind.core.events.dreams import RecordsReadPosition
from inmind.core.events.session import MessageAdded
from inmind.core.paths import DATABASE
from inmind.errors import Closed, Conflict, Damaged, InvalidInput, NotFound, StorageFull
from inmind.memory.bundle import export_bundle, reader
from inmind.memory.bundle.export_bundle import staging_folder
from inmind.memory.bundle.extra_files import MAX_EXTRA_FILE_BYTES
from inmind.store.sqlite.store import SqliteStore

pytestmark = [pytest.mark.spec("M40"), pytest.mark.embedded]


@pytest.fixture
def other(tmp_path: Path) -> Path:
    return tmp_path / "other"


@pytest.fixture
def bundle(home: Path, tmp_path: Path) -> Path:
    fill_home(home)
    return export_home(home, tmp_path / "home.inmind")


# -- contents -----------------------------------------------------------------------------------------------


def test_an_imported_home_is_the_same(home: Path, other: Path, bundle: Path) -> None:
    """The same events in the same order, the same keys and the same derived state."""
    done = import_into_home(bundle, other)
    assert (done.added, done.extended, done.unchanged, done.missing_sources) == (2, 0, 0, 0)
    assert read_events(other) == read_events(home)
    assert read_keys(other) == read_keys(home)
    with Memory.open(home, embedder=None) as one, Memory.open(other, embedder=None) as two:
        here, there = (memory.session("shop", resource="ada") for memory in (one, two))
        assert there.state.documents == here.state.documents
        assert two.resource("ada").state == one.resource("ada").state
        assert [hit.crystal.id for hit in two.search("tabs")] == [hit.crystal.id for hit in one.search("tabs")] != []
        assert there.read("detail/harbour.md") == here.read("detail/harbour.md")
        before = len(there.events())
        there.add([{"role": "user", "content": "Where is the harbour of shop?"}], key="asked")
        assert len(there.events()) == before
        assert there.prepare().messages == here.prepare().messages


def test_the_result_of_an_export_matches_the_file(home: Path, tmp_path: Path) -> None:
    fill_home(home)
    progress: list[tuple[int, int]] = []
    with Memory.open(home, embedder=None) as memory:
        done = memory.export(tmp_path / "b", watch=lambda now, total: progress.append((now, total)))
    entries = read_entries(done.path)
    manifest = json.loads(entries[MANIFEST])
    lines = entries[JOURNAL].splitlines()
    assert (done.sessions, done.resources, done.events, done.keys) == (1, 1, len(read_events(home)), 2)
    assert (manifest["events"], manifest["keys"], manifest["streams"]) == (len(lines), 2, 2)
    assert done.bytes == done.path.stat().st_size
    assert stat.S_IMODE(done.path.stat().st_mode) == 0o600
    assert progress == sorted(progress)
    assert sorted(os.listdir(tmp_path)) == ["b", "home"]


@pytest.mark.spec("A5")
def test_unread_edits_of_live_files_are_exported(home: Path, other: Path, tmp_path: Path) -> None:
    fill_home(home)
    fill_home(home, session="quiet", resource="ben", dreams=False)
    page = home / "resources" / "ada" / "MEMORY.md"
    page.write_text(page.read_text("utf-8") + "\n- typed by hand\n", "utf-8")
    overview = home / "sessions" / "--w--" / "shop" / "working-memory" / "overview.md"
    overview.write_text("# My own overview\n", "utf-8")
    new_page = home / "resources" / "new one" / "MEMORY.md"
    new_page.parent.mkdir()
    new_page.write_text("- of a person who never had a session\n", "utf-8")
    import_into_home(export_home(home, tmp_path / "b"), other)
    with Memory.open(other, embedder=None) as memory:
        assert "- typed by hand" in memory.resource("ada").state.documents.text("MEMORY.md")
        assert memory.session("shop").overview.startswith("# My own overview\n")
        assert "never had a session" in memory.resource("new one").state.documents.text("MEMORY.md")


def test_files_that_cannot_be_rebuilt_are_exported(home: Path, other: Path, tmp_path: Path) -> None:
    """A legacy session is exported in its form, which it keeps until it is opened."""
    fill_home(home)
    kept = {
        "resources/ada/MEMORY.md.damaged-0123abcd": b"\xff\x00 the only copy",
        "resources/ada/MEMORY.md.seed-backup": b"# As it was\n",
        "sessions/--w--/shop/messages.jsonl.damaged-77": b"{}",
        "sessions/--w--/shop/working-memory/detail/a.md.damaged-1": b"",
        "sessions/--w--/old.jsonl": b'{"role": "user", "content": "long ago"}\n',
        "sessions/--w--/old.meta.json": b'{"title": "Older"}',
    }
    for name, data in kept.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(data)
    (home / "sessions" / "--w--" / "link.jsonl").symlink_to("/etc/passwd")
    (home / "sessions" / "--w--" / "OLD.jsonl").write_bytes(b"a name that some disks take for another\n")
    (home / "sessions" / "--w--" / "huge.jsonl").touch()
    os.truncate(home / "sessions" / "--w--" / "huge.jsonl", MAX_EXTRA_FILE_BYTES + 1)
    with Memory.open(home, embedder=None) as memory:
        done = memory.export(tmp_path / "b")
    assert {Path(name).name for name in done.left_out} == {"link.jsonl", "huge.jsonl", "old.jsonl"}
    kept["sessions/--w--/OLD.jsonl"] = b"a name that some disks take for another\n"
    del kept["sessions/--w--/old.jsonl"]
    assert set(import_into_home(tmp_path / "b", other).extra_files) == set(kept)
    assert {name: (other / name).read_bytes() for name in kept} == kept
    assert import_into_home(tmp_path / "b", other).extra_files == ()


@pytest.mark.spec("N67")
def test_settings_of_a_bundle_never_take_effect(home: Path, other: Path, tmp_path: Path) -> None:
    """Settings name the server that receives the memory's data, and its key."""
    fill_home(home, dreams=False)
    (home / "config.toml").write_text('[model]\nurl = "http://elsewhere.example"\nkey_env = "HOME"\n', "utf-8")
    bundle = export_home(home, tmp_path / "b")
    assert import_into_home(bundle, other).extra_files == ("config.toml.imported",)
    assert not (other / "config.toml").exists()
    with Memory.open(other) as memory:
        assert memory.settings.model.url == ""
    assert import_into_home(bundle, home).extra_files == ()


def test_the_export_of_a_resource_has_all_of_it_and_nothing_else(home: Path, other: Path, tmp_path: Path) -> None:
    fill_home(home)
    fill_home(home, session="theirs", resource="ben")
    fill_home(home, session="hers too", dreams=False)
    (home / "config.toml").write_text("[affect]\nenabled = true\n", "utf-8")
    for owner in ("ada", "ben"):
        (home / "resources" / owner / "MEMORY.md.seed-backup").write_text(owner, "utf-8")
    done = import_into_home(export_home(home, tmp_path / "b", resource="ada"), other)
    ours = {
        name: events for name, events in events_by_stream(home).items() if "theirs" not in name and "ben" not in name
    }
    without_places = {name: [_without_position(event) for event in events] for name, events in ours.items()}
    assert {
        n: [_without_position(event) for event in events] for n, events in events_by_stream(other).items()
    } == without_places
    assert set(ours) == {"resource/ada", "session/shop", "session/hers too"}
    assert (done.missing_sources, done.extra_files) == (0, ("resources/ada/MEMORY.md.seed-backup",))
    assert b"theirs" not in b"".join(read_entries(tmp_path / "b").values())
    with Memory.open(home) as memory, pytest.raises(NotFound):
        memory.export(tmp_path / "c", resource="missing")


def _without_position(event: Event) -> Event:
    payload = event.payload
    if not isinstance(payload, RecordsReadPosition):
        return event
    return replace(event, payload=replace(payload, journal_position=0))


# -- into a home with data ----------------------------------------------------------------------------


def test_importing_a_bundle_twice_changes_nothing_the_second_time(home: Path, other: Path, bundle: Path) -> None:
    fill_home(other, session="mine", resource="ben")
    import_into_home(bundle, other)
    before, keys = read_events(other), read_keys(other)
    done = import_into_home(bundle, other)
    assert (done.events, done.keys, done.added, done.extended, done.unchanged) == (0, 0, 0, 0, 2)
    assert (read_events(other), read_keys(other)) == (before, keys)
    assert import_into_home(bundle, home).events == 0


def test_streams_that_the_bundle_continues_are_extended_and_local_ones_stay(
    home: Path, other: Path, bundle: Path, tmp_path: Path
) -> None:
    import_into_home(bundle, other)
    fill_home(home, session="later")
    with Memory.open(home, embedder=None) as memory:
        memory.session("shop").add([{"role": "user", "content": "going on"}])
    longer = export_home(home, tmp_path / "longer")
    done = import_into_home(longer, other)
    assert (done.added, done.extended, done.unchanged) == (1, 2, 0)
    assert read_events(other) == read_events(home)
    with Memory.open(other, embedder=None) as memory:
        memory.session("shop").add([{"role": "user", "content": "only here"}])
    before = read_events(other)
    assert import_into_home(longer, other).events == 0
    assert import_into_home(bundle, other).events == 0
    assert read_events(other) == before


def test_a_diverged_stream_is_named_and_nothing_is_imported(
    home: Path, other: Path, bundle: Path, tmp_path: Path
) -> None:
    import_into_home(bundle, other)
    fill_home(home, session="a new one", dreams=False, resource="ben")
    for place, text in ((home, "there"), (other, "here")):
        with Memory.open(place, embedder=None) as memory:
            memory.session("shop").add([{"role": "user", "content": text}])
    before = read_events(other)
    with pytest.raises(Conflict, match="session/shop differs from the bundle from event") as caught:
        import_into_home(export_home(home, tmp_path / "b"), other)
    assert caught.value.code == "BUNDLE_DIVERGED"
    assert read_events(other) == before


def test_a_key_with_a_different_request_is_a_conflict(home: Path, other: Path, bundle: Path) -> None:
    other.mkdir()
    store = SqliteStore(other / DATABASE)
    (original,) = (receipt for receipt in read_keys(home) if receipt.key.caller_key == "asked")
    with store.bulk_import() as adoption:
        for event in read_events(home):
            adoption.add_event(event)
        adoption.add_receipt(replace(original, key=replace(original.key, request="another")))
    store.close()
    with pytest.raises(Conflict, match="session/shop has used the key 'asked' for a different request than the bundle"):
        import_into_home(bundle, other)


def test_a_legacy_session_file_that_differs_is_a_conflict(home: Path, other: Path, tmp_path: Path) -> None:
    fill_home(home, dreams=False)
    for place, text in ((home, "there"), (other, "here")):
        (place / "sessions" / "--w--").mkdir(parents=True, exist_ok=True)
        (place / "sessions" / "--w--" / "old.jsonl").write_text(json.dumps({"role": "user", "content": text}), "utf-8")
        (place / "sessions" / "--w--" / "a.jsonl").write_text("{}", "utf-8")
    (other / "sessions" / "--w--" / "a.jsonl").unlink()
    with pytest.raises(Conflict, match=r"old\.jsonl differs from"):
        import_into_home(export_home(home, tmp_path / "b"), other)
    assert read_events(other) == []
    assert not (other / "sessions" / "--w--" / "a.jsonl").exists()
    assert "here" in (other / "sessions" / "--w--" / "old.jsonl").read_text("utf-8")


def test_an_imported_dream_continues_from_its_position_in_the_new_journal(
    home: Path, other: Path, bundle: Path
) -> None:
    """Events that a dream has read are not read again, and the others are."""
    fill_home(other, session="mine", resource="ben")
    import_into_home(bundle, other)

    def unread(place: Path) -> list[str]:
        with Memory.open(place, embedder=None) as memory:
            position = memory.resource("ada").state.dreams.journal_position
        store = SqliteStore(place / DATABASE)
        news = store.events_since(position, kinds=[MessageAdded.kind], limit=999)
        store.close()
        return [event.id for _, event in news if event and event.stream == "session/shop"]

    assert unread(other) == unread(home) != []
    assert read_events(other) != read_events(home)


def test_local_events_of_others_do_not_move_the_read_position_of_a_dream(
    home: Path, other: Path, tmp_path: Path
) -> None:
    """Ben's events are before Ada's here, and after them in the bundle.

    Events that were stored during his dream were not read by it.
    """
    fill_home(home, session="hers", resource="ada", dreams=False)

    def while_it_runs(phase: str, _: str) -> None:
        if phase == "gather":
            return
        with Memory.open(home, embedder=None) as memory:
            if "late" not in memory:
                memory.session("late", resource="ben", cwd="/w").add(
                    [{"role": "user", "content": "Is the boat ready?"}]
                )
                for name in ("ben", "ada"):
                    import_into_home(memory.export(tmp_path / name, resource=name).path, other)

    with Memory.open(home, embedder=None) as memory:
        memory.session("his", resource="ben", cwd="/w").note("The tide is at nine")
        memory.dream("ben", watch=while_it_runs)
    import_into_home(export_home(home, tmp_path / "all"), other)
    for place in (home, other):
        with Memory.open(place, embedder=None) as memory:
            position = memory.resource("ben").state.dreams.journal_position
        store = SqliteStore(place / DATABASE)
        news = store.events_since(position, kinds=[MessageAdded.kind], limit=999, owner="ben")
        store.close()
        assert [event.stream for _, event in news if event] == ["session/late"]


def test_a_resource_with_new_dreams_there_and_new_events_here_has_diverged(
    home: Path, other: Path, bundle: Path, tmp_path: Path
) -> None:
    """The local events would come before the position up to which the dreams have read."""
    import_into_home(bundle, other)
    with Memory.open(other, embedder=None) as memory:
        memory.session("only here", resource="ada", cwd="/w").add([{"role": "user", "content": "Is the boat ready?"}])
    with Memory.open(home, embedder=None) as memory:
        memory.session("shop").note("The tide is at nine")
        memory.dream("ada")
    before = read_events(other)
    with pytest.raises(
        Conflict, match="resource/ada has new dreams in the bundle and new events here, in session/only"
    ):
        import_into_home(export_home(home, tmp_path / "b"), other)
    assert read_events(other) == before


def test_only_new_refuses_a_home_with_data(home: Path, other: Path, bundle: Path) -> None:
    with pytest.raises(InvalidInput, match="an empty home"):
        import_into_home(bundle, home, only_new=True)
    assert import_into_home(bundle, other, only_new=True).added == 2


# -- the file of an export -----------------------------------------------------------------------------------------


def test_an_existing_file_is_replaced_only_with_overwrite(home: Path, tmp_path: Path, bundle: Path) -> None:
    before = bundle.read_bytes()
    fill_home(home, session="more", dreams=False)
    with Memory.open(home, embedder=None) as memory:
        with pytest.raises(InvalidInput, match="a new file; to replace"):
            memory.export(bundle)
        assert bundle.read_bytes() == before
        memory.export(bundle, overwrite=True)
    assert b"more" in read_entries(bundle)[JOURNAL]
    assert sorted(os.listdir(tmp_path)) == ["home", "home.inmind"]


def test_an_export_to_something_that_is_not_a_file_is_refused(home: Path, tmp_path: Path) -> None:
    fill_home(home, dreams=False)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with Memory.open(home, embedder=None) as memory:
        for name in ("pipe", "link", "home"):
            with pytest.raises(InvalidInput, match="not a folder, a link or a device"):
                memory.export(tmp_path / name, overwrite=True)
        for folder in ("no such folder", "pipe", "link"):
            with pytest.raises(InvalidInput, match="an existing folder"):
                memory.export(tmp_path / folder / "b")
    assert sorted(os.listdir(tmp_path)) == ["home", "link", "pipe"]


@pytest.mark.parametrize("name", [DATABASE, "config.toml", "new", "resources/ada/MEMORY.md", "../way in/new"])
def test_an_export_into_the_home_is_refused(home: Path, tmp_path: Path, name: str) -> None:
    """The journal of the home is refused as well, although it is an existing file."""
    fill_home(home, dreams=False)
    (tmp_path / "way in").symlink_to(home)
    files = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    with Memory.open(home, embedder=None) as memory, pytest.raises(InvalidInput, match="outside of the home"):
        memory.export(home / name, overwrite=True)
    assert set(files) <= set(home.rglob("*"))
    assert not (home / "new").exists()
    assert read_events(home) != []


def test_a_journal_with_an_unreadable_event_is_not_exported(home: Path, tmp_path: Path) -> None:
    """The last event is damaged, or was stored by a newer version."""
    fill_home(home, dreams=False)
    last = read_events(home)[-1]
    connection: Any = apsw.Connection(str(home / DATABASE))
    for damage in ("body = '{'", "kind = 'unheard_of'"):
        connection.execute(f"UPDATE events SET {damage} WHERE position = (SELECT max(position) FROM events)")
        with Memory.open(home, embedder=None) as memory, pytest.raises(Damaged) as caught:
            memory.export(tmp_path / "b")
        assert last.id in str(caught.value)
    connection.close()
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize(
    ("slack", "compression"), [(100_000, zipfile.ZIP_STORED), (3_200_000, zipfile.ZIP_DEFLATED)], ids=["much", "little"]
)
def test_a_repetitive_journal_is_not_taken_for_a_zip_bomb(
    home: Path, other: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slack: int, compression: int
) -> None:
    """A journal that would look like a zip bomb is stored uncompressed.

    A compressed one can be read several times: each pass counts its bytes from 0.
    """
    for module in (reader, export_bundle):
        monkeypatch.setattr(module, "MIN_OUTPUT_BYTES", slack)
    with Memory.open(home, embedder=None) as memory:
        memory.session("s", cwd="/w").add([{"role": "user", "content": "0" * 3_000_000}])
    bundle = export_home(home, tmp_path / "b")
    with zipfile.ZipFile(bundle) as zip:
        assert {entry.compress_type for entry in zip.infolist()} == {compression}
    assert import_into_home(bundle, other).events == len(read_events(home))


@contextmanager
def limit_file_size(size: int) -> Generator[None]:
    """Limit the size of each file, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.spec("K14")
def test_a_full_disk_leaves_no_partial_bundle(home: Path, tmp_path: Path) -> None:
    fill_home(home, dreams=False)
    with Memory.open(home, embedder=None) as memory:
        with limit_file_size(1_000), pytest.raises(StorageFull):
            memory.export(tmp_path / "b")
        assert os.listdir(tmp_path) == ["home"]
        assert memory.export(tmp_path / "b").events == len(read_events(home))


@pytest.mark.spec("K14", "N67")
def test_a_full_disk_leaves_the_home_unchanged(home: Path, other: Path, tmp_path: Path) -> None:
    """The home stays unchanged if the journal fits and an extra file does not."""
    fill_home(home, dreams=False)
    for name, size in (("a", 10), ("b", 3_000_000)):
        (home / "resources" / "ada" / f"MEMORY.md.damaged-{name}").write_bytes(b"x" * size)
    bundle = export_home(home, tmp_path / "b")
    fill_home(other, session="mine", resource="ben", dreams=False)
    before = read_events(other)
    with Memory.open(other, embedder=None) as memory:
        for size in (50_000, 2_000_000):
            with limit_file_size(size), pytest.raises(StorageFull):
                memory.import_bundle(bundle)
            assert read_events(other) == before
            assert list(other.glob("resources/ada/*")) == []
        assert len(memory.import_bundle(bundle).extra_files) == 2


IMPORT_AND_DIE = """
import os, sys
from pathlib import Path
from inmind import Memory
from inmind.memory.bundle.extra_files import FolderExtraFiles
step, original = sys.argv[1], getattr(FolderExtraFiles, sys.argv[1])
def run_and_exit(*arguments):
    if step == "stage":
        original(*arguments)
    os._exit(9)
setattr(FolderExtraFiles, step, run_and_exit)
Memory.open(sys.argv[2], embedder=None).import_bundle(sys.argv[3])
"""


@pytest.mark.spec("C02", "N67")
@pytest.mark.parametrize("step", ["stage", "publish"])
def test_legacy_sessions_are_imported_with_the_journal_or_not_at_all(
    home: Path, other: Path, tmp_path: Path, step: str
) -> None:
    """After a kill before the last step, importing again adds the missing files."""
    fill_home(home, dreams=False)
    (home / "sessions" / "--w--" / "old.jsonl").write_text('{"role": "user", "content": "long ago"}\n', "utf-8")
    bundle = export_home(home, tmp_path / "b")
    fill_home(other, session="mine", resource="ben", dreams=False)
    ended = subprocess.run([sys.executable, "-c", IMPORT_AND_DIE, step, str(other), str(bundle)], check=False)
    assert ended.returncode == 9
    with Memory.open(other, embedder=None) as memory:
        assert {one.id for one in memory.sessions()} == ({"mine"} if step == "stage" else {"mine", "shop"})
        memory.import_bundle(bundle)
        assert {one.id for one in memory.sessions()} == {"mine", "shop", "old"}
    assert list(other.rglob(".inmind-*")) == []


STAGE_AND_DIE = """
import os, sys
from pathlib import Path
from inmind.memory.bundle.export_bundle import staging_folder
with staging_folder(Path(sys.argv[1])) as folder:
    (folder / "bundle").write_text("a conversation")
    os._exit(9)
"""


@pytest.mark.spec("C02")
def test_folders_of_killed_exports_are_removed_and_those_in_use_are_not(home: Path, tmp_path: Path) -> None:
    fill_home(home, dreams=False)
    subprocess.run([sys.executable, "-c", STAGE_AND_DIE, str(tmp_path / "b")], check=False)
    (leftover,) = tmp_path.glob(".inmind-bundle-*")
    with staging_folder(tmp_path / "c") as in_use:
        assert not leftover.exists()
        export_home(home, tmp_path / "b")
        assert list(tmp_path.glob(".inmind-bundle-*")) == [in_use]
    assert sorted(os.listdir(tmp_path)) == ["b", "home"]


def test_a_closed_memory_raises_closed(home: Path, tmp_path: Path) -> None:
    memory = Memory.open(home)
    memory.close()
    with pytest.raises(Closed):
        memory.export(tmp_path / "b")
    with pytest.raises(Closed):
        memory.import_bundle(tmp_path / "b")


def test_events_with_missing_sources_are_counted(other: Path, bundle: Path, tmp_path: Path) -> None:
    def lose(lines: list[dict[str, object]]) -> None:
        lines[3]["sources"] = ["session/gone#7"]

    assert import_into_home(change_events(bundle, tmp_path / "c", lose), other).missing_sources == 1


# -- commands -----------------------------------------------------------------------------------------


@pytest.mark.spec("I3")
def test_a_home_can_be_piped_from_export_to_import(home: Path, other: Path) -> None:
    fill_home(home)
    with subprocess.Popen(command("export", "-", home=home), stdout=subprocess.PIPE) as exporter:
        importer = subprocess.run(
            command("import", "--json", "-", home=other), stdin=exporter.stdout, capture_output=True, check=False
        )
    assert (exporter.returncode, importer.returncode, importer.stderr) == (0, 0, b"")
    assert json.loads(importer.stdout)["events"] == len(read_events(home))
    assert read_events(other) == read_events(home)


@pytest.mark.spec("I3", "N67")
def test_a_refused_import_creates_no_home(tmp_path: Path, other: Path) -> None:
    (tmp_path / "none.inmind").write_text("no bundle", "utf-8")
    result = run_in_process("import", str(tmp_path / "none.inmind"), home=other)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("inmind: INVALID_INPUT: bundle: expected a complete bundle")
    assert sorted(os.listdir(tmp_path)) == ["none.inmind"]


@pytest.mark.spec("I3")
def test_the_commands_print_their_results(
    home: Path, other: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fill_home(home, dreams=False)
    number = len(read_events(home))
    first = run_in_process("export", home=home)
    (bundle,) = tmp_path.glob("inmind-*.inmind")
    assert (first.exit_code, first.stderr) == (0, "")
    assert first.stdout.startswith(f"Exported 1 session, 1 resource, {number} events to {bundle.name}: ")
    again = run_in_process("export", bundle.name, home=home)
    assert (again.exit_code, again.stdout, "--force" in again.stderr) == (2, "", True)
    assert json.loads(run_in_process("export", bundle.name, "--force", "--json", home=home).stdout)["events"] == number
    assert run_in_process("import", bundle.name, home=other).stdout == (
        f"Imported {number} events into {other}; sessions and resources: 2 new, 0 continued, 0 unchanged.\n"
    )
    assert (
        run_in_process("import", bundle.name, home=other).stdout
        == f"Everything is in {other} already; nothing was changed.\n"
    )
    refused = run_in_process("import", bundle.name, "--into-new-home", home=other)
    assert (refused.exit_code, "an empty home" in refused.stderr) == (2, True)
    assert run_in_process("import", "nowhere", home=other).exit_code == 3
    assert run_in_process("export", "-", "--json", home=home).exit_code == 2


@pytest.mark.spec("I3")
def test_an_invalid_path_is_a_usage_error(home: Path, tmp_path: Path) -> None:
    fill_home(home, dreams=False)
    for place in (tmp_path / "nowhere" / "b", home / DATABASE):
        result = run_in_process("export", str(place), "--force", home=home)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith("inmind: INVALID_INPUT: FILE: expected a file")
    bundle = export_home(home, tmp_path / "b")
    result = run_in_process("import", str(bundle), home=Path("/proc/no home can be here"))
    assert (result.exit_code, result.stderr.startswith("inmind: UNSAFE_STORAGE: ")) == (5, True)
