"""Recorded conversations through sessions: what was sent, what was known, what it cost."""

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


def played(messages: list[dict[str, Any]], window: int = 128_000, **more: Any) -> ReplayReport:
    (report,) = replay([a_recording(messages, **more)], window=window)
    return report


def a_lookup(number: int, id: str, result: str = "ok") -> list[dict[str, Any]]:
    return [a_call(f"c{number}", "get_page", json.dumps({"page_id": id})), a_result(f"c{number}", result)]


def chatter(turns: int) -> list[dict[str, Any]]:
    return [message for turn in range(turns) for message in (user(f"{turn} {WORDS}"), assistant(f"{turn} {WORDS}"))]


def test_a_prompt_is_prepared_for_each_message_of_the_agent() -> None:
    report = played(CHAT[1:], system=CHAT[:1])
    assert (report.prompts, report.memory.usage.calls, report.bare.usage.calls) == (4, 4, 4)
    assert report.memory.did_not_fit == report.bare.did_not_fit == 0


def test_an_unrequested_greeting_is_not_a_call() -> None:
    assert played([assistant("Hi! How can I help?")]).prompts == 0
    assert played([assistant("Hi! How can I help?"), user("Hi"), assistant("Hello")]).prompts == 1


def test_anthropic_recordings_are_played_in_their_own_words() -> None:
    report = played(ANTHROPIC["messages"], format="anthropic", system=ANTHROPIC["system"], tools=ANTHROPIC["tools"])
    assert report.prompts == 2
    assert report.memory.usage.tokens > report.bare.usage.tokens > 0


def test_an_agent_without_memory_finds_all_that_it_sent_before_in_the_cache() -> None:
    report = played(chatter(3))
    ledger = report.bare.usage
    last = ledger.tokens - sum_of_prompts_before_the_last(3)
    assert ledger.uncached == 0
    assert ledger.written == last  # everything was new once and only once
    assert ledger.cached == ledger.tokens - last


def sum_of_prompts_before_the_last(turns: int) -> int:
    return played(chatter(turns)[:-2]).bare.usage.tokens


def test_full_history_sends_all_of_it_whatever_the_window() -> None:
    wide, narrow = played(chatter(20)), played(chatter(20), window=4_000)
    assert narrow.full == wide.full == wide.bare
    assert narrow.bare.usage.tokens < narrow.full.usage.tokens
    assert (narrow.full.cut_messages, narrow.full.did_not_fit) == (0, 0)


def test_every_prompt_fits_pairs_its_calls_and_has_the_last_request() -> None:
    report = played([user("Build a shop. Always answer in French."), *chatter(12)[1:], *CHAT[1:]], window=4_000)
    assert (report.over_window, report.unpaired, report.missing) == (0, 0, [])
    assert report.expected_items > report.prompts == 16  # the goal beside the request, once it has left the view


def nothing_to_keep(*_: Any, **__: Any) -> list[RetainedItem]:
    return []


RULED = [user("Build a shop."), assistant("Yes."), user("Never use PHP."), *chatter(30)[1:]]


def test_what_must_survive_is_told_by_the_recording_and_not_by_what_memory_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert played(RULED, window=8_000).missing == []
    monkeypatch.setattr("inmind.history.compaction.retention.extract_items", nothing_to_keep)
    gone = played(RULED, window=8_000)
    assert {(one.kind, one.text) for one in gone.missing} == {("goal", "Build a shop."), ("rule", "Never use PHP.")}
    assert gone.omitted == 0


def test_what_there_was_no_room_to_keep_is_counted_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inmind.history.compaction.retention.MAX_RETAINED_TOKENS", 0)
    report = played(RULED, window=8_000)
    assert (report.missing, report.omitted > 0) == ([], True)


def test_what_was_taken_out_of_view_is_counted() -> None:
    report = played(chatter(30), window=4_000)
    several = report.compactions
    assert several.messages >= 30
    assert several.tokens > 0
    assert several.archives >= len(several) > 1
    assert 0 < several.largest_stub < 1_000
    assert not played(chatter(3)).compactions


def test_compacting_as_soon_as_it_pays_is_cheaper_on_a_long_run() -> None:
    talk, policy = chatter(60), CompressionPolicy.when_it_pays(Rates())
    (thrifty,) = replay([a_recording(talk)], window=64_000, compression=policy)
    assert len(thrifty.compactions) > 0 == len(played(talk, window=64_000).compactions)
    assert thrifty.memory.usage.price() < played(talk, window=64_000).memory.usage.price()


def test_with_a_warm_cache_memory_leaves_most_of_the_prompt_in_it() -> None:
    report = played(chatter(10))
    assert report.memory.usage.cached >= 0.9 * report.bare.usage.cached


def test_an_id_that_a_tool_gave_is_held_when_the_agent_uses_it() -> None:
    report = played(CHAT[1:])
    (use,) = report.uses
    assert (use.tool, use.argument, use.id, use.prompt) == ("rename_page", "page_id", "page-123", 3)
    assert (use.known, use.held, use.in_prompt, use.in_bare, use.user_given) == (True, True, True, True, False)


def test_an_id_that_the_user_gave_says_so() -> None:
    (use,) = played([user("Show page-77"), *a_lookup(1, "page-77"), assistant("Here.")]).uses
    assert (use.known, use.user_given, use.never_seen) == (True, True, False)


