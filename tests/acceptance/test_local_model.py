"""A real model, small and confused: it is asked as any other, and whatever it answers a dream keeps its promises."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import jsonschema_rs
import pytest
from builders import home_of
from local_model import local_model, need_model

from inmind import Memory
from inmind.core.tokens import estimator
from inmind.dreams.models import ModelReply, OpenAICompatible, Question
from inmind.dreams.page.limits import MAX_PAGE_CHARACTERS, MAX_PAGE_TOKENS
from inmind.dreams.page.sections import Section
from inmind.errors import ModelFailed
from inmind.jobs.dreaming.history import Dream
from inmind.testing import ManualClock

pytestmark = pytest.mark.exhaustive

PATIENCE = 120.0
"""Seconds for an answer that takes one: whoever else is busy on this machine is no failure of the model's."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with local_model() as url:
        yield url


@pytest.fixture
def model(url: str) -> OpenAICompatible:
    return OpenAICompatible(url, "smollm2", key="")


# -- asking it ---------------------------------------------------------------------------------------------


@pytest.mark.spec("G12")
def test_it_answers_a_question_and_says_what_that_took(model: OpenAICompatible) -> None:
    capital = Question(system="You answer in one word.", prompt="What is the capital of France?", max_tokens=40)
    reply = model.ask(capital, seconds=PATIENCE)
    assert "Paris" in reply.text
    assert not reply.truncated
    assert min(reply.tokens) > 0


@pytest.mark.spec("G12")
def test_it_is_held_to_a_schema(model: OpenAICompatible) -> None:
    schema = {
        "type": "object",
        "properties": {
            "section": {"enum": ["The Bond", "The Niche"]},
            "importance": {"type": "integer", "minimum": 0, "maximum": 9},
            "sources": {"type": "array", "items": {"enum": ["N1", "N2"]}, "maxItems": 2},
        },
        "required": ["section", "importance", "sources"],
        "additionalProperties": False,
    }
    asked = Question(system="", prompt="Tell me a joke about tabs.", schema=schema, max_tokens=200)
    reply = model.ask(asked, seconds=PATIENCE)
    jsonschema_rs.validate(schema, json.loads(reply.text))
    assert not reply.truncated


@pytest.mark.spec("G12")
def test_an_answer_that_has_no_room_is_cut_and_says_so(model: OpenAICompatible) -> None:
    schema = {"type": "object", "properties": {"story": {"type": "string", "minLength": 200}}, "required": ["story"]}
    asked = Question(system="", prompt="Tell me a story of a king.", schema=schema, max_tokens=8)
    reply = model.ask(asked, seconds=PATIENCE)
    assert reply.truncated
    assert reply.tokens[1] == 8
    with pytest.raises(json.JSONDecodeError):
        json.loads(reply.text)


@pytest.mark.spec("G12")
def test_one_that_takes_too_long_has_failed_and_can_be_asked_again(model: OpenAICompatible) -> None:
    endless = Question(system="", prompt="Tell me a very long story of a king.", max_tokens=4_000)
    with pytest.raises(ModelFailed, match="did not answer in time"):
        model.ask(endless, seconds=0.3)
    short = Question(system="", prompt="Hello!", max_tokens=4)
    assert model.ask(short, seconds=PATIENCE).text


@pytest.mark.spec("G12")
def test_a_server_that_has_gone_is_a_failure() -> None:
    with local_model() as url:
        pauses: list[float] = []
        model = OpenAICompatible(url, "smollm2", key="", pause=pauses.append)
        assert model.ask(Question(system="", prompt="Hello!", max_tokens=4), seconds=PATIENCE).text
    with pytest.raises(ModelFailed, match="cannot be reached"):
        model.ask(Question(system="", prompt="Hello?"), seconds=PATIENCE)
    assert pauses


# -- dreaming with it --------------------------------------------------------------------------------------

NOON = datetime(2026, 3, 12, 12, tzinfo=UTC)
"""It is told the time: on another day it would answer something else."""

THEIRS = "Call her Dr. Lovelace, and never `Ada`"

KNOWN = (
    "Ben Okafor reviews every pull request before 11:30",
    "Never deploy on a Friday",
    "The staging server is 10.0.0.17",
    "The contract with Kestrel GmbH ends in 2031",
)
"""What rules have made lines of before the model is asked for the first time: it may want to change them."""

NEW = (
    "Ada's flight LH1234 leaves on 20 March 2026 at 07:45",
    "The API migration costs 4,200 EUR and is due on 3 April 2026",
    "Invoice INV-2231 is unpaid",
)

TELLING = "Okafor 11:30 Friday 10.0.0.17 Kestrel 2031 LH1234 07:45 4,200 INV-2231".split()
"""Names and numbers out of these, each of one of them."""

EXAMPLE = "Prefers tabs over spaces"
"""Out of the question that it is asked; nothing above says so."""

SEEDS = (1, pytest.param(None, marks=pytest.mark.torture))
"""Where this was written, the answers that the first leads to come to an end, and those of the other to none: scripts
have such ones too, and waiting for them takes long."""

BRIEF = 140
"""Tokens of an answer."""


