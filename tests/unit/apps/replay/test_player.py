"""Replay of recorded conversations through sessions: prompts, known ids and cost."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import a_call, a_result, assistant, user
from recorded_transcripts import ANTHROPIC, CHAT

from inmind.apps.replay import Recording, ReplayReport, replay
from inmind.core.events.session import RetainedItem
from inmind.errors import InvalidInput
from inmind.history.compaction.policy import CompressionPolicy
from inmind.types import Rates

pytestmark = pytest.mark.spec("I8")

WORDS = "and so on and on " * 40


def a_recording(messages: list[dict[str, Any]], **more: Any) -> Recording:
    return replace(Recording(name="r", format="openai", messages=messages), **more)


def play(
    messages: list[dict[str, Any]], window: int = 128_000, *, memory_tools: bool = True, **more: Any
) -> ReplayReport:
    (report,) = replay([a_recording(messages, **more)], window=window, memory_tools=memory_tools)
    return report


def a_lookup(number: int, id: str, result: str = "ok") -> list[dict[str, Any]]:
    return [a_call(f"c{number}", "get_page", json.dumps({"page_id": id})), a_result(f"c{number}", result)]


def chatter(turns: int) -> list[dict[str, Any]]:
    return [message for turn in range(turns) for message in (user(f"{turn} {WORDS}"), assistant(f"{turn} {WORDS}"))]


def test_a_prompt_is_prepared_for_each_message_of_the_agent() -> None:
    report = play(CHAT[1:], system=CHAT[:1])
    assert (report.prompts, report.memory.usage.calls, report.bare.usage.calls) == (4, 4, 4)
    assert report.memory.did_not_fit == report.bare.did_not_fit == 0


def test_an_unrequested_greeting_is_not_a_call() -> None:
    assert play([assistant("Hi! How can I help?")]).prompts == 0
    assert play([assistant("Hi! How can I help?"), user("Hi"), assistant("Hello")]).prompts == 1


def test_anthropic_recordings_are_replayed_in_their_format() -> None:
    report = play(ANTHROPIC["messages"], format="anthropic", system=ANTHROPIC["system"], tools=ANTHROPIC["tools"])
    assert report.prompts == 2
    assert report.memory.usage.tokens > report.bare.usage.tokens > 0


def test_an_agent_without_memory_reads_all_earlier_messages_from_the_cache() -> None:
    report = play(chatter(3))
    token_usage = report.bare.usage
    last = token_usage.tokens - sum_of_prompts_before_the_last(3)
    assert token_usage.uncached == 0
    assert token_usage.written == last  # every token was written to the cache once
    assert token_usage.cached == token_usage.tokens - last


def sum_of_prompts_before_the_last(turns: int) -> int:
    return play(chatter(turns)[:-2]).bare.usage.tokens


def test_full_history_sends_every_message_regardless_of_the_window() -> None:
    wide, narrow = play(chatter(20)), play(chatter(20), window=4_000)
    assert narrow.full == wide.full == wide.bare
    assert narrow.bare.usage.tokens < narrow.full.usage.tokens
    assert (narrow.full.cut_messages, narrow.full.did_not_fit) == (0, 0)


def test_every_prompt_fits_pairs_its_calls_and_has_the_last_request() -> None:
    report = play([user("Build a shop. Always answer in French."), *chatter(12)[1:], *CHAT[1:]], window=4_000)
    assert (report.over_window, report.unpaired, report.missing) == (0, 0, [])
    assert report.expected_items > report.prompts == 16  # the goal as well as the request, after compaction


def nothing_to_keep(*_: Any, **__: Any) -> list[RetainedItem]:
    return []


RULED = [user("Build a shop."), assistant("Yes."), user("Never use PHP."), *chatter(30)[1:]]


def test_items_that_must_survive_are_taken_from_the_recording_and_not_from_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert play(RULED, window=8_000).missing == []
    monkeypatch.setattr("inmind.history.compaction.retention.extract_items", nothing_to_keep)
    report = play(RULED, window=8_000)
    assert {(item.kind, item.text) for item in report.missing} == {
        ("goal", "Build a shop."),
        ("rule", "Never use PHP."),
    }
    assert report.omitted == 0


def test_items_over_the_retention_budget_are_counted_as_omitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inmind.history.compaction.retention.MAX_RETAINED_TOKENS", 0)
    report = play(RULED, window=8_000)
    assert (report.missing, report.omitted > 0) == ([], True)


def test_compacted_messages_are_counted() -> None:
    report = play(chatter(30), window=4_000)
    several = report.compactions
    assert several["messages"] >= 30
    assert several["tokens"] > 0
    assert several["archives"] >= several["count"] > 1
    assert 0 < several["largest_stub"] < 1_000
    assert not play(chatter(3)).compacted


def test_compacting_when_it_pays_is_cheaper_on_a_long_run() -> None:
    messages, policy = chatter(60), CompressionPolicy.when_it_pays(Rates())
    (cost_saving,) = replay([a_recording(messages)], window=64_000, compression=policy)
    assert len(cost_saving.compacted) > 0 == len(play(messages, window=64_000).compacted)
    assert cost_saving.memory.usage.price() < play(messages, window=64_000).memory.usage.price()


def test_memory_keeps_most_of_the_prompt_cached() -> None:
    report = play(chatter(10))
    assert report.memory.usage.cached >= 0.9 * report.bare.usage.cached


def test_an_id_from_a_tool_result_is_held_when_the_agent_uses_it() -> None:
    report = play(CHAT[1:])
    (use,) = report.uses
    assert (use.tool, use.argument, use.id, use.prompt) == ("rename_page", "page_id", "page-123", 3)
    assert (use.known, use.held, use.in_prompt, use.in_bare, use.user_given) == (True, True, True, True, False)


def test_an_id_from_the_user_is_marked_as_user_given() -> None:
    (use,) = play([user("Show page-77"), *a_lookup(1, "page-77"), assistant("Here.")]).uses
    assert (use.known, use.user_given, use.never_seen) == (True, True, False)


def test_an_id_without_a_source_is_marked_as_never_seen() -> None:
    report = play([user("Show my page"), *a_lookup(1, "page-99"), assistant("Here.")])
    (use,) = report.uses
    assert use.never_seen
    assert not use.lost
    assert report.id_counts()["known"] == 0


def test_a_plain_name_used_as_an_argument_is_tracked_like_an_id_and_counted_separately() -> None:
    listed = [a_call("c1", "get_channels"), a_result("c1", '["general", "random"]')]
    looked_up = [a_call("c2", "get_users_in_channel", '{"channel": "general"}'), a_result("c2", '["Alice"]')]
    report = play([user("Who is there?"), *listed, *looked_up, assistant("Alice.")])
    (use,) = report.uses
    assert (use.kind, use.id, use.known, use.held) == ("name", "general", True, True)
    names = report.id_counts(names=True)
    assert (report.id_counts()["used"], names["used"], names["held"]) == (0, 1, 1)


def test_a_name_is_held_if_an_entity_in_the_window_has_it() -> None:
    created = [a_call("c1", "create_project"), a_result("c1", '{"project": {"id": "prj-1", "name": "Apollo"}}')]
    later = [a_call("c2", "rename", '{"project_name": "Apollo"}'), a_result("c2"), assistant("Done.")]
    (use,) = play([user("Make a project"), *created, assistant("Done."), user("Rename it"), *later]).uses
    assert (use.kind, use.id, use.held) == ("name", "Apollo", True)


def test_the_tokens_added_by_memory_are_reported_per_prompt() -> None:
    report = play(chatter(3))
    assert len(report.memory_tokens) == report.prompts == 3
    assert sum(report.memory_tokens) == report.memory.usage.tokens - report.bare.usage.tokens
    assert all(0 <= part < total for part, total in zip(report.entity_tokens, report.memory_tokens, strict=True))
    assert 0 < report.tool_tokens < min(report.memory_tokens)


@pytest.mark.spec("D11")
def test_memory_tools_are_counted_unless_they_are_left_out() -> None:
    offered, without = play(chatter(3)), play(chatter(3), memory_tools=False)
    assert without.tool_tokens == 0
    assert sum(offered.memory_tokens) - sum(without.memory_tokens) == 3 * offered.tool_tokens


def test_arguments_that_are_not_json_use_no_ids() -> None:
    assert play([user("Hi"), a_call("c", "get_page", "{page-1"), a_result("c"), assistant("?")]).uses == []


def test_in_a_small_window_memory_holds_an_id_that_the_history_has_lost() -> None:
    created = [user("Make a page"), a_call("c1", "create_page"), a_result("c1", '{"page": {"id": "page-123"}}')]
    report = play([*created, assistant("Done."), *chatter(12), user("Show it"), *a_lookup(2, "page-123")], window=4_000)
    (use,) = report.uses
    assert report.compactions["messages"] > 0
    assert report.bare.cut_tokens > 0
    assert (use.held, use.lost, use.lost_without_memory) == (True, False, True)


def test_a_result_larger_than_the_window_is_truncated_and_its_ids_are_known() -> None:
    long = f'{{"page": {{"id": "page-123", "text": "{WORDS * 30}"}}}}'
    first_turn = [user("Show my page"), a_call("c1", "get_page"), a_result("c1", long), assistant("Too long.")]
    report = play([*first_turn, user("Rename it"), *a_lookup(2, "page-123"), assistant("Done.")], window=4_000)
    (use,) = report.uses
    assert (report.memory.did_not_fit, report.bare.did_not_fit) == (0, 1)
    assert (report.over_window, report.unpaired) == (0, 0)
    assert (use.held, use.lost, use.lost_without_memory) == (True, False, True)


def test_a_call_that_does_not_fit_after_compaction_is_counted() -> None:
    tools = [{"type": "function", "function": {"name": "look", "description": WORDS * 40}}]
    report = play(CHAT[1:], window=4_000, tools=tools)
    assert (report.prompts, report.memory.did_not_fit, report.bare.did_not_fit) == (0, 4, 4)


def test_ids_are_not_lost_when_the_history_fills_the_window() -> None:
    pages = [f"page-{number}-with-a-name-of-some-length" for number in range(8)]
    created = [
        message for number, page in enumerate(pages) for message in a_lookup(number, page, f'{{"id": "{page}"}}')
    ]
    used = [message for number, page in enumerate(pages) for message in a_lookup(100 + number, page)]
    for length in range(10, 16):  # at one of these lengths the window is almost full
        talk = [user("Make pages"), *created, assistant("Done."), *chatter(length), user("Show them"), *used]
        report = play(talk, window=4_000)
        later = [use for use in report.uses if use.prompt > len(pages)]
        assert report.compactions["messages"] > 0
        assert [use.id for use in later if use.lost] == []


def test_recordings_share_no_memory() -> None:
    first = a_recording([user("Show page-77"), *a_lookup(1, "page-77"), assistant("Here.")])
    second = a_recording([user("Show it"), *a_lookup(1, "page-77"), assistant("Here.")])
    _, report = replay([first, second])
    (use,) = report.uses
    assert (use.known, use.held) == (False, False)


def test_the_temporary_folder_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    reports = replay([a_recording(CHAT[1:]), a_recording(CHAT[1:])])
    next(reports)
    assert len(list(tmp_path.iterdir())) == 1
    reports.close()
    assert list(tmp_path.iterdir()) == []


def test_a_window_too_small_for_a_session_is_refused() -> None:
    with pytest.raises(InvalidInput, match="window"):
        play(CHAT[1:], window=10)
