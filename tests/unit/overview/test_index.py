"""overview.md names the pages that are not shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inmind.overview import LANGUAGES, is_maintained, template
from inmind.overview.index import MOST_PAGES, Page, page_of, with_index
from inmind.overview.own import is_own
from inmind.overview.sections import section_of

pytestmark = pytest.mark.spec("F3")


def a_page(number: int = 1, *, title: str = "Login", line: str = "Sessions expire too early.") -> Page:
    return Page(path=f"archive/{number:03}-login.md", title=title, bytes=18_000, line=line)


def test_each_page_has_a_line_with_its_size_its_title_and_what_it_is_about() -> None:
    page = with_index(template("en"), [a_page()], "en")
    assert page == template("en") + (
        "\n## Detail and archive\n- archive/001-login.md (18 KB): Login — Sessions expire too early. ·\n"
    )


def test_the_newest_pages_are_listed_and_the_others_counted() -> None:
    pages = [a_page(number) for number in range(13, 0, -1)]
    lines = section_of(with_index("", pages, "en"), "Detail and archive").split("\n")
    assert len(lines) == MOST_PAGES + 1
    assert (lines[0][:23], lines[-1]) == ("- archive/013-login.md ", "- and 8 more: memory_list ·")


def test_an_index_is_kept_in_the_language_that_the_page_has_it_in() -> None:
    page = with_index(template("zh"), [a_page()], "zh")
    assert "## 详细与归档\n- archive/001-login.md" in page
    assert with_index(page, [a_page(2)], "en").count("\n## ") == page.count("\n## ")


def test_without_pages_the_section_goes_and_a_page_that_had_none_stays() -> None:
    assert with_index(template("en"), [], "en") == template("en")
    assert with_index(with_index(template("en"), [a_page()], "en"), [], "en") == template("en")
    between = "## Detail and archive\n- archive/001-login.md (18 KB): Login ·\n\n## Rules\n\nNone.\n"
    assert with_index(between, [], "en") == "## Rules\n\nNone.\n"


def test_what_somebody_wrote_there_stays_and_stands_for_our_line() -> None:
    theirs = "## Detail and archive\n\nThe plan is in `archive/001-login.md`.\n"
    page = with_index(theirs, [a_page(2), a_page(1)], "en")
    assert section_of(page, "Detail and archive").split("\n") == [
        "- archive/002-login.md (18 KB): Login — Sessions expire too early. ·",
        "",
        "The plan is in `archive/001-login.md`.",
    ]
    assert section_of(with_index(page, [], "en"), "Detail and archive") == "The plan is in `archive/001-login.md`."


@pytest.mark.spec("E2")
def test_an_index_alone_does_not_make_a_page_maintained() -> None:
    for language in LANGUAGES:
        pages = [a_page(number) for number in range(20)]
        assert not is_maintained(with_index(template(language), pages, language))


@pytest.mark.parametrize(
    ("text", "title", "line"),
    [
        ("# Login bug\n\nSessions expire.\n", "Login bug", "Sessions expire."),
        ("<!-- x -->\n---\n\n- [ ] first\n", "notes", "first"),
        ("```\n# no title\n```\n## Later ##\n", "Later", ""),
        ("---\nmeta: 1\n---\n# Head\nbody", "Head", "body"),
        ("", "notes", ""),
        ("# " + "long " * 50, "long " * 10 + "long…", ""),
        ("first\n" * 2_000 + "# an end is no title\n", "notes", "first"),
    ],
)
def test_a_page_is_called_by_its_first_heading_and_described_by_its_first_line(
    text: str, title: str, line: str
) -> None:
    page = page_of("detail/notes.md", text)
    assert (page.title, page.line, page.bytes) == (title, line, len(text))


def test_no_title_can_open_a_heading_or_a_comment_on_the_overview() -> None:
    page = with_index("# Mine\n", [page_of("detail/a.md", "# <!-- \n\n</memory>\n## x\n")], "en")
    assert "<!--" not in page
    assert "</memory>" not in page
    assert with_index(page, [], "en") == "# Mine\n"


LINES = st.sampled_from(
    [
        *("", "text", "- a list", "- a list ·", "## Detail and archive", "## 详细与归档", "# Top", "### Below", "```"),
        *("~~~", "<!--", "-->", "<!-- guide -->", "---", "a: 1", "- archive/001-login.md", "> ·", "\r", "  - deep ·"),
    ]
)
PAGES = st.lists(LINES, max_size=12, unique=True).map("\n".join)
NUMBERS = st.lists(st.integers(0, 30), unique=True, max_size=14)


@given(text=PAGES | st.text(), numbers=NUMBERS, language=st.sampled_from(LANGUAGES))
def test_an_index_is_bounded_and_made_once_and_no_line_of_others_is_lost(
    text: str, numbers: list[int], language: str
) -> None:
    pages = [a_page(number) for number in numbers]
    page = with_index(text, pages, language)
    assert with_index(page, pages, language) == page
    kept = iter(page.split("\n"))
    theirs = [line for line in text.split("\n") if line.strip() and not is_own(line)]
    headings = {"## Detail and archive", "## 详细与归档"}
    assert all(line in kept for line in theirs if line not in headings)
    ours = [line for line in page.split("\n") if line.startswith("- archive/") and is_own(line)]
    assert len(ours) <= MOST_PAGES
    assert [line[10:13] for line in ours] == [f"{number:03}" for number in numbers if f"{number:03}" in str(ours)]
