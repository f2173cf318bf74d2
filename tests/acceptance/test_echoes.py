"""What memory has shown is not learned again as if it were news: neither from the model's mouth nor from a tool's."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path

import pytest
from builders import a_call, a_result, assistant, user

from inmind import Memory, Session
from inmind.testing import ManualClock

pytestmark = pytest.mark.spec("H6")

NOTE = "The deadline for the harbour project is the twentieth of March, says Gustav"
PAGE = "# Harbour\n\nThe yellow crane lifts forty tons and must be oiled every second Tuesday.\n"


@pytest.fixture
def memory(home: Path, clock: ManualClock) -> Generator[Memory]:
    with Memory.open(home, clock=clock, embedder=None) as opened:
        yield opened


def found(session: Session, query: str) -> list[str]:
    """Whose words are found that say it, without those that merely stand beside them."""
    hits = session.search(query, limit=50)
    return [hit.crystal.speaker or hit.crystal.source for hit in hits if hit.parts["itself"] > 0]


def test_what_stands_in_the_prompt_and_is_repeated_is_found_once(memory: Memory) -> None:
    memory.session("before", resource="ada").note(NOTE)
    session = memory.session("now", resource="ada")
    session.prepare([user("When is it due?")])
    session.record(assistant("The deadline for the harbour project is the twentieth of March, says Gustav."))
    assert found(session, "deadline harbour project March Gustav") == ["memory"]


def test_what_a_search_has_shown_and_is_repeated_is_found_once(memory: Memory) -> None:
    memory.session("before", resource="ada").add([user("The yellow crane lifts forty tons on a windless day")])
    session = memory.session("now", resource="ada")
    session.prepare([user("How strong is it?")])
    shown = session.record(a_call("c1", "memory_search", '{"query": "crane tons"}'))
    assert "forty tons" in json.dumps(shown.results)
    session.record(assistant("I looked it up: the yellow crane lifts forty tons on a windless day."))
    assert found(session, "crane forty tons windless") == ["user"]


def test_what_was_read_from_a_page_and_is_repeated_is_found_once(session: Session) -> None:
    session.write("detail/harbour.md", PAGE)
    session.prepare([user("What about it?")])
    session.record(a_call("c1", "memory_read", '{"path": "detail/harbour.md"}'))
    session.record(assistant("The yellow crane lifts forty tons and must be oiled every second Tuesday."))
    assert found(session, "crane oiled Tuesday tons") == ["memory"]


def test_a_hosts_own_tool_that_reads_the_page_back_teaches_nothing_new(session: Session) -> None:
    session.note(NOTE)
    said = [user("Read the notes, please"), a_call("c1", "read_file", '{"path": "memory/scratch.md"}')]
    session.prepare(said[:1])
    session.add(said[1:])
    session.add([a_result("c1", session.read("memory/scratch.md"))])
    assert found(session, "deadline harbour project March Gustav") == ["memory"]


def test_a_person_who_says_the_same_is_heard(memory: Memory) -> None:
    """That somebody has said it is news, whatever memory knew."""
    session = memory.session("now", resource="ada")
    session.note(NOTE)
    session.prepare([user("hello")])
    session.add([user(NOTE)])
    assert sorted(found(session, "deadline harbour project March Gustav")) == ["memory", "user"]


def test_what_a_model_adds_to_what_it_was_shown_is_found(session: Session) -> None:
    session.note(NOTE)
    session.prepare([user("hello")])
    session.record(
        assistant("Bergen's fishmongers open their stalls at six, long before any deadline matters to them.")
    )
    assert found(session, "when do fishmongers open their stalls") == ["assistant"]


def test_of_a_long_answer_only_the_part_that_repeats_is_passed_over(session: Session) -> None:
    session.note(NOTE)
    session.prepare([user("hello")])
    news = " ".join(f"Stall {n} of the fish market belongs to family number {n * 7}." for n in range(40))
    session.record(assistant(f"{news}\n\n{NOTE}.\n\n{news.replace('Stall', 'Booth')}"))
    assert found(session, "booth fish market family") == ["assistant"]


def test_words_that_another_session_was_shown_are_news_where_they_were_not(memory: Memory) -> None:
    other = memory.session("elsewhere", resource="bob")
    memory.session("now", resource="ada").note(NOTE)
    memory.session("now", resource="ada").prepare([user("hello")])
    other.prepare([user("hello")])
    other.record(assistant(NOTE))
    assert found(other, "deadline harbour project March Gustav") == ["assistant"]
