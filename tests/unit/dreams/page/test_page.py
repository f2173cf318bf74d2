"""Parsing and rendering of MEMORY.md as users leave it, without loss."""

from __future__ import annotations

import time

import pytest
from builders import WHEN
from tables import each_row

from inmind.dreams.page.page import MemoryPage, PagePart, Section, entry_text, parse_page, render_header, render_page

pytestmark = pytest.mark.spec("G4")

PAGE = """\
# Working Memory State

_Last dream: 2026-03-12T16:00:00Z | Mood: calm_

## The Bond

- Prefers tabs over spaces
- Works from Berlin

## Active Context

- The deadline is March 20
"""


def test_a_page_of_a_dream_is_read_with_its_sections() -> None:
    page = parse_page(PAGE)
    assert page.header == "_Last dream: 2026-03-12T16:00:00Z | Mood: calm_"
    assert page.entries(Section.BOND) == ("Prefers tabs over spaces", "Works from Berlin")
    assert page.entries(Section.NICHE) == ()
    assert render_page(page) == PAGE


def test_headings_of_older_pages_mean_the_same_sections() -> None:
    older = PAGE.replace("## The Bond", "## The Bond (Oxytocin-Weighted)")
    assert parse_page(older).entries(Section.BOND) == parse_page(PAGE).entries(Section.BOND)
    assert render_page(parse_page(older)) == older


def test_a_repeated_section_has_the_entries_of_both() -> None:
    assert parse_page(PAGE + "\n## The Bond\n\n- Is called Ada\n").entries(Section.BOND)[-1] == "Is called Ada"


def test_the_preamble_is_rendered_byte_for_byte() -> None:
    above = "\ufeff# My notes\r\n\r\n\r\n  * odd   spacing\r\n---\r\n"
    page = parse_page(above + PAGE)
    assert page.preamble == above
    assert render_page(page) == above + PAGE


@each_row("text", ["", "\n\n", "hello", "# My notes\n- a\n", "```\n# Working Memory State\n```\n"])
def test_a_page_without_a_state_belongs_to_users(text: str) -> None:
    assert parse_page(text) == MemoryPage(preamble=text)


@pytest.mark.parametrize(
    ("without", "header"), [("# Working Memory State\n\n", "calm"), (PAGE[: PAGE.index("## The Bond")], "")]
)
def test_a_state_without_its_title_is_still_recognized(without: str, header: str) -> None:
    page = parse_page("Mine.\n\n" + PAGE.replace(without, ""))
    assert (page.preamble, page.title) == ("Mine.\n\n", "")
    assert header in page.header
    assert page.entries(Section.ACTIVE) == ("The deadline is March 20",)


def test_windows_line_endings_do_not_change_the_entries() -> None:
    assert list(parse_page(PAGE.replace("\n", "\r\n")).all_entries()) == list(parse_page(PAGE).all_entries())


@each_row(
    "entry",
    [
        "- an item\n  that goes on\n\n  behind a blank line",
        "- an item\n  ```\n  # no heading\n\n  - no item\n  ```",
        "1. numbered",
        "A paragraph\nof two lines",
        "```python\n# no heading\n\nx = 1\n```",
        "~~~~\n```\n## The Niche\n~~~~",
        "- an item\n  - with one below it",
        "项目：部署在周五",
    ],
)
def test_an_entry_of_several_lines_stays_one_entry(entry: str) -> None:
    page = parse_page(f"{PAGE}\n{entry}\n\n- the next\n")
    assert page.parts[-1].entries[1:] == (entry, "- the next")
    assert entry in render_page(page)


def test_an_unclosed_fence_hides_nothing() -> None:
    page = parse_page(PAGE.replace("- Works from Berlin", "```\nWorks from Berlin"))
    assert page.entries(Section.ACTIVE) == ("The deadline is March 20",)


def test_an_unclosed_comment_hides_nothing_before_the_next_one() -> None:
    page = parse_page("<!-- todo\n- tea\n\n<!-- closed -->\n- cake\n")
    assert [text for _, text in page.all_entries()] == ["<!-- todo", "tea", "cake"]


@each_row(
    ("entry", "text"),
    [
        ("- Prefers tabs", "Prefers tabs"),
        ("  12) Prefers tabs", "Prefers tabs"),
        ("* one\n  two\n    three", "one\ntwo\n  three"),
        ("A friend - an old one", "A friend - an old one"),
        ("- - dashes", "- dashes"),
        ("<!-- nothing\nat all -->", ""),
        ("<!-- first --> said <!-- last -->", "<!-- first --> said <!-- last -->"),
        ("---", ""),
        ("-", ""),
    ],
)
def test_an_entry_text_has_no_list_mark(entry: str, text: str) -> None:
    assert entry_text(entry) == text


def test_text_above_the_state_and_under_other_headings_has_no_section() -> None:
    page = parse_page(f"- above\n\n{PAGE}\n## Projects\n\n- a shop\n")
    assert [text for section, text in page.all_entries() if section is None] == ["above", "a shop"]


def test_paragraphs_are_separated_by_blank_lines_and_items_are_not() -> None:
    page = MemoryPage(parts=(PagePart("## The Bond", ("- a", "- b", "c", "- d")),))
    assert render_page(page) == "## The Bond\n\n- a\n- b\n\nc\n\n- d\n"


@pytest.mark.parametrize(
    ("mood", "line"),
    [
        ("calm", "_Last dream: 2026-01-01T00:00:00Z | Mood: calm_"),
        ("", "_Last dream: 2026-01-01T00:00:00Z_"),
        ("a_b\n## The Bond", "_Last dream: 2026-01-01T00:00:00Z | Mood: a b ## The Bond_"),
    ],
)
def test_the_header_is_one_line_whatever_the_mood(mood: str, line: str) -> None:
    assert render_header(WHEN, mood) == line
    assert parse_page(f"{line}\n").header == line


@pytest.mark.exhaustive
def test_a_page_of_unclosed_openings_is_parsed_in_linear_time() -> None:
    text = "# Working Memory State\n" + "```a\n~~~b\n<!-- c\n" * 20_000
    start = time.process_time()
    assert render_page(parse_page(text))
    assert time.process_time() - start < 2
