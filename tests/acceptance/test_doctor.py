"""`inmind doctor`: broken homes, the findings for them, and the fixes, which are executed.

Each check also asserts that the doctor changes no byte and no date of the home.
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
from terminal import command, inmind, run_in_process, run_on_terminal

from inmind import Memory, default_layers
from inmind.apps.doctor import DoctorFinding, DoctorReport, Verdict, run_checks
from inmind.core.encoding import digest
from inmind.core.events.base import Draft, EventPayload, Origin
from inmind.core.events.crystals import NoteAdded
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.dreams import DreamFailed, DreamStarted
from inmind.errors import Damaged
from inmind.layers import ScratchpadLayer
from inmind.store.protocol import Batch
from inmind.store.sqlite.store import SqliteStore

pytestmark = pytest.mark.embedded

OK, WARNING, TROUBLE = Verdict

ONE_MINUTE = timedelta(minutes=1)
"""A process writes its files within less than this time."""

Damage = Callable[[Path], object]


@pytest.fixture(scope="module")
def template_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("lived_in") / "home"
    with Memory.open(home, clock=lambda: datetime.now(UTC) - ONE_MINUTE) as memory:
        session = memory.session("support-42", resource="ada", cwd="/website")
        session.prepare([user("Create a page")])
        session.write("overview.md", "# Mine\n- a fact\n")
        session.write("MEMORY.md", "# Ada\n\n- Größe zählt\n")
        session.note("Ada prefers tabs")
        memory.search("tabs")
    return home


@pytest.fixture
def sample_home(template_home: Path, home: Path) -> Path:
    """A copy of the template home that a test may break."""
    shutil.copytree(template_home, home)
    return home


OVERVIEW = "sessions/--website--/support-42/working-memory/overview.md"
STATE = "resources/ada/MEMORY.md"


def check_home(home: Path, **options: Any) -> DoctorReport:
    before = _fingerprint(home)
    report = run_checks(home, **options) if "online" in options else run_checks(home, online=False, **options)
    assert _fingerprint(home) == before, "the doctor changed the home"
    return report


def problems_of(home: Path, **options: Any) -> list[DoctorFinding]:
    """All findings about a home that are not OK."""
    return [finding for finding in check_home(home, **options).findings if finding.verdict is not OK]


def only_problem(home: Path, **options: Any) -> DoctorFinding:
    """The only finding about a home that is not OK."""
    problems = problems_of(home, **options)
    assert [str(problem.message) for problem in problems[1:]] == []
    return problems[0]


def apply_fix(finding: DoctorFinding) -> None:
    """Run the commands of a finding's fix."""
    steps = re.findall(r"`([^`]+)`", finding.fix)
    assert steps, finding.fix
    for step in steps:
        words = shlex.split(step.removeprefix("sudo "))
        if words[0] == "inmind":
            ran = run_in_process(*words[3:], home=Path(words[2]))
            assert words[1] == "--home"
            assert ran.exit_code == 0, ran.output
        else:
            subprocess.run(step.removeprefix("sudo "), shell=True, check=True, stdin=subprocess.DEVNULL)  # noqa: S602 -- the step


def _fingerprint(home: Path) -> str:
    """All names, modes, dates and bytes, read by another process, which releases no locks of this one."""
    look = r"find . -printf '%p %y %m %U %s %T@ %l\n' | sort; find . -type f -exec md5sum {} + | sort"
    if not home.is_dir():
        return str(home.lstat()) if os.path.lexists(home) else ""
    return subprocess.run(["sh", "-c", look], cwd=home, capture_output=True, text=True, check=True).stdout


def execute_sql(home: Path, statement: str, *bindings: object, file: str = "inmind.db") -> None:
    connection: Any = apsw.Connection(str(home / file))
    connection.execute(statement, bindings)
    connection.close()


def append_events(home: Path, stream: str, *payloads: EventPayload, at: datetime | None = None) -> None:
    """Append events to a stream without any later step, as after a kill."""
    store = SqliteStore(home / "inmind.db")
    drafts = [Draft(payload=one, origin=Origin.DREAM) for one in payloads]
    store.append(Batch(stream, drafts, store.version(stream)), at=at or datetime.now(UTC))
    store.close()


def _truncate(file: Path) -> None:
    os.truncate(file, 0)


def _remove_tables(file: Path) -> None:
    file.unlink()
    connection: Any = apsw.Connection(str(file))
    connection.execute("CREATE TABLE t (x); DROP TABLE t")
    connection.close()


def run_until_killed(script: str, *arguments: str) -> None:
    ended = subprocess.run([sys.executable, "-c", script, *arguments], check=False, timeout=60, capture_output=True)
    assert ended.returncode == -9, ended.stderr


# -- a sound home ------------------------------------------------------------------------------------------


def test_every_check_passes_on_a_sound_home(sample_home: Path) -> None:
    report = check_home(sample_home)
    assert report.with_verdict(WARNING) + report.with_verdict(TROUBLE) == []
    assert (report.verdict, report.home) == (OK, sample_home)
    assert {finding.check for finding in report.findings} >= {
        "home", "permissions", "writing", "files", "file system", "free space", "size", "config.toml", "database",
        "schema", "events", "snapshots", "clock", "pages", "damaged files", "scratchpads", "leftovers", "leases",
        "failures", "notes", "index", "unreadable messages", "embedder", "vectors", "endpoint", "versions", "extras",
        "SQLite",
    }  # fmt: skip


