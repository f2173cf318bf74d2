"""One resource of a memory: notes, search, sessions, and ids that can be read again."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import user

from inmind import Memory, Origin
from inmind.errors import InvalidInput, NotFound


@pytest.mark.spec("D3")
def test_a_note_is_listed_with_its_id_text_date_and_importance_until_a_dream(memory: Memory) -> None:
    ada = memory.resource("ada")
    first = ada.note("Ada prefers tea", importance=0.8, kind="preference")
    second = memory.session("s", resource="ada").note("The ferry leaves at noon")
    assert ada.notes() == [first, second]
    assert (first.text, first.importance, first.kind) == ("Ada prefers tea", 0.8, "preference")
    ada.dream()
    assert ada.notes() == []
    assert ada.notes(all=True) == [first, second]
    ada.undo_dream()
    assert ada.notes() == [first, second]


def test_a_withdrawn_note_is_neither_listed_nor_found(memory: Memory) -> None:
    ada = memory.resource("ada")
    kept, withdrawn = ada.note("The ferry is blue"), ada.note("The ferry is red")
    ada.withdraw(withdrawn.id)
    assert ada.notes() == ada.notes(all=True) == [kept]
    assert [hit.crystal.id for hit in ada.search("ferry")] == [kept.id]


def test_two_equal_notes_are_two(memory: Memory) -> None:
    ada = memory.resource("ada")
    ids = {ada.note("Just so").id, ada.note("Just so").id}
    assert {note.id for note in ada.notes()} == ids
    assert len(ids) == 2


@pytest.mark.embedded
def test_a_note_typed_by_a_person_has_no_id_before_a_dream(memory: Memory, home: Path) -> None:
    ada = memory.resource("ada")
    saved = ada.note("Ada prefers tea")
    memory.flush()
    page = home / "resources" / "ada" / "memory" / "scratch.md"
    page.write_text(page.read_text("utf-8") + "- [2026-01-01T00:00:00Z] (importance: 0.9) typed by hand\n", "utf-8")
    assert [(note.id, note.text, note.importance) for note in ada.notes()] == [
        (saved.id, "Ada prefers tea", 0.7),
        ("", "typed by hand", 0.9),
    ]


def test_a_note_is_read_again_by_its_id(memory: Memory) -> None:
    note = memory.resource("ada").note("Ada prefers tea", origin=Origin.USER)
    crystal = memory.get(note.id)
    assert (crystal.id, crystal.text, crystal.at, crystal.resource) == (note.id, "Ada prefers tea", note.date, "ada")
    with pytest.raises(NotFound):
        memory.get("resource/ada#99")


def test_a_hit_has_its_text_score_source_and_date_and_reads_as_one_line(memory: Memory) -> None:
    note = memory.resource("ada").note("The ferry\nleaves at noon")
    (hit,) = memory.resource("ada").search("ferry")
    assert (hit.text, hit.source, hit.date) == ("The ferry\nleaves at noon", "memory", note.date)
    assert hit.score > 0
    assert str(hit) == f"{note.date:%Y-%m-%d} memory: The ferry leaves at noon"
    assert str(note) == f"{note.date:%Y-%m-%d} The ferry leaves at noon"


def test_a_resource_finds_and_lists_only_its_own(memory: Memory) -> None:
    memory.session("of ada", resource="ada").add([user("The ferry is blue")])
    memory.session("of bob", resource="bob").add([user("The ferry is red")])
    ada = memory.resource("ada")
    assert [hit.text for hit in ada.search("ferry")] == ["The ferry is blue"]
    assert len(memory.search("ferry")) == 2
    assert [info.id for info in ada.sessions()] == ["of ada"]
    assert ada.sessions(limit=1) == memory.sessions(resource="ada")


def test_getting_a_resource_stores_nothing(memory: Memory) -> None:
    assert repr(memory.resource("ada")).startswith("<Resource 'ada' of ")
    assert (memory.resources(), memory.has_resource("ada")) == ([], False)
    with pytest.raises(NotFound):
        memory.dream("ada")


@pytest.mark.spec("J3")
@pytest.mark.parametrize("name", ["", " ada", ".", None, 7])
def test_an_invalid_name_is_refused(memory: Memory, name: object) -> None:
    with pytest.raises(InvalidInput) as error:
        memory.resource(name)  # pyright: ignore[reportArgumentType] -- hosts are not all typed
    assert error.value.field == "resource"


@pytest.mark.spec("J3")
def test_an_unknown_filter_is_refused(memory: Memory) -> None:
    with pytest.raises(TypeError, match="speaker"):
        memory.resource("ada").search("ferry", speaker="ben")  # pyright: ignore[reportCallIssue] -- no such filter
