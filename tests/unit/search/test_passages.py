"""Passages: nothing is lost, none is too long, and sentences stay whole if possible."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.search.tokenize import MAX_PASSAGE_CHARS, index_words, split_passages

pytestmark = pytest.mark.spec("H3")

SENTENCES = [
    "We fixed it.",
    "Did we? ",
    "。",
    "我们上周修好了。",
    "「行く。」",
    "one two three four",
    "\n\n",
    "\t",
    "no end " * 40,
    "词" * 300,
]
LONG_TEXTS = st.lists(st.sampled_from(SENTENCES) | st.text(max_size=40), max_size=60).map("".join)


@given(text=LONG_TEXTS | st.text())
def test_nothing_is_lost_and_everything_stays_in_order(text: str) -> None:
    assert "".join("".join(split_passages(text)).split()) == "".join(text.split())


@given(text=LONG_TEXTS)
def test_a_passage_is_a_contiguous_piece_of_the_text(text: str) -> None:
    at = 0
    for passage in split_passages(text):
        at = text.index(passage, at) + len(passage)


@given(text=LONG_TEXTS)
def test_no_passage_is_too_long_or_empty(text: str) -> None:
    assert all(passage.strip() and len(passage) <= MAX_PASSAGE_CHARS for passage in split_passages(text))


@given(text=st.lists(st.sampled_from(["alpha", "beta", "gamma,", "delta.", "epsilon\n"]), max_size=600).map(" ".join))
def test_words_separated_by_spaces_are_never_cut(text: str) -> None:
    assert [word for passage in split_passages(text) for word in index_words(passage)] == index_words(text)


def test_a_short_text_is_one_passage() -> None:
    assert split_passages("  Two sentences. One passage.\n") == ["  Two sentences. One passage.\n"]


@pytest.mark.parametrize("text", ["", "   ", "\n\t\u3000", " \n" * MAX_PASSAGE_CHARS])
def test_an_empty_text_has_no_passage(text: str) -> None:
    assert split_passages(text) == []


def test_passages_end_at_sentences() -> None:
    sentence = "A sentence of some forty characters here."
    for passage in split_passages(" ".join([sentence] * 100)):
        assert passage.startswith("A sentence")
        assert passage.endswith("here.")


def test_a_chinese_text_is_cut_at_sentences() -> None:
    sentence = "我们上个星期把接口改成了异步的，测试全部通过了。"
    for passage in split_passages(sentence * 100):
        assert passage.startswith("我们")
        assert passage.endswith("。")


def test_a_closing_quotation_mark_stays_with_its_sentence() -> None:
    assert all(passage.endswith("。」") for passage in split_passages("「明日また来ます。」" * 200))


def test_a_long_sentence_is_cut_between_clauses() -> None:
    for passage in split_passages("这是一个很长的句子里的一小段，" * 200):
        assert passage.startswith("这是")
        assert passage.endswith("，")


def test_a_list_on_one_line_is_cut_between_items() -> None:
    items = [f'"item-{number}"' for number in range(500)]
    passages = split_passages(f"[{','.join(items)}]")
    assert all(any(item in passage for passage in passages) for item in items)


def test_an_overlong_word_is_cut_at_the_limit() -> None:
    assert [len(passage) for passage in split_passages("x" * (2 * MAX_PASSAGE_CHARS + 1))] == [
        MAX_PASSAGE_CHARS,
        MAX_PASSAGE_CHARS,
        1,
    ]


def test_the_lines_of_a_block_of_code_keep_their_indentation() -> None:
    block = "def f():\n    if x:\n        return 1\n"
    assert "def f():\n    if x:\n        return 1" in split_passages(block + "# and more\n" * 100)[0]


@pytest.mark.exhaustive
@each_row("piece", ["x", "词", "word ", "A sentence. ", "一句话。", "\n", " ", ",", "a\n", "?!"])
def test_a_megabyte_takes_less_than_a_second(piece: str) -> None:
    text = (piece * 1_000_000)[:1_000_000]
    start = time.process_time()
    split_passages(text)
    assert time.process_time() - start < 1
