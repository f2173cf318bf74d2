"""Each stage of a dream is in the journal: the process may die after any of them, and the next one resumes there."""

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
from dream_checks import accounted, events_of, folder_of, in_order, shown, text_of, without_header
from torture import stages
from torture.harness import SECONDS, RunningActor, ask, run
from torture.stages import COST, LATER, NOON, NOTES, PaidModel

from inmind import Memory
from inmind.core.events.base import Draft, EventPayload, Origin
from inmind.core.events.dreams import DreamGathered, DreamProposed, DreamResumed, DreamStarted
from inmind.documents.document import MEMORY_PAGE_PATH, NOTES_PAGE_PATH
from inmind.dreams.state import LEASE_DURATION, MAX_RESUME_AGE
from inmind.errors import DreamRunning
from inmind.testing import ManualClock

UNPAID = ("begun", "gathered")
PAID = ("proposed", "checked")


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("stages") / "home"
    ask(stages.begin, home=str(home))
    return home


@pytest.fixture(scope="module")
def undisturbed(begun: Path) -> dict[str, Any]:
    folder = begun.parent / "undisturbed"
    return ask(stages.dream, home=copied(begun, folder), calls=str(folder / "calls"))


@pytest.fixture
def home(begun: Path, tmp_path: Path) -> str:
    return copied(begun, tmp_path)


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    """A line for each time that the model was asked, by whomever."""
    return tmp_path / "calls"


def copied(begun: Path, folder: Path) -> str:
    return str(shutil.copytree(begun, folder / "home"))


def asked(calls: Path) -> int:
    return len(calls.read_text().splitlines()) if calls.exists() else 0


def killed(home: str, calls: Path, stage: str, key: str | None = None, *, minutes: int = 0) -> None:
    given: dict[str, Any] = {"home": home, "calls": str(calls), "stage": stage, "key": key, "minutes": minutes}
    ended = run(stages.end_behind, how="SIGKILL", **given)
    assert (ended.killed, ended.all("ending")) == (True, [[stage]]), ended.output


def opened(home: str, calls: Path, clock: ManualClock | None = None) -> Memory:
    return Memory.open(home, clock=clock or ManualClock(LATER), embedder=None, model=PaidModel(str(calls)))


@pytest.fixture
def left(home: str, calls: Path) -> Iterator[Callable[[str], Memory]]:
    """A memory in which a dream has died behind a stage, as somebody finds it when nobody holds that any more."""
    memories: list[Memory] = []

    def died(stage: str) -> Memory:
        killed(home, calls, stage)
        memories.append(opened(home, calls))
        return memories[0]

    yield died
    for memory in memories:
        memory.close()


# -- killed ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [None, pytest.param("tonight", marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("stage", [*UNPAID, *PAID])
@pytest.mark.spec("G7", "J1", "J9", "K20", "K22")
def test_a_dream_killed_behind_a_stage_is_finished_by_the_next_and_the_model_is_asked_once(
    home: str, calls: Path, undisturbed: dict[str, Any], stage: str, key: str | None
) -> None:
    killed(home, calls, stage, key)
    assert asked(calls) == (stage in PAID)
    with opened(home, calls) as memory:
        running = memory.resource("ada").state.dreams.running
        assert running is not None
        assert (running.stage, running.dream, len(running.holder)) == (stage, undisturbed["dream"], 16)
        assert (running.started_at, running.lease_until) == (NOON, NOON + LEASE_DURATION)
    found = ask(stages.dream, home=home, calls=str(calls), key=key, later=True)
    assert asked(calls) == 1
    pages = found.pop("page"), undisturbed["page"]
    assert without_header(pages[0]) == without_header(pages[1])
    assert (pages[0] == pages[1]) == (stage in PAID), "by the time of which it was proposed"
    again = {"gathered": 1, "checked": 1}.get(stage, 0)  # told once more by whoever went on
    expected = {**undisturbed, "taken": 1, "version": undisturbed["version"] + 1 + again}
    assert found == {name: value for name, value in expected.items() if name != "page"}


