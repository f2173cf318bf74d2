"""Consolidation: duplicates are merged, changed values marked, unused crystals expire."""

from __future__ import annotations

import json
from collections.abc import Generator
from datetime import UTC, datetime
from typing import Any

import pytest
from builders import Home, a_call, a_result, assistant, user
from torture import searching
from torture.harness import RunningActor, ask

from inmind import Memory, Origin, Session
from inmind.core.events.base import Draft
from inmind.core.events.crystals import Consolidated, NoteAdded
from inmind.errors import InvalidInput
from inmind.jobs.consolidation import BATCH_SIZE, Consolidation
from inmind.search.engine import SearchEngine
from inmind.search.query import Hit
from inmind.store.protocol import Batch
from inmind.testing import ManualClock

pytestmark = [pytest.mark.spec("H5"), pytest.mark.both_stores]

DAY = 86_400


@pytest.fixture
def memory(home: Home, clock: ManualClock) -> Generator[Memory]:
    with Memory.open(home, clock=clock, embedder=None) as opened:
        yield opened


def texts(hits: list[Hit]) -> list[str]:
    return [hit.crystal.text for hit in hits]


def consolidation_events(session: Session) -> list[Any]:
    events = session._store.read("resource/ada", kind="consolidated")  # pyright: ignore[reportPrivateUsage] -- no public call reads that stream
    return [event.payload for event in events]


# -- merging and superseding -------------------------------------------------------------------------------


@pytest.mark.spec("H1")
def test_duplicates_are_merged_and_name_both_sources(memory: Memory, session: Session, clock: ManualClock) -> None:
    first = session.note("User prefers tabs over spaces", kind="preference")
    session.search("tabs")
    clock.advance(seconds=DAY)
    second = session.note("The user prefers tabs over spaces.", kind="preference")
    assert len(session.search("tabs spaces")) == 2
    assert memory.resource("ada").consolidate() == Consolidation(merged=1)
    (hit,) = session.search("tabs spaces")
    other = memory.get(({first.id, second.id} - {hit.crystal.id}).pop())
    assert set(hit.crystal.sources) == {first.id, second.id}
    assert (other.merged_into, other.lifecycle) == (hit.crystal.id, "archived")
    assert memory.get(hit.crystal.id).accesses >= 3
    assert hit.crystal.importance == 0.7


def test_the_new_value_ranks_first_and_the_old_one_has_an_end(
    memory: Memory, session: Session, clock: ManualClock
) -> None:
    older = session.note("The deadline of the harbour project is March 20")
    clock.advance(seconds=10 * DAY)
    newer = session.note("The deadline of the harbour project is April 2")
    assert memory.resource("ada").consolidate() == Consolidation(superseded=1)
    assert [hit.crystal.id for hit in session.search("deadline of the harbour project")] == [newer.id, older.id]
    crystal = memory.get(older.id)
    assert (crystal.superseded_by, crystal.valid_to) == (newer.id, newer.date)
    session.prepare([user("hello")])
    (result,) = session.record(a_call("c", "memory_search", '{"query": "deadline harbour project"}')).results
    assert "until 2026-01-11" in result["content"]
    assert result["content"].index("April 2") < result["content"].index("March 20")


@pytest.mark.spec("J5")
def test_a_tool_result_does_not_supersede_a_person(memory: Memory, session: Session, clock: ManualClock) -> None:
    session.note("The deadline of the harbour project is March 20", origin=Origin.USER)
    clock.advance(seconds=DAY)
    session.note("The deadline of the harbour project is April 2", origin=Origin.WEB)
    assert memory.resource("ada").consolidate() == Consolidation()


def test_messages_are_never_merged(memory: Memory, session: Session) -> None:
    session.add([user("I prefer tabs"), assistant("Fine."), user("I prefer tabs"), user("I now prefer spaces")])
    assert memory.resource("ada").consolidate() == Consolidation()
    assert texts(session.search("which do I prefer, tabs?")).count("I prefer tabs") == 2


def test_resources_are_consolidated_separately(memory: Memory) -> None:
    for name in ("ada", "bob"):
        memory.session(name, resource=name).note("The user prefers tabs over spaces")
    assert memory.resource("ada").consolidate() == memory.resource("bob").consolidate() == Consolidation()


@pytest.mark.spec("J3")
@pytest.mark.parametrize("seconds", [-1, "1", float("nan"), True])
def test_an_invalid_time_is_rejected(memory: Memory, seconds: Any) -> None:
    for call in (
        lambda: memory.resource("ada").consolidate(seconds=seconds),
        lambda: memory.run_upkeep(seconds=seconds),
    ):
        with pytest.raises(InvalidInput, match="seconds"):
            call()


