"""Rendering a scratchpad, completely and within a budget."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inmind.documents.scratchpad.render import MAX_LINE_WIDTH, MAX_NAMED_FIELDS, render_state, render_within
from inmind.documents.scratchpad.state import merge_update

STATE: dict[str, Any] = {
    "currentGoal": "Deploy v2",
    "completedSteps": ["write tests", "ask for a review"],
    "owner": {"name": "Ada", "email": "ada@example.com"},
}


def count_words(text: str) -> int:
    return len(text.split())


@pytest.mark.spec("C4")
def test_an_object_is_json_with_a_line_for_each_field() -> None:
    assert render_state(STATE) == (
        "{\n"
        '  "currentGoal": "Deploy v2",\n'
        '  "completedSteps": ["write tests", "ask for a review"],\n'
        '  "owner": {"name": "Ada", "email": "ada@example.com"}\n'
        "}"
    )


@pytest.mark.spec("C4")
def test_a_long_value_takes_several_lines() -> None:
    steps = [{"title": "x" * 60, "done": True}, {"title": "y" * 90, "tags": None}, 3]
    assert render_state({"steps": steps, "last": []}) == (
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
def test_a_value_wider_than_the_line_limit_is_split() -> None:
    fitting = {"a": ["x" * (MAX_LINE_WIDTH - 12)], "b": 1}
    assert len(render_state(fitting).split("\n")[1]) == MAX_LINE_WIDTH
    assert len(render_state({"a": ["x" * (MAX_LINE_WIDTH - 11)], "b": 1}).split("\n")) == 6


@pytest.mark.spec("C4", "D4")
def test_a_changed_field_is_a_changed_line() -> None:
    before = render_state(STATE).split("\n")
    after = render_state(merge_update(STATE, {"completedSteps": ["write tests"]})).split("\n")
    assert [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]] == [
        ('  "completedSteps": ["write tests", "ask for a review"],', '  "completedSteps": ["write tests"],')
    ]


@pytest.mark.spec("C4")
@pytest.mark.parametrize("state", ["", "  \n\t", {}])
def test_an_empty_state_renders_to_nothing(state: Any) -> None:
    assert render_state(state) == ""
    assert render_within(state, budget=100, count=count_words, path="scratchpad").text == ""


@pytest.mark.spec("C4")
def test_a_text_is_rendered_without_outer_blank_lines() -> None:
    assert render_state("\n\n- call Mei\n  at 5\n") == "- call Mei\n  at 5"


@pytest.mark.spec("C4")
def test_fields_that_do_not_fit_are_left_out_whole_and_named() -> None:
    state = {"goal": "Ship it", "log": ["word"] * 200, "next": "ask Mei"}
    cut = render_within(state, budget=25, count=count_words, path="scratchpad")
    assert cut.text == (
        "{\n"
        '  "goal": "Ship it",\n'
        '  "next": "ask Mei"\n'
        "}\n"
        "[left out to fit: log (203 tokens); read all of it in scratchpad]"
    )
    assert cut.lines_left_out == 202
    assert count_words(cut.text) <= 25


@pytest.mark.spec("C4")
def test_the_budget_holds_for_a_counter_that_is_not_additive() -> None:
    state = dict.fromkeys("abcdef", "x" * 30)

    def count(text: str) -> int:
        return int(len(text) ** 1.3)

    for budget in range(200, 2_000, 100):
        assert count(render_within(state, budget=budget, count=count, path="scratchpad").text) <= budget


@pytest.mark.spec("C4")
def test_a_pointer_names_some_fields_and_counts_the_others() -> None:
    state = {"goal": "Ship it", **{f"log {n}": "word " * 50 for n in range(40)}}
    cut = render_within(state, budget=90, count=count_words, path="scratchpad")
    assert '"goal": "Ship it"' in cut.text
    assert '["log 0"] (53 tokens)' in cut.text
    assert f"{40 - MAX_NAMED_FIELDS} more" in cut.text


@pytest.mark.spec("C4")
def test_if_no_field_fits_the_text_is_cut_at_a_line_end() -> None:
    cut = render_within({"log": ["a line of the log"] * 50}, budget=40, count=count_words, path="scratchpad")
    lines = cut.text.split("\n")
    assert lines[:3] == ["{", '  "log": [', '    "a line of the log",']
    assert lines[-1] == "[cut to fit: read all of it, 255 tokens, in scratchpad]"
    assert count_words(cut.text) <= 40
    assert not cut.whole


@pytest.mark.spec("C4")
def test_a_text_is_cut_at_the_end_of_a_line() -> None:
    cut = render_within("one two\n" * 50, budget=20, count=count_words, path="scratchpad")
    assert cut.text == "one two\n" * 4 + "[cut to fit: read all of it, 100 tokens, in scratchpad]"


@pytest.mark.spec("C4")
def test_a_pointer_is_rendered_if_it_fits() -> None:
    for state in ("word " * 100, {"log": "word " * 100}):
        assert render_within(state, budget=11, count=count_words, path="scratchpad").text.startswith("[cut to fit")
        assert render_within(state, budget=10, count=count_words, path="scratchpad").text == ""


def test_keys_and_values_in_any_script_are_readable_json() -> None:
    state = {"目标": 'say "hi"\nand go', "\u2028": "</working_memory>"}
    text = render_state(state)
    assert '"目标": "say \\"hi\\"\\nand go"' in text
    assert json.loads(text) == state
