"""Sentences are split at their ends, and a text is cut after a sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.core.language.spans import first_sentences, split_sentences


@pytest.mark.spec("E8")
@each_row(
    "sentence",
    [
        "From now on, call me Dr. Kim.",
        "Ask Mr. Lee, Mrs. Park or Prof. Ng.",
        "Never fly through St. Gallen.",
        "Use U.S. English.",
        "Never call before 9 a.m. or after 6 p.m. on weekdays.",
        "Use real names (e.g. Ada, vs. test1).",
        "Always bill Acme Inc. in euros.",
        "Never touch invoice No. 5.",
        "Skip logs, caches etc. in the list.",
        "Pay approx. 5 euros.",
    ],
)
def test_a_period_after_an_abbreviation_does_not_end_a_sentence(sentence: str) -> None:
    assert split_sentences(f"{sentence} Thanks.") == [sentence, "Thanks."]


@pytest.mark.spec("E8")
@each_row(
    "text",
    [
        "We meet at 5 p.m.|Never be late.",
        "I live in the U.K.| You may call me.",
        "I live in the U.S.|Never call me.",
        "I live in Main St.|Please ring twice.",
        "No.|Never do that.",
        "Skip logs, caches etc.|Never delete them.",
        "It is for Acme Inc.|Bill them in euros.",
        "Take plan B.|Never look back.",
        "I saw the dr.|You must never call there.",
    ],
)
def test_an_abbreviation_can_end_a_sentence(text: str) -> None:
    assert split_sentences(text.replace("|", " ")) == [sentence.strip() for sentence in text.split("|")]


def test_a_cut_is_not_made_after_an_abbreviation() -> None:
    assert first_sentences("Write a long letter. Send it to Dr. Kim, who waits for it.", 40) == "Write a long letter. …"


pieces = st.lists(st.sampled_from(["Dr.", "No.", "5", "p.m.", "never", "Never", "run.", "“", "。", "\n", "…", "!?"]))


@given(pieces.map(" ".join) | st.text())
def test_sentences_contain_the_whole_text_in_order(text: str) -> None:
    assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())
