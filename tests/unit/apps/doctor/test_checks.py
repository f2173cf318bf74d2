"""What is decided from values alone: verdicts, and what is told of disks that no test can fill."""

from __future__ import annotations

from pathlib import Path

import pytest

from inmind.apps.doctor.database import library
from inmind.apps.doctor.fix_hints import Steps
from inmind.apps.doctor.folder import LONG_LOG, Entry, Space, Survey, access, disk, in_bytes, rights, sizes
from inmind.apps.doctor.result import Check, Examination, Finding, Subject, Verdict, in_order, with_sound
from inmind.apps.doctor.versions import missing_of
from inmind.store.filesystem import Mount

HOME = Path("/home/ada/.inmind")
STEPS = Steps(HOME, is_usual=True)
LOCAL = Mount(kind="ext4", point="/home")
PLENTY = Space(free=10**12, read_only=False)
PLACE, DREAM, NOTES = Check(Subject.PLACE, "place"), Check(Subject.DREAMS, "dreams"), Check(Subject.DREAMS, "notes")


def test_nobody_finds_something_wrong_without_saying_how_to_mend_it() -> None:
    with pytest.raises(ValueError, match="how to mend it"):
        Finding(subject=Subject.PLACE, check="home", verdict=Verdict.TROUBLE, seen="it is gone")


@pytest.mark.parametrize(
    ("findings", "verdict"),
    [
        ([], Verdict.OK),
        ([PLACE.ok("there")], Verdict.OK),
        ([PLACE.ok("there"), DREAM.warning("bad", "sleep")], Verdict.WARNING),
        ([PLACE.trouble("gone", "find it"), DREAM.warning("bad", "sleep")], Verdict.TROUBLE),
    ],
)
def test_the_verdict_is_the_worst_of_all(findings: list[Finding], verdict: Verdict) -> None:
    assert Examination(home=HOME, findings=tuple(findings)).verdict is verdict


def test_findings_come_by_subject_and_those_of_a_check_together() -> None:
    found = [DREAM.ok("first"), NOTES.ok("second"), DREAM.ok("third"), PLACE.ok("fourth")]
    assert [one.seen for one in in_order(found)] == ["fourth", "first", "third", "second"]


def test_a_check_that_found_nothing_says_what_it_went_through() -> None:
    found = with_sound([DREAM.warning("bad", "sleep")], {DREAM: "all well", PLACE: "there"})
    assert [one.seen for one in found] == ["bad", "there"]


@pytest.mark.spec("M42")
def test_a_home_that_another_machine_can_reach_is_trouble_and_told_by_its_kind() -> None:
    found, _ = disk(Mount(kind="nfs4", point="/home"), PLENTY, HOME, STEPS)
    assert (found.verdict, found.seen.partition(":")[0]) == (Verdict.TROUBLE, "nfs4 at /home")
    assert f"cp -a {HOME}" in found.mend


@pytest.mark.spec("D09")
@pytest.mark.parametrize(
    ("free", "verdict"),
    [(10**12, Verdict.OK), (10**8, Verdict.WARNING), (10**6, Verdict.TROUBLE), (0, Verdict.TROUBLE)],
)
def test_the_less_room_there_is_the_worse(free: int, verdict: Verdict) -> None:
    _, found = disk(LOCAL, Space(free=free, read_only=False), HOME, STEPS)
    assert (found.check, found.verdict) == ("free space", verdict)


@pytest.mark.spec("D12")
def test_a_log_that_somebody_keeps_from_shrinking_is_told() -> None:
    def of(log: int) -> Finding:
        return sizes(Survey((Entry("inmind.db-wal", 0o100600, 0, log, 1),)), STEPS)

    assert of(LONG_LOG).verdict is Verdict.OK
    assert "`inmind sessions`" in of(LONG_LOG + 1).mend


@pytest.mark.parametrize(
    ("mode", "mend"),
    [(0o40500, f"`chmod -R u+rwX {HOME}`"), (0o40700, f"`lsattr -d {HOME}` tells what bars it")],
)
def test_what_may_not_be_written_is_mended_by_what_keeps_it_from_that(mode: int, mend: str) -> None:
    (found,) = rights(Survey((Entry(".", mode, 7, 0, 2),), fixed=(".",)), HOME, STEPS, user=7)
    assert (found.verdict, found.mend) == (Verdict.TROUBLE, mend)


def test_what_somebody_else_may_write_is_not_told_twice() -> None:
    survey = Survey((Entry(".", 0o40700, 8, 0, 2),), fixed=(".",))
    assert list(rights(survey, HOME, STEPS, user=7)) == []
    (found,) = access(survey, HOME, STEPS, user=7)
    assert found.mend == f"run inmind as user 8, or `sudo chown -R 7 {HOME}`"


@pytest.mark.spec("M41")
@pytest.mark.parametrize(("version", "verdict"), [("3.40.1", Verdict.WARNING), ("3.51.3", Verdict.OK)])
def test_a_library_of_the_affected_range_is_told(version: str, verdict: Verdict) -> None:
    assert library(version).verdict is verdict


def test_extras_are_those_that_the_package_declares_for_its_users() -> None:
    declared = [
        "apsw>=3.51.3",
        'pytest>=9; extra == "cli"',
        "no-such-package-anywhere>=1 ; (python_version > '3.11') and extra == 'vectors'",
        'ruff; extra == "dev"',
    ]
    assert missing_of(declared) == {"cli": [], "vectors": ["no-such-package-anywhere"]}


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 bytes"), (999, "999 bytes"), (1_500, "1.5 KB"), (2 * 10**12, "2,000.0 GB")]
)
def test_sizes_are_said_as_people_say_them(number: int, said: str) -> None:
    assert in_bytes(number) == said


def test_steps_name_the_home_where_it_is_not_the_usual_one_and_quote_what_needs_it() -> None:
    assert STEPS.opening("a session's") == """`inmind show overview 'a session'"'"'s'`"""
    assert Steps(Path("/my home"), is_usual=False).any_opening == "`inmind --home '/my home' sessions`"
