"""`inmind doctor`: homes that were broken for real, what is said of them, and the steps that mend them, carried out.

Every examination here is also held to leaving no trace: not a byte and not a date of the home may change by it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw
import pytest
from builders import turns, user
from hypothesis import given, settings
from hypothesis import strategies as st
from model_server import chat, fails, model_server
from profiles import examples
from pydantic import BaseModel
from terminal import at_once, command, inmind, on_a_screen

from inmind import Memory, default_layers
from inmind.apps.doctor import DoctorFinding, DoctorReport, Verdict, run_checks
from inmind.core.encoding import digest
from inmind.core.events.base import Draft, EventPayload, Origin
from inmind.core.events.crystals import NoteAdded
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.dreams import DreamFailed, DreamStarted
from inmind.errors import Damaged
from inmind.layers import ScratchpadLayer
from inmind.store.sqlite.store import SqliteStore

pytestmark = pytest.mark.embedded

OK, WARNING, TROUBLE = Verdict

EARLIER = timedelta(minutes=1)
"""So long ago that nobody can still be writing what has happened then."""

Break = Callable[[Path], object]


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("lived_in") / "home"
    with Memory.open(home, clock=lambda: datetime.now(UTC) - EARLIER) as memory:
        session = memory.session("support-42", resource="ada", cwd="/website")
        session.prepare([user("Create a page")])
        session.write("overview.md", "# Mine\n- a fact\n")
        session.write("MEMORY.md", "# Ada\n\n- Größe zählt\n")
        session.note("Ada prefers tabs")
        memory.search("tabs")
    return home


@pytest.fixture
def used(lived_in: Path, home: Path) -> Path:
    """A home that has seen some use, for a test to break."""
    shutil.copytree(lived_in, home)
    return home


OVERVIEW = "sessions/--website--/support-42/working-memory/overview.md"
STATE = "resources/ada/MEMORY.md"


def examined(home: Path, **options: Any) -> DoctorReport:
    before = _traces(home)
    found = run_checks(home, **options) if "online" in options else run_checks(home, online=False, **options)
    assert _traces(home) == before, "looking has left a trace"
    return found


def wrong(home: Path, **options: Any) -> list[DoctorFinding]:
    """What is wrong with a home."""
    return [finding for finding in examined(home, **options).findings if finding.verdict is not OK]


def only(home: Path, **options: Any) -> DoctorFinding:
    """The one thing that is wrong with a home."""
    found = wrong(home, **options)
    assert len(found) == 1, found
    return found[0]


def carry_out(finding: DoctorFinding) -> None:
    """Do what a finding says, as somebody would who types it."""
    steps = re.findall(r"`([^`]+)`", finding.fix)
    assert steps, finding.fix
    for step in steps:
        words = shlex.split(step.removeprefix("sudo "))
        if words[0] == "inmind":
            ran = at_once(*words[3:], home=Path(words[2]))
            assert words[1] == "--home"
            assert ran.exit_code == 0, ran.output
        else:
            subprocess.run(step.removeprefix("sudo "), shell=True, check=True, stdin=subprocess.DEVNULL)  # noqa: S602 -- the step


def _traces(home: Path) -> str:
    """All names, modes, dates and bytes; from another process, whose reading takes nobody's locks away."""
    look = r"find . -printf '%p %y %m %U %s %T@ %l\n' | sort; find . -type f -exec md5sum {} + | sort"
    if not home.is_dir():
        return str(home.lstat()) if os.path.lexists(home) else ""
    return subprocess.run(["sh", "-c", look], cwd=home, capture_output=True, text=True, check=True).stdout


def by_sql(home: Path, statement: str, *bindings: object, file: str = "inmind.db") -> None:
    connection: Any = apsw.Connection(str(home / file))
    connection.execute(statement, bindings)
    connection.close()


def happened(home: Path, stream: str, *what: EventPayload, at: datetime | None = None) -> None:
    """Events behind the last one of a stream, as a process leaves them that was killed before it did anything else."""
    store = SqliteStore(home / "inmind.db")
    drafts = [Draft(payload=one, origin=Origin.DREAM) for one in what]
    store.append(stream, drafts, expected=store.version(stream), at=at or datetime.now(UTC))
    store.close()


def _emptied(file: Path) -> None:
    os.truncate(file, 0)


def _without_tables(file: Path) -> None:
    file.unlink()
    connection: Any = apsw.Connection(str(file))
    connection.execute("CREATE TABLE t (x); DROP TABLE t")
    connection.close()


def kill_in_the_middle(script: str, *arguments: str) -> None:
    ended = subprocess.run([sys.executable, "-c", script, *arguments], check=False, timeout=60, capture_output=True)
    assert ended.returncode == -9, ended.stderr


# -- a home that is sound ----------------------------------------------------------------------------------


def test_nothing_is_found_wrong_with_a_sound_home_and_every_check_says_so(used: Path) -> None:
    found = examined(used)
    assert found.with_verdict(WARNING) + found.with_verdict(TROUBLE) == []
    assert (found.verdict, found.home) == (OK, used)
    assert {finding.check for finding in found.findings} >= {
        "home", "permissions", "writing", "files", "file system", "free space", "size", "config.toml", "database",
        "schema", "events", "snapshots", "clock", "pages", "damaged files", "scratchpads", "leftovers", "leases",
        "failures", "notes", "index", "unreadable messages", "embedder", "vectors", "endpoint", "versions", "extras",
        "SQLite",
    }  # fmt: skip


