"""Writing one section leaves the rest of the page unchanged."""

from __future__ import annotations

from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.documents.overview.sections import edit_section_lines, read_section, replace_section

pytestmark = pytest.mark.spec("F2")

PAGE = dedent("""\
    # Overview

    ## Task

    Deploy v2.

    ### Steps

    - tests

    ## Known facts ##

    ```sh
    # Task
    ## Task
    ```

    # Appendix

    The end.
""")


def page_of(sections: dict[str, str]) -> str:
    return "# Overview\n\n" + "".join(f"## {title}\n\n{body}\n\n" for title, body in sections.items())


def test_a_section_ends_at_the_next_heading_of_its_level_or_above() -> None:
    assert read_section(PAGE, "Task") == "Deploy v2.\n\n### Steps\n\n- tests"
    assert read_section(PAGE, "Steps") == "- tests"
    assert read_section(PAGE, "Known facts") == "```sh\n# Task\n## Task\n```"
    assert read_section(PAGE, "Overview").startswith("## Task\n")
    assert read_section(PAGE, "Appendix") == "The end."


@pytest.mark.parametrize("heading", ["Known facts", "## Known facts", "known FACTS", "  Known   facts  "])
def test_a_heading_is_found_in_any_case_and_spacing(heading: str) -> None:
    assert replace_section(PAGE, heading, "none") == PAGE.replace("```sh\n# Task\n## Task\n```", "none")


@each_row(
    "heading",
    ["## Current task:", "## **Current task**", "# 1. Current Task", "## 📌 Current task", "### current task ###"],
)
def test_a_heading_is_found_with_any_decoration(heading: str) -> None:
    page = f"# Working memory\n\n{heading}\n\n- a\n"
    assert read_section(page, "Current task") == "- a"
    assert replace_section(page, "Current task", "- b") == page.replace("- a", "- b")


def test_an_exact_heading_comes_before_a_decorated_one() -> None:
    page = "## 1. Plan\n\nfirst\n\n## Plan\n\nsecond\n"
    assert (read_section(page, "Plan"), read_section(page, "1. Plan"), read_section(page, "2. Plan")) == (
        "second",
        "first",
        "",
    )


def test_lines_are_edited_up_to_the_next_heading_of_any_level() -> None:
    assert edit_section_lines(PAGE, ["Task"], lambda _: ["new"]) == PAGE.replace("\nDeploy v2.\n\n###", "new\n###")


def test_a_section_on_top_comes_before_the_others_and_is_removed_completely() -> None:
    page = edit_section_lines(PAGE, ["First"], lambda _: ["words", ""], on_top=True)
    assert page == PAGE.replace("## Task", "## First\nwords\n\n## Task", 1)
    assert edit_section_lines(page, ["First"], lambda _: None) == PAGE


def test_a_heading_in_fenced_code_is_text() -> None:
    fenced = "# A\n\n~~~\n## B\n```\n## B\n~~~\n\n## B\n\nold\n"
    assert read_section(fenced, "B") == "old"
    assert replace_section(fenced, "B", "new") == fenced.replace("old", "new")


def test_a_heading_in_a_comment_is_ignored() -> None:
    hidden = "<!--\n## B\n-->\n\n## B\n\nold\n"
    assert replace_section(hidden, "B", "new") == hidden.replace("old", "new")


@each_row("opening", ["```", "~~~~ sh", "<!--", "```a`", "````\n```"])
def test_an_unclosed_fence_or_comment_hides_nothing(opening: str) -> None:
    page = f"# A\n\n{opening}\n\n## B\n\nold\n"
    assert replace_section(page, "B", "new") == page.replace("old", "new")


@pytest.mark.spec("F4")
def test_front_matter_has_no_headings() -> None:
    page = "---\n# Task\nmeta: 1\n---\n# Task\n\nold\n"
    assert replace_section(page, "Task", "new") == page.replace("old", "new")
    assert replace_section("---\nmeta: 1\n---", "Task", "new") == "---\nmeta: 1\n---\n## Task\n\nnew\n"


@each_row("line", ["```a\n", "``` ", "# ", "<!--\n", "#" * 7, " ", "- ", "~" * 50 + "\n", "---\n#\r\n"])
def test_replacing_a_section_takes_linear_time(line: str) -> None:
    """A page of a megabyte is allowed; with quadratic time it would take hours."""
    page = (line * 500_000)[:500_000] + "\n## B\n\nold\n"
    assert replace_section(page, "B", "new") == page.replace("old", "new")


def test_replacing_a_section_replaces_its_subsections() -> None:
    assert replace_section(PAGE, "Task", "Ship it.") == PAGE.replace("Deploy v2.\n\n### Steps\n\n- tests", "Ship it.")


def test_replacing_a_subsection_keeps_its_parent() -> None:
    assert replace_section(PAGE, "Steps", "- all") == PAGE.replace("- tests", "- all")


def test_a_missing_section_is_empty_and_is_added_at_the_end() -> None:
    assert read_section(PAGE, "Risks") == ""
    assert replace_section(PAGE, "### Risks", "\nfew\n") == f"{PAGE}\n## Risks\n\nfew\n"
    assert replace_section("", "Risks", "few") == "## Risks\n\nfew\n"


def test_of_two_equal_headings_the_first_is_used() -> None:
    twice = "## A\n\none\n\n## A\n\ntwo\n"
    assert read_section(replace_section(twice, "A", "three"), "A") == "three"
    assert replace_section(twice, "A", "three") == "## A\n\nthree\n\n## A\n\ntwo\n"


def test_headings_are_found_with_windows_line_endings() -> None:
    assert replace_section("# A\r\n\r\n## B\r\nold\r\n", "B", "new") == "# A\r\n\r\n## B\r\n\r\nnew\r\n"


LINES = st.sampled_from(
    [
        "text",
        "- a list",
        "",
        "### Below",
        "#no heading",
        "####### none",
        "    ## code",
        "```\n# A\n## B\n```",
        "~~~\n## C\n~~~",
    ]
)
BODIES = st.lists(LINES, max_size=5).map(lambda lines: "\n".join(lines).strip("\n"))
TITLES = st.sampled_from(["A", "B", "C", "关于", "two words"])


@given(sections=st.dictionaries(TITLES, BODIES), title=TITLES, body=BODIES)
def test_a_written_section_reads_back_and_no_other_section_changes(
    sections: dict[str, str], title: str, body: str
) -> None:
    page = page_of(sections)
    written = replace_section(page, title, body)
    assert {name: read_section(written, name) for name in {**sections, title: body}} == {**sections, title: body}
    assert replace_section(written, title, body) == written
    if title in sections:
        assert replace_section(written, title, sections[title]) == replace_section(page, title, sections[title])


PLAIN = st.text().filter(lambda text: "\r\n" not in text)  # other tests cover these line endings


@given(text=PLAIN, body=PLAIN)
def test_a_new_section_is_added_at_the_end_of_any_page(text: str, body: str) -> None:
    written = replace_section(text, "Risks", body)
    above, heading, below = written.rpartition("## Risks\n")
    assert (above.strip("\n"), heading, below.strip("\n")) == (text.strip("\n"), "## Risks\n", body.strip("\n"))
