"""The part of a page that is shown in the prompt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.documents.overview.page import LANGUAGES, is_maintained, prompt_text, template, without_empty_sections

pytestmark = pytest.mark.spec("F1")


def test_a_new_page_has_only_its_headings() -> None:
    assert prompt_text(template("en")) == (
        "# Working memory\n\n## Current task\n## Key decisions\n## Known facts\n## Open problems\n## Recent actions"
    )


@each_row("language", LANGUAGES)
def test_no_template_comment_is_shown_in_any_language(language: str) -> None:
    assert "<!--" not in prompt_text(template(language))


def test_text_below_a_template_comment_is_shown_below_its_heading() -> None:
    page = template("en").replace("next step. -->\n", "next step. -->\n- write the tests\n")
    assert "## Current task\n- write the tests\n\n## Key decisions\n## Known facts" in prompt_text(page)


def test_a_comment_by_another_writer_is_shown() -> None:
    page = "# Mine\n\n<!-- ask Ada before deploying -->\n"
    assert prompt_text(page) == page.strip("\n")


@given(st.text(alphabet="#<!-> \nab", max_size=60))
def test_a_page_without_template_comments_is_shown_unchanged(page: str) -> None:
    assert prompt_text(page) == page.strip("\n")


@given(st.sampled_from(LANGUAGES), st.lists(st.sampled_from(["- a fact", "", "text", "## More"]), min_size=1))
def test_no_written_text_is_left_out(language: str, written: list[str]) -> None:
    page = template(language) + "\n".join(written)
    kept = [line for line in page.splitlines() if line in written and line]
    assert [line for line in prompt_text(page).splitlines() if line in written and line] == kept
    assert is_maintained(prompt_text(page)) == is_maintained(page)


OLD_COMMENTS = (
    "<!-- Yours to keep: this file is shown to you in every request. Short lines, current state, no history.\n"
    "Longer notes belong in detail/, finished work in archive/. -->",
    "<!-- What was asked, how far it is, what comes next. -->",
    "<!-- What was decided, and why. -->",
    "<!-- What is unsolved or waiting for someone. -->",
    "<!-- What is unsolved or waiting for somebody. -->",
)


@each_row("comment", OLD_COMMENTS)
def test_a_template_comment_of_an_older_version_is_not_shown(comment: str) -> None:
    page = f"## Open problems\n{comment}\n- The winch slips\n"
    assert prompt_text(page) == "## Open problems\n- The winch slips"


@pytest.mark.spec("D11")
@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("# A\n\n## B\n## C\n- x\n## D\n", "# A\n\n## C\n- x"),
        ("# A\n## B\n### C\nx", "# A\n## B\n### C\nx"),
        ("# A\n\n# B\n\nx\n\n## C\n\n\n# D", "# B\n\nx"),
        ("x\n# A", "x"),
        ("# A\n```\n# a comment\n```", "# A\n```\n# a comment\n```"),
        ("# A\n## B", ""),
        ("#tag\n# A", "#tag"),
    ],
)
def test_headings_without_text_are_left_out(text: str, rendered: str) -> None:
    assert without_empty_sections(text) == rendered


@given(st.lists(st.sampled_from(["# A", "## B", "### C", "", "- x", "y"])).map("\n".join))
def test_every_line_of_text_keeps_the_headings_above_it(text: str) -> None:
    rendered = without_empty_sections(text)
    assert without_empty_sections(rendered) == rendered
    assert _texts_under_headings(rendered) == _texts_under_headings(text)


def _texts_under_headings(text: str) -> list[tuple[str, ...]]:
    """Each line of text after the headings that it is under."""
    above: list[str] = []
    lines: list[tuple[str, ...]] = []
    for line in text.split("\n"):
        if line.startswith("#"):
            level = line.index(" ")
            above = [*(one for one in above if one.index(" ") < level), line]
        elif line:
            lines.append((*above, line))
    return lines
