"""Long runs in a small window, with tools or text, and outputs of any kind."""

from __future__ import annotations

import json
from typing import Any

import pytest
from builders import a_result, assistant, user

from inmind import CompressionPolicy, Memory
from inmind.history.compaction.message_records import BLOCK_START

Message = dict[str, Any]

TASK = "Find out why payments fail. Never restart the database."
STEPS = 60


def a_log(step: int) -> str:
    """An output full of ids, any of which may be needed."""
    return "\n".join(
        f"{row} error ERR-{step}{row:02} in service payments, retry, upstream timed out" for row in range(12)
    )


def by_tools(step: int) -> list[Message]:
    function = {"name": "cat", "arguments": json.dumps({"file": f"/var/log/pay{step}.log"})}
    call = {"id": f"c{step}", "type": "function", "function": function}
    return [{"role": "assistant", "content": None, "tool_calls": [call]}, a_result(f"c{step}", a_log(step))]


def by_text(step: int) -> list[Message]:
    command = f"THOUGHT: look at file {step}.\nACTION: cat /var/log/pay{step}.log"
    return [assistant(command), user(f"OBSERVATION: exit 0\n{a_log(step)}")]


def by_fences(step: int) -> list[Message]:
    return [assistant(f"I look.\n```bash\ncat /var/log/pay{step}.log\n```"), user(a_log(step))]


@pytest.mark.spec("E5", "E6", "E8")
@pytest.mark.parametrize("window", [4_000, pytest.param(8_000, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("has_question", [pytest.param(False, marks=pytest.mark.exhaustive), True])
@pytest.mark.parametrize("work", [by_tools, by_text, by_fences])
def test_a_long_task_always_fits_and_keeps_its_goal(memory: Memory, work: Any, has_question: bool, window: int) -> None:
    session = memory.session("s", window=window, reserve=500, memory_tools=work is by_tools)
    talk = [user(TASK)]
    compacted = 0
    for step in range(STEPS):
        prompt = session.prepare(talk, system="You are a shell agent.")
        compacted += len(prompt.report.compactions)
        text = json.dumps(prompt.request)
        assert "Never restart the database." in text
        assert text.count(BLOCK_START) <= 3
        talk += work(step)
        if has_question and step == 5:
            talk += [assistant("Shall I mask card numbers?"), user("Always mask card numbers.")]
        if has_question and step > 5:
            assert "Always mask card numbers." in text
    assert 0 < compacted < STEPS


@pytest.mark.spec("E5", "E8")
@pytest.mark.parametrize(
    ("window", "system"),
    [
        (3_000, 700),
        pytest.param(4_000, 1_200, marks=pytest.mark.exhaustive),
        pytest.param(8_000, 4_000, marks=pytest.mark.exhaustive),
    ],
)
@pytest.mark.parametrize("format", ["openai", "anthropic"])
def test_in_a_tiny_window_a_stub_names_fewer_ids(memory: Memory, window: int, system: int, format: str) -> None:
    session = memory.session("s", window=window, reserve=window // 8)
    session.add([user(f"{TASK} {'word ' * 60}")])
    for step in range(30):
        prompt = session.prepare(system="word " * system, format=format)
        assert prompt.report.tokens_used <= window - window // 8
        assert "Never restart the database." in json.dumps(prompt.request)
        session.add(by_tools(step))


@pytest.mark.spec("E4")
def test_automatic_compaction_waits_for_a_minimum_gain(memory: Memory) -> None:
    policy = CompressionPolicy(automatic=("medium_compression", "heavy_compression"))
    session = memory.session("s", window=16_000, reserve=500, compression=policy, memory_tools=False)
    talk: list[Message] = []
    compacted = 0
    for turn in range(60):
        talk += [user(f"question {turn} {'word ' * 80}"), assistant(f"answer {turn} {'word ' * 80}")]
        compacted += len(session.prepare([*talk, user("go on")]).report.compactions)
    assert 0 < compacted < 20


@pytest.mark.spec("E7")
def test_a_failing_summarizer_is_reported_and_compaction_continues(memory: Memory) -> None:
    prompts: list[str] = []

    def fails(prompt: str) -> str:
        prompts.append(prompt)
        raise RuntimeError("503")

    session = memory.session("s", window=8_000, reserve=500, summarizer=fails)
    talk = [user(TASK)]
    prompt = session.prepare(talk)
    while not prompts:
        talk += [assistant("word " * 300), user("go on")]
        prompt = session.prepare(talk)
    assert prompt.report.compacted
    assert prompt.report.notices == ("the summary was extracted because the session's model failed: RuntimeError: 503",)
    assert len(prompts) == 1