@pytest.mark.spec("G7", "J9")
def test_the_key_of_a_dream_that_was_killed_behind_its_commit_answers_with_it_and_does_nothing(
    home: str, calls: Path, undisturbed: dict[str, Any]
) -> None:
    killed(home, calls, "committed", key="tonight")
    for _ in range(2):
        assert ask(stages.dream, home=home, calls=str(calls), key="tonight", later=True) == undisturbed
    assert asked(calls) == 1
    with opened(home, calls) as memory:
        memory.session("shop", resource="ada", cwd="/w").read(MEMORY_PAGE_PATH)
        shown(memory)


@pytest.mark.parametrize("stage", [*UNPAID, *PAID])
@pytest.mark.spec("G7", "K20", "K22")
def test_while_the_lease_holds_no_other_process_resumes_with_or_without_its_key(
    home: str, calls: Path, stage: str
) -> None:
    killed(home, calls, stage, key="tonight")
    clock = ManualClock(NOON + LEASE_DURATION - timedelta(seconds=1))
    with opened(home, calls, clock) as memory:
        for key in ("tonight", "another", None):
            with pytest.raises(DreamRunning):
                memory.dream("ada", key=key)
        clock.advance(seconds=1)
        finished = memory.dream("ada", key="tonight")
        assert finished.status == "done"
        assert memory.dream("ada", key="tonight") == finished
        other = memory.dream("ada", key="another")
        assert (other.id > finished.id, other.notes) == (True, ())
    assert asked(calls) == 2, "for each of the two dreams"


@pytest.mark.spec("G7", "J9", "K20")
def test_of_several_who_find_it_at_once_one_goes_on(home: str, calls: Path) -> None:
    killed(home, calls, "proposed")
    actors = [RunningActor(stages.dream_at_once, home=home, calls=str(calls)) for _ in range(3)]
    try:
        for actor in actors:
            actor.receive_until("waiting")
        for actor in actors:
            actor.resume()
        heard = [(actor, actor.receive()) for actor in actors]
        ahead = [actor for actor, words in heard if words == ["waiting"]]
        assert len(ahead) == 1, heard
        ahead[0].resume()
    finally:
        ended = [actor.finish() for actor in actors]
    assert sorted(one.answer for one in ended) == ["DREAM_RUNNING", "DREAM_RUNNING", "done"]
    assert asked(calls) == 1


@pytest.mark.spec("G7", "J9")
def test_one_that_is_killed_again_and_again_is_still_one_dream_and_paid_for_once(
    home: str, calls: Path, undisturbed: dict[str, Any]
) -> None:
    """As a job is that is tried again, each time by a worker that dies."""
    ends = ("begun", "gathered", "proposed", "proposed", "checked", "checked")
    for minutes, stage in enumerate(ends):
        killed(home, calls, stage, key="job", minutes=minutes)
    with opened(home, calls, ManualClock(NOON + len(ends) * LEASE_DURATION)) as memory:
        assert memory.resource("ada").state.dreams.failures == 5
        dream = memory.dream("ada", key="job")
        assert (dream.id, dream.status, dream.tokens) == (undisturbed["dream"], "done", COST)
        assert memory.resource("ada").state.dreams.failures == 0
        assert accounted(memory).waiting == []
        in_order(memory)
    assert asked(calls) == 1


# -- killed between two answers ---------------------------------------------------------------------------------


def killed_behind_an_answer(home: str, calls: Path, *, unusable: int, answers: int = 1) -> None:
    ended = run(stages.end_behind_an_answer, home=home, calls=str(calls), unusable=unusable, answers=answers)
    assert (ended.killed, ended.all("ending"), asked(calls)) == (True, [["answered"]], answers), ended.output


