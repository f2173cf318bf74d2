"""What the model reads of its scratchpad, whole and in too little room."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inmind.documents.scratchpad.merge import merged
from inmind.documents.scratchpad.render import MOST_NAMED, WIDTH, shortened, text_of

STATE: dict[str, Any] = {
    "currentGoal": "Deploy v2",
    "completedSteps": ["write tests", "ask for a review"],
    "owner": {"name": "Ada", "email": "ada@example.com"},
}


def words(text: str) -> int:
    return len(text.split())


@pytest.mark.spec("C4")
def test_an_object_is_json_with_a_line_for_each_field() -> None:
    assert text_of(STATE) == (
        "{\n"
        '  "currentGoal": "Deploy v2",\n'
        '  "completedSteps": ["write tests", "ask for a review"],\n'
        '  "owner": {"name": "Ada", "email": "ada@example.com"}\n'
        "}"
    )


@pytest.mark.spec("C4")
def test_what_is_too_long_for_a_line_is_opened() -> None:
    steps = [{"title": "x" * 60, "done": True}, {"title": "y" * 90, "tags": None}, 3]
    assert text_of({"steps": steps, "last": []}) == (
        "{\n"
        '  "steps": [\n'
        f'    {{"title": "{"x" * 60}", "done": true}},\n'
        "    {\n"
        f'      "title": "{"y" * 90}",\n'
        '      "tags": null\n'
        "    },\n"
        "    3\n"
        "  ],\n"
        '  "last": []\n'
        "}"
    )


@pytest.mark.spec("C4")
def test_a_line_is_at_most_as_wide_as_it_should_be_where_it_can_be_opened() -> None:
    fitting = {"a": ["x" * (WIDTH - 12)], "b": 1}
    assert len(text_of(fitting).split("\n")[1]) == WIDTH
    assert len(text_of({"a": ["x" * (WIDTH - 11)], "b": 1}).split("\n")) == 6


@pytest.mark.spec("C4", "D4")
def test_a_changed_field_is_a_changed_line() -> None:
    before = text_of(STATE).split("\n")
    after = text_of(merged(STATE, {"completedSteps": ["write tests"]})).split("\n")
    assert [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]] == [
        ('  "completedSteps": ["write tests", "ask for a review"],', '  "completedSteps": ["write tests"],')
    ]


@pytest.mark.spec("C4")
@pytest.mark.parametrize("state", ["", "  \n\t", {}])
def test_an_empty_state_says_nothing(state: Any) -> None:
    assert text_of(state) == ""
    assert shortened(state, budget=100, count=words, where="scratchpad").text == ""


@pytest.mark.spec("C4")
def test_a_text_is_shown_as_it_is() -> None:
    assert text_of("\n\n- call Mei\n  at 5\n") == "- call Mei\n  at 5"


@pytest.mark.spec("C4")
def test_fields_that_do_not_fit_are_left_out_whole_and_named() -> None:
    state = {"goal": "Ship it", "log": ["word"] * 200, "next": "ask Mei"}
    cut = shortened(state, budget=25, count=words, where="scratchpad")
    assert cut.text == (
        "{\n"
        '  "goal": "Ship it",\n'
        '  "next": "ask Mei"\n'
        "}\n"
        "[left out to fit: log (203 tokens); read all of it in scratchpad]"
    )
    assert cut.lines_left_out == 202
    assert words(cut.text) <= 25


@pytest.mark.spec("C4")
def test_the_budget_holds_for_a_counter_to_which_the_whole_is_more_than_its_parts() -> None:
    state = dict.fromkeys("abcdef", "x" * 30)

    def count(text: str) -> int:
        return int(len(text) ** 1.3)

    for budget in range(200, 2_000, 100):
        assert count(shortened(state, budget=budget, count=count, where="scratchpad").text) <= budget


@pytest.mark.spec("C4")
def test_a_pointer_names_some_and_counts_the_others() -> None:
    state = {"goal": "Ship it", **{f"log {n}": "word " * 50 for n in range(40)}}
    cut = shortened(state, budget=90, count=words, where="scratchpad")
    assert '"goal": "Ship it"' in cut.text
    assert '["log 0"] (53 tokens)' in cut.text
    assert f"{40 - MOST_NAMED} more" in cut.text


@pytest.mark.spec("C4")
def test_when_no_field_fits_it_is_cut_at_the_end_of_a_line() -> None:
    cut = shortened({"log": ["a line of the log"] * 50}, budget=40, count=words, where="scratchpad")
    lines = cut.text.split("\n")
    assert lines[:3] == ["{", '  "log": [', '    "a line of the log",']
    assert lines[-1] == "[cut to fit: read all of it, 255 tokens, in scratchpad]"
    assert words(cut.text) <= 40
    assert not cut.whole


@pytest.mark.spec("C4")
def test_a_text_is_cut_at_the_end_of_a_line() -> None:
    cut = shortened("one two\n" * 50, budget=20, count=words, where="scratchpad")
    assert cut.text == "one two\n" * 4 + "[cut to fit: read all of it, 100 tokens, in scratchpad]"


@pytest.mark.spec("C4")
def test_as_long_as_the_pointer_fits_something_is_said() -> None:
    for state in ("word " * 100, {"log": "word " * 100}):
        assert shortened(state, budget=11, count=words, where="scratchpad").text.startswith("[cut to fit")
        assert shortened(state, budget=10, count=words, where="scratchpad").text == ""


def test_keys_and_values_in_any_script_stay_readable_and_stay_json() -> None:
    state = {"目标": 'say "hi"\nand go', "\u2028": "</working_memory>"}
    text = text_of(state)
    assert '"目标": "say \\"hi\\"\\nand go"' in text
    assert json.loads(text) == state
