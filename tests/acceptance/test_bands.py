"""One scale: bands, mandatory compaction and context_meta use the same share of the same room."""

from __future__ import annotations

import json
from typing import Any

import pytest
from builders import a_call, a_result, assistant, user
from tables import each_row

from inmind import Memory, Prompt, Session
from inmind.history.view import BANDS, EMERGENCY_BAND, band_for

pytestmark = pytest.mark.spec("E11")

NAMES = [name for _, name in BANDS]


def meter(prompt: Prompt) -> dict[str, Any]:
    """The numbers of context_meta."""
    return json.loads(prompt.messages[-1]["content"][-1]["text"].split("<context_meta>\n")[1].split("\n")[0])


def prompts_until_full(session: Session, words: int) -> list[Prompt]:
    """Prompts of a growing conversation, up to the first that was compacted."""
    talk, prompts = list[dict[str, Any]](), list[Prompt]()
    while not (prompts and prompts[-1].report.compacted):
        talk += [user("word " * words)]
        prompts.append(session.prepare(talk))
        talk += [assistant("fine " * words)]
    return prompts


@pytest.mark.spec("E4", "E5")
@each_row(
    ("window", "tools"),
    [
        *((window, tools) for window in (4_000, 6_000, 8_000, 16_000, 64_000, 200_000) for tools in (False, True)),
    ],
)
def test_a_growing_conversation_shows_every_band_and_is_compacted_above_75_percent(
    memory: Memory, window: int, tools: bool
) -> None:
    prompts = prompts_until_full(
        memory.session(f"{window}-{tools}", window=window, memory_tools=tools), words=window // 200
    )
    *before, compacted = [prompt.report for prompt in prompts]
    assert list(dict.fromkeys(report.band for report in before)) == NAMES
    assert max(report.tokens_percent for report in before) <= 75
    added = prompts[-2].report.room_used - prompts[-3].report.room_used
    assert 100 * (before[-1].room_used + added) > 75 * before[-1].room - 100
    assert compacted.tokens_percent < 75


@pytest.mark.spec("E4")
@each_row("window", [4_000, 8_000, 16_000, 64_000, 200_000])
def test_an_unread_result_that_cannot_be_compacted_shows_the_emergency_band(memory: Memory, window: int) -> None:
    session = memory.session(f"{window}", window=window, memory_tools=False)
    room = session.prepare([user("look")]).report.room
    prompt = session.prepare([user("look"), a_call("c1"), a_result("c1", "row " * int(0.83 * room))])
    assert prompt.report.band == meter(prompt)["action_hint"] == EMERGENCY_BAND
    assert not prompt.report.compacted


@pytest.mark.spec("D5")
@each_row("reported", [0.8, 1.0, 1.3])
def test_meter_report_and_band_agree_with_counts_of_the_provider(memory: Memory, reported: float) -> None:
    session = memory.session(f"reported-{reported}", window=8_000)
    talk: list[dict[str, Any]] = []
    for turn in range(8):
        prompt = session.prepare([*talk, user("word " * 80)])
        report, numbers = prompt.report, meter(prompt)
        assert (numbers["tokens_used"], numbers["tokens_max"]) == (report.room_used, report.room)
        assert numbers["tokens_percent"] == round(report.tokens_percent)
        assert numbers["action_hint"] == report.band == band_for(report.tokens_percent)
        rest = report.tokens_used - report.room_used
        assert abs(rest - report.tokens["tools"] - report.tokens["system"]) <= 1
        assert session.prompt(turn + 1).request == prompt.request
        session.report_usage(prompt_tokens=int(report.tokens_used * reported))
        talk += [user("word " * 80), assistant("fine " * 80)]


@pytest.mark.spec("D5", "E4")
@each_row("window", [2_000, 4_000, 8_000])
def test_a_model_is_asked_to_compact_only_if_that_archives_something(memory: Memory, window: int) -> None:
    session = memory.session(f"asked-{window}", window=window)
    talk: list[dict[str, Any]] = []
    outcomes: set[bool] = set()
    for number in range(24):
        talk += [user(f"Look at order {number}."), a_call(f"c{number}", "get", f'{{"id": "W-{number}"}}')]
        order = {
            "id": f"W-{number}",
            "status": "pending",
            "items": [{"name": "Lamp", "item_id": f"83845{number:03}"}] * 3,
        }
        talk += [a_result(f"c{number}", json.dumps(order))]
        prompt = session.prepare(talk)
        is_asked = "\nCompact " in prompt.messages[-1]["content"][-1]["text"]
        talk += [assistant("It is pending.")]
        outcomes.add(is_asked)
        if is_asked:
            answer = session.call_tool("working_memory", {"command": "compact all 0"})
            assert answer.text.startswith("Compacted ")
            session.undo_compaction()
    assert False in outcomes