@pytest.mark.parametrize("place", ["home", "tenant_url"])
@pytest.mark.spec("B47", "G7", "G12", "J9")
def test_a_dream_killed_behind_an_answer_of_no_use_asks_the_second_question_only(
    request: pytest.FixtureRequest, calls: Path, undisturbed: dict[str, Any], place: str
) -> None:
    home = request.getfixturevalue(place)
    if place == "tenant_url":
        ask(stages.begin, home=home)
    killed_behind_an_answer(home, calls, unusable=1)
    found = ask(stages.dream, home=home, calls=str(calls), later=True, unusable=1)
    assert calls.read_text().splitlines() == ["asked", "again"]
    assert (found["status"], found["by"], found["taken"], found["proposed"]) == ("done", "paid", 1, 1)
    assert (found["tokens"], found["spent"]) == ([2 * COST[0], 2 * COST[1]], 2 * sum(COST))
    assert without_header(found["page"]) == without_header(undisturbed["page"])


@pytest.mark.parametrize("unusable", [0, 1, 2])
@pytest.mark.spec("B47", "G7", "G12", "J9")
def test_a_dream_killed_after_its_last_answer_calls_no_model_again(
    home: str, calls: Path, undisturbed: dict[str, Any], unusable: int
) -> None:
    answers = min(2, unusable + 1)
    killed_behind_an_answer(home, calls, unusable=unusable, answers=answers)
    with Memory.open(home, clock=ManualClock(LATER), embedder=None) as memory:
        (left,) = memory.resource("ada").dreams()
        assert (left.status, left.phase, left.by) == ("abandoned", "propose", "paid")
        assert left.tokens == (answers * COST[0], answers * COST[1])
        dream = memory.dream("ada")
        assert (dream.id, dream.status, dream.tokens) == (undisturbed["dream"], "done", left.tokens)
        assert dream.by == ("rules" if unusable == 2 else "paid")
        assert ("no usable answer" in dream.reason) == (unusable == 2)
        assert memory.resource("ada").state.dreams.tokens_on(LATER) == answers * sum(COST)
        if unusable < 2:
            assert text_of(memory, MEMORY_PAGE_PATH) == undisturbed["page"]
    assert asked(calls) == answers


@pytest.mark.spec("G7", "G12", "J9")
def test_an_answer_of_no_use_is_followed_by_rules_where_no_model_may_be_asked_again(home: str, calls: Path) -> None:
    killed_behind_an_answer(home, calls, unusable=1)
    with Memory.open(home, clock=ManualClock(LATER), embedder=None) as memory:
        dream = memory.dream("ada")
        assert (dream.status, dream.by, dream.tokens, len(dream.notes)) == ("done", "rules", COST, len(NOTES))
        assert "no model is configured to ask again" in dream.reason
    assert asked(calls) == 1


# -- stopped, and back again ------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", [*UNPAID, *PAID])
@pytest.mark.spec("G7", "J9", "K20")
def test_a_former_holder_changes_nothing_after_a_takeover(
    home: str, calls: Path, undisturbed: dict[str, Any], stage: str
) -> None:
    old = RunningActor(stages.end_behind, home=home, calls=str(calls), stage=stage, how="SIGSTOP")
    try:
        old.receive_until("ending")
        wait_until_stopped(old)
        found = ask(stages.dream, home=home, calls=str(calls), later=True)
        files = contents(home)
        os.kill(old.pid, signal.SIGCONT)
        ended = old.finish()
    finally:
        old.kill()
    assert ended.answer == found, "it tells of the dream as the other has finished it"
    assert (found["ends"], found["taken"], found["notes"]) == (1, 1, len(NOTES))
    assert contents(home) == files
    assert without_header(found["page"]) == without_header(undisturbed["page"])
    assert asked(calls) == (2 if stage == "gathered" else 1), "who was about to ask finds out while it does"
    assert found["spent"] == sum(COST)