def test_an_id_without_a_source_comes_from_nowhere() -> None:
    report = played([user("Show my page"), *a_lookup(1, "page-99"), assistant("Here.")])
    (use,) = report.uses
    assert use.never_seen
    assert not use.lost
    assert report.ids.known == 0


def test_a_plain_name_that_a_call_goes_by_is_used_like_an_id_and_counted_apart() -> None:
    listed = [a_call("c1", "get_channels"), a_result("c1", '["general", "random"]')]
    asked = [a_call("c2", "get_users_in_channel", '{"channel": "general"}'), a_result("c2", '["Alice"]')]
    report = played([user("Who is there?"), *listed, *asked, assistant("Alice.")])
    (use,) = report.uses
    assert (use.kind, use.id, use.known, use.held) == ("name", "general", True, True)
    assert (len(report.ids), len(report.names), report.names.held) == (0, 1, 1)


def test_a_name_is_held_where_something_in_mind_is_called_that() -> None:
    made = [a_call("c1", "create_project"), a_result("c1", '{"project": {"id": "prj-1", "name": "Apollo"}}')]
    later = [a_call("c2", "rename", '{"project_name": "Apollo"}'), a_result("c2"), assistant("Done.")]
    (use,) = played([user("Make a project"), *made, assistant("Done."), user("Rename it"), *later]).uses
    assert (use.kind, use.id, use.held) == ("name", "Apollo", True)


def test_what_memory_adds_is_known_for_each_prompt() -> None:
    report = played(chatter(3))
    assert len(report.memory_tokens) == report.prompts == 3
    assert sum(report.memory_tokens) == report.memory.usage.tokens - report.bare.usage.tokens
    assert all(
        0 < entities < all_of_it for entities, all_of_it in zip(report.entity_tokens, report.memory_tokens, strict=True)
    )


def test_arguments_that_are_no_json_use_no_ids() -> None:
    assert played([user("Hi"), a_call("c", "get_page", "{page-1"), a_result("c"), assistant("?")]).uses == []


def test_in_a_small_window_memory_still_has_the_id_that_the_history_has_lost() -> None:
    made = [user("Make a page"), a_call("c1", "create_page"), a_result("c1", '{"page": {"id": "page-123"}}')]
    report = played([*made, assistant("Done."), *chatter(12), user("Show it"), *a_lookup(2, "page-123")], window=4_000)
    (use,) = report.uses
    assert report.compactions.messages > 0
    assert report.bare.cut_tokens > 0
    assert (use.held, use.lost, use.lost_without_memory) == (True, False, True)


def test_a_result_larger_than_the_window_is_sent_in_part_and_its_ids_are_known() -> None:
    long = f'{{"page": {{"id": "page-123", "text": "{WORDS * 30}"}}}}'
    shown = [user("Show my page"), a_call("c1", "get_page"), a_result("c1", long), assistant("Too long.")]
    report = played([*shown, user("Rename it"), *a_lookup(2, "page-123"), assistant("Done.")], window=4_000)
    (use,) = report.uses
    assert (report.memory.did_not_fit, report.bare.did_not_fit) == (0, 1)
    assert (report.over_window, report.unpaired) == (0, 0)
    assert (use.held, use.lost, use.lost_without_memory) == (True, False, True)


def test_a_call_that_even_a_compaction_makes_no_room_for_is_counted_and_what_was_said_is_heard() -> None:
    tools = [{"type": "function", "function": {"name": "look", "description": WORDS * 40}}]
    report = played(CHAT[1:], window=4_000, tools=tools)
    assert (report.prompts, report.memory.did_not_fit, report.bare.did_not_fit) == (0, 4, 4)


def test_a_history_that_fills_the_window_leaves_the_ids_their_place() -> None:
    pages = [f"page-{number}-with-a-name-of-some-length" for number in range(8)]
    made = [message for number, page in enumerate(pages) for message in a_lookup(number, page, f'{{"id": "{page}"}}')]
    used = [message for number, page in enumerate(pages) for message in a_lookup(100 + number, page)]
    for length in range(10, 16):  # somewhere on the way the window is almost full
        talk = [user("Make pages"), *made, assistant("Done."), *chatter(length), user("Show them"), *used]
        report = played(talk, window=4_000)
        later = [use for use in report.uses if use.prompt > len(pages)]
        assert report.compactions.messages > 0
        assert [use.id for use in later if use.lost] == []


def test_recordings_do_not_know_each_other() -> None:
    first = a_recording([user("Show page-77"), *a_lookup(1, "page-77"), assistant("Here.")])
    second = a_recording([user("Show it"), *a_lookup(1, "page-77"), assistant("Here.")])
    _, report = replay([first, second])
    (use,) = report.uses
    assert (use.known, use.held) == (False, False)


def test_nothing_stays_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    reports = replay([a_recording(CHAT[1:]), a_recording(CHAT[1:])])
    next(reports)
    assert len(list(tmp_path.iterdir())) == 1
    reports.close()
    assert list(tmp_path.iterdir()) == []


def test_a_window_that_no_session_takes_is_refused() -> None:
    with pytest.raises(InvalidInput, match="window"):
        played(CHAT[1:], window=10)
