"""Conditions that move the anchor, and the tail until then."""

from __future__ import annotations

import pytest
from builders import a_block

from inmind.prompt.anchor import (
    MAX_CALLS_PER_ANCHOR,
    Anchor,
    AnchorCosts,
    AnchorDecision,
    DescribeChanges,
    changes_between,
    decide_anchor,
)

PAGE = "# Memory\n\n## Task\n- build the page\n\n## Facts\n- it is page-1\n" + "- a fact that stays\n" * 20


def decide(text: str, *, call: int = 2, cold: bool = False, **sizes_changed: int) -> AnchorDecision:
    anchor = Anchor(blocks=(a_block(PAGE),), reason="first call", seq=1, call=1)
    sizes = {"anchored": 1_000, "history": 500, "tails": 0, "max_tokens": 10_000, **sizes_changed}
    costs = AnchorCosts(
        anchored_tokens=sizes["anchored"],
        cached_history_tokens=sizes["history"],
        tail_tokens_since_anchor=sizes["tails"],
        max_memory_tokens=sizes["max_tokens"],
    )
    return decide_anchor(anchor, anchor.blocks, [a_block(text)], call=call, cold=cold, count=len, costs=costs)


CHANGED = PAGE.replace("- it is page-1", "- it is page-1\n- its hero is sec-2")


@pytest.mark.spec("D4")
def test_a_small_change_is_sent_under_its_heading() -> None:
    decision = decide(CHANGED)
    assert (decision.move_reason, decision.changes) == ("", "overview:\n  ## Facts\n+ - its hero is sec-2")


@pytest.mark.spec("D4")
def test_the_anchor_moves_when_the_changes_exceed_fifteen_percent() -> None:
    size = len(decide(CHANGED).changes)
    assert decide(CHANGED, anchored=int(size / 0.15) - 1).move_reason == "changes exceed 15%"
    assert decide(CHANGED, anchored=int(size / 0.15) + 1).move_reason == ""


@pytest.mark.spec("D4")
def test_after_a_long_history_the_anchor_moves_when_reading_the_changes_has_cost_as_much() -> None:
    rewritten = PAGE.replace("stays", "changed")
    size = len(decide(rewritten, history=100_000).changes)
    assert size > 150
    cost = int(1.15 * (1_000 + 100_000) / 0.1)
    assert decide(rewritten, history=100_000, tails=cost - size - 1).move_reason == ""
    assert decide(rewritten, history=100_000, tails=cost - size + 1).move_reason == "changes exceed 15%"


@pytest.mark.spec("D4")
def test_the_anchor_moves_after_fifty_calls_if_anything_changed() -> None:
    assert decide(CHANGED, call=MAX_CALLS_PER_ANCHOR).move_reason == ""
    assert decide(CHANGED, call=1 + MAX_CALLS_PER_ANCHOR).move_reason == "50 calls"
    assert decide(PAGE, call=1 + MAX_CALLS_PER_ANCHOR).move_reason == ""


@pytest.mark.spec("D4")
def test_the_anchor_moves_when_the_cache_is_lost_anyway() -> None:
    assert decide(CHANGED, cold=True).move_reason == "the provider's cache is cold"
    assert decide(PAGE, cold=True).move_reason == ""


def test_the_anchor_moves_when_changes_would_not_fit() -> None:
    assert decide(CHANGED, anchored=1_000, max_tokens=1_010).move_reason == "no room for changes"


def test_the_first_call_sets_the_anchor() -> None:
    costs = AnchorCosts(
        anchored_tokens=0, cached_history_tokens=0, tail_tokens_since_anchor=0, max_memory_tokens=10_000
    )
    decision = decide_anchor(None, (), [a_block(PAGE)], call=1, cold=True, count=len, costs=costs)
    assert decision.move_reason == "first call"


def test_a_replaced_line_shows_both_sides() -> None:
    assert decide(PAGE.replace("build the page", "publish it")).changes == (
        "overview:\n  ## Task\n- - build the page\n+ - publish it"
    )


