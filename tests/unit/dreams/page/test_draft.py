"""Merging of MEMORY.md after a user and a dream changed it concurrently."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.dreams.page.draft import merge_pages, remove_entries
from inmind.dreams.page.page import Section, parse_page

pytestmark = pytest.mark.spec("G7", "A5")


def a_page(*bond: str, active: tuple[str, ...] = (), header: str = "_Last dream: yesterday_") -> str:
    entries = {Section.BOND: bond, Section.ACTIVE: active}
    parts = (f"## {one}\n\n" + "".join(f"- {text}\n" for text in entries.get(one, ())) for one in Section)
    return f"# Working Memory State\n\n{header}\n\n" + "\n".join(parts)


def texts(page: str) -> list[str]:
    return [text for _, text in parse_page(page).all_entries()]


def test_typed_and_dreamt_lines_are_both_kept() -> None:
    merged = merge_pages(a_page("a"), a_page("a", "typed"), a_page("a", "dreamt", header="_Last dream: today_"))
    assert parse_page(merged).entries(Section.BOND) == ("a", "typed", "dreamt")
    assert parse_page(merged).header == "_Last dream: today_"


def test_if_both_changed_a_line_both_versions_are_kept() -> None:
    merged = merge_pages(a_page("a"), a_page("a, says Ada"), a_page(active=("a, as dreams put it",)))
    assert parse_page(merged).entries(Section.BOND) == ("a, says Ada",)
    assert parse_page(merged).entries(Section.ACTIVE) == ("a, as dreams put it",)


def test_lines_removed_by_the_dream_or_the_user_stay_removed() -> None:
    assert texts(merge_pages(a_page("a", "b", "c"), a_page("b", "c", "new"), a_page("a", "b"))) == ["b", "new"]


def test_a_page_unchanged_by_the_dream_stays_as_typed() -> None:
    typed = "# Mine\n\n\n* oddly   spaced\n"
    assert merge_pages("# Mine\n", typed, "# Mine\n") == typed


def test_the_first_dream_writes_below_later_typing_of_the_user() -> None:
    merged = merge_pages(
        "# Mine\n\n- tea\n", "# Mine\n\n- tea\n- cake\n", f"# Mine\n\n- tea\n\n---\n\n{a_page('dreamt')}"
    )
    assert merged.startswith("# Mine\n\n- tea\n- cake\n\n---\n")
    assert texts(merged) == ["tea", "cake", "dreamt"]


@each_row(
    ("removed", "remaining"),
    [
        ({"tea"}, "# Work\n\n## Ships\n\n- red\n\n## Boats\n\n- blue\n\n# Empty\n"),
        ({"red"}, "# Mine\n\n- tea\n\n# Work\n\n## Boats\n\n- blue\n\n# Empty\n"),
        ({"red", "blue"}, "# Mine\n\n- tea\n\n# Empty\n"),
        ({"tea", "red", "blue"}, "# Empty\n"),
    ],
    ids=["a heading", "one of two below", "with those below", "all but an empty one"],
)
def test_a_heading_whose_entries_were_all_removed_is_removed(removed: set[str], remaining: str) -> None:
    page = "# Mine\n\n- tea\n\n# Work\n\n## Ships\n\n- red\n\n## Boats\n\n- blue\n\n# Empty\n"
    assert remove_entries(page, removed) == remaining


LINES = st.lists(st.sampled_from("abcdef"), unique=True, max_size=5).map(tuple)


@given(base=LINES, theirs=LINES, dreamt=LINES)
def test_each_entry_is_kept_or_removed_by_the_side_that_changed_it(
    base: tuple[str, ...], theirs: tuple[str, ...], dreamt: tuple[str, ...]
) -> None:
    merged = texts(merge_pages(a_page(*base), a_page(*theirs), a_page(*dreamt)))
    kept = {*base} & {*theirs} & {*dreamt}
    assert sorted(merged) == sorted(kept | ({*theirs} - {*base}) | ({*dreamt} - {*base}))
