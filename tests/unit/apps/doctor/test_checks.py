"""Verdicts of the doctor that depend on values alone, for example those about full disks."""

from __future__ import annotations

import os
from pathlib import Path

import apsw
import pytest

from inmind.apps.doctor import DoctorFinding, DoctorReport, FixHints, Verdict, ok, trouble, warning
from inmind.apps.doctor.home import (
    MAX_WAL_BYTES,
    FolderScan,
    Mount,
    check_disk,
    check_permissions,
    check_size,
    check_sqlite,
    check_writable,
    format_bytes,
    missing_packages,
)

HOME = Path("/home/ada/.inmind")
HINTS = FixHints(HOME, is_default=True)
LOCAL = Mount(kind="ext4", point="/home")
SLEEPLESS = warning("leases", "bad", "sleep")


def a_status(mode: int, *, owner: int = 0, size: int = 0) -> os.stat_result:
    return os.stat_result((mode, 0, 0, 1, owner, 0, size, 0, 0, 0))


@pytest.mark.parametrize(
    ("findings", "verdict"),
    [
        ([], Verdict.OK),
        ([ok("home", "there")], Verdict.OK),
        ([ok("home", "there"), SLEEPLESS], Verdict.WARNING),
        ([trouble("home", "gone", "find it"), SLEEPLESS], Verdict.TROUBLE),
    ],
)
def test_the_verdict_is_the_worst_of_all(findings: list[DoctorFinding], verdict: Verdict) -> None:
    assert DoctorReport.of(HOME, findings).verdict is verdict


def test_findings_are_sorted_by_subject_and_check() -> None:
    findings = [ok("leases", "second"), ok("notes", "fourth"), ok("leases", "third"), ok("home", "first")]
    assert [finding.message for finding in DoctorReport.of(HOME, findings).findings] == [
        "first",
        "second",
        "third",
        "fourth",
    ]


@pytest.mark.spec("M42")
def test_a_home_on_a_network_file_system_is_trouble() -> None:
    finding, _ = check_disk(Mount(kind="nfs4", point="/home"), free=10**12, read_only=False, hints=HINTS)
    assert (finding.verdict, finding.message.partition(":")[0]) == (Verdict.TROUBLE, "nfs4 at /home")
    assert f"cp -a {HOME}" in finding.fix


@pytest.mark.spec("D09")
@pytest.mark.parametrize(
    ("free", "verdict"),
    [(10**12, Verdict.OK), (10**8, Verdict.WARNING), (10**6, Verdict.TROUBLE), (0, Verdict.TROUBLE)],
)
def test_less_free_space_gives_a_worse_verdict(free: int, verdict: Verdict) -> None:
    _, finding = check_disk(LOCAL, free=free, read_only=False, hints=HINTS)
    assert (finding.check, finding.verdict) == ("free space", verdict)


@pytest.mark.spec("D12")
def test_a_log_that_a_reader_keeps_from_shrinking_is_reported() -> None:
    def check_log(log: int) -> DoctorFinding:
        return check_size(FolderScan({"inmind.db-wal": a_status(0o100600, size=log)}), HINTS)

    assert check_log(MAX_WAL_BYTES).verdict is Verdict.OK
    assert "`inmind sessions`" in check_log(MAX_WAL_BYTES + 1).fix


@pytest.mark.parametrize(
    ("mode", "fix"),
    [(0o40500, f"`chmod -R u+rwX {HOME}`"), (0o40700, f"`lsattr -d {HOME}` shows file attributes that prevent it")],
)
def test_the_fix_of_an_unwritable_home_depends_on_the_cause(mode: int, fix: str) -> None:
    scan = FolderScan({".": a_status(mode, owner=7)}, unwritable=(".",))
    (finding,) = check_writable(scan, HINTS, user=7)
    assert (finding.verdict, finding.fix) == (Verdict.TROUBLE, fix)


def test_a_home_of_another_user_is_reported_once() -> None:
    scan = FolderScan({".": a_status(0o40700, owner=8)}, unwritable=(".",))
    assert list(check_writable(scan, HINTS, user=7)) == []
    (finding,) = check_permissions(scan, HINTS, user=7)
    assert finding.fix == f"run inmind as user 8, or `sudo chown -R 7 {HOME}`"


@pytest.mark.spec("M41")
@pytest.mark.parametrize(("version", "verdict"), [("3.40.1", Verdict.WARNING), ("3.51.3", Verdict.OK)])
def test_an_affected_sqlite_version_is_reported(
    version: str, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: version)
    assert check_sqlite().verdict is verdict


def test_missing_packages_are_listed_per_public_extra() -> None:
    declared = [
        "apsw>=3.51.3",
        'pytest>=9; extra == "cli"',
        "no-such-package-anywhere>=1 ; (python_version > '3.11') and extra == 'vectors'",
        'ruff; extra == "dev"',
    ]
    assert missing_packages(declared) == {"cli": [], "vectors": ["no-such-package-anywhere"]}


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 bytes"), (999, "999 bytes"), (1_500, "1.5 KB"), (2 * 10**12, "2,000.0 GB")]
)
def test_sizes_are_formatted_with_units(number: int, text: str) -> None:
    assert format_bytes(number) == text


def test_hints_name_a_home_that_is_not_the_default_and_quote_arguments() -> None:
    assert HINTS.open_session("a session's") == """`inmind show overview 'a session'"'"'s'`"""
    assert FixHints(Path("/my home"), is_default=False).open_home == "`inmind --home '/my home' sessions`"
