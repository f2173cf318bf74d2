"""The guide and its sentences about offered tools."""

from __future__ import annotations

import pytest
from tables import each_row

from inmind.core.tokens import estimator
from inmind.history.token_meter import BANDS, EMERGENCY_BAND
from inmind.prompt.templates import WORDING, wording_for

TOOLS = ("memory_read", "compact_history")


@pytest.mark.spec("E4")
@each_row("band", [*(name for _, name in BANDS), EMERGENCY_BAND])
def test_the_guide_explains_each_band_once(band: str) -> None:
    assert WORDING["guide"].count(f"{band} ") == 1


@pytest.mark.spec("E4")
@pytest.mark.parametrize("tool", TOOLS)
def test_the_guide_mentions_a_tool_only_if_it_is_offered(tool: str) -> None:
    assert tool in wording_for({tool})["guide"]
    assert tool not in wording_for(set(TOOLS) - {tool})["guide"]


def test_the_guide_with_every_tool_is_complete() -> None:
    assert wording_for(TOOLS) == WORDING


@pytest.mark.parametrize(("offered", "max_tokens"), [(TOOLS, 165), ((), 100)])
def test_the_guide_is_short_because_it_is_in_every_prompt(offered: tuple[str, ...], max_tokens: int) -> None:
    assert estimator()(wording_for(offered)["guide"]) <= max_tokens
