"""Kills and saves between the journal and the file.

The tables of faults call this C04. The next process that opens publishes what was committed; what a person saved wins,
whenever it was, and is a separate version.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from torture import crashes
from torture.crashes import PLACES
from torture.harness import ask, run

OLD, NEW, MINE, OTHER = "- old\n", "- new, committed\n", "- mine, says a person\n", "- other, committed last\n"
DOCUMENTS = ("overview.md", "MEMORY.md")


def started(folder: Path, path: str) -> str:
    home = str(folder / "home")
    ask(crashes.begin, home=home, path=path, texts=["- oldest\n", OLD])
    return home


def died(home: str, place: str, path: str, *, saved: str | None = None, other: str | None = None) -> None:
    ended = run(crashes.die_at, home=home, place=place, path=path, text=NEW, saved=saved, other=other)
    assert ended.code == 9, f"it never came to {place!r}: {ended.code} {ended.output}"
    assert ended.all("dying") == [[place]]


@pytest.mark.parametrize("path", DOCUMENTS)
@pytest.mark.parametrize("place", PLACES)
def test_the_next_process_publishes_what_was_committed(tmp_path: Path, place: str, path: str) -> None:
    """C04, J1: and reports no edit."""
    home = started(tmp_path, path)
    died(home, place, path)
    found = ask(crashes.look, home=home, path=path)
    assert (found["text"], found["file"]) == (NEW, NEW)
    assert found["versions"][-3:] == [["- oldest\n", "user"], [OLD, "user"], [NEW, "user"]]
    assert (found["leftovers"], found["notices"]) == ([], [])


@pytest.mark.parametrize("path", DOCUMENTS)
@pytest.mark.parametrize("place", PLACES)
def test_a_person_who_saves_at_that_moment_wins(tmp_path: Path, place: str, path: str) -> None:
    """C04, A5: their text is the newest version, and the committed one comes before it."""
    home = started(tmp_path, path)
    died(home, place, path, saved=MINE)
    found = ask(crashes.look, home=home, path=path)
    assert (found["text"], found["file"]) == (MINE, MINE)
    assert found["versions"][-2:] == [[NEW, "user"], [MINE, "file"]]
    assert (found["leftovers"], found["notices"]) == ([], [])


@pytest.mark.parametrize("place", PLACES)
def test_a_concurrent_commit_is_not_undone_by_a_stale_copy(tmp_path: Path, place: str) -> None:
    """C04: the file shows an unconfirmed version older than the newest; it is not an edit."""
    home = started(tmp_path, "overview.md")
    died(home, place, "overview.md", other=OTHER)
    found = ask(crashes.look, home=home, path="overview.md")
    assert (found["text"], found["file"]) == (OTHER, OTHER)
    assert found["versions"][-2:] == [[NEW, "user"], [OTHER, "assistant"]]
    assert (found["leftovers"], found["notices"]) == ([], [])


@pytest.mark.parametrize("place", PLACES)
def test_an_old_version_restored_by_a_person_is_an_edit(tmp_path: Path, place: str) -> None:
    """C04, A5: the exact text of two versions ago, and still their decision."""
    home = started(tmp_path, "overview.md")
    died(home, place, "overview.md", saved="- oldest\n")
    found = ask(crashes.look, home=home, path="overview.md")
    assert (found["text"], found["file"]) == ("- oldest\n", "- oldest\n")
    assert found["versions"][-2:] == [[NEW, "user"], ["- oldest\n", "file"]]


@pytest.mark.parametrize("place", PLACES)
def test_a_save_during_our_write_is_not_overwritten(tmp_path: Path, place: str) -> None:
    """A5, C04: both write: the call succeeds, and the person's text is the newest version."""
    home = started(tmp_path, "overview.md")
    found = ask(crashes.save_at, home=home, place=place, path="overview.md", text=NEW, saved=MINE)
    assert (found["text"], found["file"]) == (MINE, MINE)
    assert found["versions"][-2:] == [[NEW, "user"], [MINE, "file"]]
    assert ask(crashes.look, home=home, path="overview.md")["leftovers"] == []


def test_files_left_by_killed_writers_are_cleaned_up(tmp_path: Path) -> None:
    """C02, C04, J1: ours are removed; a possible only copy of a person's text becomes a version first."""
    home = started(tmp_path, "overview.md")
    folder = Path(home, "sessions/--w--/s")
    detail = folder / "working-memory" / "detail"
    detail.mkdir(parents=True, exist_ok=True)
    for left in (folder, folder / "working-memory", detail, Path(home, "resources/ada")):
        (left / ".inmind-part-torn.md").write_text("half of somethi")
    (folder / "working-memory" / ".inmind-swap-overview.md").write_text("- oldest\n")
    (detail / ".inmind-swap-plan.md").write_text(MINE)
    found = ask(crashes.look, home=home, path="overview.md")
    assert (found["text"].startswith(OLD), found["leftovers"]) == (True, [])
    assert ask(crashes.look, home=home, path="detail/plan.md")["versions"] == [[MINE, "file"]]
    assert (detail / "plan.md").read_text() == MINE
