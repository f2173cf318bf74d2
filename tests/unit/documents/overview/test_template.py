"""The overview page of a new session."""

from __future__ import annotations

import pytest
from tables import each_row

from inmind.documents.overview.page import LANGUAGES, OverviewSection, is_maintained, template


@pytest.mark.spec("F1")
@each_row("language", LANGUAGES)
def test_the_template_has_five_sections_with_guiding_comments_and_no_content(language: str) -> None:
    page = template(language)
    assert page.count("\n## ") == 5
    assert page.count("<!--") == 6
    assert not is_maintained(page)


@each_row("language", LANGUAGES)
def test_one_line_of_content_makes_a_page_maintained(language: str) -> None:
    assert is_maintained(template(language).replace("-->\n\n", "-->\n- write the tests\n\n", 1))


@each_row(
    "text",
    [
        "",
        "\n\n",
        "# only\n## headings",
        "<!-- never closed\nso all of it is comment",
        "- \n* * *\n- [ ]\n",
        "# a\n\n---\n",
    ],
)
def test_headings_comments_and_empty_list_items_are_not_content(text: str) -> None:
    assert not is_maintained(text)


@pytest.mark.spec("F4")
@pytest.mark.parametrize("head", ["meta:\n  version: 1\n", "issues:\n- a\n", "# why\n{a: 1}\n", "a: 'b'  # why\n"])
def test_front_matter_with_values_is_content(head: str) -> None:
    assert is_maintained(f"---\n{head}---\n{template('en')}")


@pytest.mark.spec("F4")
@pytest.mark.parametrize("head", ["", "# why\n\n", "meta:\nproject: {}\nissues: [ ] # none\n", "a: ''\nb: ~\n"])
def test_front_matter_without_values_is_not_content(head: str) -> None:
    assert not is_maintained(f"---\n{head}---\n{template('en')}")


def test_every_section_has_headings_in_both_languages() -> None:
    assert [section.headings("zh")[:2] for section in OverviewSection] == [
        ["当前任务", "Current task"],
        ["关键决策", "Key decisions"],
        ["已知信息", "Known facts"],
        ["待解决问题", "Open problems"],
        ["最近操作", "Recent actions"],
    ]


def test_the_template_stays_small() -> None:
    assert all(len(template(language).encode()) < 1_024 for language in LANGUAGES)
