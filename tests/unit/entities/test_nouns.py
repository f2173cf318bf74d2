"""Word splitting, plurals and singulars."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.entities.nouns import canonical_type, is_plural, plural, singular, split_words

pytestmark = pytest.mark.spec("B4")

PAIRS = """
page pages, section sections, collection collections, entry entries, media media, post posts, task tasks,
category categories, company companies, key keys, day days, box boxes, address addresses, branch branches,
status statuses, bus buses, class classes, dish dishes, person people, child children, analysis analyses, index indices,
payment_method payment_methods, news news, series series, movie movies, leaf leaves, quiz quizzes, alias aliases,
response responses, purchase purchases, house houses, cache caches, size sizes, course courses, bias biases
"""
BOTH = [tuple(pair.split()) for pair in PAIRS.replace("\n", " ").split(",")]


@each_row(("one", "many"), BOTH)
def test_plural_and_singular_are_inverse(one: str, many: str) -> None:
    assert (plural(one), singular(many)) == (many, one)


@each_row("one", [one for one, _ in BOTH])
def test_a_singular_noun_is_unchanged(one: str) -> None:
    assert singular(one) == one


@each_row(
    ("name", "expected"),
    [
        ("cms_createPage", "cms create page"),
        ("create_page", "create page"),
        ("mcp__cms__get-page", "mcp cms get page"),
        ("pages.list", "pages list"),
        ("HTTPServer", "http server"),
        ("userIDs", "user ids"),
        ("pageURL", "page url"),
        ("order2Id", "order 2 id"),
        ("GET_PAGES", "get pages"),
        ("获取_页面", "获取 页面"),
        ("", ""),
    ],
)
def test_names_are_split_in_every_naming_convention(name: str, expected: str) -> None:
    assert " ".join(split_words(name)) == expected


def test_an_image_and_a_media_item_have_one_type() -> None:
    assert canonical_type("image") == canonical_type("media") != canonical_type("page")


def test_plurals_are_recognised() -> None:
    assert is_plural("pages")
    assert is_plural("people")
    assert not is_plural("page")
    assert not is_plural("address")


@given(st.text(max_size=50))
def test_any_text_can_be_split_and_pluralised(name: str) -> None:
    assert all(word and word == word.lower() for word in split_words(name))
    assert singular(singular(name)) == singular(name)
    assert isinstance(plural(name), str)