_KEEP_WRITING = """
import sys, time
from inmind import Memory
with Memory.open(sys.argv[1], embedder=None) as memory:
    session = memory.session("support-42")
    for number in range(1_000_000):
        session.note(f"note {number}")
        session.add([{"role": "user", "content": f"message {number}"}])
        session.write("overview.md", f"page {number}\\n")
        if number % 50 == 0:
            session.search("page")  # an outdated index would be a correct finding
        print(number, flush=True)
        time.sleep(0.005)  # keeps the number of new events per check small
"""


@pytest.mark.exhaustive
@pytest.mark.spec("J2")
def test_a_home_in_use_has_no_findings(sample_home: Path) -> None:
    writer = subprocess.Popen([sys.executable, "-c", _KEEP_WRITING, str(sample_home)], stdout=subprocess.PIPE)
    assert writer.stdout
    try:
        for _ in range(25):
            assert writer.stdout.readline(), "the writer wrote nothing"
            report = run_checks(sample_home, online=False, embedder=None)
            assert report.with_verdict(WARNING) + report.with_verdict(TROUBLE) == []
        assert writer.poll() is None, "the writer has stopped"
    finally:
        writer.kill()
        writer.communicate()


@pytest.mark.spec("J2")
def test_a_home_that_others_open_and_close_has_no_findings(sample_home: Path) -> None:
    rounds: list[int] = []

    def open_and_close() -> None:
        while len(rounds) < 25:
            with Memory.open(sample_home, embedder=None) as memory:
                memory.session("support-42").note("in passing")
                memory.search("passing")

    with ThreadPoolExecutor(1) as pool:
        visitor = pool.submit(open_and_close)
        while len(rounds) < 25 and not visitor.done():
            report = run_checks(sample_home, online=False, embedder=None)
            rounds.append(1)
            assert [
                one for one in report.with_verdict(WARNING) + report.with_verdict(TROUBLE) if one.check != "database"
            ] == []
            assert report.with_verdict(TROUBLE) == []
        visitor.result()


@pytest.mark.spec("J2")
def test_a_home_in_use_is_checked_without_disturbing_others(sample_home: Path) -> None:
    with Memory.open(sample_home) as memory:
        session = memory.session("support-42")
        session.note("still in the write-ahead log")
        memory.flush()
        report = check_home(sample_home)
        assert report.verdict is OK
        assert any(finding.message.startswith("2 notes") for finding in report.findings)
        session.note("and on")
    assert problems_of(sample_home) == []


_WRITE_AND_DIE = """
import os, sys
from inmind import Memory
session = Memory.open(sys.argv[1], embedder=None).session("support-42")
session.add([{"role": "user", "content": "written by a killed process"}])
os.kill(os.getpid(), 9)
"""


@pytest.mark.spec("J1", "C02")
def test_the_log_of_a_killed_writer_is_read_and_not_changed(sample_home: Path) -> None:
    run_until_killed(_WRITE_AND_DIE, str(sample_home))
    assert (sample_home / "inmind.db-wal").stat().st_size > 0, "the writer was not killed in time"
    with_index = check_home(sample_home)
    (sample_home / "inmind.db-shm").unlink()
    without = check_home(sample_home)
    seen = [[one.message for one in report.findings if one.check == "events"] for report in (with_index, without)]
    assert seen[0] == seen[1] == ["all 11 of 1 session and 1 resource are readable, none missing"]
    assert with_index.verdict is without.verdict is OK
    run_in_process("sessions", home=sample_home)
    assert problems_of(sample_home) == []


@pytest.mark.spec("J2")
def test_a_home_opened_during_the_check_is_checked_again(sample_home: Path) -> None:
    opened: list[int] = []

    def begin(_doing: str, done: int, total: int) -> None:
        if total and not opened:
            opened.append(done)
            with Memory.open(sample_home) as memory:
                memory.session("support-42").note("during the check")

    report = run_checks(sample_home, online=False, watch=begin)
    assert report.verdict is OK
    assert [one.message for one in report.findings if one.check == "notes"] == ["2 notes waiting"]


@pytest.mark.spec("J3")
@settings(max_examples=examples(20))
@given(file=st.sampled_from(["inmind.db", "index.db"]), places=st.lists(st.floats(0, 1, exclude_max=True), min_size=1))
def test_flipped_bytes_never_crash_the_doctor_or_change_the_home(
    template_home: Path, file: str, places: list[float]
) -> None:
    with TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        shutil.copytree(template_home, home)
        content = bytearray((home / file).read_bytes())
        for place in places:
            content[int(place * len(content))] ^= 0x11
        (home / file).write_bytes(content)
        check_home(home, embedder=None)


# -- the place ---------------------------------------------------------------------------------------------


@pytest.mark.spec("J3")
def test_a_missing_home_is_not_created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "none"
    assert only_problem(home).verdict is TROUBLE
    monkeypatch.setenv("INMIND_HOME", str(home))
    assert only_problem(home).verdict is WARNING  # a new user has no home yet
    assert not home.exists()