def test_of_two_notes_in_one_reply_the_second_supersedes_the_first(memory: Memory, session: Session) -> None:
    notes = ["User lives in Berlin", "User lives in Hamburg"]
    calls = [a_call(f"c{n}", "working_memory_note", json.dumps({"note": text})) for n, text in enumerate(notes)]
    session.record({**calls[0], "tool_calls": [call["tool_calls"][0] for call in calls]})
    assert memory.resource("ada").consolidate().superseded == 1
    assert texts([hit for hit in session.search("lives in") if not hit.crystal.superseded_by]) == notes[1:]


# -- expiry ------------------------------------------------------------------------------------------------


def record_tool_output(session: Session, number: int = 1) -> None:
    outputs = (
        (a_call(f"c{n}", "gauge"), a_result(f"c{n}", f"gauge {n}: the barometer stands at {900 + n}"))
        for n in range(number)
    )
    session.add([message for output in outputs for message in output])


@pytest.mark.spec("H2", "H7")
def test_only_tool_results_expire(memory: Memory, session: Session, clock: ManualClock) -> None:
    record_tool_output(session)
    session.add([user("The barometer is broken")])
    session.note("Barometers lie", importance=0.2)
    then = clock().date()
    assert len(session.search("barometer", limit=50)) >= 3
    clock.advance(seconds=60 * DAY)
    assert memory.resource("ada").consolidate().expired >= 1
    remaining = texts(session.search("barometer", limit=50))
    assert "The barometer is broken" in remaining
    assert "Barometers lie" in remaining
    assert not any("stands at" in text for text in remaining)
    result = next(event for event in session.events() if "stands at" in str(event.payload))
    crystal = memory.get(result.id)
    assert (crystal.lifecycle, "stands at 900" in crystal.text) == ("expired", True)
    assert any("stands at" in text for text in texts(memory.search("barometer", as_of=then)))


@pytest.mark.spec("H2")
def test_accessed_crystals_expire_later(memory: Memory, session: Session, clock: ManualClock) -> None:
    record_tool_output(session)
    clock.advance(seconds=50 * DAY)
    session.search("what did the barometer gauge say")
    clock.advance(seconds=10 * DAY)
    memory.resource("ada").consolidate()
    assert any("stands at" in text for text in texts(session.search("barometer")))


@pytest.mark.spec("H2", "A6")
def test_a_pinned_crystal_never_expires_until_it_is_unpinned(
    memory: Memory, session: Session, clock: ManualClock
) -> None:
    note = session.note("The barometer was a gift", importance=0.0)
    assert memory.pin(note.id, key="k").lifecycle == memory.pin(note.id, key="k").lifecycle == "frozen"
    clock.advance(seconds=400 * DAY)
    assert memory.resource("ada").consolidate() == Consolidation()
    assert texts(session.search("barometer")) == ["The barometer was a gift"]
    assert memory.unpin(note.id).lifecycle == "consolidated"
    clock.advance(seconds=400 * DAY)
    assert memory.resource("ada").consolidate() == Consolidation(expired=1)
    assert session.search("barometer") == []
    assert memory.pin(note.id).lifecycle == "frozen"
    assert texts(session.search("barometer")) == ["The barometer was a gift"]


@pytest.mark.spec("H2")
def test_a_crystal_of_an_anonymous_session_can_be_pinned(memory: Memory) -> None:
    session = memory.session("mine")
    note = session.note("The barometer was a gift")
    assert memory.pin(note.id).lifecycle == "frozen"
    assert session.search("barometer")[0].crystal.lifecycle == "frozen"


# -- as of a day -------------------------------------------------------------------------------------------


@pytest.mark.spec("H7")
def test_as_of_returns_what_was_known_then(memory: Memory, session: Session, clock: ManualClock) -> None:
    session.note("The deadline of the harbour project is March 20")
    clock.advance(seconds=10 * DAY)
    session.note("The deadline of the harbour project is April 2")
    memory.resource("ada").consolidate()
    query = "deadline of the harbour project"
    assert session.search(query, as_of="2025-12-31") == []
    assert texts(session.search(query, as_of="2026-01-05")) == ["The deadline of the harbour project is March 20"]
    assert texts(session.search(query, as_of="2026-01-20")) == ["The deadline of the harbour project is April 2"]
    moment = datetime(2026, 1, 1, 12, tzinfo=UTC)
    (hit,) = memory.search(query, as_of=moment)
    assert hit.crystal.text == "The deadline of the harbour project is March 20"
    assert (hit.crystal.valid_to, hit.crystal.superseded_by) == (None, "")


