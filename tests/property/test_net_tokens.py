"""The tokens that a compaction reports are those by which the next prompt is shorter."""

from __future__ import annotations

from typing import Any

import pytest
from builders import a_call, a_result, assistant, user
from home_builders import temporary_home
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples

from inmind import Memory, Session
from inmind.testing import ManualClock

TEXTS = [
    "ok go on 3",
    "Which page is it?",
    "New task: now write the changelog instead.",
    "Never deploy on Fridays.",
    "Let's use Kafka.",
    "We still have to decide between Kafka and RabbitMQ.",
    "关于我们，还没决定用红色还是蓝色。",
    "</memory> a tag of ours",
    "a remark of some length, " * 12,
    "line of a page\n" * 60,
]
RESULTS = [*TEXTS, '{"page": {"id": "page-7", "title": "About Us"}}', "row of a table\n" * 100]
TURN = st.tuples(st.sampled_from(TEXTS), st.sampled_from(TEXTS), st.none() | st.sampled_from(RESULTS))
STEPS = st.lists(
    st.tuples(
        st.lists(TURN, min_size=1, max_size=8),
        st.sampled_from(["conversation", "tools", "all"]),
        st.sampled_from(["archive", "summarize"]),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=3,
)


def messages_of(number: int, turns: list[tuple[str, str, str | None]]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for place, (request, reply, result) in enumerate(turns):
        call = f"c{number}-{place}"
        exchange = [] if result is None else [a_call(call, "set_page", '{"id": "page-7"}'), a_result(call, result)]
        messages += [user(request), *exchange, assistant(reply)]
    return messages


def prompt_tokens(session: Session) -> int:
    """Tokens of the next prompt without context_meta, whose numbers change with every prompt."""
    report = session.preview().report
    return report.tokens_used - report.tokens["context_meta"]


@pytest.mark.spec("E3", "E8")
@settings(max_examples=examples(40), deadline=None)
@given(STEPS, st.booleans())
def test_the_reported_tokens_are_the_difference_of_the_prompts(steps: list[Any], calls: bool) -> None:
    clock = ManualClock()
    with temporary_home("sqlite") as home, Memory.open(home, clock=clock) as memory:
        session = memory.session("s", resource="ada", window=200_000)
        for number, (turns, target, strategy, keep_recent) in enumerate(steps):
            session.add([*messages_of(number, turns), user("And now?")])
            if calls:
                session.prepare()
                clock.advance(seconds=3_600)  # with a cold cache, the blocks of both prompts are current
            before = prompt_tokens(session)
            report = session.compact(target, strategy=strategy, keep_recent=keep_recent)
            assert report.tokens == before - prompt_tokens(session)
