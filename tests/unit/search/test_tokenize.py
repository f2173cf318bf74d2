"""Words of texts and of queries, which must match."""

from __future__ import annotations

import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tables import each_row

from inmind.search.tokenize import MAX_WORD_CHARS, index_words, query_words

pytestmark = pytest.mark.spec("H3")

ANY_TEXT = st.text(st.characters(min_codepoint=0, max_codepoint=sys.maxunicode))
SCRIPTS = [
    "deploying the staging server",
    "Straße größer",
    "我们上周五在上海开会",
    "東京タワーへ行きました",
    "佐々木さんの誕生日",
    "데이터베이스를 고쳤습니다",
    "เราแก้ไขฐานข้อมูลแล้ว",
    "नमस्ते दुनिया",
    "Привет мир",
    "ｶﾞﾊﾟ ＡＢＣ",
    "v1.2.3-rc1",
]
TEXTS = st.lists(st.sampled_from(SCRIPTS) | st.text(max_size=8), min_size=1, max_size=6)
SEPARATORS = st.sampled_from([" ", ", ", ". ", "\n", "，", "。", "、", "・", " (", "」"])


@given(parts=TEXTS, separator=SEPARATORS, data=st.data())
def test_a_part_between_separators_is_found_by_its_words(parts: list[str], separator: str, data: st.DataObject) -> None:
    part = data.draw(st.sampled_from(parts))
    assert set(query_words(part)) <= set(index_words(separator.join(parts)))


@given(text=st.sampled_from(SCRIPTS[2:7]), data=st.data())
def test_in_scripts_without_spaces_every_part_is_found_by_its_words(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    stop = data.draw(st.integers(start + 1, len(text)))
    assert set(query_words(text[start:stop])) <= set(index_words(text))


@given(text=ANY_TEXT)
@example(text="\ud800 a\udfff")
@example(text="a\x00b")
@example(text='" OR * NEAR( -- ) ^')
def test_any_text_has_words_and_none_raises(text: str) -> None:
    for word in (*index_words(text), *query_words(text)):
        assert word
        assert not re.search(r'[\s"]', word)
        word.encode()


@given(text=ANY_TEXT)
def test_query_words_are_distinct(text: str) -> None:
    words = query_words(text)
    assert len(words) == len(set(words))


@each_row(
    ("written", "query"),
    [
        ("Deployed", "deploying"),
        ("CAFÉ", "cafe"),
        ("Straße", "STRASSE"),
        ("ＡＰＩ　ｋｅｙ", "api KEY"),
        ("ﾃﾞｰﾀ", "データ"),
        ("ガ", "カ\u3099"),
        ("ΟΔΟΣ", "οδος"),
        ("peer-scoring", "peer scoring"),
        ("snake_case", "case snake"),
        ("don’t", "don't"),
        ("㈱", "(株)"),
    ],
)
def test_different_spellings_match(written: str, query: str) -> None:
    assert set(query_words(query)) <= set(index_words(written))


@each_row(
    ("text", "word"),
    [
        ("佐々木さん", "佐々木"),
        ("〆切は明日", "〆切"),
        ("二〇二三年", "二〇"),
        ("नमस्ते दुनिया", "दुनिया"),
        ("我用Python写的", "Python"),
        ("タワー・東京", "東京"),
    ],
)
def test_a_word_is_not_split(text: str, word: str) -> None:
    """The text gives as many words as the query, and none of them is a fragment."""
    assert set(query_words(word)) <= set(index_words(text))
    assert "".join(dict.fromkeys("".join(query_words(word)))) == "".join(dict.fromkeys(word.casefold()))


def test_a_middle_dot_separates_words() -> None:
    assert query_words("ジョン・スミス") == query_words("ジョン スミス")


def test_queries_use_pairs_and_single_characters_only_alone() -> None:
    assert query_words("东京塔") == ["东京", "京塔"]
    assert query_words("塔") == ["塔"]
    assert set(index_words("东京塔")) == {"东", "京", "塔", "东京", "京塔"}


def test_a_shared_character_alone_does_not_match() -> None:
    assert not set(query_words("上海")) & set(index_words("海边的上午"))


def test_an_overlong_word_is_found_by_its_beginning() -> None:
    key = "k" * 500
    assert index_words(key) == query_words(key) == ["k" * MAX_WORD_CHARS]


def test_punctuation_and_empty_texts_have_no_words() -> None:
    assert [index_words(text) for text in ("", "  ", "?!", "——", "。、")] == [[], [], [], [], []]


def test_many_threads_can_tokenise_concurrently() -> None:
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(index_words, [f"number {number} 数字{number}" for number in range(400)]))
    assert all(str(number) in words for number, words in enumerate(results))


def test_a_megabyte_is_tokenised_quickly() -> None:
    start = time.process_time()
    index_words("The server was deployed 服务器部署好了。" * 30_000)
    assert time.process_time() - start < 4
