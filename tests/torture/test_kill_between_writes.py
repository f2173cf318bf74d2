"""Kills and saves between the journal and the file.

The tables of faults call this C04. The next process that opens publishes the committed text. A text that a user saved
meanwhile wins, and is a separate version.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from torture import crashes
from torture.crashes import PLACES
from torture.harness import ask, run

OLD, NEW, MINE, OTHER = "- old\n", "- new, committed\n", "- mine, says a person\n", "- other, committed last\n"
DOCUMENTS = ("overview.md", "MEMORY.md")


def create_home(folder: Path, path: str) -> str:
    home = str(folder / "home")
    ask(crashes.begin, home=home, path=path, texts=["- oldest\n", OLD])
    return home


def die_during_write(home: str, place: str, path: str, *, saved: str | None = None, other: str | None = None) -> None:
    outcome = run(crashes.die_at, home=home, place=place, path=path, text=NEW, saved=saved, other=other)
    assert outcome.code == 9, f"{place!r} was not reached: {outcome.code} {outcome.output}"
    assert outcome.all("dying") == [[place]]


@pytest.mark.parametrize("path", DOCUMENTS)
@pytest.mark.parametrize("place", PLACES)
def test_the_next_process_publishes_the_committed_text(tmp_path: Path, place: str, path: str) -> None:
    """C04, J1: and reports no edit."""
    home = create_home(tmp_path, path)
    die_during_write(home, place, path)
    result = ask(crashes.look, home=home, path=path)
    assert (result["text"], result["file"]) == (NEW, NEW)
    assert result["versions"][-3:] == [["- oldest\n", "user"], [OLD, "user"], [NEW, "user"]]
    assert (result["leftovers"], result["notices"]) == ([], [])


@pytest.mark.parametrize("path", DOCUMENTS)
@pytest.mark.parametrize("place", PLACES)
def test_a_save_by_a_user_at_that_moment_wins(tmp_path: Path, place: str, path: str) -> None:
    """C04, A5: their text is the newest version, and the committed one comes before it."""
    home = create_home(tmp_path, path)
    die_during_write(home, place, path, saved=MINE)
    result = ask(crashes.look, home=home, path=path)
    assert (result["text"], result["file"]) == (MINE, MINE)
    assert result["versions"][-2:] == [[NEW, "user"], [MINE, "file"]]
    assert (result["leftovers"], result["notices"]) == ([], [])


@pytest.mark.parametrize("place", PLACES)
def test_a_concurrent_commit_is_not_undone_by_a_stale_copy(tmp_path: Path, place: str) -> None:
    """C04: the file shows an unconfirmed version older than the newest; it is not an edit."""
    home = create_home(tmp_path, "overview.md")
    die_during_write(home, place, "overview.md", other=OTHER)
    result = ask(crashes.look, home=home, path="overview.md")
    assert (result["text"], result["file"]) == (OTHER, OTHER)
    assert result["versions"][-2:] == [[NEW, "user"], [OTHER, "assistant"]]
    assert (result["leftovers"], result["notices"]) == ([], [])


@pytest.mark.parametrize("place", PLACES)
def test_an_old_version_restored_by_a_user_is_an_edit(tmp_path: Path, place: str) -> None:
    """C04, A5: the exact text of two versions ago, and still their edit."""
    home = create_home(tmp_path, "overview.md")
    die_during_write(home, place, "overview.md", saved="- oldest\n")
    result = ask(crashes.look, home=home, path="overview.md")
    assert (result["text"], result["file"]) == ("- oldest\n", "- oldest\n")
    assert result["versions"][-2:] == [[NEW, "user"], ["- oldest\n", "file"]]


@pytest.mark.parametrize("place", PLACES)
def test_a_save_during_a_write_is_not_overwritten(tmp_path: Path, place: str) -> None:
    """A5, C04: both write: the call succeeds, and the user's text is the newest version."""
    home = create_home(tmp_path, "overview.md")
    result = ask(crashes.save_at, home=home, place=place, path="overview.md", text=NEW, saved=MINE)
    assert (result["text"], result["file"]) == (MINE, MINE)
    assert result["versions"][-2:] == [[NEW, "user"], [MINE, "file"]]
    assert ask(crashes.look, home=home, path="overview.md")["leftovers"] == []


def test_files_left_by_killed_writers_are_cleaned_up(tmp_path: Path) -> None:
    """C02, C04, J1: a text of a user becomes a version before its file is removed."""
    home = create_home(tmp_path, "overview.md")
    folder = Path(home, "sessions/--w--/s")
    detail = folder / "working-memory" / "detail"
    detail.mkdir(parents=True, exist_ok=True)
    for place in (folder, folder / "working-memory", detail, Path(home, "resources/ada")):
        (place / ".inmind-part-torn.md").write_text("half of somethi")
    (folder / "working-memory" / ".inmind-swap-overview.md").write_text("- oldest\n")
    (detail / ".inmind-swap-plan.md").write_text(MINE)
    result = ask(crashes.look, home=home, path="overview.md")
    assert (result["text"].startswith(OLD), result["leftovers"]) == (True, [])
    assert ask(crashes.look, home=home, path="detail/plan.md")["versions"] == [[MINE, "file"]]
    assert (detail / "plan.md").read_text() == MINE