@pytest.mark.spec("H7")
@pytest.mark.parametrize("declared", ["2026-03-20", None])
def test_as_of_shows_the_end_known_then(
    memory: Memory, session: Session, clock: ManualClock, declared: str | None
) -> None:
    session.note("The deadline of the harbour project is March 20", valid_to=declared)
    clock.advance(seconds=5 * DAY)
    newer = session.note("The deadline of the harbour project is April 2", valid_from="2026-01-11")
    clock.advance(seconds=10 * DAY)
    memory.resource("ada").consolidate()
    end = datetime(2026, 3, 20, tzinfo=UTC) if declared else None
    (then,) = memory.search("deadline of the harbour project", as_of="2026-01-02")
    assert (then.crystal.valid_to, then.crystal.superseded_by) == (end, "")
    (later,) = memory.search("deadline of the harbour project", as_of="2026-01-08")
    assert (later.crystal.text, later.crystal.superseded_by) == (then.crystal.text, newer.id)
    assert later.crystal.valid_to == (end or datetime(2026, 1, 11, tzinfo=UTC))


@pytest.mark.spec("H7")
def test_as_of_returns_what_was_valid_then(session: Session) -> None:
    session.note("Gustav is on leave", valid_from="2026-03-01", valid_to="2026-03-14")
    assert session.search("Gustav leave", as_of="2026-02-20") == []
    assert session.search("Gustav leave", as_of="2026-03-10")
    assert session.search("Gustav leave", as_of="2026-03-20") == []
    assert session.search("Gustav leave")


@pytest.mark.spec("H7")
def test_as_of_returns_text_that_was_retracted_later(session: Session, clock: ManualClock) -> None:
    session.write("detail/harbour.md", "The crane is yellow.\n")
    session.add([user("The derrick is rusty")])
    clock.advance(seconds=10 * DAY)
    session.undo()
    session.write("detail/harbour.md", "The crane is blue.\n")
    assert [text.strip() for text in texts(session.search("crane"))] == ["The crane is blue."]
    assert session.search("derrick") == []
    assert [text.strip() for text in texts(session.search("crane", as_of="2026-01-05"))] == ["The crane is yellow."]
    assert texts(session.search("derrick", as_of="2026-01-05"))[0] == "The derrick is rusty"
    assert [text.strip() for text in texts(session.search("crane", as_of="2026-01-12"))] == ["The crane is blue."]


# -- batches -----------------------------------------------------------------------------------------------


def test_a_second_pass_finds_nothing_to_do_and_writes_nothing(
    memory: Memory, session: Session, clock: ManualClock
) -> None:
    for text in ("User prefers tabs over spaces", "The user prefers tabs over spaces."):
        session.note(text)
    record_tool_output(session)
    clock.advance(seconds=60 * DAY)
    first = memory.resource("ada").consolidate()
    assert first.finished
    assert first.merged == 1
    written = consolidation_events(session)
    assert memory.resource("ada").consolidate() == Consolidation()
    assert consolidation_events(session) == written


def test_a_pass_stops_in_time_and_the_next_one_continues(memory: Memory, session: Session, clock: ManualClock) -> None:
    number = BATCH_SIZE + 50
    record_tool_output(session, number)
    clock.advance(seconds=60 * DAY)
    first = memory.resource("ada").consolidate(seconds=0)
    assert (first.finished, 0 < first.expired <= BATCH_SIZE) == (False, True)
    done = [first]
    while not done[-1].finished:
        done.append(memory.resource("ada").consolidate(seconds=0))
    assert sum(one.expired for one in done) == number
    assert session.search("barometer") == []


def take_notes(memory: Memory, texts: list[str]) -> None:
    drafts = [Draft(payload=NoteAdded(text), origin=Origin.USER) for text in texts]
    store = memory._context.store  # pyright: ignore[reportPrivateUsage] -- more notes at once than a session takes
    store.append(Batch("resource/ada", drafts, store.version("resource/ada")), at=datetime(2026, 1, 1, tzinfo=UTC))


