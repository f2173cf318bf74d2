"""Several recordings joined into one conversation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from builders import a_call, a_result, assistant, user
from hypothesis import given
from hypothesis import strategies as st
from provider_rules import faults
from recorded_transcripts import a_use, an_answer

from inmind.apps.replay import Recording, join_recordings
from inmind.core.messages import FORMATS
from inmind.errors import InvalidInput

pytestmark = pytest.mark.spec("I8")

KIND = [{"role": "system", "content": "Be kind."}]
BRIEF = [{"role": "system", "content": "Be brief."}]


def a_recording(*ids: str, **more: Any) -> Recording:
    """A task with one call per id."""
    calls = [message for id in ids for message in (a_call(id), a_result(id))]
    return replace(Recording(name="r", format="openai", messages=[user("Go"), *calls, assistant("Done.")]), **more)


def call_ids(recording: Recording) -> list[str]:
    return [call.id for wire in recording.messages for call in FORMATS[recording.format].read(wire).calls]


def test_messages_keep_their_order_under_the_system_prompt_and_tools_of_the_first_recording() -> None:
    tools = [{"type": "function", "function": {"name": "look"}}]
    first, second = a_recording("a", system=KIND, tools=tools), a_recording("b", system=KIND)
    whole = join_recordings([first, second], name="run")
    assert whole.messages == [*first.messages, *second.messages]
    assert (whole.name, whole.system, whole.tools, whole.left_out) == ("run", KIND, tools, {})


def test_another_system_prompt_is_left_out_and_counted_with_the_rest() -> None:
    first = a_recording(system=KIND, left_out={"torn last lines": 1})
    second = a_recording(system=BRIEF, left_out={"torn last lines": 2})
    assert join_recordings([first, second], name="run").left_out == {
        "torn last lines": 3,
        "system prompts of later recordings": 1,
    }


def test_a_repeated_call_id_is_renamed_together_with_its_result() -> None:
    whole = join_recordings([a_recording("a", "b"), a_recording("b", "c"), a_recording("b", "b_2")], name="run")
    assert call_ids(whole) == ["a", "b", "b_2", "c", "b_3", "b_2_3"]
    assert faults("openai", whole.messages) == []


def test_a_new_call_id_is_not_used_elsewhere_in_the_recording() -> None:
    whole = join_recordings([a_recording("a"), a_recording("a_2", "a")], name="run")
    assert call_ids(whole) == ["a", "a_2", "a_2_"]


def test_anthropic_blocks_get_new_ids_as_well() -> None:
    messages = [
        user("Go"),
        {"role": "assistant", "content": [a_use("t")]},
        {"role": "user", "content": [an_answer("t")]},
    ]
    recording = Recording(name="r", format="anthropic", messages=[*messages, assistant("Done.")])
    whole = join_recordings([recording, recording], name="run")
    assert call_ids(whole) == ["t", "t_2"]
    assert faults("anthropic", whole.messages) == []
    assert recording.messages[1] == {"role": "assistant", "content": [a_use("t")]}  # the input is not modified


def test_recordings_of_two_providers_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"run: expected messages of one provider"):
        join_recordings([a_recording(), a_recording(format="anthropic")], name="run")


@given(st.lists(st.lists(st.sampled_from(["a", "a_2", "a_3", "b"]), unique=True, max_size=3), min_size=1, max_size=4))
def test_call_ids_are_unique_and_every_call_has_its_result(ids_per_recording: list[list[str]]) -> None:
    whole = join_recordings([a_recording(*ids) for ids in ids_per_recording], name="run")
    assert len(set(call_ids(whole))) == len(call_ids(whole)) == sum(map(len, ids_per_recording))
    assert faults("openai", whole.messages) == []
