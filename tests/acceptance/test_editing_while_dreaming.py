"""A user's editor and a dream change the same pages, and both changes are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from inmind import Memory, Session
from inmind.documents.notes_page import parse_notes, parse_remarks
from inmind.testing import ManualClock

pytestmark = [pytest.mark.spec("A5", "G7"), pytest.mark.both_stores]


@pytest.fixture
def state(home: Path) -> Path:
    return home / "resources" / "ada" / "MEMORY.md"


@pytest.fixture
def scratch(home: Path) -> Path:
    return home / "resources" / "ada" / "memory" / "scratch.md"


@pytest.fixture
def session(memory: Memory, clock: ManualClock) -> Session:
    """A session with a page written by one dream and a note for the next dream."""
    session = memory.session("s", resource="ada")
    session.note("Ada prefers tabs over spaces in every file of hers", importance=0.8, kind="preference")
    memory.dream("ada")
    clock.advance(seconds=7_200)
    session.note("Deploys happen on Tuesdays after the meeting", importance=0.8)
    memory.flush()
    return session


@pytest.mark.embedded
def test_a_page_open_in_an_editor_during_a_dream_keeps_both_changes(
    memory: Memory, session: Session, state: Path
) -> None:
    before = state.read_text("utf-8")
    memory.dream("ada")
    state.write_text(before.replace("## The Niche\n", "## The Niche\n\n- Sells boats\n"), "utf-8")
    page = session.read("MEMORY.md")
    assert "- Sells boats" in page
    assert "Deploys happen on Tuesdays" in page
    assert "prefers tabs" in page
    memory.flush()
    assert state.read_text("utf-8") == page


@pytest.mark.embedded
def test_a_user_can_remove_a_dreamt_line(memory: Memory, session: Session, state: Path) -> None:
    memory.dream("ada")
    lines = [line for line in state.read_text("utf-8").split("\n") if "Tuesdays" not in line]
    state.write_text("\n".join(lines), "utf-8")
    assert "Tuesdays" not in session.read("MEMORY.md")


@pytest.mark.embedded
def test_a_user_can_restore_an_old_page(memory: Memory, session: Session, state: Path) -> None:
    old = state.read_text("utf-8")
    memory.dream("ada")
    state.write_text(old, "utf-8")
    assert session.read("MEMORY.md") == old


@pytest.mark.embedded
def test_consolidated_notes_do_not_come_back_with_an_old_page(memory: Memory, session: Session, scratch: Path) -> None:
    before = scratch.read_text("utf-8")
    assert "Tuesdays" in before
    memory.dream("ada")
    session.note("Something else")
    scratch.write_text(f"{before}\nThe cat is called Pascal.\n", "utf-8")
    page = session.read("memory/scratch.md")
    assert [note.text for note in parse_notes(page)] == ["Something else"]
    assert "The cat is called Pascal." in page
    dream = memory.dream("ada")
    assert len(dream.notes) == 2
    assert session.read("MEMORY.md").count("Tuesdays") == 1


@pytest.mark.embedded
def test_a_note_changed_by_a_user_stays_changed(memory: Memory, session: Session, scratch: Path) -> None:
    before = scratch.read_text("utf-8")
    memory.dream("ada")
    scratch.write_text(before.replace("Tuesdays", "Mondays"), "utf-8")
    assert [note.text for note in parse_notes(session.read("memory/scratch.md"))] == [
        "Deploys happen on Mondays after the meeting"
    ]


@pytest.mark.spec("H6")
@pytest.mark.usefixtures("session")
def test_a_line_written_by_a_dream_is_not_found_as_page_text(memory: Memory) -> None:
    memory.dream("ada")
    paths = {hit.crystal.path for hit in memory.resource("ada").search("Tuesdays meeting")}
    assert paths == {""}


@pytest.mark.embedded
@pytest.mark.spec("G7")
@pytest.mark.usefixtures("session")
def test_a_remark_extended_during_a_dream_stays_complete(memory: Memory, scratch: Path) -> None:
    page = scratch.read_text("utf-8")
    scratch.write_text(f"{page}\nDo not deploy on Friday\n\nok\n", "utf-8")

    def watch(phase: str, _: str) -> None:
        if phase == "propose":
            now = scratch.read_text("utf-8").replace("on Friday", "on Friday, unless Bob says so")
            scratch.write_text(now.replace("\nok\n", "\nThe booking is open\n"), "utf-8")

    memory.dream("ada", watch=watch)
    memory.flush()
    text = scratch.read_text("utf-8")
    assert parse_remarks(text) == ["Do not deploy on Friday, unless Bob says so", "The booking is open"]
    assert parse_notes(text) == []
