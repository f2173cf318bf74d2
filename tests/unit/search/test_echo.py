"""Repetitions of shown text are recognised, corrections are not echoes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.search.echo import MIN_RUN_WORDS, is_echo, word_runs

pytestmark = pytest.mark.spec("H6")

NOTE = "Douglas prefers tabs over spaces and wants no semicolons in JavaScript"
CHINESE = "道格拉斯喜欢用制表符缩进，不要在代码里写分号"

WORDS = st.lists(st.sampled_from("the peer scoring thresholds were tweaked 上 海 部 署".split()), max_size=30)


@each_row(
    "passage",
    [
        NOTE,
        NOTE.upper(),
        f"According to my notes, {NOTE}.",
        f"- **{NOTE.replace(' ', '  ')}**\n",
        f"As you told me earlier: {NOTE}",
        f'I looked it up. You said, "{NOTE}".',
        f"{NOTE} (that is what you mentioned)",
        "It wants no semicolons in JavaScript. Douglas prefers tabs over spaces.",
        f"{NOTE}\n{CHINESE}",
        CHINESE,
        f"根据记忆：{CHINESE}。",
        f"你之前说过，{CHINESE}",
    ],
)
def test_a_quote_is_an_echo(passage: str) -> None:
    assert is_echo(passage, word_runs(NOTE) | word_runs(CHINESE))


@each_row(
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
def test_new_information_is_not_an_echo(passage: str) -> None:
    assert not is_echo(passage, word_runs(NOTE) | word_runs(CHINESE))


@given(words=WORDS)
def test_shown_text_is_an_echo_of_itself(words: list[str]) -> None:
    text = " ".join(words)
    assert is_echo(text, word_runs(text)) == (len(words) >= MIN_RUN_WORDS)


@each_row(
    ("original", "changed"),
    [
        ("The deadline for the API is March 12", "The deadline for the API is April 2"),
        ("The deadline for the API is March 12", "As you said, the deadline for the API is March 13"),
        ("The yellow crane lifts forty tons every Tuesday", "The yellow crane lifts fifty tons every Tuesday"),
        ("Gustav pays for the harbour crane", "Olga pays for the harbour crane"),
        ("The harbour crane may be used at night by anybody", "The harbour crane may not be used at night by anybody"),
        ("The harbour crane may not be used at night by anybody", "The harbour crane may be used at night by anybody"),
        ("The harbour crane is used at night", "The harbour crane isn't used at night"),
        ("The harbour crane is paid for by Olga", "Is the harbour crane paid for by Olga or Gustav?"),
        ("The keys of the shed lie in the drawer on the left", "The keys of the shed lie on the drawer on the left"),
        ("At noon the tide stands at 5 metres", "At noon the tide stands at -5 metres"),
        ("Ada works as a plumber. Bob works as a baker.", "Ada works as a baker."),
        ("Ada's meeting is on Monday. Bob's meeting is on Tuesday.", "Ada's meeting is on Tuesday."),
        ("The hall costs €40 a month from May", "The hall costs $40 a month from May"),
        ('{"region": "eu-west", "queue": 17, "errors": 3}', '{"region": "eu-west", "queue": 950, "errors": 3}'),
        ("截止日期是三月十二日下午", "截止日期是四月十二日下午"),
        ("他以后不在上海的办公室工作", "他以后在上海的办公室工作"),
        ("他以后在上海的办公室工作", "他以后不在上海的办公室工作"),
    ],
)
def test_the_same_sentence_with_another_value_is_not_an_echo(original: str, changed: str) -> None:
    assert is_echo(original, word_runs(original))
    assert not is_echo(changed, word_runs(original))


@given(st.data())
def test_a_changed_inserted_or_omitted_word_is_not_an_echo(data: st.DataObject) -> None:
    sentence = [f"word{number}" for number in range(data.draw(st.integers(MIN_RUN_WORDS, 30)))]
    at = data.draw(st.integers(1, len(sentence) - 2))
    new = data.draw(st.sampled_from([["other"], ["not", sentence[at]], ["that"], []]))
    changed = [*sentence[:at], *new, *sentence[at + 1 :]]
    assert not is_echo(" ".join(changed), word_runs(" ".join(sentence)))


@given(passage=st.text())
def test_without_shown_text_nothing_is_an_echo(passage: str) -> None:
    assert not is_echo(passage, set())


@given(text=st.text(st.characters(min_codepoint=0)))
def test_any_text_can_be_shown(text: str) -> None:
    assert all(0 <= run < 2**32 for run in word_runs(text))
