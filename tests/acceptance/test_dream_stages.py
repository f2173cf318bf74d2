"""A killed dream is finished by the next process, which uses the answers that were paid for."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from dream_checks import (
    account_for_notes,
    check_dream_order,
    check_files,
    events_of,
    folder_of,
    text_of,
    without_header,
)
from torture import stages
from torture.harness import TIMEOUT_SECONDS, RunningActor, ask, run, start_all
from torture.stages import COST, LATER, NOON, NOTES, PaidModel

from inmind import Memory
from inmind.core.events.dreams import DreamResumed
from inmind.documents.document import MEMORY_PAGE_PATH, NOTES_PAGE_PATH
from inmind.dreams.state import LEASE_DURATION, MAX_RESUME_AGE
from inmind.errors import DreamRunning
from inmind.testing import ManualClock

UNPAID = ("gather", "propose")
"""Phases that start before the model is called."""

PAID = ("check", "commit")


@pytest.fixture(scope="module")
def template_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("stages") / "home"
    ask(stages.begin, home=str(home))
    return home


@pytest.fixture(scope="module")
def undisturbed_dream(template_home: Path) -> dict[str, Any]:
    folder = template_home.parent / "undisturbed"
    return ask(stages.dream, home=copy_home(template_home, folder), calls=str(folder / "calls"))


@pytest.fixture
def home(template_home: Path, tmp_path: Path) -> str:
    return copy_home(template_home, tmp_path)


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    """A file with one line per model call of any process."""
    return tmp_path / "calls"


def copy_home(template_home: Path, folder: Path) -> str:
    return str(shutil.copytree(template_home, folder / "home"))


def call_count(calls: Path) -> int:
    return len(calls.read_text().splitlines()) if calls.exists() else 0


def kill_in_phase(home: str, calls: Path, phase: str, key: str | None = None, *, minutes: int = 0) -> None:
    given: dict[str, Any] = {"home": home, "calls": str(calls), "phase": phase, "key": key, "minutes": minutes}
    ended = run(stages.stop_in_phase, how="SIGKILL", **given)
    assert (ended.killed, ended.all("ending")) == (True, [[phase]]), ended.output


def open_memory(home: str, calls: Path, clock: ManualClock | None = None) -> Memory:
    return Memory.open(home, clock=clock or ManualClock(LATER), embedder=None, model=PaidModel(str(calls)))


@pytest.fixture
def memory_after(home: str, calls: Path) -> Iterator[Callable[[str], Memory]]:
    """Open a memory whose dream was killed in a phase and whose lease has expired."""
    memories: list[Memory] = []

    def kill_and_open(phase: str) -> Memory:
        kill_in_phase(home, calls, phase)
        memories.append(open_memory(home, calls))
        return memories[0]

    yield kill_and_open
    for memory in memories:
        memory.close()


# -- killed ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [None, pytest.param("tonight", marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("phase", [*UNPAID, *PAID])
@pytest.mark.spec("G7", "J1", "J9", "K20", "K22")
def test_a_dream_killed_in_a_phase_is_finished_with_one_model_call(
    home: str, calls: Path, undisturbed_dream: dict[str, Any], phase: str, key: str | None
) -> None:
    kill_in_phase(home, calls, phase, key)
    assert call_count(calls) == (phase in PAID)
    with open_memory(home, calls) as memory:
        running = memory.resource("ada").state.dreams.running
        assert running is not None
        assert (running.phase, running.dream, len(running.holder)) == (
            "propose" if phase in PAID else "gather",
            undisturbed_dream["dream"],
            16,
        )
        assert (running.started_at, running.lease_until) == (NOON, NOON + LEASE_DURATION)
    result = ask(stages.dream, home=home, calls=str(calls), key=key, later=True)
    assert call_count(calls) == 1
    pages = result.pop("page"), undisturbed_dream["page"]
    assert without_header(pages[0]) == without_header(pages[1])
    assert (pages[0] == pages[1]) == (phase in PAID), "the header has the time of the proposal"
    expected = {**undisturbed_dream, "taken": 1, "version": undisturbed_dream["version"] + 1}
    assert result == {name: value for name, value in expected.items() if name != "page"}


@pytest.mark.spec("G7", "J9")
def test_the_key_of_a_dream_killed_after_its_commit_returns_that_dream(
    home: str, calls: Path, undisturbed_dream: dict[str, Any]
) -> None:
    kill_in_phase(home, calls, "index", key="tonight")
    for _ in range(2):
        assert ask(stages.dream, home=home, calls=str(calls), key="tonight", later=True) == undisturbed_dream
    assert call_count(calls) == 1
    with open_memory(home, calls) as memory:
        memory.session("shop", resource="ada", cwd="/w").read(MEMORY_PAGE_PATH)
        check_files(memory)


@pytest.mark.parametrize("phase", [*UNPAID, *PAID])
@pytest.mark.spec("G7", "K20", "K22")
def test_while_the_lease_holds_no_other_process_resumes_with_or_without_its_key(
    home: str, calls: Path, phase: str
) -> None:
    kill_in_phase(home, calls, phase, key="tonight")
    clock = ManualClock(NOON + LEASE_DURATION - timedelta(seconds=1))
    with open_memory(home, calls, clock) as memory:
        for key in ("tonight", "another", None):
            with pytest.raises(DreamRunning):
                memory.dream("ada", key=key)
        clock.advance(seconds=1)
        finished = memory.dream("ada", key="tonight")
        assert finished.status == "done"
        assert memory.dream("ada", key="tonight") == finished
        other = memory.dream("ada", key="another")
        assert (other.id > finished.id, other.notes) == (True, ())
    assert call_count(calls) == 2, "one call for each of the two dreams"


@pytest.mark.spec("G7", "J9", "K20")
def test_only_one_of_several_processes_resumes_a_dream(home: str, calls: Path) -> None:
    kill_in_phase(home, calls, "check")
    actors = [RunningActor(stages.dream_at_once, home=home, calls=str(calls)) for _ in range(3)]
    try:
        start_all(actors).resume()
    finally:
        ended = [actor.finish() for actor in actors]
    assert sorted(one.answer for one in ended) == ["DREAM_RUNNING", "DREAM_RUNNING", "done"]
    assert call_count(calls) == 1


@pytest.mark.spec("G7", "J9")
def test_a_repeatedly_killed_dream_stays_one_dream_and_is_paid_for_once(
    home: str, calls: Path, undisturbed_dream: dict[str, Any]
) -> None:
    """Like a job that is retried by workers that die."""
    ends = ("gather", "propose", "check", "check", "commit", "commit")
    for minutes, phase in enumerate(ends):
        kill_in_phase(home, calls, phase, key="job", minutes=minutes)
    with open_memory(home, calls, ManualClock(NOON + len(ends) * LEASE_DURATION)) as memory:
        assert memory.resource("ada").state.dreams.failures == 5
        dream = memory.dream("ada", key="job")
        assert (dream.id, dream.status, dream.tokens) == (undisturbed_dream["dream"], "done", COST)
        assert memory.resource("ada").state.dreams.failures == 0
        assert account_for_notes(memory).waiting == []
        check_dream_order(memory)
    assert call_count(calls) == 1


# -- killed between two answers ---------------------------------------------------------------------------------


def kill_after_answer(home: str, calls: Path, *, unusable: int, answers: int = 1) -> None:
    ended = run(stages.die_after_answer, home=home, calls=str(calls), unusable=unusable, answers=answers)
    assert (ended.killed, ended.all("ending"), call_count(calls)) == (True, [["answered"]], answers), ended.output


@pytest.mark.parametrize("place", ["home", "tenant_url"])
@pytest.mark.spec("B47", "G7", "G12", "J9")
def test_a_dream_killed_after_an_unusable_answer_asks_only_the_second_question(
    request: pytest.FixtureRequest, calls: Path, undisturbed_dream: dict[str, Any], place: str
) -> None:
    home = request.getfixturevalue(place)
    if place == "tenant_url":
        ask(stages.begin, home=home)
    kill_after_answer(home, calls, unusable=1)
    result = ask(stages.dream, home=home, calls=str(calls), later=True, unusable=1)
    assert calls.read_text().splitlines() == ["asked", "again"]
    assert (result["status"], result["by"], result["taken"], result["answers"]) == ("done", "paid", 1, 2)
    assert (result["tokens"], result["spent"]) == ([2 * COST[0], 2 * COST[1]], 2 * sum(COST))
    assert without_header(result["page"]) == without_header(undisturbed_dream["page"])


@pytest.mark.parametrize("unusable", [0, 1, 2])
@pytest.mark.spec("B47", "G7", "G12", "J9")
def test_a_dream_killed_after_its_last_answer_calls_no_model_again(
    home: str, calls: Path, undisturbed_dream: dict[str, Any], unusable: int
) -> None:
    answers = min(2, unusable + 1)
    kill_after_answer(home, calls, unusable=unusable, answers=answers)
    with Memory.open(home, clock=ManualClock(LATER), embedder=None) as memory:
        (unfinished,) = memory.resource("ada").dreams()
        assert (unfinished.status, unfinished.phase, unfinished.by) == ("abandoned", "propose", "paid")
        assert unfinished.tokens == (answers * COST[0], answers * COST[1])
        dream = memory.dream("ada")
        assert (dream.id, dream.status, dream.tokens) == (undisturbed_dream["dream"], "done", unfinished.tokens)
        assert dream.by == ("rules" if unusable == 2 else "paid")
        assert ("no usable answer" in dream.reason) == (unusable == 2)
        assert memory.resource("ada").state.dreams.tokens_on(LATER) == answers * sum(COST)
        if unusable < 2:
            assert text_of(memory, MEMORY_PAGE_PATH) == undisturbed_dream["page"]
    assert call_count(calls) == answers


@pytest.mark.spec("G7", "G12", "J9")
def test_after_an_unusable_answer_rules_are_used_if_no_model_is_configured(home: str, calls: Path) -> None:
    kill_after_answer(home, calls, unusable=1)
    with Memory.open(home, clock=ManualClock(LATER), embedder=None) as memory:
        dream = memory.dream("ada")
        assert (dream.status, dream.by, dream.tokens, len(dream.notes)) == ("done", "rules", COST, len(NOTES))
        assert "no model is configured to ask again" in dream.reason
    assert call_count(calls) == 1


# -- stopped and continued --------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", [*UNPAID, *PAID])
@pytest.mark.spec("G7", "J9", "K20")
def test_a_former_holder_changes_nothing_after_a_takeover(
    home: str, calls: Path, undisturbed_dream: dict[str, Any], phase: str
) -> None:
    old = RunningActor(stages.stop_in_phase, home=home, calls=str(calls), phase=phase, how="SIGSTOP")
    try:
        old.receive_until("ending")
        wait_until_stopped(old)
        result = ask(stages.dream, home=home, calls=str(calls), later=True)
        files = contents(home)
        os.kill(old.pid, signal.SIGCONT)
        ended = old.finish()
    finally:
        old.kill()
    assert ended.answer == result, "it returns the dream that the other process finished"
    assert (result["ends"], result["taken"], result["notes"]) == (1, 1, len(NOTES))
    assert contents(home) == files
    assert without_header(result["page"]) == without_header(undisturbed_dream["page"])
    assert call_count(calls) == 1, "a holder about to call the model finds the answer of the other one"
    assert result["spent"] == sum(COST)


@pytest.mark.spec("G7", "K20")
def test_a_former_holder_changes_nothing_during_a_takeover(home: str, calls: Path) -> None:
    old = RunningActor(stages.stop_in_phase, home=home, calls=str(calls), phase="check", how="SIGSTOP")
    other = RunningActor(stages.dream_at_once, home=home, calls=str(calls))
    try:
        old.receive_until("ending")
        wait_until_stopped(old)
        other.receive_until("waiting")
        other.resume()
        other.receive_until("waiting")  # during its dream
        os.kill(old.pid, signal.SIGCONT)
        ended = old.finish()
        other.resume()
    finally:
        old.kill()
        finished = other.finish()
    assert (ended.answer["status"], ended.answer["ends"]) == ("abandoned", 0), "by its own clock, which was stopped"
    assert finished.answer == "done"
    with open_memory(home, calls) as memory:
        check_dream_order(memory)
        assert [dream.status for dream in memory.resource("ada").dreams()] == ["done"]
    assert call_count(calls) == 1


def wait_until_stopped(actor: RunningActor) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while Path(f"/proc/{actor.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        assert time.monotonic() < deadline, "the process never stopped"
        time.sleep(0.001)


def contents(home: str) -> dict[str, str]:
    return {path: (folder_of(home) / path).read_text("utf-8") for path in (MEMORY_PAGE_PATH, NOTES_PAGE_PATH)}


# -- changes before a dream is resumed ----------------------------------------------------------------------------


@pytest.mark.spec("G7", "J9")
def test_a_later_note_stays_pending_when_a_proposal_is_resumed(memory_after: Callable[[str], Memory]) -> None:
    memory = memory_after("check")
    late = memory.session("shop", resource="ada", cwd="/w").note("The late note is of 9 May").id
    dream = memory.dream("ada")
    assert (len(dream.notes), dream.inputs and dream.inputs["rebased"]) == (len(NOTES), True)
    assert account_for_notes(memory).waiting == [late]
    assert memory.dream("ada").notes == (late,)


@pytest.mark.spec("G7", "J9")
def test_a_resumed_dream_without_other_events_is_not_rebased(memory_after: Callable[[str], Memory]) -> None:
    dream = memory_after("commit").dream("ada")
    assert dream.inputs is not None
    assert dream.inputs["rebased"] is False


@pytest.mark.spec("A5", "G7", "J9")
def test_later_text_on_the_notes_page_is_not_used_for_an_old_proposal(home: str, calls: Path) -> None:
    """Typed text without an event is identified by its position, which has changed."""
    notes = folder_of(home) / NOTES_PAGE_PATH
    notes.write_text(f"{notes.read_text('utf-8')}\nThe dog of Ben is called Blaise, and Pascal is a cat.\n", "utf-8")
    kill_in_phase(home, calls, "check")
    text = notes.read_text("utf-8")
    notes.write_text(f"Budgie Babbage bites.\n\n{text.replace('Blaise', 'Bernoulli')}", "utf-8")
    with open_memory(home, calls) as memory:
        dream = memory.dream("ada")
        assert (dream.id > 0, dream.status, call_count(calls)) == (True, "done", 1)
        check_lines_match_sources(memory)
        assert memory.dream("ada").status == "done"
        page = text_of(memory, MEMORY_PAGE_PATH)
        assert "Budgie Babbage bites." in page
        assert "Bernoulli" in page
        assert account_for_notes(memory).waiting == []
        check_lines_match_sources(memory)


def check_lines_match_sources(memory: Memory) -> None:
    for line in memory.resource("ada").state.dreams.lines.values():
        sources = " ".join(memory.get(source).text for source in line.sources)
        assert names(line.text) <= names(sources), (line, sources)


def names(text: str) -> set[str]:
    return {name for name in ("Pascal", "Blaise", "Bernoulli", "Budgie", "Babbage", "Ada", "Ben") if name in text}


@pytest.mark.spec("G7", "G13", "J9")
def test_an_unfinished_dream_that_is_cancelled_was_paid_for_once(
    memory_after: Callable[[str], Memory], calls: Path
) -> None:
    memory = memory_after("check")
    (dream,) = memory.resource("ada").dreams()
    assert (dream.status, dream.phase, dream.by, dream.tokens) == ("abandoned", "propose", "paid", COST)
    assert memory.resource("ada").cancel_dream()
    (dream,) = memory.resource("ada").dreams()
    assert (dream.status, dream.phase, dream.tokens) == ("failed", "propose", COST)
    assert memory.resource("ada").state.dreams.tokens_on(LATER) == sum(COST)
    assert memory.dream("ada").id > dream.id
    assert call_count(calls) == 2
    assert memory.resource("ada").state.dreams.tokens_on(LATER) == 2 * sum(COST)


@pytest.mark.spec("G7", "J9")
def test_a_resumed_and_cancelled_dream_was_paid_for_once(memory_after: Callable[[str], Memory]) -> None:
    memory = memory_after("check")
    stopped: list[str] = []

    def watch(phase: str, _: str) -> None:
        stopped.append(phase)

    dream = memory.dream("ada", watch=watch, cancelled=lambda: "commit" in stopped)
    assert (dream.status, dream.phase, dream.tokens) == ("failed", "commit", COST)
    assert memory.resource("ada").state.dreams.tokens_on(LATER) == sum(COST)
    assert len(account_for_notes(memory).waiting) == len(NOTES)


@pytest.mark.spec("G7", "G13", "J9")
def test_a_dream_based_on_an_undone_one_is_not_resumed(home: str, calls: Path) -> None:
    first = ask(stages.dream, home=home, calls=str(calls))
    kill_in_phase(home, calls, "check")
    with open_memory(home, calls) as memory:
        assert memory.resource("ada").undo_dream().id == first["dream"]
        (unfinished, _) = memory.resource("ada").dreams()
        assert (unfinished.status, unfinished.reason) == (
            "failed",
            f"dream {first['dream']}, on which it is based, was undone",
        )
        again = memory.dream("ada")
        assert (again.id > unfinished.id, len(again.notes)) == (True, len(NOTES))
        check_dream_order(memory)
    assert call_count(calls) == 3


# -- dreams that are not resumed, or from an earlier stage --------------------------------------------------------


@pytest.mark.spec("G7", "J9", "K22")
def test_a_day_old_proposal_is_abandoned_and_its_cost_counts(home: str, calls: Path) -> None:
    kill_in_phase(home, calls, "check")
    with open_memory(home, calls, ManualClock(NOON + MAX_RESUME_AGE)) as memory:
        created = memory.dream("ada")
        (dream, unfinished) = memory.resource("ada").dreams()
        assert (dream, unfinished.status, unfinished.tokens) == (created, "abandoned", COST)
        assert memory.resource("ada").state.dreams.tokens_on(NOON + MAX_RESUME_AGE) == sum(COST)
    assert call_count(calls) == 2


@pytest.mark.spec("G7", "J9")
def test_its_key_resumes_a_dream_of_any_age_and_gathers_old_input_again(home: str, calls: Path) -> None:
    kill_in_phase(home, calls, "check", key="tonight")
    clock = ManualClock(NOON + MAX_RESUME_AGE)
    with open_memory(home, calls, clock) as memory:
        late = memory.session("shop", resource="ada", cwd="/w").note("The late note is of 9 May").id
        (unfinished,) = memory.resource("ada").dreams()
        dream = memory.dream("ada", key="tonight")
        assert (dream.id, dream.status, late in dream.notes) == (unfinished.id, "done", True)
        assert dream.tokens == (2 * COST[0], 2 * COST[1]), "the cost of both calls"
        assert memory.resource("ada").state.dreams.tokens_on(clock.now) == sum(COST), "only the cost of that day"
    assert call_count(calls) == 2


# -- journals of earlier versions, with an event for each stage ---------------------------------------------------

OLD_JOURNALS = Path(__file__).parents[1] / "fixtures" / "dreams_with_stages"
"""Bundles with a done dream, an undone one, and one that stopped after the stage of their name. Never regenerated."""


@pytest.fixture(params=["gathered", "proposed", "checked"])
def old_stage(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def old_memory(tmp_path: Path, calls: Path, old_stage: str) -> Iterator[Memory]:
    clock = ManualClock(NOON + timedelta(minutes=2) + LEASE_DURATION)
    with open_memory(str(tmp_path / "old"), calls, clock) as memory:
        memory.import_bundle(OLD_JOURNALS / f"{old_stage}.inmind")
        yield memory


@pytest.mark.spec("G7", "G13", "M37")
def test_an_old_unfinished_dream_is_listed_and_resumed_with_its_answer(
    old_memory: Memory, calls: Path, old_stage: str
) -> None:
    ada = old_memory.resource("ada")
    unfinished, undone, done = ada.dreams()
    phase = {"gathered": "propose", "proposed": "check", "checked": "commit"}[old_stage]
    assert (unfinished.status, unfinished.phase, unfinished.by) == ("abandoned", phase, "paid")
    assert unfinished.tokens == ((0, 0) if old_stage == "gathered" else COST)
    assert (undone.status, done.status, "Ada prefers tabs" in done.diff) == ("undone", "done", True)
    assert [ada.get_dream(dream.id) for dream in ada.dreams()] == ada.dreams()
    dream = old_memory.dream("ada")
    assert (dream.id, dream.status, dream.by, dream.tokens) == (unfinished.id, "done", "paid", COST)
    assert len(dream.notes) == 2
    assert call_count(calls) == (old_stage == "gathered"), "a paid answer is used again"
    assert old_memory.resource("ada").state.dreams.tokens_on(NOON) == 3 * sum(COST)
    account_for_notes(old_memory)
    check_dream_order(old_memory)
    written = {event.kind for event in events_of(old_memory)[unfinished.id :] if event.at > NOON + LEASE_DURATION * 3}
    assert written.isdisjoint({"dream_gathered", "dream_proposed", "dream_checked"})


@pytest.mark.spec("G7", "G13", "M37")
def test_an_old_dream_is_undone_and_moved(old_memory: Memory, calls: Path, tmp_path: Path) -> None:
    done = old_memory.resource("ada").dreams()[-1]
    undone = old_memory.resource("ada").undo_dream()
    assert (undone.id, undone.status) == (done.id, "undone")
    old_memory.export(tmp_path / "moved.inmind")
    with open_memory(str(tmp_path / "new"), calls, ManualClock(NOON + timedelta(hours=1))) as memory:
        memory.import_bundle(tmp_path / "moved.inmind")
        assert [dream.status for dream in memory.resource("ada").dreams()] == ["failed", "undone", "undone"]
        assert len(memory.dream("ada").notes) == len(NOTES)


# -- other homes and databases ------------------------------------------------------------------------------------


@pytest.mark.spec("G7", "J9", "M40")
def test_an_unfinished_dream_is_resumed_in_another_home(
    memory_after: Callable[[str], Memory], calls: Path, tmp_path: Path, undisturbed_dream: dict[str, Any]
) -> None:
    memory_after("check").export(tmp_path / "moved.inmind")
    with open_memory(str(tmp_path / "other"), calls) as memory:
        memory.session("before", resource="ben").note("Something else came first")
        memory.import_bundle(tmp_path / "moved.inmind")
        dream = memory.dream("ada")
        assert (dream.id, dream.status) == (undisturbed_dream["dream"], "done")
        assert text_of(memory, MEMORY_PAGE_PATH) == undisturbed_dream["page"]
        assert account_for_notes(memory).waiting == []
    assert call_count(calls) == 1


@pytest.mark.parametrize("phase", [*UNPAID, *PAID, "index"])
@pytest.mark.spec("G7", "J9", "K20")
def test_a_killed_dream_in_a_database_is_finished_with_one_model_call(
    tenant_url: str, calls: Path, undisturbed_dream: dict[str, Any], phase: str
) -> None:
    ask(stages.begin, home=tenant_url)
    kill_in_phase(tenant_url, calls, phase, key="job")
    result = ask(stages.dream, home=tenant_url, calls=str(calls), key="job", later=True)
    assert call_count(calls) == 1
    assert (result["status"], result["ends"], result["spent"]) == ("done", 1, sum(COST))
    assert without_header(result["page"]) == without_header(undisturbed_dream["page"])


@pytest.mark.spec("G7", "M40")
def test_a_dream_with_control_characters_can_be_exported_and_imported(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "here", embedder=None) as memory:
        messages = [{"role": "user", "content": "I prefer tea \x00 over any coffee"}]
        memory.session("shop", resource="ada", cwd="/w").add(messages)
        assert "I prefer tea" in memory.dream("ada").after
        memory.export(tmp_path / "moved.inmind")
    with Memory.open(tmp_path / "there", embedder=None) as memory:
        assert memory.import_bundle(tmp_path / "moved.inmind").resources == 1


@pytest.mark.spec("G3", "J9")
def test_upkeep_resumes_an_unfinished_dream_without_waiting(memory_after: Callable[[str], Memory], calls: Path) -> None:
    memory = memory_after("check")
    clock = memory._context.clock  # pyright: ignore[reportPrivateUsage]
    assert isinstance(clock, ManualClock)
    assert memory.run_upkeep().dreams == (), "upkeep dreams only after five minutes of uptime"
    clock.advance(seconds=300)
    (dream,) = memory.run_upkeep().dreams
    assert (dream.status, dream.trigger, dream.by) == ("done", "asked", "paid")
    assert any(isinstance(event.payload, DreamResumed) for event in events_of(memory))
    assert call_count(calls) == 1
