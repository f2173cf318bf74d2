"""overview.md lists the pages that are not in the prompt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.documents.overview.maintain import MAX_ARCHIVE_PAGES, MAX_DETAIL_PAGES, index_line, with_index
from inmind.documents.overview.page import LANGUAGES, MAX_INDEX_BYTES, is_maintained, template
from inmind.documents.overview.sections import is_generated, read_section

pytestmark = pytest.mark.spec("F3")


LOGIN = "# Login\n\nSessions expire too early.\n"
ENTRY = "(1 KB): Login — Sessions expire too early. ·"


def archives(*numbers: int) -> dict[str, str]:
    return {f"archive/{number:03}-login.md": LOGIN for number in numbers}


def details(*numbers: int) -> dict[str, str]:
    return {f"detail/{number:03}-login.md": LOGIN for number in numbers}


def test_each_page_has_a_line_with_its_size_title_and_summary_above_the_sections() -> None:
    page = with_index(template("en"), archives(1), "en")
    index = f"## Detail and archive\n- archive/001-login.md {ENTRY}\n\n"
    assert page == template("en").replace("## Current task", f"{index}## Current task")


def test_on_a_page_without_sections_the_index_is_at_the_end() -> None:
    assert (
        with_index("# Mine\n", archives(1), "en")
        == f"# Mine\n\n## Detail and archive\n- {next(iter(archives(1)))} {ENTRY}\n"
    )


def test_detail_pages_come_before_archive_pages_and_the_rest_is_counted() -> None:
    pages = {**archives(*range(12, 0, -1)), **details(*range(12, 0, -1))}
    lines = read_section(with_index("", pages, "en"), "Detail and archive").split("\n")
    listed = [f"detail/{number:03}" for number in (12, 11, 10, 9, 8)] + [
        f"archive/{number:03}" for number in (12, 11, 10)
    ]
    assert [line.removeprefix("- ").partition("-")[0] for line in lines[:-1]] == listed
    assert lines[-1] == "- and 16 more in these folders ·"


@pytest.mark.parametrize("older_wording", ["and 16 more: memory_list ·", "另有 16 个：memory_list ·"])
def test_a_count_in_an_older_wording_is_replaced(older_wording: str) -> None:
    page = with_index("", archives(*range(12, 0, -1)), "en")
    earlier = page.replace("and 9 more in these folders ·", older_wording)
    assert earlier != page
    assert with_index(earlier, archives(*range(12, 0, -1)), "en") == page


def test_an_index_keeps_its_language() -> None:
    page = with_index(template("zh"), archives(1), "zh")
    assert "## 详细与归档\n- archive/001-login.md" in page
    assert with_index(page, archives(2), "en").count("\n## ") == page.count("\n## ")


def test_without_pages_the_index_is_removed_and_a_page_without_one_stays() -> None:
    assert with_index(template("en"), {}, "en") == template("en")
    assert with_index(with_index(template("en"), archives(1), "en"), {}, "en") == template("en")
    between = "## Detail and archive\n- archive/001-login.md (18 KB): Login ·\n\n## Rules\n\nNone.\n"
    assert with_index(between, {}, "en") == "## Rules\n\nNone.\n"


def test_a_line_written_by_another_writer_stays_and_replaces_the_generated_one() -> None:
    theirs = "## Detail and archive\n\nThe plan is in `archive/001-login.md`.\n"
    page = with_index(theirs, archives(2, 1), "en")
    assert read_section(page, "Detail and archive").split("\n") == [
        f"- archive/002-login.md {ENTRY}",
        "",
        "The plan is in `archive/001-login.md`.",
    ]
    assert read_section(with_index(page, {}, "en"), "Detail and archive") == "The plan is in `archive/001-login.md`."


@pytest.mark.spec("E2")
def test_an_index_alone_does_not_make_a_page_maintained() -> None:
    for language in LANGUAGES:
        assert not is_maintained(with_index(template(language), archives(*range(20)), language))


def test_a_line_in_the_index_that_only_has_the_generated_mark_stays() -> None:
    theirs = "## Detail and archive\n- the plan is in Ada's drawer ·\n"
    assert with_index(with_index(theirs, archives(1), "en"), {}, "en") == theirs


@each_row(
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
def test_the_title_is_the_first_heading_and_the_summary_is_the_first_line(text: str, title: str, line: str) -> None:
    size = max(1, round(len(text) / 1024))
    assert index_line("detail/notes.md", text) == f"detail/notes.md ({size} KB): {title}" + (line and f" — {line}")


def test_no_title_can_open_a_heading_or_a_comment_on_the_overview() -> None:
    page = with_index("# Mine\n", {"detail/a.md": "# <!-- \n\n</memory>\n## x\n"}, "en")
    assert "<!--" not in page
    assert "</memory>" not in page
    assert with_index(page, {}, "en") == "# Mine\n"


LINES = st.sampled_from(
    [
        *("", "text", "- a list", "- a list ·", "## Detail and archive", "## 详细与归档", "# Top", "### Below", "```"),
        *("~~~", "<!--", "-->", "<!-- guide -->", "---", "a: 1", "- archive/001-login.md", "> ·", "\r", "  - deep ·"),
    ]
)
PAGES = st.lists(LINES, max_size=12, unique=True).map("\n".join)
NUMBERS = st.lists(st.integers(0, 30), unique=True, max_size=14)


@given(text=PAGES | st.text(), numbers=NUMBERS, language=st.sampled_from(LANGUAGES))
def test_an_index_is_bounded_and_idempotent_and_keeps_lines_of_other_writers(
    text: str, numbers: list[int], language: str
) -> None:
    pages = archives(*numbers) | details(*numbers)
    page = with_index(text, pages, language)
    assert with_index(page, pages, language) == page
    kept = iter(page.splitlines())
    headings = {"## Detail and archive", "## 详细与归档"}
    assert all(line in kept for line in text.splitlines() if line.strip() and line not in headings)
    for folder, limit in (("archive", MAX_ARCHIVE_PAGES), ("detail", MAX_DETAIL_PAGES)):
        listed = [
            line.split("/")[1][:3]
            for line in page.split("\n")
            if line.startswith(f"- {folder}/") and is_generated(line)
        ]
        assert len(listed) <= limit
        assert listed == [f"{number:03}" for number in numbers if f"{number:03}" in listed]


@pytest.mark.spec("F1")
def test_an_index_of_long_lines_has_fewer_lines_and_some_of_each_folder() -> None:
    folders = ("detail", "archive")
    pages = {f"{folder}/{n}.md": f"# {'题' * 90}\n\n{'字' * 200}\n" for folder in folders for n in range(4)}
    page = with_index(template("zh"), pages, "zh")
    own = [line for line in page.split("\n") if line.startswith(("- detail/", "- archive/"))]
    assert [line[2:].partition(" ")[0] for line in own] == ["detail/0.md", "archive/0.md"]
    assert sum(len(line.encode()) + 1 for line in own) <= MAX_INDEX_BYTES
    assert "6" in next(line for line in page.split("\n") if "另有" in line)