def count_note_reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that records each resource whose notes are read."""
    read: list[str] = []
    written = SearchEngine.written_crystals

    def counted(engine: SearchEngine, resource: str) -> Any:
        read.append(resource)
        return written(engine, resource)

    monkeypatch.setattr(SearchEngine, "written_crystals", counted)
    return read


def test_notes_are_read_once_and_consolidated_a_few_at_a_time(
    memory: Memory, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_notes(memory, ["User prefers tabs over spaces"] * (2 * BATCH_SIZE + 51))
    read = count_note_reads(monkeypatch)
    assert memory.resource("ada").consolidate() == Consolidation(merged=2 * BATCH_SIZE + 50)
    assert read == ["ada"]
    assert [len(batch.merged) for batch in consolidation_events(session)] == [BATCH_SIZE, BATCH_SIZE, 50]
    assert [bool(batch.last_crystal) for batch in consolidation_events(session)] == [True, True, False]
    assert len(session.search("tabs spaces")) == 1


def test_remaining_notes_are_consolidated_next_time(memory: Memory, session: Session, clock: ManualClock) -> None:
    take_notes(memory, ["User prefers tabs over spaces"] * (BATCH_SIZE + 51))
    record_tool_output(session)
    clock.advance(seconds=60 * DAY)
    done = [memory.resource("ada").consolidate(seconds=0)]
    assert done == [Consolidation(merged=BATCH_SIZE, finished=False)]
    while not done[-1].finished:
        done.append(memory.resource("ada").consolidate(seconds=0))
    assert (sum(one.merged for one in done), sum(one.expired for one in done)) == (BATCH_SIZE + 50, 1)
    assert memory.resource("ada").consolidate() == Consolidation()


def test_a_pass_without_changes_writes_nothing(memory: Memory, session: Session) -> None:
    record_tool_output(session, BATCH_SIZE + 50)
    assert memory.resource("ada").consolidate() == Consolidation()
    assert consolidation_events(session) == []


def test_a_pass_without_changes_is_continued_where_it_stopped(memory: Memory, session: Session) -> None:
    record_tool_output(session, 2 * BATCH_SIZE + 50)
    passes = [memory.resource("ada").consolidate(seconds=0).finished for _ in range(3)]
    assert passes == [False, False, True]
    assert [bool(batch.last_crystal) for batch in consolidation_events(session)] == [True, True, False]


@pytest.mark.spec("J1")
def test_a_pass_killed_between_two_batches_is_resumed(home: Home) -> None:
    number = BATCH_SIZE + 50
    clock = ManualClock()
    with Memory.open(home, clock=clock, embedder=None) as memory:
        record_tool_output(memory.session("s", resource="ada", cwd="/w"), number)
    killed = RunningActor(searching.consolidate_once_and_wait, home=str(home), days=60)
    (first,) = killed.receive_until("batch")
    killed.kill()
    assert killed.finish().killed, "the process ended before it was killed"
    rest = ask(searching.consolidate, home=str(home), days=60)
    assert (first + rest["expired"], rest["finished"]) == (number, True)
    assert ask(searching.consolidate, home=str(home), days=60)["expired"] == 0


@pytest.mark.spec("J2")
def test_two_concurrent_equal_plans_merge_once(memory: Memory, session: Session) -> None:
    """The accesses of both crystals are counted once for the remaining one."""
    for text in ("User prefers tabs over spaces", "The user prefers tabs over spaces."):
        session.note(text)
        session.search("tabs", limit=1)
    memory.resource("ada").consolidate()
    (merged,) = consolidation_events(session)
    store = memory._context.store  # pyright: ignore[reportPrivateUsage] -- another process decided before it saw the merge
    again = Draft(payload=merged, origin=Origin.OPERATOR)
    store.append(Batch("resource/ada", [again], store.version("resource/ada")), at=session.events()[0].at)
    (hit,) = memory.search("tabs spaces")
    assert (hit.crystal.accesses, len(hit.crystal.sources)) == (2, 2)


@pytest.mark.spec("J2")
def test_of_two_conflicting_plans_the_first_wins(memory: Memory, session: Session) -> None:
    first, second = (session.note(text) for text in ("User prefers tabs over spaces", "user prefers tabs over spaces."))
    store = memory._context.store  # pyright: ignore[reportPrivateUsage] -- two processes that have not seen each other
    passes = [Consolidated("", merged=((second.id, first.id),)), Consolidated("", merged=((first.id, second.id),))]
    for payload in passes:
        draft = Draft(payload=payload, origin=Origin.OPERATOR)
        store.append(Batch("resource/ada", [draft], store.version("resource/ada")), at=first.date)
    assert [hit.crystal.id for hit in session.search("tabs spaces")] == [first.id]
    assert memory.get(second.id).merged_into == first.id


@pytest.mark.spec("H4")
def test_upkeep_consolidates_what_is_due_every_half_hour(memory: Memory, session: Session, clock: ManualClock) -> None:
    for text in ("User prefers tabs over spaces", "The user prefers tabs over spaces."):
        session.note(text)
    memory.run_upkeep()
    assert len(consolidation_events(session)) == 1
    session.note("User prefers tabs over spaces!")
    clock.advance(seconds=29 * 60)
    memory.run_upkeep()
    assert len(consolidation_events(session)) == 1
    clock.advance(seconds=60)
    memory.run_upkeep()
    assert len(consolidation_events(session)) == 2


@pytest.mark.spec("H4")
def test_upkeep_does_not_repeat_a_pass_that_found_nothing(
    memory: Memory, session: Session, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.note("User prefers tabs over spaces")
    read = count_note_reads(monkeypatch)
    for _ in range(3):
        memory.run_upkeep()
        clock.advance(seconds=10 * 60 - 1)
    assert read == ["ada"]
    clock.advance(seconds=3)
    memory.run_upkeep()
    assert read == ["ada", "ada"]
