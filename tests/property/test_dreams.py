"""A state machine of agents, users and dreams in any order: no text is lost."""

from __future__ import annotations

import contextlib
import shutil
from collections import Counter
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from dream_checks import (
    account_for_notes,
    check_dream_order,
    check_files,
    committed_dreams,
    events_of,
    folder_of,
    text_of,
    without_header,
)
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from profiles import examples

from inmind import Memory
from inmind.core.events.crystals import CrystalCreated
from inmind.core.events.dreams import DreamCommitted
from inmind.documents.document import MEMORY_PAGE_PATH, NOTES_PAGE_PATH
from inmind.documents.notes_page import parse_notes
from inmind.dreams.page.page import MAX_PAGE_CHARACTERS, Section
from inmind.dreams.state import LEASE_DURATION
from inmind.errors import Conflict, NotFound
from inmind.jobs.dreaming import PHASES
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
        """Lines that users wrote on the page."""
        self.remarks: list[str] = []
        """Remarks that users typed between notes."""
        self.removed_notes: set[str] = set()

    def teardown(self) -> None:
        try:
            self.check_determinism()
        finally:
            self.memory.close()
            self._folder.cleanup()

    @initialize(seeded=st.booleans())
    def start(self, seeded: bool) -> None:
        if seeded:
            self.page.parent.mkdir(parents=True, exist_ok=True)
            self.page.write_text("# Me\n\nI raise 12 quails.\n\n- My boat is called Difference\n", "utf-8")
            self.lines += ["I raise 12 quails.", "My boat is called Difference"]

    # -- the agent --------------------------------------------------------------------------------------------

    @rule(text=NOTES, importance=st.sampled_from([0.3, 0.7, 1.0]))
    def add_note(self, text: str, importance: float) -> None:
        self.session.note(text, importance=importance)

    # -- dreams -----------------------------------------------------------------------------------------------

    @rule()
    def dream(self) -> None:
        self.resume()
        dream = self.memory.dream("ada")
        assert dream.status == "done", dream
        assert account_for_notes(self.memory, removed=self.removed_notes).waiting == []

    @rule(phase=st.sampled_from(PHASES), text=NOTES)
    def dream_while_a_note_is_added(self, phase: str, text: str) -> None:
        self.dream_disturbed(phase, lambda: self.session.note(text))

    @rule(phase=st.sampled_from(PHASES))
    def dream_that_fails(self, phase: str) -> None:
        with contextlib.suppress(ZeroDivisionError):
            self.dream_disturbed(phase, lambda: 1 // 0)
        assert self.memory.resource("ada").dreams()[0].status == self.expected_status(phase)

    @rule(phase=st.sampled_from(PHASES))
    def dream_that_is_cancelled(self, phase: str) -> None:
        self.dream_disturbed(phase, lambda: self.memory.resource("ada").cancel_dream())
        assert self.memory.resource("ada").dreams()[0].status == self.expected_status(phase)

    @rule(phase=st.sampled_from(PHASES[:-1]))
    def dream_that_dies(self, phase: str) -> None:
        """The memory is closed, so that no end is recorded; then the lease expires."""
        self.resume()
        with Memory.open(self.home, clock=self.clock, embedder=None) as other:

            def die(now: str, _: str) -> None:
                if now == phase:
                    other.close()
                    raise ZeroDivisionError

            with pytest.raises(ZeroDivisionError):
                other.dream("ada", watch=die)
        unfinished = self.memory.resource("ada").state.dreams.running
        assert unfinished is not None
        self.clock.advance(seconds=LEASE_DURATION.total_seconds())

    @rule()
    def undo_dream_if_possible(self) -> None:
        with contextlib.suppress(NotFound, Conflict):
            self.memory.resource("ada").undo_dream()

    # -- users ------------------------------------------------------------------------------------------------

    @rule(section=st.sampled_from([Section.BOND, Section.ACTIVE]))
    def user_writes_on_the_page(self, section: Section) -> None:
        self.sync_files()
        line = f"Line {next(self.number)} of hers"
        heading, page = f"## {section}\n", self.page.read_text("utf-8") if self.page.exists() else ""
        self.page.parent.mkdir(parents=True, exist_ok=True)
        added = page.replace(heading, f"{heading}\n- {line}\n", 1) if heading in page else f"{page}\n- {line}\n"
        self.page.write_text(added, "utf-8")
        self.lines.append(line)

    @rule()
    def user_types_between_notes(self) -> None:
        self.sync_files()
        remark = f"Remark {next(self.number)} of hers."
        notes = self.notes.read_text("utf-8") if self.notes.exists() else ""
        self.notes.parent.mkdir(parents=True, exist_ok=True)
        self.notes.write_text(f"{notes}\n{remark}\n", "utf-8")
        self.remarks.append(remark)

    @precondition(lambda self: self.notes.exists() and "- [" in self.notes.read_text("utf-8"))
    @rule()
    def user_removes_a_note(self) -> None:
        self.sync_files()
        text = self.notes.read_text("utf-8")
        if parsed := parse_notes(text):
            removed = parsed[-1]
            place = text.rindex(f"- [{removed.at}]")
            self.notes.write_text(text[:place], "utf-8")
            self.removed_notes.add(removed.text)
            self.remarks = [remark for remark in self.remarks if remark not in text[place:]]

    @rule(hours=st.sampled_from([1, 30, 24 * 40]))
    def time_passes(self, hours: int) -> None:
        self.clock.advance(seconds=3_600 * hours)

    # -- invariants -------------------------------------------------------------------------------------------

    @invariant()
    def every_note_is_in_one_place(self) -> None:
        self.sync_files()
        account_for_notes(self.memory, removed=self.removed_notes)
        check_dream_order(self.memory)
        check_files(self.memory)

    @invariant()
    def lines_of_users_are_on_the_page(self) -> None:
        page = text_of(self.memory, MEMORY_PAGE_PATH)
        assert [line for line in self.lines if line not in page] == []

    @invariant()
    def remarks_of_users_wait_or_are_committed_once(self) -> None:
        events = events_of(self.memory)
        committed = {
            note
            for event in committed_dreams(events)
            if isinstance(event.payload, DreamCommitted)
            for note in event.payload.notes
        }
        kept = Counter(
            event.payload.text
            for event in events
            if isinstance(event.payload, CrystalCreated) and event.id in committed
        )
        waiting = text_of(self.memory, NOTES_PAGE_PATH)
        for remark in self.remarks:
            assert (kept[remark], waiting.count(remark)) in ((0, 1), (1, 0)), remark

    @invariant()
    def the_page_is_within_its_limit(self) -> None:
        assert len(text_of(self.memory, MEMORY_PAGE_PATH)) <= MAX_PAGE_CHARACTERS

    @invariant()
    def the_state_equals_a_fold_of_the_journal(self) -> None:
        fold = ResourceFold("resource/ada")
        state = fold.initial()
        for event in events_of(self.memory):
            state = fold.apply(state, event)
        assert state == self.memory._context.resource_stream("ada").state  # pyright: ignore[reportPrivateUsage]

    def check_determinism(self) -> None:
        """A dream depends only on the journal and the time."""
        self.resume()
        self.sync_files()
        self.memory.close()
        pages: list[str] = []
        for copy in ("one", "other"):
            home = shutil.copytree(self.home, self.home.with_name(copy))
            with Memory.open(home, clock=self.clock, embedder=None) as memory:
                memory.dream("ada")
                pages.append(text_of(memory, MEMORY_PAGE_PATH))
                memory.dream("ada")
                again, seeded = text_of(memory, MEMORY_PAGE_PATH), memory.resource("ada").state.dreams.page_adopted
            if not seeded:  # text from before the first dream is adopted gradually
                assert without_header(again) == without_header(pages[-1]), "a second dream changes nothing"
        assert pages[0] == pages[1]

    def resume(self) -> None:
        """Resume an unfinished dream, if any."""
        unfinished = self.memory.resource("ada").state.dreams.running
        if unfinished is None:
            return
        dream = self.memory.dream("ada")
        assert dream.status == "done", dream
        assert (dream.id == unfinished.dream) == unfinished.is_resumable(self.clock.now)

    def dream_disturbed(self, phase: str, disturb: Any) -> None:
        self.resume()
        self.memory.dream("ada", watch=lambda now, _: disturb() if now == phase else None)

    def expected_status(self, phase: str) -> str:
        return "done" if phase == "index" else "failed"

    def sync_files(self) -> None:
        """Reading synchronizes files and journal."""
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
