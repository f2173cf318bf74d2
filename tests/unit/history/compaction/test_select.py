"""Selection by size; call pairs, open calls, unseen and recent messages stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.history.compaction.select import (
    AUTOMATIC_KEEP_RECENT,
    KEEP_ROUNDS,
    MIN_OUTPUT_TOKENS,
    OUTPUT_STUB_TOKENS,
    CompactionSelection,
    HistoryBudget,
    output_stub_tokens,
    select_covered,
    select_for_budget,
    select_requested,
)
from inmind.history.turns import Speaker, TurnCall, TurnMessage, TurnResult

TARGETS = ["conversation", "tools", "all"]


def says(by: Speaker, tokens: int = 20, *, stub: bool = False) -> TurnMessage:
    return TurnMessage(seq=0, speaker=by, text="words", tokens=tokens, stub=stub)


def calls(*ids: str) -> TurnMessage:
    return TurnMessage(seq=0, speaker="assistant", calls=tuple(TurnCall(id, "get_page", "{}") for id in ids), tokens=10)


def answers(id: str, tokens: int = 400) -> TurnMessage:
    return TurnMessage(seq=0, speaker="tool", results=(TurnResult(id, "text", tokens),), tokens=tokens + 10)


def conversation(*said: TurnMessage) -> list[TurnMessage]:
    """Numbered as the journal would, with gaps where other things happened."""
    return [replace(one, seq=10 * number) for number, one in enumerate(said, start=1)]


def exchanges(number: int, tokens: int = 20) -> list[TurnMessage]:
    return [says(by, tokens) for _ in range(number) for by in ("user", "assistant")]


def a_room(limit: int, *, stub: int = 0) -> HistoryBudget:
    return HistoryBudget(
        target=limit // 2, threshold=3 * limit // 4, limit=limit, recent_limit=3 * limit // 4, stub_tokens=stub
    )


def size_after(said: Sequence[TurnMessage], leaving: CompactionSelection, room: HistoryBudget) -> int:
    """What is left by the arithmetic that the module promises."""
    whole = set(leaving.removed)
    left = room.stub_tokens * len(leaving.runs)
    for place, one in enumerate(said):
        if place in whole:
            continue
        output = sum(answer.tokens for answer in one.results)
        if place in leaving.cut:
            left += leaving.cut[place] + (
                OUTPUT_STUB_TOKENS if leaving.minimal_stubs else output_stub_tokens(one.tokens)
            )
        elif place in leaving.outputs:
            left += one.tokens - output + output_stub_tokens(output)
        else:
            left += one.tokens
    return left


# -- asked for -------------------------------------------------------------------------------------------------


@pytest.mark.spec("E3", "E6")
def test_the_turns_before_the_last_few_leave_and_the_active_one_stays() -> None:
    said = conversation(*exchanges(4), says("user"))
    assert select_requested(said, target="conversation", keep_recent=2).runs == ((0, 1, 2, 3),)


@pytest.mark.spec("E3", "E6")
def test_with_nothing_recent_to_keep_the_active_turn_still_stays() -> None:
    said = conversation(*exchanges(3), says("user"))
    assert select_requested(said, target="conversation", keep_recent=0).runs == ((0, 1, 2, 3, 4, 5),)


@pytest.mark.spec("E3")
def test_keeping_more_than_exists_removes_nothing() -> None:
    said = conversation(*exchanges(3), calls("c"), answers("c"), says("assistant"))
    assert not select_requested(said, target="all", keep_recent=1_000)


@pytest.mark.spec("E3")
def test_target_tools_removes_only_old_results() -> None:
    said = conversation(
        says("user"), calls("a"), answers("a"), calls("b"), answers("b"), says("assistant"), says("user")
    )
    assert select_requested(said, target="tools", keep_recent=1) == CompactionSelection(outputs=frozenset([2]))


@pytest.mark.spec("E3")
def test_a_removed_message_is_not_also_an_output() -> None:
    turn = [says("user"), calls("a"), answers("a"), says("assistant")]
    later = [says("user"), calls("b"), answers("b"), says("assistant")]
    leaving = select_requested(conversation(*turn, *later), target="all", keep_recent=0)
    assert (leaving.runs, leaving.outputs) == (((0, 1, 2, 3),), frozenset([6]))


@pytest.mark.spec("E3")
def test_a_result_hardly_longer_than_its_stub_stays() -> None:
    said = conversation(says("user"), calls("a"), answers("a", MIN_OUTPUT_TOKENS), says("assistant"))
    assert not select_requested(said, target="tools", keep_recent=0)


@pytest.mark.spec("E6")
def test_an_open_call_stays_with_its_turn() -> None:
    said = conversation(says("user"), calls("waits"), *exchanges(2), says("user"))
    assert select_requested(said, target="conversation", keep_recent=0).runs == ((2, 3, 4, 5),)


@pytest.mark.spec("E6")
def test_a_turn_stays_if_its_result_is_in_a_turn_that_stays() -> None:
    said = conversation(says("user"), calls("late"), *exchanges(1), says("user"), answers("late"), says("assistant"))
    assert select_requested(said, target="conversation", keep_recent=0).runs == ((2, 3),)


@pytest.mark.spec("E6")
def test_an_id_that_is_used_again_belongs_to_its_newest_call() -> None:
    turn = [says("user"), calls("0"), answers("0"), says("assistant")]
    said = conversation(*turn, *turn, says("user"))
    assert select_requested(said, target="conversation", keep_recent=0).runs == (tuple(range(8)),)


@pytest.mark.spec("E6")
def test_messages_that_the_model_has_not_seen_stay() -> None:
    said = conversation(says("user"), calls("a", "b"), answers("a"), answers("b"))
    assert not select_requested(said, target="all", keep_recent=0)


@pytest.mark.spec("E6")
def test_messages_of_the_operator_stay() -> None:
    said = conversation(says("user"), says("operator"), says("assistant"), says("user"))
    assert select_requested(said, target="conversation", keep_recent=0).runs == ((0, 2),)


@pytest.mark.spec("E3")
def test_stubs_alone_are_not_archived_again() -> None:
    said = conversation(says("operator", stub=True), says("user"), says("assistant"), says("user"))
    assert not select_requested(said[:1] + said[3:], target="conversation", keep_recent=0)
    assert select_requested(said, target="conversation", keep_recent=0).runs == ((0, 1, 2),)


def a_long_turn(rounds: int, *, of: int = 90) -> list[TurnMessage]:
    """A request, and an agent that works on it."""
    work = [one for number in range(rounds) for one in (calls(str(number)), answers(str(number), of))]
    return conversation(says("user"), *work)


@pytest.mark.spec("E3", "E6")
@each_row("target", ["conversation", "all"])
@each_row(("keep", "stay"), [(0, KEEP_ROUNDS), (5, 5), (30, 30)])
def test_old_rounds_of_a_long_turn_leave_and_what_was_asked_stays(target: str, keep: int, stay: int) -> None:
    said = a_long_turn(20)
    leaving = select_requested(said, target=target, keep_recent=keep)
    assert leaving.removed == list(range(1, len(said) - 2 * (stay + 1)))
    assert not leaving.outputs


@pytest.mark.spec("E3")
def test_old_turns_and_old_rounds_have_a_stub_each_since_the_request_stands_between_them() -> None:
    said = conversation(*exchanges(2), *a_long_turn(6))
    assert select_requested(said, target="conversation", keep_recent=0).runs == ((0, 1, 2, 3), (5, 6, 7, 8))


@pytest.mark.spec("E3")
def test_an_earlier_stub_in_the_turn_is_removed_only_with_rounds() -> None:
    (request, *work), stub = a_long_turn(6), says("operator", stub=True)
    assert select_requested([request, stub, *work], target="all", keep_recent=0).runs == ((1, 2, 3, 4, 5),)
    assert not select_requested([request, stub, *work[: 2 * (KEEP_ROUNDS + 1)]], target="all", keep_recent=0)


@pytest.mark.spec("E6", "E8")
def test_a_request_that_was_cut_stays() -> None:
    _, *work = a_long_turn(20)
    said = conversation(*exchanges(1), says("user", 300, stub=True), *work)
    for leaving in (select_requested(said, target="all", keep_recent=0), select_for_budget(said, a_room(1_500))):
        assert leaving.removed
        assert 2 not in leaving.removed


@pytest.mark.spec("E5")
def test_a_cut_request_is_removed_if_it_cannot_be_sent() -> None:
    said = conversation(says("user", 5_000, stub=True), *a_long_turn(5)[1:])
    room = a_room(2_000)
    assert size_after(said, select_for_budget(said, room), room) <= room.limit


# -- covered by the overview -----------------------------------------------------------------------------------


@pytest.mark.spec("E2")
def test_nothing_newer_than_the_overview_is_removed() -> None:
    said = conversation(*exchanges(4), says("user"))
    assert select_covered(said, before_seq=said[2].seq, keep_recent=0).runs == ((0, 1),)
    assert select_covered(said, before_seq=said[3].seq, keep_recent=0).runs == ((0, 1),)
    assert select_covered(said, before_seq=said[3].seq + 1, keep_recent=0).runs == ((0, 1, 2, 3),)


@pytest.mark.spec("E2")
def test_recent_turns_stay_though_the_overview_covers_them() -> None:
    said = conversation(*exchanges(4), says("user"))
    assert select_covered(said, before_seq=1_000, keep_recent=3).runs == ((0, 1),)
    assert select_covered(said, before_seq=1_000, keep_recent=0).runs == (tuple(range(8)),)


# -- the window is full ------------------------------------------------------------------------------------------


@pytest.mark.spec("E5")
def test_nothing_is_removed_if_it_fits() -> None:
    assert not select_for_budget(conversation(*exchanges(10)), a_room(1_000))


@pytest.mark.spec("E5")
def test_old_answers_leave_before_old_turns_the_largest_first() -> None:
    small = [says("user"), calls("a"), answers("a", 300), says("assistant")]
    large = [says("user"), calls("b"), answers("b", 900), says("assistant")]
    said = conversation(*small, *large, *exchanges(4))
    assert select_for_budget(said, a_room(2_400)) == CompactionSelection(outputs=frozenset([6]))
    assert select_for_budget(said, a_room(1_500)) == CompactionSelection(outputs=frozenset([2, 6]))


@pytest.mark.spec("E5")
def test_old_turns_leave_oldest_first_and_no_more_than_needed() -> None:
    said = conversation(*exchanges(8, tokens=100), says("user"))
    assert select_for_budget(said, a_room(2_000, stub=100)).runs == (tuple(range(8)),)


@pytest.mark.spec("E6")
def test_the_last_turns_stay_while_the_rest_is_enough() -> None:
    said = conversation(*exchanges(8, tokens=100), says("user"))
    recent = len(said) - 1 - 2 * AUTOMATIC_KEEP_RECENT
    leaving = select_for_budget(said, a_room(900))
    assert leaving.removed == list(range(recent))
    assert not select_for_budget(said, a_room(900), keep_recent=0).cut


@pytest.mark.spec("E5", "E6")
def test_early_rounds_of_a_long_turn_are_removed() -> None:
    rounds = [one for number in range(20) for one in (calls(str(number)), answers(str(number), 90))]
    said = conversation(says("user"), *rounds)
    leaving = select_for_budget(said, a_room(2_000))
    assert 0 not in leaving.changed
    assert leaving.removed == list(range(1, 1 + len(leaving.removed)))
    assert leaving.removed[-1] < len(said) - 2 * KEEP_ROUNDS


@pytest.mark.spec("E5")
def test_one_message_larger_than_the_window_is_cut() -> None:
    said = conversation(says("user", 50_000))
    room = a_room(2_000)
    leaving = select_for_budget(said, room)
    assert leaving.cut.keys() == {0}
    assert size_after(said, leaving, room) <= room.limit


@pytest.mark.spec("E5", "E6")
def test_an_unread_answer_larger_than_the_window_is_cut_and_keeps_its_call() -> None:
    said = conversation(says("user"), calls("a"), answers("a", 50_000))
    leaving = select_for_budget(said, a_room(2_000))
    assert (leaving.removed, leaving.outputs, list(leaving.cut)) == ([], frozenset[int](), [2])


@pytest.mark.spec("E5")
def test_cut_messages_are_removed_if_space_is_needed() -> None:
    earlier = [says("user", 1_400, stub=True), says("assistant", 60, stub=True)]
    said = conversation(*earlier, says("user", 9_000), says("assistant"))
    room = a_room(2_000, stub=300)
    assert size_after(said, select_for_budget(said, room), room) <= room.limit


# -- whatever it is ------------------------------------------------------------------------------------------------


@st.composite
def histories(draw: st.DrawFn) -> list[TurnMessage]:
    """Parallel calls, calls that wait, answers without a call, ids used twice, stubs of both kinds, any size."""
    sizes = st.sampled_from([0, 1, 30, 200, 700, 30_000])
    ids = st.sampled_from("abcd")
    said = st.one_of(
        st.builds(says, st.sampled_from(["user", "assistant", "tool"]), sizes),
        st.builds(says, st.just("operator"), st.just(30)),
        st.builds(says, st.sampled_from(["operator", "user"]), st.just(60), stub=st.just(True)),
        st.lists(ids, min_size=1, max_size=3, unique=True).map(lambda ids: calls(*ids)),
        st.builds(answers, ids, sizes),
        st.builds(answers, ids, sizes),
    )
    return conversation(*draw(st.lists(said, max_size=30)))


def pairs(said: Sequence[TurnMessage]) -> list[tuple[int, int]]:
    """Places of calls and of their answers: an answer belongs to the newest call of its id before it."""
    found: list[tuple[int, int]] = []
    open_calls: dict[str, int] = {}
    for place, one in enumerate(said):
        found += [(open_calls.pop(answer.id), place) for answer in one.results if answer.id in open_calls]
        open_calls |= {call.id: place for call in one.calls}
    return found


def waiting(said: Sequence[TurnMessage]) -> set[int]:
    answered = [call for call, _ in pairs(said)]
    return {place for place, one in enumerate(said) if len(one.calls) > answered.count(place)}


def leavings(said: Sequence[TurnMessage], keep: int, room: HistoryBudget) -> list[CompactionSelection]:
    by_request = [select_requested(said, target=target, keep_recent=keep) for target in TARGETS]
    return [
        *by_request,
        select_covered(said, before_seq=200, keep_recent=keep),
        select_for_budget(said, room, keep_recent=keep),
    ]


ROOMS = st.builds(a_room, st.sampled_from([1_000, 4_000]), stub=st.sampled_from([0, 200]))


@pytest.mark.spec("E6")
@given(said=histories(), keep=st.integers(0, 4), room=ROOMS)
def test_calls_and_results_are_never_separated_and_open_or_unseen_ones_stay(
    said: list[TurnMessage], keep: int, room: HistoryBudget
) -> None:
    """But for what stays of a request that was cut: before nothing could be sent, that is told in short."""
    last = max((place for place, one in enumerate(said) if one.speaker == "assistant"), default=-1)
    unread = {place for place in range(last + 1, len(said)) if not said[place].stub}
    for leaving in leavings(said, keep, room):
        whole = set(leaving.removed)
        assert [pair for pair in pairs(said) if len(whole.intersection(pair)) == 1] == []
        assert whole.isdisjoint(waiting(said) | unread)
        assert leaving.outputs.isdisjoint(unread)
        assert not any(said[place].calls for place in leaving.cut)


@pytest.mark.spec("E3", "E6")
@given(said=histories(), keep=st.integers(0, 4), room=ROOMS)
def test_every_message_is_changed_in_one_way_and_operator_messages_in_none(
    said: list[TurnMessage], keep: int, room: HistoryBudget
) -> None:
    for leaving in leavings(said, keep, room):
        assert len(leaving.changed) == len(leaving.removed) + len(leaving.outputs) + len(leaving.cut)
        assert not any(said[place].speaker == "operator" and not said[place].stub for place in leaving.changed)
        assert not any(said[place].stub for place in (*leaving.outputs, *leaving.cut))


@pytest.mark.spec("E2", "E3", "E6")
@given(said=histories(), keep=st.integers(0, 4))
def test_a_request_never_removes_the_last_turns_or_rounds(said: list[TurnMessage], keep: int) -> None:
    starts = [place for place, one in enumerate(said) if place == 0 or one.starts_turn]
    stays = starts[-1 - keep] if len(starts) > keep else 0
    active = range(starts[-1] if starts else 0, len(said))
    rounds = [place for place in active if said[place].speaker == "assistant"]
    for target in ("conversation", "all"):
        whole = set(select_requested(said, target=target, keep_recent=keep).removed)
        assert whole.isdisjoint(range(stays, active.start))
        assert not any(said[place].starts_turn for place in whole if place >= stays)
        assert whole.isdisjoint(rounds[-1 - max(keep, KEEP_ROUNDS) :])
    assert all(place < stays for place in select_covered(said, before_seq=10**6, keep_recent=keep).removed)


@pytest.mark.spec("E5")
@given(said=histories(), room=ROOMS)
def test_the_result_fits_unless_nothing_more_can_be_removed(said: list[TurnMessage], room: HistoryBudget) -> None:
    leaving = select_for_budget(said, room)
    if size_after(said, leaving, room) <= room.limit:
        return
    left = [place for place in range(len(said)) if place not in leaving.removed and place not in leaving.cut]
    request = max((place for place, one in enumerate(said) if one.starts_turn), default=-1)
    assert not [
        place
        for place in left
        if place != request
        and said[place].tokens > 500
        and not (said[place].calls or said[place].speaker == "operator" or said[place].stub)
    ]


@pytest.mark.spec("E5")
@given(said=histories(), room=ROOMS)
def test_selection_is_deterministic(said: list[TurnMessage], room: HistoryBudget) -> None:
    assert select_for_budget(said, room) == select_for_budget(said, room)
