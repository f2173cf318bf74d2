"""MEMORY.md and notes in a prompt: order, limits by characters, and a stable prefix."""

from __future__ import annotations

import pytest
from builders import WHEN, user
from tables import each_row

from inmind import Memory, Session
from inmind.documents.document import MEMORY_PAGE_PATH, NOTES_PAGE_PATH, Document
from inmind.dreams.page.page import MAX_PAGE_CHARACTERS, prompt_characters, truncate_page
from inmind.prompt.layers.base import LayerContext, LayerText
from inmind.prompt.layers.builtin import NOTES_BANNER, STATE_POINTER, NotesLayer, StateLayer

pytestmark = pytest.mark.spec("G1", "G11")


def a_state(characters: int) -> str:
    head = "# Working Memory State\n\n_Last dream: 2026-01-01T00:00:00Z | Mood: calm_\n\n## Active Context\n\n"
    entries = (f"- entry {n:04} of those on the page of the test\n" for n in range(10_000))
    text = head
    while len(text) + 45 <= characters:
        text += next(entries)
    return text


def notes_of(number: int) -> str:
    return "".join(f"- [2026-01-01T00:00:00Z] (importance: 0.7) note {n:04} of some\n" for n in range(number))


def a_context(state: str = "", notes: str = "", window: int = 128_000) -> LayerContext:
    pages = {
        path: Document(text, 1, f"resource/ada#{path}")
        for path, text in ((MEMORY_PAGE_PATH, state), (NOTES_PAGE_PATH, notes))
        if text
    }
    return LayerContext(session="s", resource="ada", now=WHEN, documents=pages, messages=(), window=window)


def recall_both(context: LayerContext) -> tuple[LayerText | None, LayerText | None]:
    return StateLayer().recall(context), NotesLayer().recall(context)


@each_row(
    ("window", "characters"),
    [
        (1_000_000, 8_000),
        (200_000, 8_000),
        (199_999, 6_000),
        (128_000, 6_000),
        (64_000, 4_000),
        (32_000, 3_200),
        (8_000, 3_200),
    ],
)
def test_the_limit_depends_on_the_window(window: int, characters: int) -> None:
    assert prompt_characters(window) == characters
    state, notes = recall_both(a_context(a_state(20_000), notes_of(300), window))
    assert state is not None
    assert notes is not None
    assert len(state.text) + len(notes.text) <= characters
    assert len(state.text) + len(notes.text) > characters * 0.95


def test_a_large_window_shows_the_complete_page() -> None:
    text = a_state(MAX_PAGE_CHARACTERS)
    state, _ = recall_both(a_context(text, notes_of(300), window=200_000))
    assert state is not None
    assert (state.text, state.left_out) == (text.strip(), 0)


def test_a_page_is_cut_at_an_entry_with_a_pointer() -> None:
    state, _ = recall_both(a_context(a_state(20_000)))
    assert state is not None
    *_, last, pointer = state.text.split("\n")
    assert last.endswith("of those on the page of the test")
    assert pointer == STATE_POINTER == "[Full working memory available via memory_search]"
    assert state.left_out > 0


def test_no_heading_remains_without_text() -> None:
    text = "## The Bond\n\n- tabs\n- an entry\n  of two lines\n\n## The Niche\n\n- a shop\n"
    assert (
        truncate_page(text, budget=60, count=len, pointer="[more]").text
        == "## The Bond\n\n- tabs\n- an entry\n  of two lines\n[more]"
    )
    assert truncate_page(text, budget=40, count=len, pointer="[more]").text == "## The Bond\n\n- tabs\n[more]"
    assert len(truncate_page(text, budget=15, count=len, pointer="[more]").text) <= 15


def test_notes_get_a_quarter_and_the_space_that_the_state_does_not_use() -> None:
    _, limited = recall_both(a_context(a_state(20_000), notes_of(300)))
    _, alone = recall_both(a_context("", notes_of(300)))
    assert limited is not None
    assert alone is not None
    assert 1_400 < len(limited.text) <= 1_500
    assert 5_900 < len(alone.text) <= 6_000
    assert (limited.banner, "note 0299" in limited.text) == (NOTES_BANNER, True)


def test_a_missing_page_gives_no_text() -> None:
    assert recall_both(a_context()) == (None, None)


def test_the_state_comes_before_the_notes(session: Session) -> None:
    session.write("MEMORY.md", a_state(600))
    session.note("Douglas prefers tabs")
    text = str(session.prepare([user("hello")]).messages)
    assert 0 < text.index('layer=\\"state\\"' if '\\"' in text else 'layer="state"') < text.index(NOTES_BANNER)


@pytest.mark.parametrize("characters", [3_000, 6_000, 20_000])
def test_a_new_note_does_not_change_the_prefix(memory: Memory, characters: int) -> None:
    session = memory.session("s", resource="ada", window=128_000)
    session.write("MEMORY.md", a_state(characters))
    session.note("first")
    before = session.prepare([user("hello")])
    session.note("second, " + "which is longer " * 20)
    after = session.prepare([user("hello")])
    assert after.report.anchor_moved == ""
    front = str(before.messages[:-1])
    assert str(after.messages[: len(before.messages) - 1]) == front
    assert "of those on the page of the test" not in str(after.messages[-1])
    assert "second, which is longer" in str(after.messages[-1])