_GO_ON_WRITING = """
import sys, time
from inmind import Memory
with Memory.open(sys.argv[1], embedder=None) as memory:
    session = memory.session("support-42")
    for number in range(1_000_000):
        session.note(f"note {number}")
        session.add([{"role": "user", "content": f"message {number}"}])
        session.write("overview.md", f"page {number}\\n")
        if number % 50 == 0:
            session.search("page")  # the index would fall behind, and the doctor would be right to say so
        print(number, flush=True)
        time.sleep(0.005)  # or there would be more to examine each time than the last
"""


@pytest.mark.exhaustive
@pytest.mark.spec("J2")
def test_a_home_in_use_has_no_findings(used: Path) -> None:
    writer = subprocess.Popen([sys.executable, "-c", _GO_ON_WRITING, str(used)], stdout=subprocess.PIPE)
    assert writer.stdout
    try:
        for _ in range(25):
            assert writer.stdout.readline(), "nobody wrote"
            found = run_checks(used, online=False, embedder=None)
            assert found.with_verdict(WARNING) + found.with_verdict(TROUBLE) == []
        assert writer.poll() is None, "it has ceased to write"
    finally:
        writer.kill()
        writer.communicate()


@pytest.mark.spec("J2")
def test_nothing_is_found_wrong_with_a_home_that_others_open_and_close_all_the_time(used: Path) -> None:
    rounds: list[int] = []

    def come_and_go() -> None:
        while len(rounds) < 25:
            with Memory.open(used, embedder=None) as memory:
                memory.session("support-42").note("in passing")
                memory.search("passing")

    with ThreadPoolExecutor(1) as pool:
        visitor = pool.submit(come_and_go)
        while len(rounds) < 25 and not visitor.done():
            found = run_checks(used, online=False, embedder=None)
            rounds.append(1)
            assert [
                one for one in found.with_verdict(WARNING) + found.with_verdict(TROUBLE) if one.check != "database"
            ] == []
            assert found.with_verdict(TROUBLE) == []
        visitor.result()


@pytest.mark.spec("J2")
def test_a_home_that_others_use_is_examined_without_disturbing_them(used: Path) -> None:
    with Memory.open(used) as memory:
        session = memory.session("support-42")
        session.note("still in the write-ahead log")
        memory.flush()
        found = examined(used)
        assert found.verdict is OK
        assert any(finding.message.startswith("2 notes") for finding in found.findings)
        session.note("and on")
    assert wrong(used) == []


_WRITE_AND_DIE = """
import os, sys
from inmind import Memory
session = Memory.open(sys.argv[1], embedder=None).session("support-42")
session.add([{"role": "user", "content": "said by one who was killed"}])
os.kill(os.getpid(), 9)
"""


@pytest.mark.spec("J1", "C02")
def test_the_log_of_a_killed_writer_is_read_and_left_for_the_next_one_to_recover(used: Path) -> None:
    kill_in_the_middle(_WRITE_AND_DIE, str(used))
    assert (used / "inmind.db-wal").stat().st_size > 0, "it was not killed in time"
    with_index = examined(used)
    (used / "inmind.db-shm").unlink()
    without = examined(used)
    seen = [[one.message for one in found.findings if one.check == "events"] for found in (with_index, without)]
    assert seen[0] == seen[1] == ["all 11 of 1 session and 1 resource are readable, none missing"]
    assert with_index.verdict is without.verdict is OK
    at_once("sessions", home=used)
    assert wrong(used) == []


@pytest.mark.spec("J2")
def test_a_home_opened_during_the_check_is_checked_again(used: Path) -> None:
    begun: list[int] = []

    def begin(_doing: str, done: int, total: int) -> None:
        if total and not begun:
            begun.append(done)
            with Memory.open(used) as memory:
                memory.session("support-42").note("while somebody was looking")

    found = run_checks(used, online=False, watch=begin)
    assert found.verdict is OK
    assert [one.message for one in found.findings if one.check == "notes"] == ["2 notes waiting"]


@pytest.mark.spec("J3")
@settings(max_examples=examples(20))
@given(file=st.sampled_from(["inmind.db", "index.db"]), places=st.lists(st.floats(0, 1, exclude_max=True), min_size=1))
def test_whatever_bytes_are_flipped_it_is_told_and_nothing_is_touched(
    lived_in: Path, file: str, places: list[float]
) -> None:
    with TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        shutil.copytree(lived_in, home)
        content = bytearray((home / file).read_bytes())
        for place in places:
            content[int(place * len(content))] ^= 0x11
        (home / file).write_bytes(content)
        examined(home, embedder=None)


# -- the place ---------------------------------------------------------------------------------------------


@pytest.mark.spec("J3")
def test_a_home_that_is_not_there_is_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "none"
    assert only(home).verdict is TROUBLE
    monkeypatch.setenv("INMIND_HOME", str(home))
    assert only(home).verdict is WARNING  # where everybody begins
    assert not home.exists()


