"""A state machine of agents, users and dreams in any order: no word of any of them is lost."""

from __future__ import annotations

import contextlib
import shutil
from collections import Counter
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from dream_checks import accounted, events_of, folder_of, in_order, shown, standing, text_of, without_header
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from profiles import examples

from inmind import Memory
from inmind.core.events.crystals import CrystalCreated
from inmind.core.events.dreams import DreamCommitted, DreamProposed
from inmind.documents.document import MEMORY_PAGE_PATH, NOTES_PAGE_PATH
from inmind.documents.notes_page import parse_notes
from inmind.dreams.page.limits import MAX_PAGE_CHARACTERS
from inmind.dreams.page.sections import Section
from inmind.dreams.state import LEASE_DURATION, PHASE_AFTER
from inmind.errors import Conflict, NotFound
from inmind.jobs.dreaming.runner import PHASES
from inmind.session.state import ResourceFold
from inmind.testing import ManualClock

NOTES = st.builds(
    "{} {} {}".format,
    st.sampled_from(["Ada prefers", "Ben never uses", "The release needs", "I should avoid", "客户想要"]),
    st.sampled_from(["tabs", "spaces", "the night train", "Postgres 16"]),
    st.sampled_from(["", "since 20 March 2026", "on 3 hosts\nand on a fourth"]),
).map(str.strip)


