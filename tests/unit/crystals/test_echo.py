"""Words that come from memory itself: told from news, whoever repeats them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inmind.crystals.echo import RUN, is_echo, runs

pytestmark = pytest.mark.spec("H6")

NOTE = "Douglas prefers tabs over spaces and wants no semicolons in JavaScript"
CHINESE = "道格拉斯喜欢用制表符缩进，不要在代码里写分号"

WORDS = st.lists(st.sampled_from("the peer scoring thresholds were tweaked 上 海 部 署".split()), max_size=30)


@pytest.mark.parametrize(
    "passage",
    [
        NOTE,
        NOTE.upper(),
        f"According to my notes, {NOTE}.",
        f"- **{NOTE.replace(' ', '  ')}**\n",
        "Douglas prefers tabs over spaces. He wants no semicolons in JavaScript.",
        CHINESE,
        f"根据记忆：{CHINESE}。",
    ],
)
def test_a_quote_is_an_echo(passage: str) -> None:
    assert is_echo(passage, runs(NOTE) | runs(CHINESE))


@pytest.mark.parametrize(
    "passage",
    [
        "",
        "?!",
        "tabs",
        "Douglas prefers tabs",
        "I prefer spaces, and semicolons in JavaScript are fine with Douglas",
        "Since Douglas prefers tabs over spaces, I reformatted the whole repository, ran all tests and pushed a branch",
        "他现在改用空格缩进了",
    ],
)
def test_news_is_none(passage: str) -> None:
    assert not is_echo(passage, runs(NOTE) | runs(CHINESE))


@given(words=WORDS)
def test_whatever_was_shown_is_an_echo_of_itself(words: list[str]) -> None:
    text = " ".join(words)
    assert is_echo(text, runs(text)) == (len(words) >= RUN)


@given(shown=WORDS, passage=WORDS, more=WORDS)
def test_what_is_an_echo_stays_one_when_more_is_shown(shown: list[str], passage: list[str], more: list[str]) -> None:
    text, known = " ".join(passage), runs(" ".join(shown))
    if is_echo(text, known):
        assert is_echo(text, known | runs(" ".join(more)))


@given(passage=st.text())
def test_nothing_is_an_echo_where_nothing_was_shown(passage: str) -> None:
    assert not is_echo(passage, set())


@given(text=st.text(st.characters(min_codepoint=0)))
def test_any_text_can_be_shown(text: str) -> None:
    assert all(0 <= run < 2**32 for run in runs(text))
