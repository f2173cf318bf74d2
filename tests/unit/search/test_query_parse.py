"""Parsed queries: weights of words, speakers and dates."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.search.query import ParsedQuery, keywords, parse_query
from inmind.search.tokenize import index_words, query_words

pytestmark = pytest.mark.spec("H3")

NOW = datetime(2026, 5, 20, tzinfo=UTC)


def parse(text: str, *speakers: str) -> ParsedQuery:
    return parse_query(text, now=NOW, speakers=speakers)


def strong_words(text: str) -> set[str]:
    """The words with the highest weight."""
    weights = parse(text).words
    return {word for word, weight in weights.items() if weight == max(weights.values())}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Can you tell me when we first discussed the CORS error?", "first CORS error"),
        ("What is the name of my cat?", "name cat"),
        ("remind me about Caroline's birthday", "Caroline birthday"),
    ],
)
def test_the_subject_words_of_a_question_count(text: str, expected: str) -> None:
    assert strong_words(text) == set(query_words(expected))


@each_row(
    ("text", "expected"),
    [
        ("我的猫叫什么名字？", "名字"),
        ("支付接口为什么超时了", "支付接口 超时"),
        ("我们什么时候修好了数据库？", "修好 数据库"),
        ("首都的房价", "首都 房价"),
        ("我的吉他在哪里", "吉他"),
        ("會議室在哪裡", "會議室"),
        ("犬の名前は何ですか", "名前"),
        ("サーバーの設定", "サーバー 設定"),
        ("京都旅行の予算はいくらですか", "京都旅行 予算"),
        ("京都 観光", "京都 観光"),
    ],
)
def test_the_subject_words_count_in_scripts_without_spaces(text: str, expected: str) -> None:
    assert strong_words(text) == set(query_words(expected))


@pytest.mark.parametrize(
    ("text", "line"),
    [("我的猫叫什么？", "有一只橘猫"), ("犬の名前は？", "犬を飼っています"), ("我几点会醒", "三点总是醒")],
)
def test_a_word_of_one_character_is_searched(text: str, line: str) -> None:
    assert set(parse(text).words) & set(index_words(line))


def test_a_pair_across_a_stop_word_has_a_low_weight() -> None:
    """A stop word may be part of a name, so the pair still counts."""
    weights = parse("去丰都鬼城").words
    assert 0 < weights["丰都"] < weights["鬼城"]


@each_row("text", ["what is it", "who are you", "的", "是不是", "誰", "to be or not to be"])
def test_without_subject_words_all_words_are_searched(text: str) -> None:
    assert set(parse(text).words) == set(query_words(text))


@each_row(
    ("text", "role"),
    [
        ("what did I say about the bridge", "user"),
        ("my cat's name", "user"),
        ("What did you recommend?", "assistant"),
        ("What did you recommend to me?", "assistant"),
        ("我喜欢什么", "user"),
        ("你推荐了什么", "assistant"),
        ("私の誕生日", "user"),
        ("the name of the cat", ""),
        ("win a medal", ""),
    ],
)
def test_the_role_is_recognised(text: str, role: str) -> None:
    assert parse(text).role == role


def test_a_name_means_only_that_speaker() -> None:
    query = parse("What did Caroline tell me about her trip?", "Caroline", "Melanie", "Caroline Smith")
    assert (query.names, query.role) == (frozenset({"Caroline"}), "")


def test_a_name_is_recognised_in_any_spelling() -> None:
    assert parse("what did jean-luc say", "Jean-Luc").names == {"Jean-Luc"}


def test_a_speaker_name_without_words_is_ignored() -> None:
    assert parse("what did ?? say", "??", "").names == frozenset()


def test_the_dates_are_recognised() -> None:
    span = parse("what did we do yesterday").span
    assert span is not None
    assert span.start == datetime(2026, 5, 19, tzinfo=UTC)
    assert parse("what did we do").span is None


def test_keywords_identify_the_subject() -> None:
    assert keywords("Can you tell me when the ferry leaves?") == {*index_words("ferry leaves")}
    assert keywords("what is it?") == frozenset()


@given(text=st.text(st.characters(min_codepoint=0)), speakers=st.lists(st.text(max_size=5), max_size=3))
def test_any_text_can_be_parsed(text: str, speakers: list[str]) -> None:
    query = parse(text, *speakers)
    assert all(0 < weight <= 1 for weight in query.words.values())
    assert bool(query.words) == bool(query_words(text))