@pytest.mark.spec("J3")
def test_a_file_in_the_place_of_a_home_is_moved_aside(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("a shopping list")
    finding = only(home)
    assert (finding.check, finding.verdict) == ("home", TROUBLE)
    carry_out(finding)
    assert (tmp_path / "home.aside").read_text() == "a shopping list"
    assert "no home at" in only(home).message


def test_a_link_that_leads_nowhere_is_told_as_one(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.symlink_to(tmp_path / "gone")
    assert "is a dangling link" in only(home).message


@pytest.mark.spec("J1")
@pytest.mark.parametrize(
    ("lost", "kept"),
    [
        (Path.unlink, "sessions"),
        (Path.unlink, "resources"),
        (_emptied, "index.db"),
        (_without_tables, "resources"),
    ],
)
def test_no_new_journal_is_begun_where_one_is_gone(used: Path, lost: Break, kept: str) -> None:
    saved = used.parent / "saved.db"
    shutil.copy(used / "inmind.db", saved)
    lost(used / "inmind.db")
    for other in {"sessions", "resources", "index.db"} - {kept}:
        subprocess.run(["rm", "-r", used / other], check=True)
    (finding,) = [one for one in wrong(used) if one.check in ("home", "database")]
    assert finding.verdict is TROUBLE
    assert kept in finding.message
    before = _traces(used)
    with pytest.raises(Damaged, match="missing or empty"):
        Memory.open(used)
    assert _traces(used) == before
    shutil.copy(saved, used / "inmind.db")
    assert [one for one in wrong(used) if one.verdict is TROUBLE] == []


@pytest.mark.spec("J1")
def test_a_lost_home_is_moved_away_to_start_over(used: Path) -> None:
    (used / "inmind.db").unlink()
    carry_out(only(used))
    Memory.open(used).close()
    assert wrong(used) == []


def test_pages_and_older_sessions_alone_are_no_sign_of_a_journal_that_is_gone(home: Path) -> None:
    begun = home / "resources" / "ada" / "MEMORY.md"
    older = home / "sessions" / "--w--" / "old.jsonl"
    for file in (begun, older):
        file.parent.mkdir(parents=True)
        file.write_text("")
    assert [one for one in wrong(home) if one.check == "home"] == []
    Memory.open(home).close()


@pytest.mark.spec("J2")
def test_a_home_that_several_make_at_once_is_taken_by_none_of_them_for_a_lost_one(tmp_path: Path) -> None:
    def begin(home: Path) -> None:
        with Memory.open(home, embedder=None) as memory:
            memory.session("s", cwd="/w").note("first")

    with ThreadPoolExecutor(4) as pool:
        for number in range(15):
            home = tmp_path / str(number)
            for begun in [pool.submit(begin, home) for _ in range(4)]:
                begun.result()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_home_of_another_user_is_reported_with_its_owner(used: Path) -> None:
    os.chown(used / "inmind.db", 12345, 12345)
    finding = only(used)
    assert (finding.check, finding.verdict) == ("permissions", TROUBLE)
    assert "inmind.db belongs to user 12345" in finding.message
    carry_out(finding)
    assert wrong(used) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
@pytest.mark.spec("J3")
def test_a_home_that_may_not_be_looked_into_is_told(used: Path) -> None:
    run_checks(used, online=False)  # whoever has no rights there may have none where Python is either
    os.seteuid(12345)
    try:
        found = run_checks(used, online=False).with_verdict(TROUBLE)
    finally:
        os.seteuid(0)
    assert [(one.check, "Permission denied" in one.message) for one in found] == [("home", True)]


@pytest.fixture
def other_users_home(lived_in: Path) -> Generator[Path]:
    """The home of a user who is not root, who is let everywhere; the test is run by its owner."""
    with TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        shutil.copytree(lived_in, home)
        run_checks(home, online=False)  # whoever has no rights there may have none where Python is either
        if os.geteuid() == 0:
            for place in (Path(folder), home, *home.rglob("*")):
                os.chown(place, 12345, 12345)
            os.seteuid(12345)
            try:
                yield home
            finally:
                os.seteuid(0)
        else:
            yield home


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
@pytest.mark.spec("J3")
def test_a_private_home_can_be_fixed_only_by_its_owner(other_users_home: Path) -> None:
    other_users_home.parent.chmod(0o755)
    os.seteuid(0)
    os.seteuid(54321)
    found = run_checks(other_users_home, online=False).with_verdict(TROUBLE)
    assert [one.message for one in found] == [f"{other_users_home}: permission denied"]
    assert found[0].fix == f"run inmind as user 12345, or `sudo chown -R 54321 {other_users_home}`"


@pytest.mark.spec("J1")
@pytest.mark.parametrize(
    ("place", "mode"), [(".", 0o500), ("inmind.db", 0o400), ("index.db", 0o400), ("resources/ada", 0o500)]
)
def test_a_home_that_cannot_be_written_is_trouble(other_users_home: Path, place: str, mode: int) -> None:
    (other_users_home / place).chmod(mode)
    finding = only(other_users_home)
    assert (finding.check, finding.verdict) == ("writing", TROUBLE)
    assert f"{'the home itself' if place == '.' else place} cannot be written" in finding.message
    carry_out(finding)
    assert wrong(other_users_home) == []


def _folders_in_folders(home: Path, name: str, depth: int) -> None:
    folder = os.open(home, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, 0o700, dir_fd=folder)
        inner = os.open(name, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)


@pytest.mark.spec("J3")
def test_folders_in_folders_are_gone_through_however_many_they_are(used: Path) -> None:
    _folders_in_folders(used, "d", sys.getrecursionlimit() + 100)
    assert run_checks(used, online=False, embedder=None).verdict is OK
    subprocess.run(["rm", "-r", used / "d"], check=True)


@pytest.mark.spec("J3")
def test_folders_that_no_path_can_name_are_told_with_one_that_it_can(used: Path) -> None:
    _folders_in_folders(used, 200 * "d", 30)
    finding = only(used)
    assert (finding.check, finding.verdict) == ("files", WARNING)
    assert "are nested deeper than the path length limit" in finding.message
    carry_out(finding)
    assert wrong(used) == []


@pytest.mark.spec("F54")
@pytest.mark.parametrize(("mode", "verdict"), [(0o640, WARNING), (0o622, TROUBLE)])
def test_what_others_may_read_or_write_is_closed_to_them(used: Path, mode: int, verdict: Verdict) -> None:
    (used / STATE).chmod(mode)
    finding = only(used)
    assert (finding.check, finding.verdict) == ("permissions", verdict)
    assert STATE in finding.message
    carry_out(finding)
    assert wrong(used) == []


@pytest.mark.spec("F54")
@pytest.mark.parametrize("kind", ["link", "pipe", "socket"])
def test_a_special_file_is_reported_and_never_blocks(used: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = used / "resources" / "ada" / "odd"
    match kind:
        case "link":
            odd.symlink_to("/etc/passwd")
        case "pipe":
            os.mkfifo(odd, 0o600)
        case _:
            with socket.socket(socket.AF_UNIX) as listening:
                monkeypatch.chdir(odd.parent)  # what a socket is called has to be short
                listening.bind(odd.name)
            odd.chmod(0o600)
    finding = only(used)
    assert finding.message.startswith(f"resources/ada/odd is a {kind}")
    carry_out(finding)
    assert wrong(used) == []


@pytest.mark.spec("F54")
@pytest.mark.parametrize(
    ("name", "check", "verdict"),
    [("inmind.db", "database", TROUBLE), ("index.db", "index", WARNING), ("config.toml", "config.toml", TROUBLE)],
)
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(used: Path, name: str, check: str, verdict: Verdict) -> None:
    (used / name).unlink(missing_ok=True)
    os.mkfifo(used / name, 0o600)
    shape, finding = wrong(used)
    assert f"{name} is a pipe" in shape.message
    assert (finding.check, finding.verdict) == (check, verdict)
    assert "not a regular file" in finding.message


def test_a_database_with_a_second_name_gets_one_of_its_own(used: Path) -> None:
    os.link(used / "inmind.db", used.parent / "second.db")
    finding = only(used)
    assert (finding.check, finding.verdict) == ("files", TROUBLE)
    carry_out(finding)
    assert wrong(used) == []


@pytest.mark.spec("J1")
def test_a_disk_that_is_read_only_is_told_and_the_rest_examined(used: Path, tmp_path: Path) -> None:
    place = tmp_path / "mounted"
    place.mkdir()
    doctor = shlex.join(command("doctor", "--offline", "--json", home=place))
    script = "\n".join(
        [
            "set -e",
            f"mount -t tmpfs -o mode=700 tmpfs {place}",
            f"cp -a {used}/. {place}",
            f"mount -o remount,ro {place}",
            f"{doctor} || true",
            "echo NEXT",
            f"mount -o remount,rw {place}",
            doctor,
        ]
    )
    ran = subprocess.run(["unshare", "-Urm", "sh", "-c", script], capture_output=True, text=True, check=False)
    if "NEXT" not in ran.stdout and ("unshare" in ran.stderr or "mount" in ran.stderr):
        pytest.skip("this machine lets nobody mount")
    before, after = map(json.loads, ran.stdout.split("NEXT"))
    (finding,) = [one for one in before["findings"] if one["verdict"] == "trouble"]
    assert (finding["check"], f"remount,rw {place}" in finding["mend"]) == ("file system", True)
    assert "are readable" in str(before["findings"])
    assert after["verdict"] != "trouble"


# -- the database ------------------------------------------------------------------------------------------


@pytest.mark.spec("M41")
def test_an_sqlite_that_can_damage_a_shared_log_is_told(used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.50.4")
    by_sql(used, "PRAGMA journal_mode=delete")
    by_sql(used, "PRAGMA journal_mode=delete", file="index.db")
    finding = only(used)
    assert (finding.check, finding.verdict) == ("SQLite", WARNING)
    assert "apsw>=3.51.3" in finding.fix


@pytest.mark.spec("M36")
def test_an_older_schema_is_brought_up_by_the_next_opening(used: Path) -> None:
    by_sql(used, "DROP TABLE allowances; DROP INDEX streams_by_owner; ALTER TABLE streams DROP COLUMN owner")
    by_sql(used, "PRAGMA user_version=9")
    finding = only(used)
    assert (finding.check, finding.verdict) == ("schema", WARNING)
    carry_out(finding)
    assert wrong(used) == []


@pytest.mark.spec("M36")
def test_a_newer_schema_is_told_with_what_to_upgrade(used: Path) -> None:
    by_sql(used, "PRAGMA user_version=99")
    finding = only(used)
    assert (finding.check, finding.verdict) == ("schema", TROUBLE)
    assert "pip install --upgrade inmind" in finding.fix


def test_a_file_that_is_no_database_is_no_sound_one(used: Path) -> None:
    (used / "inmind.db").write_bytes(b"this is no database at all, though it is long enough to be one" * 9)
    finding = only(used)
    assert finding.check == "database"
    assert "is damaged: file is not a database" in finding.message


def test_a_database_of_another_program_is_told_as_one(used: Path) -> None:
    by_sql(used, "PRAGMA application_id=7")
    assert "database of another program" in only(used).message


@pytest.mark.spec("M40")
def test_flipped_bytes_in_the_pages_of_a_closed_database_are_found_and_an_export_is_brought_back(
    used: Path, tmp_path: Path
) -> None:
    bundle = tmp_path / "last.inmind"
    assert at_once("export", str(bundle), home=used).exit_code == 0
    whole = bytearray((used / "inmind.db").read_bytes())
    page = int.from_bytes(whole[16:18], "big")
    for start in range(page, len(whole), page):
        whole[start : start + 64] = bytes(byte ^ 0x55 for byte in whole[start : start + 64])
    (used / "inmind.db").write_bytes(whole)
    finding = only(used)
    assert (finding.check, finding.verdict) == ("database", TROUBLE)
    new = tmp_path / "new"
    carry_out(replace(finding, fix=_filled_in(finding.fix, new, bundle)))
    assert wrong(new, embedder=None) == []
    assert {one.message for one in examined(new).findings} >= {"1 note waiting"}


def _filled_in(mend: str, home: Path, bundle: Path) -> str:
    """The last step, which has words in it that stand for what only its reader knows."""
    return f"`{mend.rpartition(': `')[2]}".replace("NEW", str(home)).replace("FILE", str(bundle))


def test_a_lookup_table_that_disagrees_with_its_rows_is_rebuilt(used: Path) -> None:
    connection: Any = apsw.Connection(str(used / "inmind.db"))
    root = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name='events_by_stream'").get
    size = connection.pragma("page_size")
    connection.close()
    with (used / "inmind.db").open("r+b") as file:
        file.seek(root * size - 1)
        last = file.read(1)[0]
        file.seek(root * size - 1)
        file.write(bytes([last ^ 0x40]))
    finding = only(used)
    assert (finding.check, finding.verdict) == ("database", TROUBLE)
    assert "a database index is damaged" in finding.message
    carry_out(finding)
    assert wrong(used) == []


_DIE_IN_A_TRANSACTION = """
import apsw, os, sys
connection = apsw.Connection(sys.argv[1])
connection.pragma("journal_mode", "delete")
connection.pragma("cache_size", 5)
connection.execute("BEGIN IMMEDIATE")
for number in range(500):
    connection.execute("INSERT INTO streams (name) VALUES (?)", (f"{number}" + 900 * "x",))
os.kill(os.getpid(), 9)
"""


@pytest.mark.spec("J1")
def test_a_half_written_transaction_is_taken_back_by_the_next_opening(used: Path) -> None:
    kill_in_the_middle(_DIE_IN_A_TRANSACTION, str(used / "inmind.db"))
    assert (used / "inmind.db-journal").exists(), "it was not killed in the middle"
    finding = only(used)
    assert (finding.check, finding.verdict) == ("database", WARNING)
    carry_out(finding)
    assert wrong(used) == []


# -- the streams -------------------------------------------------------------------------------------------


@pytest.mark.spec("A1")
@pytest.mark.parametrize(
    ("change", "seen"),
    [
        ("UPDATE events SET body='{' WHERE seq=2", "#2 is damaged"),
        ("UPDATE events SET kind='hovered' WHERE seq=3", "upgrade inmind to read it"),
        ("DELETE FROM events WHERE seq=2 AND stream=1", "lacks event 2 but has later ones"),
    ],
)
def test_events_that_are_damaged_unknown_or_missing_are_named(used: Path, change: str, seen: str) -> None:
    by_sql(used, change)
    found = [one for one in wrong(used) if one.check == "events"]
    assert found
    assert all(one.verdict is TROUBLE for one in found)
    assert any(seen in one.message for one in found)


@pytest.mark.spec("A1", "M39")
@pytest.mark.parametrize("role", ["null", '"oracle"'])
def test_a_message_that_search_passes_over_is_told(used: Path, role: str) -> None:
    with Memory.open(used, embedder=None) as memory:
        memory.session("odd", resource="ada").add([user("a title"), user("who said this?")])
    by_sql(used, "UPDATE events SET body = json_set(body, '$.wire.role', json(?)) WHERE body LIKE '%who said%'", role)
    finding = only(used, embedder=None)
    assert (finding.check, finding.verdict) == ("unreadable messages", WARNING)
    assert finding.message.startswith("session/odd#")


@pytest.mark.spec("A1", "J3")
def test_an_unreadable_stream_hides_no_finding_of_others(used: Path) -> None:
    happened(used, "resource/ada", DreamStarted(trigger="asked", proposer="rules", lease_until="soon"))
    (used / OVERVIEW).unlink()
    stream, page = wrong(used)
    assert (stream.check, stream.verdict) == ("events", TROUBLE)
    assert stream.message.startswith("resource/ada cannot be folded: ")
    assert f"{OVERVIEW} is missing" in page.message


@pytest.mark.spec("J3")
def test_a_note_of_the_first_day_of_all_is_no_reason_to_stop(used: Path) -> None:
    page = used / "resources/ada/memory/scratch.md"
    page.write_text("- [0001-01-01T00:00:00+14:00 general 0.5] older than time\n")
    assert [one.check for one in wrong(used)] == ["pages"]
    at_once("show", "overview", "support-42", home=used)
    assert wrong(used) == []


@pytest.mark.spec("A2")
def test_a_snapshot_that_is_not_as_it_was_written_is_dropped(used: Path) -> None:
    _with_a_snapshot(used)
    assert wrong(used, embedder=None) == []
    by_sql(used, "UPDATE snapshots SET body = replace(body, 'question', 'quarrel')")
    finding = only(used, embedder=None)
    assert (finding.check, finding.verdict) == ("snapshots", WARNING)
    carry_out(finding)
    assert wrong(used, embedder=None) == []


@pytest.mark.spec("A2")
def test_a_snapshot_that_says_something_else_than_its_events_is_trouble(used: Path) -> None:
    """Sealed as ours are: it would be believed, and nobody could tell without folding from the beginning."""
    _with_a_snapshot(used)
    connection: Any = apsw.Connection(str(used / "inmind.db"))
    of_it = "WHERE stream = (SELECT id FROM streams WHERE name = 'session/long')"
    seq, body = connection.execute(f"SELECT seq, body FROM snapshots {of_it}").fetchone()
    forged = body.partition("\n")[2].replace("question", "quarrel")
    sealed = f"{digest('session/long', str(seq), forged)}\n{forged}"
    connection.execute(f"UPDATE snapshots SET body = ? {of_it}", (sealed,))
    connection.close()
    finding = only(used, embedder=None)
    assert (finding.check, finding.verdict) == ("snapshots", TROUBLE)
    carry_out(finding)
    assert wrong(used, embedder=None) == []


def _with_a_snapshot(home: Path) -> None:
    with Memory.open(home, embedder=None) as memory:
        session = memory.session("long", resource="ada", cwd="/website")
        session.write("overview.md", "a question\n")
        session.add(turns(110, words=1))


def test_events_of_the_future_are_told_until_then(used: Path) -> None:
    yesterday = datetime.now(UTC) - timedelta(days=1)
    found = wrong(used, clock=lambda: yesterday)
    assert {one.check for one in found} == {"clock"}
    assert wrong(used) == []


# -- the pages ---------------------------------------------------------------------------------------------


def says(content: str | bytes) -> Break:
    return lambda file: file.write_bytes(content.encode() if isinstance(content, str) else content)


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.read_bytes().index("ö".encode()) + 1])


def _shared(file: Path) -> None:
    other = file.parents[3] / "elsewhere.md"
    other.write_text("somebody's words\n")
    file.unlink()
    os.link(other, file)
    file.chmod(0o600)


def _folder(file: Path) -> None:
    file.unlink()
    file.mkdir(mode=0o700)


@pytest.mark.spec("A5", "C05")
@pytest.mark.parametrize(
    ("page", "happens", "seen"),
    [
        (STATE, says("# Ada\n\n- by hand\n"), "was edited"),
        (OVERVIEW, says("- by hand\n"), "was edited"),
        (STATE, Path.unlink, "is missing"),
        (OVERVIEW, Path.unlink, "is missing"),
        (STATE, _shared, "has a hard link"),
        (STATE, _folder, "is ignored: it is not a plain file"),
        ("sessions/--website--/support-42/messages.jsonl", says(""), "is out of date"),
        ("sessions/--website--/support-42/messages.jsonl", Path.unlink, "is missing"),
    ],
)
def test_a_page_that_differs_from_the_journal_is_brought_together_with_it(
    used: Path, page: str, happens: Break, seen: str
) -> None:
    happens(used / page)
    finding = only(used)
    assert (finding.check, finding.verdict) == ("pages", WARNING)
    assert f"{page} {seen}" in finding.message
    carry_out(finding)
    assert "hard link" in seen or "is ignored" in seen or wrong(used) == []


@pytest.mark.spec("A5", "C05")
@pytest.mark.parametrize(
    ("page", "damage"),
    [
        (STATE, _cut),
        (STATE, says("")),
        ("sessions/--website--/support-42/messages.jsonl", says("scribbled over\n")),
    ],
)
def test_a_damaged_page_is_restored_and_its_bytes_are_kept(used: Path, page: str, damage: Break) -> None:
    damage(used / page)
    left = (used / page).read_bytes()
    finding = only(used)
    assert f"{page} is damaged" in finding.message
    carry_out(finding)
    aside = only(used)
    assert (aside.check, aside.verdict) == ("damaged files", WARNING)
    assert (used / aside.message.partition(":")[0]).read_bytes() == left
    carry_out(aside)
    assert wrong(used) == []


@pytest.mark.spec("C04")
def test_a_page_that_a_killed_writer_has_not_shown_is_shown_by_the_next_call(used: Path) -> None:
    newer = DocumentWritten(path="MEMORY.md", text="# Ada\n\n- newer\n")
    happened(used, "resource/ada", newer, at=datetime.now(UTC) - EARLIER)
    finding = only(used)
    assert f"{STATE} is out of date" in finding.message
    carry_out(finding)
    assert wrong(used) == []
    assert "newer" in (used / STATE).read_text()


def test_pages_of_a_resource_that_has_no_session_are_looked_after_by_a_dream(used: Path) -> None:
    happened(used, "resource/bob", DocumentWritten(path="MEMORY.md", text="# Bob\n"))
    assert at_once("dream", "run", "bob", home=used).exit_code == 0
    assert wrong(used) == []
    (used / "resources/bob/MEMORY.md").unlink()
    finding = only(used, clock=lambda: datetime.now(UTC) + EARLIER)
    assert "dream run bob" in finding.fix
    carry_out(finding)
    assert wrong(used) == []


def test_a_file_among_the_pages_that_is_not_a_page_is_reported(used: Path) -> None:
    stranger = (used / OVERVIEW).with_name("todo.md")
    stranger.write_text("read me\n")
    stranger.chmod(0o600)
    assert "todo.md is ignored" in only(used).message


@pytest.mark.spec("C02")
@pytest.mark.parametrize("place", ["sessions/--website--/support-42/working-memory", "resources/ada", "resources"])
def test_what_killed_writers_have_left_is_tidied(used: Path, place: str) -> None:
    left = used / place / ".inmind-part-overview.md"
    left.write_text("half a pa")
    left.chmod(0o600)
    assert wrong(used) == []  # whoever writes it may not have come to an end
    long_ago = (datetime.now(UTC) - EARLIER).timestamp()
    os.utime(left, (long_ago, long_ago))
    finding = only(used)
    assert (finding.check, finding.verdict) == ("leftovers", WARNING)
    carry_out(finding)
    assert not left.exists()
    assert wrong(used) == []


class Task(BaseModel):
    goal: str = ""


class Errand(BaseModel):
    goal: int = 0


@pytest.mark.spec("C3")
def test_a_scratchpad_that_was_set_aside_is_listed_with_what_it_held(used: Path) -> None:
    for schema, goal in ((Task, "ship it"), (Errand, 1)):
        with Memory.open(used) as memory:
            session = memory.session("pad", resource="ada", layers=default_layers(ScratchpadLayer(schema=schema)))
            session.scratchpad.update({"goal": goal})
            aside = [one.state for one in session.scratchpad.set_aside]
    found = examined(used)
    (finding,) = [one for one in found.findings if one.check == "scratchpads"]
    assert found.verdict is finding.verdict is OK
    assert "{'goal': 'ship it'}" in finding.message
    assert "session.scratchpad.set_aside" in finding.fix
    assert aside == [{"goal": "ship it"}]


# -- dreams ------------------------------------------------------------------------------------------------


def _begun(ago: timedelta) -> DreamStarted:
    until = datetime.now(UTC) - ago + timedelta(seconds=60)
    return DreamStarted(trigger="asked", proposer="rules", lease_until=until.isoformat())


@pytest.mark.spec("K22", "G7")
def test_the_lease_of_a_dream_that_died_is_told_and_one_that_holds_is_not(used: Path) -> None:
    happened(used, "resource/ada", _begun(timedelta(0)))
    assert wrong(used) == []
    happened(used, "resource/ada", _begun(timedelta(hours=1)), at=datetime.now(UTC) - timedelta(hours=1))
    finding = only(used)
    assert (finding.check, finding.verdict) == ("leases", WARNING)
    carry_out(finding)
    assert wrong(used) == []


@pytest.mark.spec("B47")
def test_dreams_that_keep_failing_are_told_with_the_reason_of_the_last(used: Path) -> None:
    for _ in range(3):
        happened(used, "resource/ada", _begun(timedelta(0)))
        store = SqliteStore(used / "inmind.db")
        begun = store.version("resource/ada")
        store.close()
        failed = DreamFailed(dream=begun, phase="gather", code="STORAGE_FULL", reason="no room")
        happened(used, "resource/ada", failed)
    finding = only(used)
    assert (finding.check, finding.verdict) == ("failures", WARNING)
    assert "3 dreams of ada failed: STORAGE_FULL: no room" in finding.message
    carry_out(finding)
    assert wrong(used) == []


def test_notes_that_no_dream_takes_in_are_told(used: Path) -> None:
    happened(used, "resource/ada", NoteAdded(text="from last week"), at=datetime.now(UTC) - timedelta(days=7))
    at_once("show", "overview", "support-42", home=used)
    finding = only(used)
    assert (finding.check, finding.verdict) == ("notes", WARNING)
    carry_out(replace(finding, fix=finding.fix.partition(", or ")[0]))
    assert wrong(used) == []


# -- search ------------------------------------------------------------------------------------------------


@pytest.mark.spec("M39")
def test_an_index_that_was_deleted_is_made_by_the_next_search(used: Path) -> None:
    (used / "index.db").unlink()
    (finding,) = [one for one in examined(used).findings if one.check == "index"]
    assert (finding.verdict, finding.message) == (OK, "none: the next search builds it")
    with Memory.open(used, embedder=None) as memory:
        memory.session("long", resource="ada").add(turns(260, words=1))
    finding = only(used)
    assert (finding.check, finding.verdict) == ("index", WARNING)
    carry_out(finding)
    assert wrong(used) == []


def of_index(statement: str) -> Break:
    return lambda file: by_sql(file.parent, statement, file=file.name)


def _flip(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:4096] + b"\x55" * (file.stat().st_size - 4096))


@pytest.mark.spec("M39")
@pytest.mark.parametrize(
    "happens",
    [
        _flip,
        says("no index" * 99),
        of_index("PRAGMA user_version=1"),
        of_index("UPDATE followed SET event='session/other#1'"),
    ],
)
def test_a_damaged_or_foreign_index_is_rebuilt(used: Path, happens: Break) -> None:
    happens(used / "index.db")
    finding = only(used)
    assert (finding.check, finding.verdict) == ("index", WARNING)
    carry_out(finding)
    assert wrong(used) == []


class Host:
    """An embedder of a host's own."""

    name, dimensions = "own", 2

    def embed(self, texts: Any) -> list[list[float]]:
        return [[1.0, float(len(text))] for text in texts]


class Broken(Host):
    def embed(self, texts: Any) -> list[list[float]]:
        raise RuntimeError(f"no weights for {len(texts)}")


@pytest.mark.spec("H4")
def test_vectors_of_another_embedder_are_rebuilt(used: Path) -> None:
    (used / "index.db").unlink()
    with Memory.open(used, embedder=Host()) as memory:
        memory.run_upkeep()
    assert wrong(used, embedder=Host()) == []
    finding = only(used)
    assert (finding.check, finding.verdict) == ("vectors", WARNING)
    assert "created by own#2" in finding.message
    carry_out(finding)
    assert wrong(used) == []


@pytest.mark.spec("H4")
def test_an_embedder_that_fails_is_told_with_what_it_said(used: Path) -> None:
    finding = only(used, embedder=Broken(), online=True)
    assert (finding.check, finding.verdict) == ("embedder", WARNING)
    assert "no weights for 1" in finding.message


# -- settings and the model --------------------------------------------------------------------------------


def configure(home: Path, text: str) -> None:
    (home / "config.toml").write_text(text)
    (home / "config.toml").chmod(0o600)


@pytest.mark.spec("J3", "G15")
@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("[dream]\nenabeld = false\n", "did you mean dream.enabled?"),
        ("[dream\n", "a readable file of TOML"),
        ("[dream]\nenabled = 'no'\n", "dream.enabled = 'no': expected true or false"),
    ],
)
def test_settings_that_keep_the_home_from_being_opened_are_trouble(used: Path, text: str, seen: str) -> None:
    configure(used, text)
    finding = only(used)
    assert (finding.check, finding.verdict) == ("config.toml", TROUBLE)
    assert seen in finding.message
    configure(used, "[dream]\nenabled = false\n")
    assert wrong(used) == []


