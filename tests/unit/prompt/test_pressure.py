"""How the room of a full window is divided between memory and history."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inmind.prompt.plan import WindowPressure

TOKENS = st.integers(0, 4_000)


@pytest.mark.spec("E5", "E10")
@given(available=st.integers(1, 200_000), margin=TOKENS, fixed=TOKENS, reserved=TOKENS, other=TOKENS, history=TOKENS)
def test_a_history_within_its_limit_fits_beside_what_cannot_be_shortened(
    available: int, margin: int, fixed: int, reserved: int, other: int, history: int
) -> None:
    budget = WindowPressure(
        room=available + margin,
        available=available,
        memory=fixed + reserved + other,
        history=history,
        fixed=fixed,
        reserved=reserved,
        percent=100.0,
        rewrites_history=True,
    ).budget
    assert budget.pruned <= budget.limit
    assert budget.target <= budget.threshold <= budget.limit
    least = available // 4  # the conversation always keeps a quarter, and the prompt may not fit
    assert budget.limit <= max(least, available - fixed - reserved)