@pytest.mark.spec("J3")
def test_a_file_in_the_place_of_a_home_is_moved_aside(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("a shopping list")
    finding = only_problem(home)
    assert (finding.check, finding.verdict) == ("home", TROUBLE)
    apply_fix(finding)
    assert (tmp_path / "home.aside").read_text() == "a shopping list"
    assert "no home at" in only_problem(home).message


def test_a_dangling_link_is_reported(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.symlink_to(tmp_path / "gone")
    assert "is a dangling link" in only_problem(home).message


@pytest.mark.spec("J1")
@pytest.mark.parametrize(
    ("lost", "kept"),
    [
        (Path.unlink, "sessions"),
        (Path.unlink, "resources"),
        (_truncate, "index.db"),
        (_remove_tables, "resources"),
    ],
)
def test_no_new_journal_replaces_a_lost_one(sample_home: Path, lost: Damage, kept: str) -> None:
    saved = sample_home.parent / "saved.db"
    shutil.copy(sample_home / "inmind.db", saved)
    lost(sample_home / "inmind.db")
    for other in {"sessions", "resources", "index.db"} - {kept}:
        subprocess.run(["rm", "-r", sample_home / other], check=True)
    (finding,) = [one for one in problems_of(sample_home) if one.check in ("home", "database")]
    assert finding.verdict is TROUBLE
    assert kept in finding.message
    before = _fingerprint(sample_home)
    with pytest.raises(Damaged, match="missing or empty"):
        Memory.open(sample_home)
    assert _fingerprint(sample_home) == before
    shutil.copy(saved, sample_home / "inmind.db")
    assert [one for one in problems_of(sample_home) if one.verdict is TROUBLE] == []


@pytest.mark.spec("J1")
def test_a_lost_home_is_moved_away_to_start_over(sample_home: Path) -> None:
    (sample_home / "inmind.db").unlink()
    apply_fix(only_problem(sample_home))
    Memory.open(sample_home).close()
    assert problems_of(sample_home) == []


def test_pages_and_legacy_sessions_alone_do_not_imply_a_lost_journal(home: Path) -> None:
    state_page = home / "resources" / "ada" / "MEMORY.md"
    legacy_file = home / "sessions" / "--w--" / "old.jsonl"
    for file in (state_page, legacy_file):
        file.parent.mkdir(parents=True)
        file.write_text("")
    assert [one for one in problems_of(home) if one.check == "home"] == []
    Memory.open(home).close()


@pytest.mark.spec("J2")
def test_a_home_created_concurrently_is_not_reported_as_lost(tmp_path: Path) -> None:
    def begin(home: Path) -> None:
        with Memory.open(home, embedder=None) as memory:
            memory.session("s", cwd="/w").note("first")

    with ThreadPoolExecutor(4) as pool:
        for number in range(15):
            home = tmp_path / str(number)
            for creation in [pool.submit(begin, home) for _ in range(4)]:
                creation.result()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the owner of a file")
def test_a_home_of_another_user_is_reported_with_its_owner(sample_home: Path) -> None:
    os.chown(sample_home / "inmind.db", 12345, 12345)
    finding = only_problem(sample_home)
    assert (finding.check, finding.verdict) == ("permissions", TROUBLE)
    assert "inmind.db belongs to user 12345" in finding.message
    apply_fix(finding)
    assert problems_of(sample_home) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
@pytest.mark.spec("J3")
def test_a_home_without_read_permission_is_reported(sample_home: Path) -> None:
    run_checks(sample_home, online=False)  # loads all modules first: the other user may not be able to read them
    os.seteuid(12345)
    try:
        troubles = run_checks(sample_home, online=False).with_verdict(TROUBLE)
    finally:
        os.seteuid(0)
    assert [(one.check, "Permission denied" in one.message) for one in troubles] == [("home", True)]


@pytest.fixture
def other_users_home(template_home: Path) -> Generator[Path]:
    """A home of a user other than root, since root has every permission; the test runs as that user."""
    with TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        shutil.copytree(template_home, home)
        run_checks(home, online=False)  # loads all modules first: the other user may not be able to read them
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
    troubles = run_checks(other_users_home, online=False).with_verdict(TROUBLE)
    assert [one.message for one in troubles] == [f"{other_users_home}: permission denied"]
    assert troubles[0].fix == f"run inmind as user 12345, or `sudo chown -R 54321 {other_users_home}`"


@pytest.mark.spec("J1")
@pytest.mark.parametrize(
    ("place", "mode"), [(".", 0o500), ("inmind.db", 0o400), ("index.db", 0o400), ("resources/ada", 0o500)]
)
def test_a_home_that_cannot_be_written_is_trouble(other_users_home: Path, place: str, mode: int) -> None:
    (other_users_home / place).chmod(mode)
    finding = only_problem(other_users_home)
    assert (finding.check, finding.verdict) == ("writing", TROUBLE)
    assert f"{'the home itself' if place == '.' else place} cannot be written" in finding.message
    apply_fix(finding)
    assert problems_of(other_users_home) == []


def _nest_folders(home: Path, name: str, depth: int) -> None:
    folder = os.open(home, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, 0o700, dir_fd=folder)
        inner = os.open(name, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)


@pytest.mark.spec("J3")
def test_deeply_nested_folders_are_checked(sample_home: Path) -> None:
    _nest_folders(sample_home, "d", sys.getrecursionlimit() + 100)
    assert run_checks(sample_home, online=False, embedder=None).verdict is OK
    subprocess.run(["rm", "-r", sample_home / "d"], check=True)


@pytest.mark.spec("J3")
def test_folders_deeper_than_the_path_limit_are_reported(sample_home: Path) -> None:
    _nest_folders(sample_home, 200 * "d", 30)
    finding = only_problem(sample_home)
    assert (finding.check, finding.verdict) == ("files", WARNING)
    assert "are nested deeper than the path length limit" in finding.message
    apply_fix(finding)
    assert problems_of(sample_home) == []


@pytest.mark.spec("F54")
@pytest.mark.parametrize(("mode", "verdict"), [(0o640, WARNING), (0o622, TROUBLE)])
def test_files_that_others_may_read_or_write_are_fixed(sample_home: Path, mode: int, verdict: Verdict) -> None:
    (sample_home / STATE).chmod(mode)
    finding = only_problem(sample_home)
    assert (finding.check, finding.verdict) == ("permissions", verdict)
    assert STATE in finding.message
    apply_fix(finding)
    assert problems_of(sample_home) == []


@pytest.mark.spec("F54")
@pytest.mark.parametrize("kind", ["link", "pipe", "socket"])
def test_a_special_file_is_reported_and_never_blocks(
    sample_home: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = sample_home / "resources" / "ada" / "odd"
    match kind:
        case "link":
            odd.symlink_to("/etc/passwd")
        case "pipe":
            os.mkfifo(odd, 0o600)
        case _:
            with socket.socket(socket.AF_UNIX) as listening:
                monkeypatch.chdir(odd.parent)  # the name of a socket has to be short
                listening.bind(odd.name)
            odd.chmod(0o600)
    finding = only_problem(sample_home)
    assert finding.message.startswith(f"resources/ada/odd is a {kind}")
    apply_fix(finding)
    assert problems_of(sample_home) == []


@pytest.mark.spec("F54")
@pytest.mark.parametrize(
    ("name", "check", "verdict"),
    [("inmind.db", "database", TROUBLE), ("index.db", "index", WARNING), ("config.toml", "config.toml", TROUBLE)],
)
def test_a_pipe_in_place_of_a_file_does_not_block(sample_home: Path, name: str, check: str, verdict: Verdict) -> None:
    (sample_home / name).unlink(missing_ok=True)
    os.mkfifo(sample_home / name, 0o600)
    shape, finding = problems_of(sample_home)
    assert f"{name} is a pipe" in shape.message
    assert (finding.check, finding.verdict) == (check, verdict)
    assert "not a regular file" in finding.message


def test_a_hard_linked_database_is_reported_and_fixed(sample_home: Path) -> None:
    os.link(sample_home / "inmind.db", sample_home.parent / "second.db")
    finding = only_problem(sample_home)
    assert (finding.check, finding.verdict) == ("files", TROUBLE)
    apply_fix(finding)
    assert problems_of(sample_home) == []


@pytest.mark.spec("J1")
def test_a_read_only_disk_is_reported_and_other_checks_run(sample_home: Path, tmp_path: Path) -> None:
    place = tmp_path / "mounted"
    place.mkdir()
    doctor = shlex.join(command("doctor", "--offline", "--json", home=place))
    script = "\n".join(
        [
            "set -e",
            f"mount -t tmpfs -o mode=700 tmpfs {place}",
            f"cp -a {sample_home}/. {place}",
            f"mount -o remount,ro {place}",
            f"{doctor} || true",
            "echo NEXT",
            f"mount -o remount,rw {place}",
            doctor,
        ]
    )
    ran = subprocess.run(["unshare", "-Urm", "sh", "-c", script], capture_output=True, text=True, check=False)
    if "NEXT" not in ran.stdout and ("unshare" in ran.stderr or "mount" in ran.stderr):
        pytest.skip("mounting is not permitted here")
    before, after = map(json.loads, ran.stdout.split("NEXT"))
    (finding,) = [one for one in before["findings"] if one["verdict"] == "trouble"]
    assert (finding["check"], f"remount,rw {place}" in finding["fix"]) == ("file system", True)
    assert "are readable" in str(before["findings"])
    assert after["verdict"] != "trouble"


# -- the database ------------------------------------------------------------------------------------------


@pytest.mark.spec("M41")
def test_an_sqlite_version_with_the_log_bug_is_reported(sample_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.50.4")
    execute_sql(sample_home, "PRAGMA journal_mode=delete")
    execute_sql(sample_home, "PRAGMA journal_mode=delete", file="index.db")
    finding = only_problem(sample_home)
    assert (finding.check, finding.verdict) == ("SQLite", WARNING)
    assert "apsw>=3.51.3" in finding.fix


@pytest.mark.spec("M36")
def test_an_older_schema_is_migrated_by_the_next_opening(sample_home: Path) -> None:
    execute_sql(
        sample_home, "DROP TABLE allowances; DROP INDEX streams_by_owner; ALTER TABLE streams DROP COLUMN owner"
    )
    execute_sql(sample_home, "PRAGMA user_version=9")
    finding = only_problem(sample_home)
    assert (finding.check, finding.verdict) == ("schema", WARNING)
    apply_fix(finding)
    assert problems_of(sample_home) == []


@pytest.mark.spec("M36")
def test_a_newer_schema_is_reported_with_the_upgrade_command(sample_home: Path) -> None:
    execute_sql(sample_home, "PRAGMA user_version=99")
    finding = only_problem(sample_home)
    assert (finding.check, finding.verdict) == ("schema", TROUBLE)
    assert "pip install --upgrade inmind" in finding.fix


def test_a_file_that_is_not_a_database_is_reported(sample_home: Path) -> None:
    (sample_home / "inmind.db").write_bytes(b"this file is not a database, but it is long enough to be one" * 9)
    finding = only_problem(sample_home)
    assert finding.check == "database"
    assert "is damaged: file is not a database" in finding.message


def test_a_database_of_another_program_is_reported(sample_home: Path) -> None:
    execute_sql(sample_home, "PRAGMA application_id=7")
    assert "database of another program" in only_problem(sample_home).message


@pytest.mark.spec("M40")
def test_a_corrupt_database_is_reported_and_an_export_is_imported(sample_home: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "last.inmind"
    assert run_in_process("export", str(bundle), home=sample_home).exit_code == 0
    whole = bytearray((sample_home / "inmind.db").read_bytes())
    page = int.from_bytes(whole[16:18], "big")
    for start in range(page, len(whole), page):
        whole[start : start + 64] = bytes(byte ^ 0x55 for byte in whole[start : start + 64])
    (sample_home / "inmind.db").write_bytes(whole)
    finding = only_problem(sample_home)
    assert (finding.check, finding.verdict) == ("database", TROUBLE)
    new = tmp_path / "new"
    apply_fix(replace(finding, fix=_fill_in(finding.fix, new, bundle)))
    assert problems_of(new, embedder=None) == []
    assert {one.message for one in check_home(new).findings} >= {"1 note waiting"}


def _fill_in(fix: str, home: Path, bundle: Path) -> str:
    """The last step of a fix, with its placeholders replaced."""
    return f"`{fix.rpartition(': `')[2]}".replace("NEW", str(home)).replace("FILE", str(bundle))


def test_a_lookup_table_that_disagrees_with_its_rows_is_rebuilt(sample_home: Path) -> None:
    connection: Any = apsw.Connection(str(sample_home / "inmind.db"))
    root = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name='events_by_stream'").get
    size = connection.pragma("page_size")
    connection.close()
    with (sample_home / "inmind.db").open("r+b") as file:
        file.seek(root * size - 1)
        last = file.read(1)[0]
        file.seek(root * size - 1)
        file.write(bytes([last ^ 0x40]))
    finding = only_problem(sample_home)
    assert (finding.check, finding.verdict) == ("database", TROUBLE)
    assert "a database index is damaged" in finding.message
    apply_fix(finding)
    assert problems_of(sample_home) == []


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
def test_an_unfinished_transaction_is_rolled_back_by_the_next_opening(sample_home: Path) -> None:
    run_until_killed(_DIE_IN_A_TRANSACTION, str(sample_home / "inmind.db"))
    assert (sample_home / "inmind.db-journal").exists(), "the process was not killed in the transaction"
    finding = only_problem(sample_home)
    assert (finding.check, finding.verdict) == ("database", WARNING)
    apply_fix(finding)
    assert problems_of(sample_home) == []


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
def test_events_that_are_damaged_unknown_or_missing_are_named(sample_home: Path, change: str, seen: str) -> None:
    execute_sql(sample_home, change)
    damaged = [one for one in problems_of(sample_home) if one.check == "events"]
    assert damaged
    assert all(one.verdict is TROUBLE for one in damaged)
    assert any(seen in one.message for one in damaged)


@pytest.mark.spec("A1", "M39")
@pytest.mark.parametrize("role", ["null", '"oracle"'])
def test_a_message_that_search_skips_is_reported(sample_home: Path, role: str) -> None:
    with Memory.open(sample_home, embedder=None) as memory:
        memory.session("odd", resource="ada").add([user("a title"), user("who said this?")])
    execute_sql(
        sample_home,
        "UPDATE events SET body = json_set(body, '$.wire.role', json(?)) WHERE body LIKE '%who said%'",
        role,
    )
    finding = only_problem(sample_home, embedder=None)
    assert (finding.check, finding.verdict) == ("unreadable messages", WARNING)
    assert finding.message.startswith("session/odd#")


@pytest.mark.spec("A1", "J3")
def test_an_unreadable_stream_hides_no_finding_of_others(sample_home: Path) -> None:
    append_events(sample_home, "resource/ada", DreamStarted(trigger="asked", proposer="rules", lease_until="soon"))
    (sample_home / OVERVIEW).unlink()
    stream, page = problems_of(sample_home)
    assert (stream.check, stream.verdict) == ("events", TROUBLE)
    assert stream.message.startswith("resource/ada cannot be folded: ")
    assert f"{OVERVIEW} is missing" in page.message


@pytest.mark.spec("J3")
def test_a_note_dated_in_year_one_does_not_stop_the_doctor(sample_home: Path) -> None:
    page = sample_home / "resources/ada/memory/scratch.md"
    page.write_text("- [0001-01-01T00:00:00+14:00 general 0.5] older than time\n")
    assert [one.check for one in problems_of(sample_home)] == ["pages"]
    run_in_process("show", "overview", "support-42", home=sample_home)
    assert problems_of(sample_home) == []


@pytest.mark.spec("A2")
def test_a_changed_snapshot_is_dropped(sample_home: Path) -> None:
    _add_snapshot(sample_home)
    assert problems_of(sample_home, embedder=None) == []
    execute_sql(sample_home, "UPDATE snapshots SET body = replace(body, 'question', 'quarrel')")
    finding = only_problem(sample_home, embedder=None)
    assert (finding.check, finding.verdict) == ("snapshots", WARNING)
    apply_fix(finding)
    assert problems_of(sample_home, embedder=None) == []


@pytest.mark.spec("A2")
def test_a_snapshot_that_contradicts_its_events_is_trouble(sample_home: Path) -> None:
    """Its checksum is valid, so only folding all events shows the difference."""
    _add_snapshot(sample_home)
    connection: Any = apsw.Connection(str(sample_home / "inmind.db"))
    of_it = "WHERE stream = (SELECT id FROM streams WHERE name = 'session/long')"
    seq, body = connection.execute(f"SELECT seq, body FROM snapshots {of_it}").fetchone()
    forged = body.partition("\n")[2].replace("question", "quarrel")
    sealed = f"{digest('session/long', str(seq), forged)}\n{forged}"
    connection.execute(f"UPDATE snapshots SET body = ? {of_it}", (sealed,))
    connection.close()
    finding = only_problem(sample_home, embedder=None)
    assert (finding.check, finding.verdict) == ("snapshots", TROUBLE)
    apply_fix(finding)
    assert problems_of(sample_home, embedder=None) == []


def _add_snapshot(home: Path) -> None:
    with Memory.open(home, embedder=None) as memory:
        session = memory.session("long", resource="ada", cwd="/website")
        session.write("overview.md", "a question\n")
        session.add(turns(110, words=1))


def test_events_with_a_future_time_are_reported(sample_home: Path) -> None:
    yesterday = datetime.now(UTC) - timedelta(days=1)
    findings = problems_of(sample_home, clock=lambda: yesterday)
    assert {one.check for one in findings} == {"clock"}
    assert problems_of(sample_home) == []


# -- the pages ---------------------------------------------------------------------------------------------


def write_content(content: str | bytes) -> Damage:
    return lambda file: file.write_bytes(content.encode() if isinstance(content, str) else content)


def _cut_in_a_character(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.read_bytes().index("ö".encode()) + 1])


def _hard_link(file: Path) -> None:
    other = file.parents[3] / "elsewhere.md"
    other.write_text("other text\n")
    file.unlink()
    os.link(other, file)
    file.chmod(0o600)


def _replace_by_folder(file: Path) -> None:
    file.unlink()
    file.mkdir(mode=0o700)


@pytest.mark.spec("A5", "C05")
@pytest.mark.parametrize(
    ("page", "damage", "seen"),
    [
        (STATE, write_content("# Ada\n\n- by hand\n"), "was edited"),
        (OVERVIEW, write_content("- by hand\n"), "was edited"),
        (STATE, Path.unlink, "is missing"),
        (OVERVIEW, Path.unlink, "is missing"),
        (STATE, _hard_link, "has a hard link"),
        (STATE, _replace_by_folder, "is ignored: it is not a plain file"),
        ("sessions/--website--/support-42/messages.jsonl", write_content(""), "is out of date"),
        ("sessions/--website--/support-42/messages.jsonl", Path.unlink, "is missing"),
    ],
)
def test_a_page_that_differs_from_the_journal_is_reported_and_fixed(
    sample_home: Path, page: str, damage: Damage, seen: str
) -> None:
    damage(sample_home / page)
    finding = only_problem(sample_home)
    assert (finding.check, finding.verdict) == ("pages", WARNING)
    assert f"{page} {seen}" in finding.message
    apply_fix(finding)
    assert "hard link" in seen or "is ignored" in seen or problems_of(sample_home) == []


@pytest.mark.spec("A5", "C05")
@pytest.mark.parametrize(
    ("page", "damage"),
    [
        (STATE, _cut_in_a_character),
        (STATE, write_content("")),
        ("sessions/--website--/support-42/messages.jsonl", write_content("scribbled over\n")),
    ],
)
def test_a_damaged_page_is_restored_and_its_bytes_are_kept(sample_home: Path, page: str, damage: Damage) -> None:
    damage(sample_home / page)
    content = (sample_home / page).read_bytes()
    finding = only_problem(sample_home)
    assert f"{page} is damaged" in finding.message
    apply_fix(finding)
    aside = only_problem(sample_home)
    assert (aside.check, aside.verdict) == ("damaged files", WARNING)
    assert (sample_home / aside.message.partition(":")[0]).read_bytes() == content
    apply_fix(aside)
    assert problems_of(sample_home) == []


@pytest.mark.spec("C04")
def test_a_page_that_a_killed_writer_did_not_write_is_fixed(sample_home: Path) -> None:
    newer = DocumentWritten(path="MEMORY.md", text="# Ada\n\n- newer\n")
    append_events(sample_home, "resource/ada", newer, at=datetime.now(UTC) - ONE_MINUTE)
    finding = only_problem(sample_home)
    assert f"{STATE} is out of date" in finding.message
    apply_fix(finding)
    assert problems_of(sample_home) == []
    assert "newer" in (sample_home / STATE).read_text()


def test_missing_pages_of_a_resource_without_session_are_fixed_by_a_dream(sample_home: Path) -> None:
    append_events(sample_home, "resource/bob", DocumentWritten(path="MEMORY.md", text="# Bob\n"))
    assert run_in_process("dream", "run", "bob", home=sample_home).exit_code == 0
    assert problems_of(sample_home) == []
    (sample_home / "resources/bob/MEMORY.md").unlink()
    finding = only_problem(sample_home, clock=lambda: datetime.now(UTC) + ONE_MINUTE)
    assert "dream run bob" in finding.fix
    apply_fix(finding)
    assert problems_of(sample_home) == []


def test_a_file_among_the_pages_that_is_not_a_page_is_reported(sample_home: Path) -> None:
    extra_file = (sample_home / OVERVIEW).with_name("todo.md")
    extra_file.write_text("read me\n")
    extra_file.chmod(0o600)
    assert "todo.md is ignored" in only_problem(sample_home).message


@pytest.mark.spec("C02")
@pytest.mark.parametrize("place", ["sessions/--website--/support-42/working-memory", "resources/ada", "resources"])
def test_leftovers_of_killed_writers_are_removed(sample_home: Path, place: str) -> None:
    leftover = sample_home / place / ".inmind-part-overview.md"
    leftover.write_text("half a pa")
    leftover.chmod(0o600)
    assert problems_of(sample_home) == []  # a process may still be writing it
    long_ago = (datetime.now(UTC) - ONE_MINUTE).timestamp()
    os.utime(leftover, (long_ago, long_ago))
    finding = only_problem(sample_home)
    assert (finding.check, finding.verdict) == ("leftovers", WARNING)
    apply_fix(finding)
    assert not leftover.exists()
    assert problems_of(sample_home) == []


class Task(BaseModel):
    goal: str = ""


class Errand(BaseModel):
    goal: int = 0


@pytest.mark.spec("C3")
def test_a_scratchpad_that_was_set_aside_is_listed_with_its_content(sample_home: Path) -> None:
    for schema, goal in ((Task, "ship it"), (Errand, 1)):
        with Memory.open(sample_home) as memory:
            session = memory.session("pad", resource="ada", layers=default_layers(ScratchpadLayer(schema=schema)))
            session.scratchpad.update({"goal": goal})
            aside = [one.state for one in session.scratchpad.set_aside]
    report = check_home(sample_home)
    (finding,) = [one for one in report.findings if one.check == "scratchpads"]
    assert report.verdict is finding.verdict is OK
    assert "{'goal': 'ship it'}" in finding.message
    assert "session.scratchpad.set_aside" in finding.fix
    assert aside == [{"goal": "ship it"}]


# -- dreams ------------------------------------------------------------------------------------------------


def _started_dream(ago: timedelta) -> DreamStarted:
    until = datetime.now(UTC) - ago + timedelta(seconds=60)
    return DreamStarted(trigger="asked", proposer="rules", lease_until=until.isoformat())


@pytest.mark.spec("K22", "G7")
def test_an_expired_dream_lease_is_reported_and_a_valid_one_is_not(sample_home: Path) -> None:
    append_events(sample_home, "resource/ada", _started_dream(timedelta(0)))
    assert problems_of(sample_home) == []
    append_events(
        sample_home, "resource/ada", _started_dream(timedelta(hours=1)), at=datetime.now(UTC) - timedelta(hours=1)
    )
    finding = only_problem(sample_home)
    assert (finding.check, finding.verdict) == ("leases", WARNING)
    apply_fix(finding)
    assert problems_of(sample_home) == []


@pytest.mark.spec("B47")
def test_repeated_dream_failures_are_reported_with_the_last_reason(sample_home: Path) -> None:
    for _ in range(3):
        append_events(sample_home, "resource/ada", _started_dream(timedelta(0)))
        store = SqliteStore(sample_home / "inmind.db")
        dream_id = store.version("resource/ada")
        store.close()
        failed = DreamFailed(dream=dream_id, phase="gather", code="STORAGE_FULL", reason="no room")
        append_events(sample_home, "resource/ada", failed)
    finding = only_problem(sample_home)
    assert (finding.check, finding.verdict) == ("failures", WARNING)
    assert "3 dreams of ada failed: STORAGE_FULL: no room" in finding.message
    apply_fix(finding)
    assert problems_of(sample_home) == []


def test_notes_that_wait_too_long_are_reported(sample_home: Path) -> None:
    append_events(
        sample_home, "resource/ada", NoteAdded(text="from last week"), at=datetime.now(UTC) - timedelta(days=7)
    )
    run_in_process("show", "overview", "support-42", home=sample_home)
    finding = only_problem(sample_home)
    assert (finding.check, finding.verdict) == ("notes", WARNING)
    apply_fix(replace(finding, fix=finding.fix.partition(", or ")[0]))
    assert problems_of(sample_home) == []


# -- search ------------------------------------------------------------------------------------------------


@pytest.mark.spec("M39")
def test_a_deleted_index_is_built_by_the_next_search(sample_home: Path) -> None:
    (sample_home / "index.db").unlink()
    (finding,) = [one for one in check_home(sample_home).findings if one.check == "index"]
    assert (finding.verdict, finding.message) == (OK, "none: the next search builds it")
    with Memory.open(sample_home, embedder=None) as memory:
        memory.session("long", resource="ada").add(turns(260, words=1))
    finding = only_problem(sample_home)
    assert (finding.check, finding.verdict) == ("index", WARNING)
    apply_fix(finding)
    assert problems_of(sample_home) == []


def change_index(statement: str) -> Damage:
    return lambda file: execute_sql(file.parent, statement, file=file.name)


def _flip(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:4096] + b"\x55" * (file.stat().st_size - 4096))


@pytest.mark.spec("M39")
@pytest.mark.parametrize(
    "damage",
    [
        _flip,
        write_content("no index" * 99),
        change_index("PRAGMA user_version=1"),
        change_index("UPDATE followed SET event='session/other#1'"),
    ],
)
def test_a_damaged_or_foreign_index_is_rebuilt(sample_home: Path, damage: Damage) -> None:
    damage(sample_home / "index.db")
    finding = only_problem(sample_home)
    assert (finding.check, finding.verdict) == ("index", WARNING)
    apply_fix(finding)
    assert problems_of(sample_home) == []


class HostEmbedder:
    """An embedder of the host."""

    name, dimensions = "own", 2

    def embed(self, texts: Any) -> list[list[float]]:
        return [[1.0, float(len(text))] for text in texts]


class FailingEmbedder(HostEmbedder):
    def embed(self, texts: Any) -> list[list[float]]:
        raise RuntimeError(f"no weights for {len(texts)}")


@pytest.mark.spec("H4")
def test_vectors_of_another_embedder_are_rebuilt(sample_home: Path) -> None:
    (sample_home / "index.db").unlink()
    with Memory.open(sample_home, embedder=HostEmbedder()) as memory:
        memory.run_upkeep()
    assert problems_of(sample_home, embedder=HostEmbedder()) == []
    finding = only_problem(sample_home)
    assert (finding.check, finding.verdict) == ("vectors", WARNING)
    assert "created by own#2" in finding.message
    apply_fix(finding)
    assert problems_of(sample_home) == []


@pytest.mark.spec("H4")
def test_a_failing_embedder_is_reported_with_its_error(sample_home: Path) -> None:
    finding = only_problem(sample_home, embedder=FailingEmbedder(), online=True)
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
def test_settings_that_prevent_opening_the_home_are_trouble(sample_home: Path, text: str, seen: str) -> None:
    configure(sample_home, text)
    finding = only_problem(sample_home)
    assert (finding.check, finding.verdict) == ("config.toml", TROUBLE)
    assert seen in finding.message
    configure(sample_home, "[dream]\nenabled = false\n")
    assert problems_of(sample_home) == []


def test_the_model_is_asked_for_one_token_online_and_not_called_offline(sample_home: Path) -> None:
    with model_server() as server:
        configure(sample_home, f'[model]\nurl = "{server.url}"\nname = "tiny"\n')
        assert problems_of(sample_home, online=False) == []
        assert server.requests == []
        server.will(chat("ready", finish_reason="length"))
        assert problems_of(sample_home, online=True) == []
        assert [request.body["max_tokens"] for request in server.requests] == [1]


def test_a_refusing_or_unreachable_model_is_a_warning(sample_home: Path) -> None:
    with model_server() as server:
        configure(sample_home, f'[model]\nurl = "{server.url}"\nname = "tiny"\n')
        server.will(fails(401, "unknown key"))
        assert "answered 401: 'unknown key'" in only_problem(sample_home, online=True).message
    finding = only_problem(sample_home, online=True)
    assert (finding.check, finding.verdict) == ("endpoint", WARNING)
    assert "cannot be reached" in finding.message


def test_an_unset_key_variable_is_reported(sample_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(sample_home, '[model]\nurl = "http://127.0.0.1:9/v1"\nname = "tiny"\nkey_env = "SOME_KEY"\n')
    monkeypatch.delenv("SOME_KEY", raising=False)
    finding = only_problem(sample_home)
    assert (finding.check, finding.fix) == ("endpoint", "`export SOME_KEY=…`")
    monkeypatch.setenv("SOME_KEY", "a-key")
    assert problems_of(sample_home) == []


# -- the command -------------------------------------------------------------------------------------------


@pytest.mark.spec("I2")
def test_the_command_prints_each_finding_with_its_fix_and_sets_the_exit_code(sample_home: Path) -> None:
    sound = run_in_process("doctor", "--offline", home=sample_home)
    assert (sound.exit_code, sound.output.splitlines()[-1]) == (0, f"{sample_home}: no problems found.")
    (sample_home / STATE).unlink()
    warned = run_in_process("doctor", "--offline", home=sample_home)
    assert f"  warning  pages        {STATE} is missing; the next call writes it again\n" in warned.output
    assert f"           fix: `inmind --home {sample_home} show overview support-42`\n" in warned.output
    assert (warned.exit_code, warned.output.splitlines()[-1]) == (0, f"{sample_home}: 1 warning.")
    execute_sql(sample_home, "PRAGMA user_version=99")
    troubled = run_in_process("doctor", "--offline", home=sample_home)
    assert (troubled.exit_code, troubled.output.splitlines()[-1]) == (5, f"{sample_home}: 1 trouble.")


@pytest.mark.spec("I2")
def test_json_has_every_finding_and_text_the_first_of_similar_ones(sample_home: Path) -> None:
    for number in range(8):
        (sample_home / f"pipe-{number}").symlink_to("/nowhere")
    document = json.loads(run_in_process("doctor", "--offline", "--json", home=sample_home).output)
    assert (document["home"], document["verdict"]) == (str(sample_home), "warning")
    assert sum(one["check"] == "files" for one in document["findings"]) == 8
    assert set(document["findings"][0]) == {"subject", "check", "verdict", "seen", "fix"}
    text = run_in_process("doctor", "--offline", home=sample_home).output
    assert text.count("is a link") == 5
    assert "and 3 more of this kind; --json lists all" in text


@pytest.mark.spec("J6")
@pytest.mark.parametrize("line", ["api_key = 'sk-s3cr3t'", "key_env = 'sk-s3cr3t'", "name.key = 'sk-s3cr3t'"])
def test_no_command_shows_a_secret_of_the_settings(sample_home: Path, line: str) -> None:
    configure(sample_home, f"[model]\n{line}\n")
    for words in (["doctor", "--offline"], ["sessions"]):
        result = run_in_process(*words, home=sample_home)
        assert result.exit_code != 0
        assert f"model.{line.partition(' ')[0].partition('.')[0]}: expected" in result.output
        assert "s3cr3t" not in result.output


@pytest.mark.spec("I2")
def test_progress_shows_the_check_and_the_remaining_events(sample_home: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    run_checks(sample_home, online=False, watch=lambda step, done, total: seen.append((step, done, total)))
    assert seen == [
        ("checking the pages of the database", 0, 0),
        ("reading events", 0, 10),
        ("reading events", 8, 10),
        ("checking the search index", 0, 0),
    ]


@pytest.mark.spec("I2", "J4")
def test_on_a_terminal_file_names_are_escaped(sample_home: Path) -> None:
    (sample_home / "evil\x1b[2J").symlink_to("/nowhere")
    lines = run_on_terminal("doctor", "--offline", home=sample_home, terminal="xterm-256color")
    assert not any("\x1b[2J" in line for line in lines)
    assert sum("evil" in line for line in lines) == 2  # the finding and its fix
    piped = inmind("doctor", "--offline", home=sample_home)
    assert (piped.stderr, "\x1b" in piped.stdout) == ("", False)
