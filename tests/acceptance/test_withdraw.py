"""A withdrawn note leaves the page, prompts and search, and an undo restores it."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import Home, user

from inmind import Memory, Session
from inmind.core.events.crystals import NoteWithdrawn
from inmind.errors import NotFound

PAGE = "memory/scratch.md"

pytestmark = [pytest.mark.spec("G2"), pytest.mark.both_stores]


def search_texts(session: Session, query: str = "tea") -> list[str]:
    return [hit.text for hit in session.search(query)]


def test_a_withdrawn_note_leaves_the_page_prompts_and_search(session: Session) -> None:
    tea, ferry = session.note("Ada drinks green tea"), session.note("The ferry leaves at noon")
    assert search_texts(session) == [tea.text]
    session.withdraw(tea.id)
    assert search_texts(session) == []
    assert tea.text not in session.read(PAGE)
    assert ferry.text in session.read(PAGE)
    request = str(session.prepare([user("hello")]).request)
    assert (tea.text in request, ferry.text in request) == (False, True)


def test_undo_restores_a_withdrawn_note(session: Session) -> None:
    note = session.note("Ada drinks green tea")
    session.withdraw(note.id)
    withdrawn = session.state.seq
    session.undo()
    assert search_texts(session) == [note.text]
    assert session.read(PAGE).count(note.text) == 1
    session.undo(to=withdrawn)
    assert search_texts(session) == []
    assert note.text not in session.read(PAGE)


def test_undo_does_not_restore_a_note_that_left_the_page_before(session: Session) -> None:
    note = session.note("Ada drinks green tea")
    session.read(PAGE)
    session.write(PAGE, "# Notes since the last dream\n")
    session.withdraw(note.id)
    session.undo()
    assert search_texts(session) == [note.text]
    assert note.text not in session.read(PAGE)


def test_an_anonymous_session_withdraws_its_own_notes(memory: Memory) -> None:
    session = memory.session("anonymous")
    note = session.note("Ada drinks green tea")
    session.withdraw(note.id)
    assert (search_texts(session), note.text in session.read(PAGE)) == ([], False)
    session.undo()
    assert (search_texts(session), note.text in session.read(PAGE)) == ([note.text], True)


def test_withdrawing_twice_changes_nothing(session: Session) -> None:
    note = session.note("Ada drinks green tea")
    session.withdraw(note.id, key="k")
    version = session.state.seq
    session.withdraw(note.id)
    session.withdraw(note.id, key="k")
    assert session.state.seq == version


@pytest.mark.parametrize("id", ["", "resource/ada", "resource/ada#0", "resource/ada#99", "resource/bob#1", "#1"])
def test_an_unknown_note_is_not_found(session: Session, id: str) -> None:
    session.note("Ada drinks green tea")
    with pytest.raises(NotFound, match="note"):
        session.withdraw(id)


def test_another_event_is_not_a_note(session: Session) -> None:
    session.write("MEMORY.md", "# Memory\n")
    with pytest.raises(NotFound, match="note"):
        session.withdraw("resource/ada#1")


def test_a_resource_withdraws_a_note_without_a_session(memory: Memory, session: Session) -> None:
    note = session.note("Ada drinks green tea")
    memory.resource("ada").withdraw(note.id)
    assert memory.resource("ada").notes() == []
    assert search_texts(session) == []


def test_a_withdrawal_survives_an_index_rebuild_and_reopening(home: Home, memory: Memory, session: Session) -> None:
    note = session.note("Ada drinks green tea")
    session.withdraw(note.id)
    memory.close()
    if isinstance(home, Path):
        (home / "index.db").unlink(missing_ok=True)
    with Memory.open(home, embedder=None) as reopened:
        session = reopened.session("support-42", resource="ada")
        assert search_texts(session) == []
        session.undo()
        assert search_texts(session) == [note.text]


def test_a_bundle_contains_a_withdrawal(tmp_path: Path, memory: Memory, session: Session) -> None:
    note = session.note("Ada drinks green tea")
    session.withdraw(note.id)
    memory.export(tmp_path / "ada.inmind", resource="ada")
    with Memory.open(tmp_path / "other", embedder=None) as other:
        other.import_bundle(tmp_path / "ada.inmind")
        copy = other.session("support-42", resource="ada")
        assert search_texts(copy) == []
        assert [event.payload for event in copy.events() if event.kind == "note_withdrawn"] == [
            NoteWithdrawn(note.id, on_page=True)
        ]