class Dreaming(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self._folder = TemporaryDirectory()
        self.home = Path(self._folder.name) / "home"
        self.clock = ManualClock()
        self.memory = Memory.open(self.home, clock=self.clock, embedder=None)
        self.session = self.memory.session("s", resource="ada", cwd="/w")
        self.number = count(1)
        self.lines: list[str] = []
        """What people have written on the page."""
        self.remarks: list[str] = []
        """What they have typed among the notes."""
        self.taken_off: set[str] = set()

    def teardown(self) -> None:
        try:
            self.dreams_the_same_of_the_same()
        finally:
            self.memory.close()
            self._folder.cleanup()

    @initialize(seeded=st.booleans())
    def begins(self, seeded: bool) -> None:
        if seeded:
            self.page.parent.mkdir(parents=True, exist_ok=True)
            self.page.write_text("# Me\n\nI raise 12 quails.\n\n- My boat is called Difference\n", "utf-8")
            self.lines += ["I raise 12 quails.", "My boat is called Difference"]

    # -- the agent --------------------------------------------------------------------------------------------

    @rule(text=NOTES, importance=st.sampled_from([0.3, 0.7, 1.0]))
    def takes_a_note(self, text: str, importance: float) -> None:
        self.session.note(text, importance=importance)

    # -- dreams -----------------------------------------------------------------------------------------------

    @rule()
    def dreams(self) -> None:
        self.goes_on()
        dream = self.memory.dream("ada")
        assert dream.status == "done", dream
        assert accounted(self.memory, taken_off=self.taken_off).waiting == []

    @rule(phase=st.sampled_from(PHASES), text=NOTES)
    def dreams_while_a_note_is_taken(self, phase: str, text: str) -> None:
        self.dream_disturbed(phase, lambda: self.session.note(text))

    @rule(phase=st.sampled_from(PHASES))
    def dreams_in_vain(self, phase: str) -> None:
        with contextlib.suppress(ZeroDivisionError):
            self.dream_disturbed(phase, lambda: 1 // 0)
        assert self.memory.resource("ada").dreams()[0].status == self.unless_committed(phase)

    @rule(phase=st.sampled_from(PHASES))
    def dreams_and_is_called_off(self, phase: str) -> None:
        self.dream_disturbed(phase, lambda: self.memory.resource("ada").cancel_dream())
        assert self.memory.resource("ada").dreams()[0].status == self.unless_committed(phase)

    @rule(phase=st.sampled_from(PHASES[:-1]))
    def dreams_and_dies(self, phase: str) -> None:
        """Its memory is closed, so that not even its end can be told; and then nobody hears of it for long enough."""
        self.goes_on()
        with Memory.open(self.home, clock=self.clock, embedder=None) as other:

            def die(now: str, _: str) -> None:
                if now == phase:
                    other.close()
                    raise ZeroDivisionError

            with pytest.raises(ZeroDivisionError):
                other.dream("ada", watch=die)
        left = self.memory.resource("ada").state.dreams.running
        assert left is not None
        assert PHASE_AFTER[left.stage] == phase
        self.clock.advance(seconds=LEASE_DURATION.total_seconds())

    @rule()
    def takes_a_dream_back(self) -> None:
        with contextlib.suppress(NotFound, Conflict):
            self.memory.resource("ada").undo_dream()

    # -- people -----------------------------------------------------------------------------------------------

    @rule(section=st.sampled_from([Section.BOND, Section.ACTIVE]))
    def a_person_writes_on_the_page(self, section: Section) -> None:
        self.look()
        line = f"Line {next(self.number)} of hers"
        heading, page = f"## {section}\n", self.page.read_text("utf-8") if self.page.exists() else ""
        self.page.parent.mkdir(parents=True, exist_ok=True)
        added = page.replace(heading, f"{heading}\n- {line}\n", 1) if heading in page else f"{page}\n- {line}\n"
        self.page.write_text(added, "utf-8")
        self.lines.append(line)

    @rule()
    def a_person_types_among_the_notes(self) -> None:
        self.look()
        remark = f"Remark {next(self.number)} of hers."
        notes = self.notes.read_text("utf-8") if self.notes.exists() else ""
        self.notes.parent.mkdir(parents=True, exist_ok=True)
        self.notes.write_text(f"{notes}\n{remark}\n", "utf-8")
        self.remarks.append(remark)

    @precondition(lambda self: self.notes.exists() and "- [" in self.notes.read_text("utf-8"))
    @rule()
    def a_person_takes_a_note_off_the_page(self) -> None:
        self.look()
        text = self.notes.read_text("utf-8")
        if jottings := parse_notes(text):
            gone = jottings[-1]
            place = text.rindex(f"- [{gone.at}]")
            self.notes.write_text(text[:place], "utf-8")
            self.taken_off.add(gone.text)
            self.remarks = [remark for remark in self.remarks if remark not in text[place:]]

    @rule(hours=st.sampled_from([1, 30, 24 * 40]))
    def time_passes(self, hours: int) -> None:
        self.clock.advance(seconds=3_600 * hours)

    # -- what holds -------------------------------------------------------------------------------------------

    @invariant()
    def every_note_is_in_one_place(self) -> None:
        self.look()
        accounted(self.memory, taken_off=self.taken_off)
        in_order(self.memory)
        shown(self.memory)

    @invariant()
    def what_people_wrote_stands_on_the_page(self) -> None:
        page = text_of(self.memory, MEMORY_PAGE_PATH)
        assert [line for line in self.lines if line not in page] == []

    @invariant()
    def what_people_typed_waits_or_was_taken_in_once(self) -> None:
        events = events_of(self.memory)
        taken = {
            note
            for event in standing(events)
            if isinstance(event.payload, DreamCommitted)
            for note in event.payload.notes
        }
        kept = Counter(
            event.payload.text for event in events if isinstance(event.payload, CrystalCreated) and event.id in taken
        )
        waiting = text_of(self.memory, NOTES_PAGE_PATH)
        for remark in self.remarks:
            assert (kept[remark], waiting.count(remark)) in ((0, 1), (1, 0)), remark

    @invariant()
    def the_page_has_its_size(self) -> None:
        assert len(text_of(self.memory, MEMORY_PAGE_PATH)) <= MAX_PAGE_CHARACTERS

    @invariant()
    def the_state_is_what_the_journal_says(self) -> None:
        fold = ResourceFold("resource/ada")
        state = fold.initial()
        for event in events_of(self.memory):
            state = fold.apply(state, event)
        assert state == self.memory._context.resource_stream("ada").state  # pyright: ignore[reportPrivateUsage]

    def dreams_the_same_of_the_same(self) -> None:
        """Dreams are made of nothing but the journal and the time."""
        self.goes_on()
        self.look()
        self.memory.close()
        pages: list[str] = []
        for copy in ("one", "other"):
            home = shutil.copytree(self.home, self.home.with_name(copy))
            with Memory.open(home, clock=self.clock, embedder=None) as memory:
                memory.dream("ada")
                pages.append(text_of(memory, MEMORY_PAGE_PATH))
                memory.dream("ada")
                again, seeded = text_of(memory, MEMORY_PAGE_PATH), memory.resource("ada").state.dreams.page_adopted
            if not seeded:  # what was written before the first dream is worked in little by little
                assert without_header(again) == without_header(pages[-1]), "twice is as good as once"
        assert pages[0] == pages[1]

    def goes_on(self) -> None:
        """With what was left in the middle, if anything was: what was proposed by then is what comes of it."""
        left = self.memory.resource("ada").state.dreams.running
        if left is None:
            return
        proposed = self.proposals()
        dream = self.memory.dream("ada")
        assert dream.status == "done", dream
        assert (dream.id == left.dream) == left.is_resumable(self.clock.now)
        assert self.proposals() - proposed == (not left.proposed or dream.id != left.dream)

    def proposals(self) -> int:
        return sum(isinstance(event.payload, DreamProposed) for event in events_of(self.memory))

    def dream_disturbed(self, phase: str, disturb: Any) -> None:
        self.goes_on()
        self.memory.dream("ada", watch=lambda now, _: disturb() if now == phase else None)

    def unless_committed(self, phase: str) -> str:
        return "done" if phase == "index" else "failed"

    def look(self) -> None:
        """Whoever looks brings files and journal together."""
        self.memory.flush()
        for path in (MEMORY_PAGE_PATH, NOTES_PAGE_PATH):
            with contextlib.suppress(NotFound):
                self.session.read(path)

    @property
    def page(self) -> Path:
        return folder_of(self.home) / MEMORY_PAGE_PATH

    @property
    def notes(self) -> Path:
        return folder_of(self.home) / NOTES_PAGE_PATH


@pytest.mark.spec("A2", "G6", "G7", "G12", "G13")
class TestDreaming(Dreaming.TestCase):
    settings = settings(max_examples=examples(10), stateful_step_count=15, deadline=None)