@pytest.mark.spec("G7", "K20")
def test_a_former_holder_changes_nothing_during_a_takeover(home: str, calls: Path) -> None:
    old = RunningActor(stages.end_behind, home=home, calls=str(calls), stage="proposed", how="SIGSTOP")
    other = RunningActor(stages.dream_at_once, home=home, calls=str(calls))
    try:
        old.receive_until("ending")
        wait_until_stopped(old)
        other.receive_until("waiting")
        other.resume()
        other.receive_until("waiting")  # in the middle of it
        os.kill(old.pid, signal.SIGCONT)
        ended = old.finish()
        other.resume()
    finally:
        old.kill()
        finished = other.finish()
    assert (ended.answer["status"], ended.answer["ends"]) == ("abandoned", 0), "by its own clock, which stands still"
    assert finished.answer == "done"
    with opened(home, calls) as memory:
        in_order(memory)
        assert [dream.status for dream in memory.resource("ada").dreams()] == ["done"]
    assert asked(calls) == 1


def wait_until_stopped(actor: RunningActor) -> None:
    deadline = time.monotonic() + SECONDS
    while Path(f"/proc/{actor.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        assert time.monotonic() < deadline, "it never stopped"
        time.sleep(0.001)


def contents(home: str) -> dict[str, str]:
    return {path: (folder_of(home) / path).read_text("utf-8") for path in (MEMORY_PAGE_PATH, NOTES_PAGE_PATH)}


# -- what others do before somebody goes on -----------------------------------------------------------------------


@pytest.mark.spec("G7", "J9")
def test_a_later_note_stays_pending_when_a_proposal_is_resumed(left: Callable[[str], Memory]) -> None:
    memory = left("proposed")
    late = memory.session("shop", resource="ada", cwd="/w").note("The late note is of 9 May").id
    dream = memory.dream("ada")
    assert (len(dream.notes), dream.inputs and dream.inputs["rebased"]) == (len(NOTES), True)
    assert accounted(memory).waiting == [late]
    assert memory.dream("ada").notes == (late,)


@pytest.mark.spec("G7", "J9")
def test_nothing_but_its_own_stages_does_not_make_it_rebased(left: Callable[[str], Memory]) -> None:
    dream = left("checked").dream("ada")
    assert dream.inputs is not None
    assert dream.inputs["rebased"] is False


@pytest.mark.spec("A5", "G7", "J9")
def test_what_people_typed_since_is_never_taken_for_what_was_proposed(home: str, calls: Path) -> None:
    """What has no event yet goes by its place, and somebody has put something else there."""
    notes = folder_of(home) / NOTES_PAGE_PATH
    notes.write_text(f"{notes.read_text('utf-8')}\nThe dog of Ben is called Blaise, and Pascal is a cat.\n", "utf-8")
    killed(home, calls, "proposed")
    text = notes.read_text("utf-8")
    notes.write_text(f"Budgie Babbage bites.\n\n{text.replace('Blaise', 'Bernoulli')}", "utf-8")
    with opened(home, calls) as memory:
        dream = memory.dream("ada")
        assert (dream.id > 0, dream.status, asked(calls)) == (True, "done", 1)
        every_line_is_made_of_what_it_says(memory)
        assert memory.dream("ada").status == "done"
        page = text_of(memory, MEMORY_PAGE_PATH)
        assert "Budgie Babbage bites." in page
        assert "Bernoulli" in page
        assert accounted(memory).waiting == []
        every_line_is_made_of_what_it_says(memory)


def every_line_is_made_of_what_it_says(memory: Memory) -> None:
    for line in memory.resource("ada").state.dreams.lines.values():
        sources = " ".join(memory.get(source).text for source in line.sources)
        assert names(line.text) <= names(sources), (line, sources)


def names(text: str) -> set[str]:
    return {name for name in ("Pascal", "Blaise", "Bernoulli", "Budgie", "Babbage", "Ada", "Ben") if name in text}


@pytest.mark.spec("G7", "G13", "J9")
def test_one_that_is_called_off_before_anybody_goes_on_is_over_and_was_paid_for_once(
    left: Callable[[str], Memory], calls: Path
) -> None:
    memory = left("proposed")
    (dream,) = memory.resource("ada").dreams()
    assert (dream.status, dream.phase, dream.by, dream.tokens) == ("abandoned", "check", "paid", COST)
    assert memory.resource("ada").cancel_dream()
    (dream,) = memory.resource("ada").dreams()
    assert (dream.status, dream.phase, dream.tokens) == ("failed", "check", COST)
    assert memory.resource("ada").state.dreams.tokens_on(LATER) == sum(COST)
    assert memory.dream("ada").id > dream.id
    assert asked(calls) == 2
    assert memory.resource("ada").state.dreams.tokens_on(LATER) == 2 * sum(COST)


@pytest.mark.spec("G7", "J9")
def test_a_resumed_and_cancelled_dream_was_paid_for_once(left: Callable[[str], Memory]) -> None:
    memory = left("proposed")
    stopped: list[str] = []

    def watch(phase: str, _: str) -> None:
        stopped.append(phase)

    dream = memory.dream("ada", watch=watch, cancelled=lambda: "commit" in stopped)
    assert (dream.status, dream.phase, dream.tokens) == ("failed", "commit", COST)
    assert memory.resource("ada").state.dreams.tokens_on(LATER) == sum(COST)
    assert len(accounted(memory).waiting) == len(NOTES)


@pytest.mark.spec("G7", "G13", "J9")
def test_a_dream_based_on_an_undone_one_is_not_resumed(home: str, calls: Path) -> None:
    first = ask(stages.dream, home=home, calls=str(calls))
    killed(home, calls, "proposed")
    with opened(home, calls) as memory:
        assert memory.resource("ada").undo_dream().id == first["dream"]
        (left, _) = memory.resource("ada").dreams()
        assert (left.status, left.reason) == ("failed", f"dream {first['dream']}, on which it is based, was undone")
        again = memory.dream("ada")
        assert (again.id > left.id, len(again.notes)) == (True, len(NOTES))
        in_order(memory)
    assert asked(calls) == 3


# -- what is not gone on with, or not from there ------------------------------------------------------------------


@pytest.mark.spec("G7", "J9", "K22")
def test_what_was_proposed_a_day_ago_is_given_up_and_was_paid_for_all_the_same(home: str, calls: Path) -> None:
    killed(home, calls, "proposed")
    with opened(home, calls, ManualClock(NOON + MAX_RESUME_AGE)) as memory:
        made = memory.dream("ada")
        (dream, left) = memory.resource("ada").dreams()
        assert (dream, left.status, left.tokens) == (made, "abandoned", COST)
        assert memory.resource("ada").state.dreams.tokens_on(NOON + MAX_RESUME_AGE) == sum(COST)
    assert asked(calls) == 2


@pytest.mark.spec("G7", "J9")
def test_its_key_resumes_a_dream_of_any_age_and_gathers_old_input_again(home: str, calls: Path) -> None:
    killed(home, calls, "proposed", key="tonight")
    clock = ManualClock(NOON + MAX_RESUME_AGE)
    with opened(home, calls, clock) as memory:
        late = memory.session("shop", resource="ada", cwd="/w").note("The late note is of 9 May").id
        (left,) = memory.resource("ada").dreams()
        dream = memory.dream("ada", key="tonight")
        assert (dream.id, dream.status, late in dream.notes) == (left.id, "done", True)
        assert dream.tokens == (2 * COST[0], 2 * COST[1]), "all that was paid for it"
        assert memory.resource("ada").state.dreams.tokens_on(clock.now) == sum(COST), "on that day"
    assert asked(calls) == 2


@pytest.mark.spec("G7", "J9")
def test_a_proposal_that_names_what_is_not_there_is_not_believed(
    home: str, calls: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever gathered read the page of notes in another way: its places are not ours."""
    with opened(home, calls, ManualClock(NOON)) as memory:
        until, upto, at = (NOON + LEASE_DURATION).isoformat(), len(events_of(memory)), NOON.isoformat()
        dream = happened(memory, DreamStarted(trigger="asked", lease_until=until, proposer="paid", holder="other"))
        happened(
            memory,
            DreamGathered(
                dream=dream,
                lease_until=until,
                last_seq=upto,
                journal_position=0,
                as_of=at,
                user_notes_digest="of another",
            ),
        )
        happened(memory, DreamProposed(dream=dream, lease_until=until, proposer="paid", tokens=COST))
    with opened(home, calls) as memory:
        made = memory.dream("ada")
        assert (made.id, made.status, made.tokens) == (dream, "done", (2 * COST[0], 2 * COST[1]))
        assert len(made.notes) == len(NOTES)
    assert f"dream {dream} of ada: saved proposal no longer matches its inputs, starting over" in caplog.text
    assert asked(calls) == 1


def happened(memory: Memory, what: EventPayload) -> int:
    store, name = memory._context.store, "resource/ada"  # pyright: ignore[reportPrivateUsage] -- what another process left
    return store.append(name, [Draft(payload=what, origin=Origin.DREAM)], expected=store.version(name), at=NOON).last


# -- elsewhere ----------------------------------------------------------------------------------------------------


@pytest.mark.spec("G7", "J9", "M40")
def test_an_unfinished_dream_is_resumed_in_another_home(
    left: Callable[[str], Memory], calls: Path, tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    left("proposed").export(tmp_path / "moved.inmind")
    with opened(str(tmp_path / "other"), calls) as memory:
        memory.session("before", resource="ben").note("Something else came first")
        memory.import_bundle(tmp_path / "moved.inmind")
        dream = memory.dream("ada")
        assert (dream.id, dream.status) == (undisturbed["dream"], "done")
        assert text_of(memory, MEMORY_PAGE_PATH) == undisturbed["page"]
        assert accounted(memory).waiting == []
    assert asked(calls) == 1


@pytest.mark.parametrize("stage", [*UNPAID, *PAID, "committed"])
@pytest.mark.spec("G7", "J9", "K20")
def test_a_dream_in_a_database_is_finished_by_the_next_in_the_same_way(
    tenant_url: str, calls: Path, undisturbed: dict[str, Any], stage: str
) -> None:
    ask(stages.begin, home=tenant_url)
    killed(tenant_url, calls, stage, key="job")
    found = ask(stages.dream, home=tenant_url, calls=str(calls), key="job", later=True)
    assert asked(calls) == 1
    assert (found["status"], found["ends"], found["spent"]) == ("done", 1, sum(COST))
    assert without_header(found["page"]) == without_header(undisturbed["page"])


@pytest.mark.spec("G7", "M40")
def test_what_is_proposed_of_words_that_no_page_can_hold_is_taken_elsewhere_too(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "here", embedder=None) as memory:
        said = [{"role": "user", "content": "I prefer tea \x00 over any coffee"}]
        memory.session("shop", resource="ada", cwd="/w").add(said)
        assert "I prefer tea" in memory.dream("ada").after
        memory.export(tmp_path / "moved.inmind")
    with Memory.open(tmp_path / "there", embedder=None) as memory:
        assert memory.import_bundle(tmp_path / "moved.inmind").resources == 1


@pytest.mark.spec("G3", "J9")
def test_upkeep_resumes_an_unfinished_dream_without_waiting(left: Callable[[str], Memory], calls: Path) -> None:
    memory = left("proposed")
    clock = memory._context.clock  # pyright: ignore[reportPrivateUsage]
    assert isinstance(clock, ManualClock)
    assert memory.run_upkeep().dreams == (), "a process has to have been there for five minutes"
    clock.advance(seconds=300)
    (dream,) = memory.run_upkeep().dreams
    assert (dream.status, dream.trigger, dream.by) == ("done", "asked", "paid")
    assert any(isinstance(event.payload, DreamResumed) for event in events_of(memory))
    assert asked(calls) == 1
