"""The page a session begins with."""

from __future__ import annotations

import pytest

from inmind.overview import LANGUAGES, is_maintained, template


@pytest.mark.spec("F1")
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_template_has_five_sections_with_guiding_comments_and_no_content(language: str) -> None:
    page = template(language)
    assert page.count("\n## ") == 5
    assert page.count("<!--") == 6
    assert not is_maintained(page)


@pytest.mark.parametrize("language", LANGUAGES)
def test_one_line_of_content_makes_a_page_maintained(language: str) -> None:
    assert is_maintained(template(language).replace("-->\n\n", "-->\n- write the tests\n\n", 1))


@pytest.mark.parametrize("text", ["", "\n\n", "# only\n## headings", "<!-- never closed\nso all of it is comment"])
def test_headings_comments_and_blank_lines_are_not_content(text: str) -> None:
    assert not is_maintained(text)


def test_the_template_stays_small() -> None:
    assert all(len(template(language).encode()) < 1_024 for language in LANGUAGES)