@dataclass
class Overheard:
    """The model, and all that it has answered: briefly, since left to itself it often comes to no end."""

    model: OpenAICompatible
    replies: list[ModelReply] = field(default_factory=list[ModelReply])

    @property
    def name(self) -> str:
        return self.model.name

    def ask(self, question: Question, /, *, seconds: float) -> ModelReply:
        reply = self.model.ask(replace(question, max_tokens=BRIEF), seconds=seconds)
        self.replies.append(reply)
        return reply


@dataclass(frozen=True)
class Night:
    """One dream by the model."""

    memory: Memory
    known: dict[str, str]
    """Notes that were on the page by then, by their ids."""
    noted: dict[str, str]
    """Those that the model was shown."""
    dream: Dream
    replies: list[ModelReply]

    @property
    def folder(self) -> Path:
        return home_of(self.memory) / "resources" / "ada"

    @property
    def page(self) -> str:
        return (self.folder / "MEMORY.md").read_text("utf-8")

    def finds(self, words: str) -> set[str]:
        return {hit.crystal.id for hit in self.memory.resource("ada").search(words)}


@contextmanager
def night(home: Path, seed: int | None) -> Generator[Night]:
    clock = ManualClock(NOON)
    with Memory.open(home, clock=clock, embedder=None) as memory:
        known = noted(memory, KNOWN)
        assert memory.dream("ada").by == "rules"
        page = home_of(memory) / "resources" / "ada" / "MEMORY.md"
        page.write_text(page.read_text("utf-8").replace("## The Bond\n", f"## The Bond\n\n- {THEIRS}\n"), "utf-8")
    with local_model(seed=seed) as url:
        model = Overheard(OpenAICompatible(url, "smollm2", key=""))
        with Memory.open(home, clock=clock, embedder=None, model=model) as memory:
            new = noted(memory, NEW)
            yield Night(memory, known, new, memory.dream("ada"), model.replies)


def noted(memory: Memory, texts: tuple[str, ...]) -> dict[str, str]:
    session = memory.session("shop", resource="ada")
    return {session.note(text).id: text for text in texts}


# One test and not one for each promise: what is expensive here is the answer, and xdist would have it given twice.
@pytest.mark.spec("G4", "G6", "G7", "G8", "G12", "G13")
@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_it_answers_a_dream_keeps_its_promises(tmp_path: Path, seed: int | None) -> None:
    with night(tmp_path, seed) as lived:
        it_was_asked_and_what_came_of_it_is_told(lived)
        what_it_makes_up_is_caught(lived)
        every_note_is_taken_in_and_found(lived)
        names_and_numbers_are_on_the_page_or_found(lived)
        the_page_has_what_people_wrote_and_its_seven_sections_and_keeps_to_its_room(lived)


def it_was_asked_and_what_came_of_it_is_told(lived: Night) -> None:
    dream = lived.dream
    assert dream.status == "done"
    assert lived.replies
    assert all(min(reply.tokens) > 0 for reply in lived.replies)
    assert dream.tokens == tuple(map(sum, zip(*(reply.tokens for reply in lived.replies), strict=True)))
    assert dream.by == ("rules" if dream.reason else "openai:smollm2")
    guards = {verdict.guard for verdict in dream.verdicts if verdict.passed}
    assert {"mass_drop", "pointers", "substance", "bond", "retention", "room"} <= guards
    assert lived.memory.resource("ada").dreams()[0] == dream


def what_it_makes_up_is_caught(lived: Night) -> None:
    """It names lines that are not there, comes to no end, and repeats the example of the question as if a note had said
    it: of all this nothing gets onto the page, no note is used up by it, and what was refused is told."""
    answers = [reply.text for reply in lived.replies]
    assert any(EXAMPLE in answer for answer in answers), answers
    assert lived.dream.refused or lived.dream.reason, answers
    assert EXAMPLE not in lived.page
    assert [note for note in NEW if note not in lived.page] == []


def every_note_is_taken_in_and_found(lived: Night) -> None:
    assert {*lived.dream.notes} == {*lived.noted}
    waiting = (lived.folder / "memory" / "scratch.md").read_text("utf-8")
    assert [note for note in NEW if note in waiting] == []
    assert [text for id, text in (lived.known | lived.noted).items() if id not in lived.finds(text)] == []


def names_and_numbers_are_on_the_page_or_found(lived: Night) -> None:
    for telling in TELLING:
        [id] = [id for id, text in (lived.known | lived.noted).items() if telling in text]
        assert telling in lived.page or id in lived.finds(telling)


def the_page_has_what_people_wrote_and_its_seven_sections_and_keeps_to_its_room(lived: Night) -> None:
    assert f"- {THEIRS}" in lived.page.splitlines()
    headings = [line.removeprefix("## ") for line in lived.page.splitlines() if line.startswith("#")]
    assert headings == ["# Working Memory State", *Section]
    assert len(lived.page) <= MAX_PAGE_CHARACTERS
    assert estimator()(lived.page) <= MAX_PAGE_TOKENS


# -- having it ---------------------------------------------------------------------------------------------


def test_without_the_model_a_test_skips_and_with_another_file_it_fails(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    with pytest.raises(pytest.skip.Exception, match=r"model\.gguf is not there"):
        need_model(file)
    file.write_bytes(b"GGUF")
    with pytest.raises(pytest.fail.Exception, match="is not the model"):
        need_model(file)
