"""Selection by size: results are pruned before turns leave; pairs, open calls, unseen and recent messages stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.entities.record import Detail
from inmind.history.compaction.select import (
    AUTOMATIC_KEEP_RECENT,
    FURTHER_STUB_TOKENS,
    KEEP_RESULTS,
    KEEP_ROUNDS,
    LOCATION_TOKENS,
    MIN_CUT_TOKENS,
    MIN_OUTPUT_TOKENS,
    CompactionSelection,
    HistoryBudget,
    MessageSizes,
    cut_stub_tokens,
    select_covered,
    select_for_budget,
    select_requested,
)
from inmind.history.turns import Speaker, TurnCall, TurnMessage, TurnResult

TARGETS = ["conversation", "tools", "all"]


def message(by: Speaker, tokens: int = 20, *, stub: bool = False) -> TurnMessage:
    return TurnMessage(seq=0, speaker=by, text="words", tokens=tokens, stub=stub)


def call_message(*ids: str) -> TurnMessage:
    return TurnMessage(seq=0, speaker="assistant", calls=tuple(TurnCall(id, "get_page", "{}") for id in ids), tokens=10)


def result_message(id: str, tokens: int = 400) -> TurnMessage:
    return TurnMessage(seq=0, speaker="tool", results=(TurnResult(id, "text", tokens),), tokens=tokens + 10)


def conversation(*messages: TurnMessage) -> list[TurnMessage]:
    """Messages numbered as in a journal that has other events between them."""
    return [replace(one, seq=10 * number) for number, one in enumerate(messages, start=1)]


def exchanges(number: int, tokens: int = 20) -> list[TurnMessage]:
    return [message(by, tokens) for _ in range(number) for by in ("user", "assistant")]


def a_budget(limit: int, *, stub: int = 0, records: int = 0, pruned: int | None = None) -> HistoryBudget:
    return HistoryBudget(
        pruned=limit // 2 if pruned is None else pruned,
        target=limit // 2,
        threshold=3 * limit // 4,
        limit=limit,
        recent_limit=3 * limit // 4,
        stub_tokens=stub,
        record_tokens=records,
    )


def record_sizes(messages: Sequence[TurnMessage], *, facts: int = 5, ids: int = 10, line: int = 40) -> MessageSizes:
    """Records of a fixed share of their results: one part in `facts` with all details, in `ids` without."""

    def pruned(place: int, detail: Detail) -> int:
        output = sum(answer.tokens for answer in messages[place].results)
        return messages[place].tokens - output + output // (ids if detail == Detail.IDS else facts)

    def line_of(place: int) -> int:
        return line if messages[place].results else 0

    return MessageSizes(pruned, line_of)


def select_to_fit(
    messages: Sequence[TurnMessage], budget: HistoryBudget, *, keep_recent: int = AUTOMATIC_KEEP_RECENT
) -> CompactionSelection:
    return select_for_budget(messages, budget, record_sizes(messages), keep_recent=keep_recent)


def size_after(messages: Sequence[TurnMessage], selection: CompactionSelection, budget: HistoryBudget) -> int:
    """Tokens of the history after a selection, by the documented arithmetic."""
    whole, sizes = set(selection.removed), record_sizes(messages)
    tokens = budget.stub_tokens + FURTHER_STUB_TOKENS * (len(selection.runs) - 1) if selection.runs else 0
    tokens += min(budget.record_tokens, sum(map(sizes.line, whole)))
    for place, one in enumerate(messages):
        if place in whole:
            continue
        if place in selection.cut:
            kept = selection.cut[place]
            minimal = selection.minimal_stubs and kept == MIN_CUT_TOKENS
            tokens += kept + (LOCATION_TOKENS if minimal else cut_stub_tokens(one.tokens))
        elif place in selection.outputs:
            tokens += sizes.pruned(place, selection.outputs[place])
        else:
            tokens += one.tokens
    return tokens


# -- on request ------------------------------------------------------------------------------------------------


@pytest.mark.spec("E3", "E6")
def test_turns_before_the_recent_ones_are_removed_and_the_active_one_stays() -> None:
    messages = conversation(*exchanges(4), message("user"))
    assert select_requested(messages, target="conversation", keep_recent=2).runs == ((0, 1, 2, 3),)


@pytest.mark.spec("E3", "E6")
def test_with_no_recent_turns_to_keep_the_active_turn_still_stays() -> None:
    messages = conversation(*exchanges(3), message("user"))
    assert select_requested(messages, target="conversation", keep_recent=0).runs == ((0, 1, 2, 3, 4, 5),)


@pytest.mark.spec("E3")
def test_keeping_more_than_exists_removes_nothing() -> None:
    messages = conversation(*exchanges(3), call_message("c"), result_message("c"), message("assistant"))
    assert not select_requested(messages, target="all", keep_recent=1_000)


@pytest.mark.spec("E3")
def test_target_tools_prunes_only_old_results() -> None:
    messages = conversation(
        message("user"),
        call_message("a"),
        result_message("a"),
        call_message("b"),
        result_message("b"),
        message("assistant"),
        message("user"),
    )
    assert select_requested(messages, target="tools", keep_recent=1) == CompactionSelection(outputs={2: Detail.FACTS})


@pytest.mark.spec("E3")
def test_a_removed_message_is_not_also_an_output() -> None:
    turn = [message("user"), call_message("a"), result_message("a"), message("assistant")]
    later = [message("user"), call_message("b"), result_message("b"), message("assistant")]
    selection = select_requested(conversation(*turn, *later), target="all", keep_recent=0)
    assert (selection.runs, selection.outputs) == (((0, 1, 2, 3),), {6: Detail.FACTS})


@pytest.mark.spec("E3")
def test_a_short_result_stays() -> None:
    messages = conversation(
        message("user"), call_message("a"), result_message("a", MIN_OUTPUT_TOKENS), message("assistant")
    )
    assert not select_requested(messages, target="tools", keep_recent=0)


@pytest.mark.spec("E6")
def test_an_open_call_stays_with_its_turn() -> None:
    messages = conversation(message("user"), call_message("waits"), *exchanges(2), message("user"))
    assert select_requested(messages, target="conversation", keep_recent=0).runs == ((2, 3, 4, 5),)


@pytest.mark.spec("E6")
def test_a_turn_stays_if_its_result_is_in_a_turn_that_stays() -> None:
    messages = conversation(
        message("user"),
        call_message("late"),
        *exchanges(1),
        message("user"),
        result_message("late"),
        message("assistant"),
    )
    assert select_requested(messages, target="conversation", keep_recent=0).runs == ((2, 3),)


@pytest.mark.spec("E6")
def test_an_id_that_is_used_again_belongs_to_its_newest_call() -> None:
    turn = [message("user"), call_message("0"), result_message("0"), message("assistant")]
    messages = conversation(*turn, *turn, message("user"))
    assert select_requested(messages, target="conversation", keep_recent=0).runs == (tuple(range(8)),)


@pytest.mark.spec("E6")
def test_messages_that_the_model_has_not_seen_stay() -> None:
    messages = conversation(message("user"), call_message("a", "b"), result_message("a"), result_message("b"))
    assert not select_requested(messages, target="all", keep_recent=0)


@pytest.mark.spec("E6")
def test_messages_of_the_operator_stay() -> None:
    messages = conversation(message("user"), message("operator"), message("assistant"), message("user"))
    assert select_requested(messages, target="conversation", keep_recent=0).runs == ((0, 2),)


@pytest.mark.spec("E3")
def test_stubs_alone_are_not_archived_again() -> None:
    messages = conversation(message("operator", stub=True), message("user"), message("assistant"), message("user"))
    assert not select_requested(messages[:1] + messages[3:], target="conversation", keep_recent=0)
    assert select_requested(messages, target="conversation", keep_recent=0).runs == ((0, 1, 2),)


def a_long_turn(rounds: int, *, of: int = MIN_OUTPUT_TOKENS) -> list[TurnMessage]:
    """A request followed by rounds of calls and results, by default too short to be pruned."""
    work = [one for number in range(rounds) for one in (call_message(str(number)), result_message(str(number), of))]
    return conversation(message("user"), *work)


@pytest.mark.spec("E3", "E6")
@each_row("target", ["conversation", "all"])
@each_row(("keep", "stay"), [(0, KEEP_ROUNDS), (5, 5), (30, 30)])
def test_old_rounds_of_a_long_turn_are_removed_and_the_request_stays(target: str, keep: int, stay: int) -> None:
    messages = a_long_turn(20)
    selection = select_requested(messages, target=target, keep_recent=keep)
    assert selection.removed == list(range(1, len(messages) - 2 * (stay + 1)))
    assert not selection.outputs


@pytest.mark.spec("E3")
def test_old_turns_and_old_rounds_have_separate_stubs_around_the_request() -> None:
    messages = conversation(*exchanges(2), *a_long_turn(6))
    assert select_requested(messages, target="conversation", keep_recent=0).runs == ((0, 1, 2, 3), (5, 6, 7, 8))


@pytest.mark.spec("E3")
def test_an_earlier_stub_in_the_turn_is_removed_only_with_rounds() -> None:
    (request, *work), stub = a_long_turn(6), message("operator", stub=True)
    assert select_requested([request, stub, *work], target="all", keep_recent=0).runs == ((1, 2, 3, 4, 5),)
    assert not select_requested([request, stub, *work[: 2 * (KEEP_ROUNDS + 1)]], target="all", keep_recent=0)


@pytest.mark.spec("E6", "E8")
def test_a_request_that_was_cut_stays() -> None:
    _, *work = a_long_turn(20)
    messages = conversation(*exchanges(1), message("user", 300, stub=True), *work)
    for selection in (
        select_requested(messages, target="all", keep_recent=0),
        select_to_fit(messages, a_budget(1_500)),
    ):
        assert selection.removed
        assert 2 not in selection.removed


@pytest.mark.spec("E5")
def test_a_cut_request_is_removed_if_it_cannot_be_sent() -> None:
    messages = conversation(message("user", 5_000, stub=True), *a_long_turn(5)[1:])
    budget = a_budget(2_000)
    assert size_after(messages, select_to_fit(messages, budget), budget) <= budget.limit


# -- covered by the overview -----------------------------------------------------------------------------------


@pytest.mark.spec("E2")
def test_nothing_newer_than_the_overview_is_removed() -> None:
    messages = conversation(*exchanges(4), message("user"))
    assert select_covered(messages, before_seq=messages[2].seq, keep_recent=0).runs == ((0, 1),)
    assert select_covered(messages, before_seq=messages[3].seq, keep_recent=0).runs == ((0, 1),)
    assert select_covered(messages, before_seq=messages[3].seq + 1, keep_recent=0).runs == ((0, 1, 2, 3),)


@pytest.mark.spec("E2")
def test_recent_turns_stay_though_the_overview_covers_them() -> None:
    messages = conversation(*exchanges(4), message("user"))
    assert select_covered(messages, before_seq=1_000, keep_recent=3).runs == ((0, 1),)
    assert select_covered(messages, before_seq=1_000, keep_recent=0).runs == (tuple(range(8)),)


# -- the window is full ------------------------------------------------------------------------------------------


@pytest.mark.spec("E5")
def test_nothing_is_removed_if_it_fits() -> None:
    assert not select_to_fit(conversation(*exchanges(10)), a_budget(1_000))


def looked_up(*sizes: int) -> list[TurnMessage]:
    """Turns with a result of each size; results are at places 2, 6, 10 and so on."""
    turns = [
        [message("user"), call_message(str(number)), result_message(str(number), size), message("assistant")]
        for number, size in enumerate(sizes)
    ]
    return [one for turn in turns for one in turn]


@pytest.mark.spec("E5", "E10")
def test_large_results_are_pruned_first_and_no_more_than_needed() -> None:
    messages = conversation(*looked_up(300, 900, 100, 100), message("user"))
    assert select_to_fit(messages, a_budget(2_400)) == CompactionSelection(outputs={6: Detail.FACTS})
    assert select_to_fit(messages, a_budget(1_600)) == CompactionSelection(outputs={2: Detail.FACTS, 6: Detail.FACTS})


@pytest.mark.spec("E5", "E10")
def test_results_of_the_older_half_are_pruned_before_larger_ones_of_the_newer_half() -> None:
    messages = conversation(*looked_up(300, 300, 300, 400, 900, 100, 100), message("user"))
    pruned = [
        list(select_to_fit(messages, a_budget(9_000, pruned=sum(one.tokens for one in messages) - freed)).outputs)
        for freed in (1, 241, 481, 721, 1_441)
    ]
    assert pruned == [[2], [2, 6], [2, 6, 10], [2, 6, 10, 18], [2, 6, 10, 18, 14]]


@pytest.mark.spec("E10")
def test_results_are_pruned_down_to_a_smaller_size_than_turns_are_removed() -> None:
    messages = conversation(*looked_up(*[300] * 8), message("user"))
    selection = select_to_fit(messages, a_budget(9_000, pruned=1_000))
    assert list(selection.outputs.values()) == [Detail.FACTS] * (8 - KEEP_RESULTS)
    assert not selection.removed


@pytest.mark.spec("B11", "E10")
def test_details_leave_the_records_before_whole_turns_leave() -> None:
    messages = conversation(*looked_up(*[1_000] * 6), message("user"))
    with_facts = size_after(
        messages, CompactionSelection(outputs=dict.fromkeys((2, 6, 10, 14), Detail.FACTS)), a_budget(1)
    )
    selection = select_to_fit(messages, a_budget(2 * (with_facts - 150)))
    assert selection.outputs == {2: Detail.IDS, 6: Detail.IDS, 10: Detail.FACTS, 14: Detail.FACTS}
    selection = select_to_fit(messages, a_budget(2 * (with_facts - 500)))
    assert (selection.runs, set(selection.outputs.values())) == (((0, 1, 2, 3),), {Detail.IDS})


@pytest.mark.spec("E10")
def test_a_result_stays_if_its_record_is_not_shorter() -> None:
    messages = conversation(*looked_up(*[400] * 6), message("user"))
    selection = select_for_budget(messages, a_budget(9_000, pruned=0), record_sizes(messages, facts=1, ids=1))
    assert not selection


@pytest.mark.spec("E6", "E10")
def test_the_last_results_stay_whole_up_to_the_limit_for_recent_messages() -> None:
    messages = conversation(*looked_up(400, 400, 400), message("user"))
    budget = a_budget(9_000, pruned=0)
    assert select_to_fit(messages, budget).outputs == {2: Detail.FACTS}
    tight = budget._replace(target=0, threshold=900, recent_limit=900)
    assert select_to_fit(messages, tight).outputs == {2: Detail.IDS, 6: Detail.FACTS}


@pytest.mark.spec("E10")
def test_a_record_is_pruned_again_to_fewer_details() -> None:
    first, *rest = looked_up(400, 400, 400)
    pruned = [replace(one, stub=True) if place == 1 else one for place, one in enumerate(rest)]
    messages = conversation(first, *pruned, message("user"))
    assert 2 in select_to_fit(messages, a_budget(9_000, pruned=0)).outputs
    assert not select_requested(messages, target="tools", keep_recent=2).outputs


@pytest.mark.spec("E5", "E10")
def test_the_records_of_removed_messages_count() -> None:
    messages = conversation(*looked_up(*[MIN_OUTPUT_TOKENS] * 8), message("user"))
    without = select_to_fit(messages, a_budget(1_200))
    assert len(select_to_fit(messages, a_budget(1_200, records=200)).removed) > len(without.removed)


@pytest.mark.spec("E5")
def test_the_oldest_turns_are_removed_first_and_no_more_than_needed() -> None:
    messages = conversation(*exchanges(8, tokens=100), message("user"))
    assert select_to_fit(messages, a_budget(2_000, stub=100)).runs == (tuple(range(8)),)


@pytest.mark.spec("E6")
def test_the_last_turns_stay_if_the_others_are_enough() -> None:
    messages = conversation(*exchanges(8, tokens=100), message("user"))
    recent = len(messages) - 1 - 2 * AUTOMATIC_KEEP_RECENT
    selection = select_to_fit(messages, a_budget(900))
    assert selection.removed == list(range(recent))
    assert not select_to_fit(messages, a_budget(900), keep_recent=0).cut


@pytest.mark.spec("E5", "E6")
def test_the_reply_before_the_request_stays_longer_than_the_rest_of_its_turn() -> None:
    rounds = [one for n in range(8) for one in (call_message(f"c{n}"), result_message(f"c{n}", 50))]
    messages = conversation(message("user"), *rounds, message("assistant", 200), message("user"))
    selection = select_to_fit(messages, a_budget(400))
    assert selection.removed
    assert {0, len(messages) - 2, len(messages) - 1}.isdisjoint(selection.removed)


def test_calls_that_leave_around_a_request_that_stays_have_separate_stubs() -> None:
    turns = [*exchanges(4, 100), message("user"), *a_long_turn(6)[1:]]
    selection = select_to_fit(conversation(*turns), a_budget(300))
    assert all(run == tuple(range(run[0], run[-1] + 1)) for run in selection.runs)
    assert len(selection.runs) == 2


def test_early_rounds_of_a_long_turn_are_removed() -> None:
    messages = a_long_turn(20)
    selection = select_to_fit(messages, a_budget(1_600))
    assert 0 not in selection.changed
    assert selection.removed == list(range(1, 1 + len(selection.removed)))
    assert selection.removed[-1] < len(messages) - 2 * KEEP_ROUNDS


@pytest.mark.spec("E5")
def test_one_message_larger_than_the_window_is_cut() -> None:
    messages = conversation(message("user", 50_000))
    budget = a_budget(2_000)
    selection = select_to_fit(messages, budget)
    assert selection.cut.keys() == {0}
    assert size_after(messages, selection, budget) <= budget.limit


@pytest.mark.spec("E5", "E6")
def test_an_unseen_result_larger_than_the_window_is_cut_and_keeps_its_call() -> None:
    messages = conversation(message("user"), call_message("a"), result_message("a", 50_000))
    selection = select_to_fit(messages, a_budget(2_000))
    assert (selection.removed, selection.outputs, list(selection.cut)) == ([], {}, [2])


@pytest.mark.spec("E5")
def test_cut_messages_are_removed_if_space_is_needed() -> None:
    earlier = [message("user", 1_400, stub=True), message("assistant", 60, stub=True)]
    messages = conversation(*earlier, message("user", 9_000), message("assistant"))
    budget = a_budget(2_000, stub=300)
    assert size_after(messages, select_to_fit(messages, budget), budget) <= budget.limit


# -- properties ----------------------------------------------------------------------------------------------------


@st.composite
def histories(draw: st.DrawFn) -> list[TurnMessage]:
    """Parallel calls, open calls, results without a call, repeated ids, both kinds of stubs, any size."""
    sizes = st.sampled_from([0, 1, 30, 200, 700, 30_000])
    ids = st.sampled_from("abcd")
    messages = st.one_of(
        st.builds(message, st.sampled_from(["user", "assistant", "tool"]), sizes),
        st.builds(message, st.just("operator"), st.just(30)),
        st.builds(message, st.sampled_from(["operator", "user"]), st.just(60), stub=st.just(True)),
        st.lists(ids, min_size=1, max_size=3, unique=True).map(lambda ids: call_message(*ids)),
        st.builds(result_message, ids, sizes),
        st.builds(result_message, ids, sizes),
    )
    return conversation(*draw(st.lists(messages, max_size=30)))


def pairs(messages: Sequence[TurnMessage]) -> list[tuple[int, int]]:
    """Places of calls and their results: a result belongs to the newest earlier call with its id."""
    linked: list[tuple[int, int]] = []
    open_calls: dict[str, int] = {}
    for place, one in enumerate(messages):
        linked += [(open_calls.pop(answer.id), place) for answer in one.results if answer.id in open_calls]
        open_calls |= {call.id: place for call in one.calls}
    return linked


def open_call_places(messages: Sequence[TurnMessage]) -> set[int]:
    answered = [call for call, _ in pairs(messages)]
    return {place for place, one in enumerate(messages) if len(one.calls) > answered.count(place)}


def selections(messages: Sequence[TurnMessage], keep: int, budget: HistoryBudget) -> list[CompactionSelection]:
    by_request = [select_requested(messages, target=target, keep_recent=keep) for target in TARGETS]
    return [
        *by_request,
        select_covered(messages, before_seq=200, keep_recent=keep),
        select_to_fit(messages, budget, keep_recent=keep),
    ]


BUDGETS = st.builds(
    a_budget,
    st.sampled_from([1_000, 4_000]),
    stub=st.sampled_from([0, 200]),
    records=st.sampled_from([0, 300]),
    pruned=st.sampled_from([None, 0, 800]),
)


@pytest.mark.spec("E6")
@given(messages=histories(), keep=st.integers(0, 4), budget=BUDGETS)
def test_calls_and_results_are_never_separated_and_open_or_unseen_ones_stay(
    messages: list[TurnMessage], keep: int, budget: HistoryBudget
) -> None:
    """Except the rest of a cut request, which is removed if nothing could be sent otherwise."""
    last = max((place for place, one in enumerate(messages) if one.speaker == "assistant"), default=-1)
    unread = {place for place in range(last + 1, len(messages)) if not messages[place].stub}
    for selection in selections(messages, keep, budget):
        whole = set(selection.removed)
        assert [pair for pair in pairs(messages) if len(whole.intersection(pair)) == 1] == []
        assert whole.isdisjoint(open_call_places(messages) | unread)
        assert selection.outputs.keys().isdisjoint(unread)
        assert not any(messages[place].calls for place in selection.cut)


@pytest.mark.spec("E3", "E6")
@given(messages=histories(), keep=st.integers(0, 4), budget=BUDGETS)
def test_every_message_is_changed_in_one_way_and_operator_messages_in_none(
    messages: list[TurnMessage], keep: int, budget: HistoryBudget
) -> None:
    for selection in selections(messages, keep, budget):
        assert len(selection.changed) == len(selection.removed) + len(selection.outputs) + len(selection.cut)
        assert not any(
            messages[place].speaker == "operator" and not messages[place].stub for place in selection.changed
        )
        assert not any(messages[place].stub for place in selection.cut)


@pytest.mark.spec("E2", "E3", "E6")
@given(messages=histories(), keep=st.integers(0, 4))
def test_a_request_never_removes_the_last_turns_or_rounds(messages: list[TurnMessage], keep: int) -> None:
    starts = [place for place, one in enumerate(messages) if place == 0 or one.starts_turn]
    stays = starts[-1 - keep] if len(starts) > keep else 0
    active = range(starts[-1] if starts else 0, len(messages))
    rounds = [place for place in active if messages[place].speaker == "assistant"]
    for target in ("conversation", "all"):
        whole = set(select_requested(messages, target=target, keep_recent=keep).removed)
        assert whole.isdisjoint(range(stays, active.start))
        assert not any(messages[place].starts_turn for place in whole if place >= stays)
        assert whole.isdisjoint(rounds[-1 - max(keep, KEEP_ROUNDS) :])
    assert all(place < stays for place in select_covered(messages, before_seq=10**6, keep_recent=keep).removed)


@pytest.mark.spec("E5")
@given(messages=histories(), budget=BUDGETS)
def test_the_result_fits_unless_nothing_more_can_be_removed(messages: list[TurnMessage], budget: HistoryBudget) -> None:
    selection = select_to_fit(messages, budget)
    if size_after(messages, selection, budget) <= budget.limit:
        return
    remaining = [
        place for place in range(len(messages)) if place not in selection.removed and place not in selection.cut
    ]
    sizes, pruned = record_sizes(messages), selection.outputs
    request = max((place for place, one in enumerate(messages) if one.starts_turn), default=-1)
    assert not [
        place
        for place in remaining
        if place != request
        and (sizes.pruned(place, pruned[place]) if place in pruned else messages[place].tokens) > 500
        and not (messages[place].calls or messages[place].speaker == "operator" or messages[place].stub)
    ]


@pytest.mark.spec("E5")
@given(messages=histories(), budget=BUDGETS)
def test_selection_is_deterministic(messages: list[TurnMessage], budget: HistoryBudget) -> None:
    assert select_to_fit(messages, budget) == select_to_fit(messages, budget)


@pytest.mark.spec("E10")
@given(messages=histories(), budget=BUDGETS)
def test_recent_results_are_pruned_only_beyond_the_limit_for_recent_messages(
    messages: list[TurnMessage], budget: HistoryBudget
) -> None:
    selection = select_to_fit(messages, budget)
    recent = [place for place, one in enumerate(messages) if one.results][-KEEP_RESULTS:]
    if selection.runs or selection.cut or selection.outputs.keys().isdisjoint(recent):
        return
    whole = {place: detail for place, detail in selection.outputs.items() if place not in recent}
    assert size_after(messages, CompactionSelection(outputs=whole), budget) > budget.recent_limit


@pytest.mark.spec("E10")
@given(messages=histories(), budget=BUDGETS)
def test_no_turn_is_removed_while_an_old_result_could_lose_details(
    messages: list[TurnMessage], budget: HistoryBudget
) -> None:
    selection = select_to_fit(messages, budget)
    if not selection.removed:
        return
    old = [place for place, one in enumerate(messages) if one.results][:-KEEP_RESULTS]
    is_least = all(selection.outputs.get(place, Detail.IDS) == Detail.IDS for place in old)
    # If the turns that left made more room than needed, results get details back.
    assert is_least or size_after(messages, selection, budget) <= budget.target
