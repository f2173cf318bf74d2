"""Text that memory has shown is not indexed again from replies or tool results."""

from __future__ import annotations

import json
from collections.abc import Generator

import pytest
from builders import Home, a_call, a_result, assistant, user

from inmind import Memory, Session
from inmind.testing import ManualClock

pytestmark = [pytest.mark.spec("H6"), pytest.mark.both_stores]

NOTE = "The deadline for the harbour project is the twentieth of March, says Gustav"
PAGE = "# Harbour\n\nThe yellow crane lifts forty tons and must be oiled every second Tuesday.\n"


@pytest.fixture
def memory(home: Home, clock: ManualClock) -> Generator[Memory]:
    with Memory.open(home, clock=clock, embedder=None) as memory:
        yield memory


def speakers_of_hits(session: Session, query: str) -> list[str]:
    """Speakers of the hits that contain words of the query, without neighbours."""
    hits = session.search(query, limit=50)
    return [hit.crystal.speaker or hit.crystal.source for hit in hits if hit.parts["words"] > 0]


def test_repeated_prompt_text_is_found_once(memory: Memory) -> None:
    memory.session("before", resource="ada").note(NOTE)
    session = memory.session("now", resource="ada")
    session.prepare([user("When is it due?")])
    session.record(assistant("The deadline for the harbour project is the twentieth of March, says Gustav."))
    assert speakers_of_hits(session, "deadline harbour project March Gustav") == ["memory"]


def test_repeated_search_results_are_found_once(memory: Memory) -> None:
    memory.session("before", resource="ada").add([user("The yellow crane lifts forty tons on a windless day")])
    session = memory.session("now", resource="ada")
    session.prepare([user("How strong is it?")])
    outcome = session.record(a_call("c1", "memory_search", '{"query": "crane tons"}'))
    assert "forty tons" in json.dumps(outcome.results)
    session.record(assistant("I looked it up: the yellow crane lifts forty tons on a windless day."))
    assert speakers_of_hits(session, "crane forty tons windless") == ["user"]


def test_repeated_page_text_is_found_once(session: Session) -> None:
    session.write("detail/harbour.md", PAGE)
    session.prepare([user("What about it?")])
    session.record(a_call("c1", "memory_read", '{"path": "detail/harbour.md"}'))
    session.record(assistant("The yellow crane lifts forty tons and must be oiled every second Tuesday."))
    assert speakers_of_hits(session, "crane oiled Tuesday tons") == ["memory"]


def test_a_host_tool_that_reads_the_page_adds_nothing(session: Session) -> None:
    session.note(NOTE)
    messages = [user("Read the notes, please"), a_call("c1", "read_file", '{"path": "memory/scratch.md"}')]
    session.prepare(messages[:1])
    session.add(messages[1:])
    session.add([a_result("c1", session.read("memory/scratch.md"))])
    assert speakers_of_hits(session, "deadline harbour project March Gustav") == ["memory"]


def test_the_same_text_of_a_user_is_indexed(memory: Memory) -> None:
    """Text that a user writes is new information, even if memory has it."""
    session = memory.session("now", resource="ada")
    session.note(NOTE)
    session.prepare([user("hello")])
    session.add([user(NOTE)])
    assert sorted(speakers_of_hits(session, "deadline harbour project March Gustav")) == ["memory", "user"]


def test_additions_of_a_model_to_shown_text_are_found(session: Session) -> None:
    session.note(NOTE)
    session.prepare([user("hello")])
    session.record(
        assistant("Bergen's fishmongers open their stalls at six, long before any deadline matters to them.")
    )
    assert speakers_of_hits(session, "when do fishmongers open their stalls") == ["assistant"]


def test_only_the_repeated_part_of_a_long_answer_is_skipped(session: Session) -> None:
    session.note(NOTE)
    session.prepare([user("hello")])
    news = " ".join(f"Stall {n} of the fish market belongs to family number {n * 7}." for n in range(40))
    session.record(assistant(f"{news}\n\n{NOTE}.\n\n{news.replace('Stall', 'Booth')}"))
    assert speakers_of_hits(session, "booth fish market family") == ["assistant"]


def test_text_shown_in_another_session_is_not_an_echo_here(memory: Memory) -> None:
    other = memory.session("elsewhere", resource="bob")
    memory.session("now", resource="ada").note(NOTE)
    memory.session("now", resource="ada").prepare([user("hello")])
    other.prepare([user("hello")])
    other.record(assistant(NOTE))
    assert speakers_of_hits(other, "deadline harbour project March Gustav") == ["assistant"]


# -- corrections are not echoes ----------------------------------------------------------------------------


def test_a_correction_of_shown_text_is_found(session: Session) -> None:
    session.note("The deadline for the API is March 12")
    session.prepare([user("When is it due?")])
    session.record(assistant("The deadline for the API is April 2"))
    assert sorted(speakers_of_hits(session, "deadline API April")) == ["assistant", "memory"]


def test_a_correcting_note_is_found_in_an_anonymous_session(memory: Memory) -> None:
    session = memory.session("now")
    session.note("The deadline for the API is March 12")
    session.prepare([user("hello")])
    for text in ("The deadline for the API is April 2", "The deadline for the API is March 12"):
        note = session.note(text)
        assert memory.get(note.id).text == text
        assert note.id in [hit.crystal.id for hit in session.search("deadline API")]


def test_a_rewritten_page_is_found_in_its_new_version(session: Session) -> None:
    session.write("detail/harbour.md", PAGE)
    session.prepare([user("It is fifty tons")])
    session.record(a_call("c1", "memory_read", '{"path": "detail/harbour.md"}'))
    rewritten = {"path": "detail/harbour.md", "text": PAGE.replace("forty", "fifty")}
    session.record(a_call("c2", "memory_write", json.dumps(rewritten)))
    pages = [hit.crystal.text for hit in session.search("crane oiled") if hit.crystal.path]
    assert ["fifty" in page for page in pages] == [True]


def test_a_new_tool_result_is_found(session: Session) -> None:
    status = '{"service": "billing", "region": "eu-west-1", "status": "degraded", "queue": %d, "errors": 3}'
    session.prepare([user("How is billing?")])
    session.record(a_call("c1", "get_status", "{}"))
    session.add([a_result("c1", status % 17)])
    session.record(a_call("c2", "memory_search", '{"query": "billing status degraded queue"}'))
    session.record(a_call("c3", "get_status", '{"again": true}'))
    session.add([a_result("c3", status % 950)])
    assert any("950" in hit.passage for hit in session.search("billing queue errors"))