def test_a_long_removed_line_is_named_by_its_beginning_unless_another_begins_alike() -> None:
    long, rest = "- the hero of the page is section sec-2, with a wide image", "\n".join("- a fact that stays" * 9)
    changes, _ = changes_between([a_block(f"{long}\n{rest}")], [a_block(rest)])
    assert changes == "overview:\n- - the hero of the page is section…"
    twin = long.replace("wide", "flat")
    changes, _ = changes_between([a_block(f"{long}\n{twin}\n{rest}")], [a_block(f"{twin}\n{rest}")])
    assert changes == f"overview:\n- {long}"


def test_changes_whose_message_is_gone_move_the_anchor() -> None:
    anchor = Anchor(blocks=(a_block(PAGE),), reason="first call", seq=1, call=1)
    costs = AnchorCosts(
        anchored_tokens=1_000, cached_history_tokens=5_000, tail_tokens_since_anchor=0, max_memory_tokens=10_000
    )
    decision = decide_anchor(anchor, None, [a_block(CHANGED)], call=2, cold=False, count=len, costs=costs)
    assert decision.move_reason == "the history was rewritten"


def test_a_rewritten_page_is_sent_in_full_if_that_is_shorter() -> None:
    changes, _ = changes_between([a_block(PAGE)], [a_block("# Memory\n- done")])
    assert changes == "overview, now in full:\n# Memory\n- done"


def test_a_removed_layer_is_reported_and_a_new_one_is_shown_completely() -> None:
    anchor = Anchor(blocks=(a_block("a", "rules"),), reason="first call", seq=1, call=1)
    costs = AnchorCosts(
        anchored_tokens=1_000, cached_history_tokens=5_000, tail_tokens_since_anchor=0, max_memory_tokens=10_000
    )
    decision = decide_anchor(anchor, anchor.blocks, [a_block("b", "notes")], call=2, cold=False, count=len, costs=costs)
    assert (decision.changes, decision.new_blocks) == ("rules: now empty", (a_block("b", "notes"),))


ENTITIES, MORE = a_block("pages: page-1", "entities"), a_block("pages: page-2, page-1", "entities")


def decide_without_description(
    *, call: int = 2, cold: bool = False, room: int = 2_000, rewritten: bool = False
) -> AnchorDecision:
    anchor = Anchor(blocks=(ENTITIES,), reason="first call", seq=1, call=1)
    costs = AnchorCosts(
        anchored_tokens=1_000,
        cached_history_tokens=5_000,
        tail_tokens_since_anchor=0,
        max_memory_tokens=room,
        tail_frame_tokens=50,
        has_tail_carrier=False,
        history_rewritten=rewritten,
    )
    silent: dict[str, DescribeChanges] = {"entities": lambda _, __: ""}
    return decide_anchor(
        anchor, anchor.blocks, [MORE], call=call, cold=cold, count=len, costs=costs, describe_changes=silent
    )


@pytest.mark.spec("D4")
def test_a_layer_without_described_changes_moves_no_anchor() -> None:
    assert decide_without_description() == AnchorDecision(move_reason="", changes="")
    assert decide_without_description(room=1_000) == AnchorDecision(move_reason="", changes="")


@pytest.mark.spec("D4")
def test_a_block_without_described_changes_is_updated_when_the_anchor_moves() -> None:
    assert decide_without_description(cold=True).move_reason == "the provider's cache is cold"
    assert decide_without_description(rewritten=True).move_reason == "the history was rewritten"
    assert decide_without_description(call=1 + MAX_CALLS_PER_ANCHOR).move_reason == "50 calls"
    assert decide_without_description(room=999).move_reason == "no room for changes"


def test_a_layer_description_replaces_the_line_diff_unless_it_is_none() -> None:
    own: dict[str, DescribeChanges] = {"entities": lambda _, __: "page-2"}
    assert changes_between([ENTITIES], [MORE], own)[0] == "entities, newest first: page-2"
    own = {"entities": lambda _, __: None}
    assert changes_between([ENTITIES], [MORE], own) == changes_between([ENTITIES], [MORE])