def test_a_model_that_answers_is_asked_for_one_token_and_not_at_all_offline(used: Path) -> None:
    with model_server() as server:
        configure(used, f'[model]\nurl = "{server.url}"\nname = "tiny"\n')
        assert wrong(used, online=False) == []
        assert server.asked == []
        server.will(chat("ready", ended="length"))
        assert wrong(used, online=True) == []
        assert [asked.body["max_tokens"] for asked in server.asked] == [1]


def test_a_model_that_refuses_or_cannot_be_reached_is_told_and_no_trouble(used: Path) -> None:
    with model_server() as server:
        configure(used, f'[model]\nurl = "{server.url}"\nname = "tiny"\n')
        server.will(fails(401, "who are you"))
        assert "answered 401: 'who are you'" in only(used, online=True).message
    finding = only(used, online=True)
    assert (finding.check, finding.verdict) == ("endpoint", WARNING)
    assert "cannot be reached" in finding.message


def test_a_key_that_is_looked_for_in_a_variable_that_is_not_set_is_told(
    used: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(used, '[model]\nurl = "http://127.0.0.1:9/v1"\nname = "tiny"\nkey_env = "SOME_KEY"\n')
    monkeypatch.delenv("SOME_KEY", raising=False)
    finding = only(used)
    assert (finding.check, finding.fix) == ("endpoint", "`export SOME_KEY=…`")
    monkeypatch.setenv("SOME_KEY", "a-key")
    assert wrong(used) == []


# -- the command -------------------------------------------------------------------------------------------


@pytest.mark.spec("I2")
def test_the_command_tells_each_finding_with_its_mend_and_ends_with_what_scripts_go_by(used: Path) -> None:
    sound = at_once("doctor", "--offline", home=used)
    assert (sound.exit_code, sound.output.splitlines()[-1]) == (0, f"{used}: no problems found.")
    (used / STATE).unlink()
    warned = at_once("doctor", "--offline", home=used)
    assert f"  warning  pages        {STATE} is missing; the next call writes it again\n" in warned.output
    assert f"           fix: `inmind --home {used} show overview support-42`\n" in warned.output
    assert (warned.exit_code, warned.output.splitlines()[-1]) == (0, f"{used}: 1 warning.")
    by_sql(used, "PRAGMA user_version=99")
    troubled = at_once("doctor", "--offline", home=used)
    assert (troubled.exit_code, troubled.output.splitlines()[-1]) == (5, f"{used}: 1 trouble.")


@pytest.mark.spec("I2")
def test_the_json_of_the_command_has_every_finding_and_the_text_the_first_of_those_alike(used: Path) -> None:
    for number in range(8):
        (used / f"pipe-{number}").symlink_to("/nowhere")
    told = json.loads(at_once("doctor", "--offline", "--json", home=used).output)
    assert (told["home"], told["verdict"]) == (str(used), "warning")
    assert sum(one["check"] == "files" for one in told["findings"]) == 8
    assert set(told["findings"][0]) == {"subject", "check", "verdict", "seen", "mend"}
    text = at_once("doctor", "--offline", home=used).output
    assert text.count("is a link") == 5
    assert "and 3 more of this kind; --json lists all" in text


@pytest.mark.spec("J6")
@pytest.mark.parametrize("line", ["api_key = 'sk-s3cr3t'", "key_env = 'sk-s3cr3t'", "name.key = 'sk-s3cr3t'"])
def test_a_secret_in_the_settings_is_shown_by_no_command(used: Path, line: str) -> None:
    configure(used, f"[model]\n{line}\n")
    for words in (["doctor", "--offline"], ["sessions"]):
        told = at_once(*words, home=used)
        assert told.exit_code != 0
        assert f"model.{line.partition(' ')[0].partition('.')[0]}: expected" in told.output
        assert "s3cr3t" not in told.output


@pytest.mark.spec("I2")
def test_progress_shows_the_check_and_the_remaining_events(used: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    run_checks(used, online=False, watch=lambda doing, done, total: seen.append((doing, done, total)))
    assert seen == [
        ("checking the pages of the database", 0, 0),
        ("reading events", 0, 10),
        ("reading events", 8, 10),
        ("checking the search index", 0, 0),
    ]


@pytest.mark.spec("I2", "J4")
def test_on_a_terminal_names_that_could_act_are_shown_and_a_warning_is_said_once(used: Path) -> None:
    (used / "evil\x1b[2J").symlink_to("/nowhere")
    lines = on_a_screen("doctor", "--offline", home=used, terminal="xterm-256color")
    assert not any("\x1b[2J" in line for line in lines)
    assert sum("evil" in line for line in lines) == 2  # the finding, and its mend
    piped = inmind("doctor", "--offline", home=used)
    assert (piped.stderr, "\x1b" in piped.stdout) == ("", False)
