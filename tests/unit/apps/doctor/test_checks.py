"""What is decided from values alone: verdicts, and what is told of disks that no test can fill."""

from __future__ import annotations

from pathlib import Path

import pytest

from inmind.apps.doctor.database import check_sqlite_version
from inmind.apps.doctor.environment import missing_packages
from inmind.apps.doctor.folder import (
    MAX_WAL_BYTES,
    DiskSpace,
    FileEntry,
    FolderScan,
    check_disk,
    check_permissions,
    check_size,
    check_writable,
    format_bytes,
)
from inmind.apps.doctor.result import (
    Check,
    DoctorFinding,
    DoctorReport,
    FixHints,
    Subject,
    Verdict,
    add_ok_findings,
    sort_findings,
)
from inmind.store.filesystem import Mount

HOME = Path("/home/ada/.inmind")
STEPS = FixHints(HOME, is_default=True)
LOCAL = Mount(kind="ext4", point="/home")
PLENTY = DiskSpace(free=10**12, read_only=False)
PLACE, DREAM, NOTES = Check(Subject.PLACE, "place"), Check(Subject.DREAMS, "dreams"), Check(Subject.DREAMS, "notes")


def test_every_finding_says_how_to_fix_it() -> None:
    with pytest.raises(ValueError, match="needs a fix"):
        DoctorFinding(subject=Subject.PLACE, check="home", verdict=Verdict.TROUBLE, message="it is gone")


@pytest.mark.parametrize(
    ("findings", "verdict"),
    [
        ([], Verdict.OK),
        ([PLACE.ok("there")], Verdict.OK),
        ([PLACE.ok("there"), DREAM.warning("bad", "sleep")], Verdict.WARNING),
        ([PLACE.trouble("gone", "find it"), DREAM.warning("bad", "sleep")], Verdict.TROUBLE),
    ],
)
def test_the_verdict_is_the_worst_of_all(findings: list[DoctorFinding], verdict: Verdict) -> None:
    assert DoctorReport(home=HOME, findings=tuple(findings)).verdict is verdict


def test_findings_come_by_subject_and_those_of_a_check_together() -> None:
    found = [DREAM.ok("first"), NOTES.ok("second"), DREAM.ok("third"), PLACE.ok("fourth")]
    assert [one.message for one in sort_findings(found)] == ["fourth", "first", "third", "second"]


def test_a_check_that_found_nothing_says_what_it_went_through() -> None:
    found = add_ok_findings([DREAM.warning("bad", "sleep")], {DREAM: "all well", PLACE: "there"})
    assert [one.message for one in found] == ["bad", "there"]


@pytest.mark.spec("M42")
def test_a_home_that_another_machine_can_reach_is_trouble_and_told_by_its_kind() -> None:
    found, _ = check_disk(Mount(kind="nfs4", point="/home"), PLENTY, HOME, STEPS)
    assert (found.verdict, found.message.partition(":")[0]) == (Verdict.TROUBLE, "nfs4 at /home")
    assert f"cp -a {HOME}" in found.fix


@pytest.mark.spec("D09")
@pytest.mark.parametrize(
    ("free", "verdict"),
    [(10**12, Verdict.OK), (10**8, Verdict.WARNING), (10**6, Verdict.TROUBLE), (0, Verdict.TROUBLE)],
)
def test_the_less_room_there_is_the_worse(free: int, verdict: Verdict) -> None:
    _, found = check_disk(LOCAL, DiskSpace(free=free, read_only=False), HOME, STEPS)
    assert (found.check, found.verdict) == ("free space", verdict)


@pytest.mark.spec("D12")
def test_a_log_that_a_reader_keeps_from_shrinking_is_reported() -> None:
    def of(log: int) -> DoctorFinding:
        return check_size(FolderScan((FileEntry("inmind.db-wal", 0o100600, 0, log, 1),)), STEPS)

    assert of(MAX_WAL_BYTES).verdict is Verdict.OK
    assert "`inmind sessions`" in of(MAX_WAL_BYTES + 1).fix


@pytest.mark.parametrize(
    ("mode", "mend"),
    [(0o40500, f"`chmod -R u+rwX {HOME}`"), (0o40700, f"`lsattr -d {HOME}` shows file attributes that prevent it")],
)
def test_what_may_not_be_written_is_mended_by_what_keeps_it_from_that(mode: int, mend: str) -> None:
    (found,) = check_writable(FolderScan((FileEntry(".", mode, 7, 0, 2),), unwritable=(".",)), HOME, STEPS, user=7)
    assert (found.verdict, found.fix) == (Verdict.TROUBLE, mend)


def test_what_other_users_may_write_is_reported_once() -> None:
    survey = FolderScan((FileEntry(".", 0o40700, 8, 0, 2),), unwritable=(".",))
    assert list(check_writable(survey, HOME, STEPS, user=7)) == []
    (found,) = check_permissions(survey, HOME, STEPS, user=7)
    assert found.fix == f"run inmind as user 8, or `sudo chown -R 7 {HOME}`"


@pytest.mark.spec("M41")
@pytest.mark.parametrize(("version", "verdict"), [("3.40.1", Verdict.WARNING), ("3.51.3", Verdict.OK)])
def test_a_library_of_the_affected_range_is_told(version: str, verdict: Verdict) -> None:
    assert check_sqlite_version(version).verdict is verdict


def test_extras_are_those_that_the_package_declares_for_its_users() -> None:
    declared = [
        "apsw>=3.51.3",
        'pytest>=9; extra == "cli"',
        "no-such-package-anywhere>=1 ; (python_version > '3.11') and extra == 'vectors'",
        'ruff; extra == "dev"',
    ]
    assert missing_packages(declared) == {"cli": [], "vectors": ["no-such-package-anywhere"]}


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 bytes"), (999, "999 bytes"), (1_500, "1.5 KB"), (2 * 10**12, "2,000.0 GB")]
)
def test_sizes_are_said_as_people_say_them(number: int, said: str) -> None:
    assert format_bytes(number) == said


def test_steps_name_the_home_where_it_is_not_the_usual_one_and_quote_what_needs_it() -> None:
    assert STEPS.open_session("a session's") == """`inmind show overview 'a session'"'"'s'`"""
    assert FixHints(Path("/my home"), is_default=False).open_home == "`inmind --home '/my home' sessions`"
