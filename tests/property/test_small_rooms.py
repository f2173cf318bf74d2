"""In the smallest rooms every prompt can be made, and has the goal."""

from __future__ import annotations

import json
from typing import Any

import pytest
from builders import a_call, a_result, assistant, user
from home_builders import temporary_home
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples

from inmind import Memory

SYSTEM = {"role": "system", "content": "Only change an order after the user has confirmed it. " * 110}
GOAL = "I want to upgrade everything in my orders to the most expensive version."
TEXT = "A remark about the order, which the agent wrote down. "


def a_product(variants: int) -> str:
    options = {"screen size": "15-inch", "processor": "i5", "color": "space grey"}
    items = [{"item_id": f"47169{n:05}", "options": options, "price": 2_520.52 + n} for n in range(variants)]
    return json.dumps({"name": "Laptop", "product_id": "4760268021", "variants": items})


def an_order(items: int) -> str:
    rows = [{"name": f"Item {n}", "product_id": f"65{n:04}11", "item_id": f"83{n:04}77"} for n in range(items)]
    return json.dumps({"order_id": f"#W{items}00", "status": "pending", "items": rows})


RESULTS = st.one_of(
    st.integers(1, 40).map(a_product), st.integers(1, 12).map(an_order), st.integers(0, 60).map(lambda n: TEXT * n)
)
ROUNDS = st.lists(st.tuples(st.integers(0, 12), st.lists(RESULTS, min_size=1, max_size=4), st.booleans()), max_size=10)


@pytest.mark.spec("E5", "E6", "E10")
@settings(max_examples=examples(15), deadline=None)
@given(ROUNDS)
def test_every_prompt_of_a_run_is_made_and_has_the_goal(rounds: list[tuple[int, list[str], bool]]) -> None:
    with temporary_home("sqlite") as home, Memory.open(home, embedder=None) as memory:
        session = memory.session("s", resource="ada", window=4_000)
        messages: list[dict[str, Any]] = [SYSTEM, user(GOAL), assistant("Which orders?"), user("All of them.")]
        for number, (remarks, results, asks) in enumerate(rounds):
            calls = [
                a_call(f"c{number}-{place}", "get", f'{{"id": "{number}-{place}"}}') for place in range(len(results))
            ]
            together = {**calls[0], "content": TEXT * remarks, "tool_calls": [c["tool_calls"][0] for c in calls]}
            messages += [together, *(a_result(f"c{number}-{place}", text) for place, text in enumerate(results))]
            if asks:
                messages += [assistant("Shall I go on?"), user("Yes, go on.")]
            prompt = session.prepare(messages)
            assert GOAL in json.dumps(prompt.request)
            assert prompt.report.tokens_used <= 2_000
